use runtime::faults::{self, Fault, Operation};
use runtime::testing::{TempDir, run};

use super::*;

#[test]
fn a_failed_write_poisons_what_it_covered_and_nothing_else() {
    run(|| async {
        let temp = TempDir::new("log-poison");
        let node = Node::start(temp.path()).await;
        let config = LogConfig { segment_bytes: 400, ..small() };
        let (log, other) = (node.open("t", config).await, node.open("other", config).await);
        put(&log, &batch_of(&[1], 100)).await;
        put(&log, &batch_of(&[1], 100)).await;
        // The next segment's file cannot be made: a folder has its name.
        std::fs::create_dir(segment_file(log.dir(), 2, "log")).unwrap();
        let third = append(&log, &batch_of(&[1], 100));
        assert!(matches!(log.wait_durable(third.next_offset).await, Err(LogError::Storage(_))));
        assert!(matches!(log.wait_written(third.next_offset).await, Err(LogError::Storage(_))));
        assert_eq!(log.durable_end(), Offset(2));
        assert!(matches!(log.append(&batch(&[1]), Patch::leader(EPOCH)), Err(LogError::Storage(_))));
        // What was durable is served, the rest is not.
        assert_eq!(read(&log, 0, everything()).await.unwrap(), vec![(0, 1), (1, 1)]);
        assert!(log.wait_durable(Offset(2)).await.is_ok());
        put(&other, &batch(&[1])).await;
        assert_eq!(node.shard.stats().unwritten_bytes, 0);
        assert!(node.shard.stop_clean().await.is_err());
        std::fs::remove_dir(segment_file(log.dir(), 2, "log")).unwrap();
        drop((log, other, node));
        // Back after a restart, without what was never acknowledged.
        let node = Node::start(temp.path()).await;
        assert!(!node.dir.was_clean());
        let log = node.open("t", config).await;
        assert_eq!(put(&log, &batch(&[1])).await.base_offset, Offset(2));
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_full_disk_only_delays_the_seal() {
    run(|| async {
        let temp = TempDir::new("log-full-seal");
        let node = Node::start(temp.path()).await;
        let config = LogConfig { segment_bytes: 200, ..LogConfig::default() };
        let log = node.open("t", config).await;
        put(&log, &batch_of(&[1], 100)).await;
        // The sealed segment's time index does not fit.
        let index = segment_file(log.dir(), 0, "timeindex");
        std::os::unix::fs::symlink("/dev/full", &index).unwrap();
        let second = append(&log, &batch_of(&[2], 100));
        let started = runtime::clock::now_ms();
        while !log.full.get() {
            assert!(runtime::clock::now_ms() - started < 5000, "the seal never met the full disk");
            runtime::clock::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert!(log.failure().is_none());
        assert!(matches!(log.append(&batch(&[1]), Patch::leader(EPOCH)), Err(LogError::Full(_))));
        std::fs::remove_file(&index).unwrap();
        log.wait_durable(second.next_offset).await.unwrap();
        put(&log, &batch(&[3])).await;
        assert!(index.exists());
        assert_eq!(read_all(&log, 0, 1 << 20).await.len(), 3);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_log_start_that_is_not_on_disk_is_not_acknowledged_the_second_time_either() {
    run(|| async {
        let temp = TempDir::new("log-start-retry");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        put(&log, &batch(&[1, 2])).await;
        put(&log, &batch(&[3])).await;
        // The checkpoint's part cannot be written: a folder has its name.
        let in_the_way = temp.path().join("ringlog.checkpoint.0.tmp");
        std::fs::create_dir(&in_the_way).unwrap();
        for _ in 0..2 {
            assert!(matches!(log.delete_records_before(Offset(2)).await, Err(LogError::Io(_))));
        }
        std::fs::remove_dir(&in_the_way).unwrap();
        assert_eq!(log.delete_records_before(Offset(2)).await.unwrap(), Offset(2));
        drop(log);
        node.crash().await;
        let node = Node::start(temp.path()).await;
        assert_eq!(node.open("t", LogConfig::default()).await.log_start_offset(), Offset(2));
        node.stop().await;
    });
}

#[test]
fn a_damaged_length_in_the_open_segment_is_an_error_and_no_endless_read() {
    run(|| async {
        let temp = TempDir::new("log-damaged-length");
        let node = Node::start_direct(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        put(&log, &batch(&[1])).await;
        let second = log.size_bytes();
        put(&log, &batch(&[2])).await;
        log.drop_tail();
        for length in [10_000_i32, 100_000_000] {
            let file = std::fs::OpenOptions::new().write(true).open(segment_file(log.dir(), 0, "log")).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, &length.to_be_bytes(), second + 8).unwrap();
            file.sync_all().unwrap();
            for from in [0, 1] {
                let found = read(&log, from, everything()).await;
                match from {
                    0 => assert_eq!(found.unwrap(), vec![(0, 1)]),
                    _ => assert!(matches!(found, Err(LogError::Corrupt { .. })), "{found:?}"),
                }
            }
        }
        drop(log);
        node.crash().await;
    });
}

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// The next `times` operations of this kind on topic `t`'s files fail.
fn fail(operation: Operation, errno: i32, times: usize) {
    faults::inject(Fault { operation, path_part: "/t-0/".into(), passes: 0, times, errno });
}

#[test]
fn a_failed_sync_is_never_tried_again_and_never_acknowledged() {
    run(|| async {
        let temp = TempDir::new("log-sync-fails");
        let node = Node::start_direct(temp.path()).await;
        let (log, other) = (node.open("t", LogConfig::default()).await, node.open("other", LogConfig::default()).await);
        put(&log, &batch(&[1])).await;
        fail(Operation::Sync, EIO, 1);
        let second = append(&log, &batch(&[2]));
        let error = log.wait_durable(second.next_offset).await.unwrap_err();
        assert!(matches!(&error, LogError::Storage(text) if text.contains("cannot sync")), "{error}");
        assert_eq!(faults::clear(), 0);
        // The device works again, but the kernel may have dropped the pages: a later sync would prove nothing.
        assert!(matches!(log.append(&batch(&[3]), Patch::leader(EPOCH)), Err(LogError::Storage(_))));
        assert_eq!(log.durable_end(), Offset(1));
        assert_eq!(read(&log, 0, everything()).await.unwrap(), vec![(0, 1)]);
        // The same device's other partitions go on.
        put(&other, &batch(&[1])).await;
        assert_eq!(node.shard.stats().unwritten_bytes, 0);
        assert!(node.shard.stop_clean().await.is_err(), "a poisoned log is no clean stop");
        drop((log, other, node));
        // After a restart what was acknowledged is there; the batch that failed may be, whole, or not.
        let node = Node::start_direct(temp.path()).await;
        assert!(!node.dir.was_clean());
        let log = node.open("t", LogConfig::default()).await;
        let found = read_all(&log, 0, 1 << 20).await;
        assert!(found == [(0, 1)] || found == [(0, 1), (1, 1)], "{found:?}");
        put(&log, &batch(&[4])).await;
        drop(log);
        node.stop().await;
    });
}

#[test]
fn batches_behind_a_failed_sync_fail_with_it_though_their_own_went_well() {
    run(|| async {
        let temp = TempDir::new("log-sync-overlap");
        let node = Node::start_direct(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        put(&log, &batch(&[1])).await;
        fail(Operation::Sync, EIO, 1);
        // Many rounds overlap; only the first sync fails.
        let mut waits = Vec::new();
        for i in 0..20 {
            match log.append(&batch(&[i]), Patch::leader(EPOCH)) {
                Ok(appended) => {
                    let log = log.clone();
                    waits.push(runtime::spawn("wait", async move { log.wait_durable(appended.next_offset).await }));
                }
                Err(error) => assert!(matches!(error, LogError::Storage(_)), "{error}"),
            }
            runtime::task::yield_now().await;
        }
        assert!(!waits.is_empty());
        for wait in waits {
            assert!(matches!(wait.join().await.unwrap(), Err(LogError::Storage(_))));
        }
        assert_eq!(faults::clear(), 0);
        assert_eq!(log.durable_end(), Offset(1));
        drop(log);
        node.crash().await;
    });
}

#[test]
fn a_failed_direct_write_poisons_and_a_full_device_before_the_write_brakes() {
    run(|| async {
        let temp = TempDir::new("log-write-fails");
        let node = Node::start_direct(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        fail(Operation::Reserve, ENOSPC, 1);
        let first = append(&log, &batch(&[1]));
        // Refused while the device is full, and written once there is room again: nothing is lost.
        log.wait_durable(first.next_offset).await.unwrap();
        assert_eq!(faults::clear(), 0);
        fail(Operation::Write, EIO, 1);
        let second = append(&log, &batch(&[2]));
        assert!(matches!(log.wait_durable(second.next_offset).await, Err(LogError::Storage(_))));
        assert_eq!(faults::clear(), 0);
        assert_eq!(read(&log, 0, everything()).await.unwrap(), vec![(0, 1)]);
        drop(log);
        node.crash().await;
        let node = Node::start_direct(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        assert_eq!(read_all(&log, 0, 1 << 20).await, vec![(0, 1)]);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_failed_read_is_an_error_of_that_read_alone() {
    run(|| async {
        let temp = TempDir::new("log-read-fails");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        put(&log, &batch(&[1])).await;
        log.drop_tail();
        fail(Operation::Read, EIO, 1);
        assert!(read(&log, 0, everything()).await.is_err());
        assert_eq!(faults::clear(), 0);
        assert_eq!(read(&log, 0, everything()).await.unwrap(), vec![(0, 1)]);
        put(&log, &batch(&[2])).await;
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_cut_that_fails_half_way_lets_nothing_be_appended_behind_it() {
    run(|| async {
        let temp = TempDir::new("log-half-cut");
        let node = Node::start_direct(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        for i in 0..4 {
            put(&log, &batch_of(&[i], 100)).await;
        }
        let path_part = "t-0/00000000000000000000.log".to_string();
        faults::inject(Fault { operation: Operation::Sync, path_part, passes: 0, times: 1, errno: 5 });
        assert!(log.truncate_to(Offset(2)).await.is_err());
        assert_eq!(faults::clear(), 0);
        // The file is shorter than the log by now, or will be.
        assert!(matches!(log.append(&batch(&[1]), Patch::leader(EPOCH)), Err(LogError::Storage(_))));
        assert!(node.shard.stop_clean().await.is_err());
        drop((log, node));
        let node = Node::start_direct(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        assert_eq!(read_all(&log, 0, 1 << 20).await, vec![(0, 1), (1, 1)]);
        assert_eq!(put(&log, &batch(&[1])).await.base_offset, Offset(2));
        drop(log);
        node.stop().await;
    });
}

#[test]
fn an_error_of_the_folder_marks_it_and_one_of_a_file_does_not() {
    run(|| async {
        let temp = TempDir::new("log-folder-fails");
        let node = Node::start_direct(temp.path()).await;
        let (log, other) = (node.open("t", LogConfig::default()).await, node.open("other", LogConfig::default()).await);
        put(&log, &batch(&[1])).await;
        put(&other, &batch(&[1])).await;
        fail(Operation::Sync, EIO, 1);
        let second = append(&log, &batch(&[2]));
        assert!(log.wait_durable(second.next_offset).await.is_err());
        assert_eq!(
            (node.dir.failure(), other.folder_failure()),
            (None, None),
            "one file's data is one partition's loss"
        );
        // A file system that went read-only is not.
        const EROFS: i32 = 30;
        let path_part = "/other-0/".to_string();
        faults::inject(Fault { operation: Operation::Write, path_part, passes: 0, times: 1, errno: EROFS });
        let second = append(&other, &batch(&[2]));
        assert!(other.wait_durable(second.next_offset).await.is_err());
        assert_eq!(faults::clear(), 0);
        let why = node.dir.failure().unwrap();
        assert!(why.contains("Read-only"), "{why}");
        assert!(log.folder_failure().is_some(), "all partitions of the folder learn of it");
        drop((log, other));
        node.crash().await;
    });
}

#[test]
fn a_folder_that_was_taken_away_is_noticed() {
    run(|| async {
        let temp = TempDir::new("log-folder-gone");
        let path = temp.path().join("data");
        let node = Node::start(&path).await;
        let owner = crate::Identity { cluster_id: "c".into(), node_id: model::NodeId(1) };
        node.dir.adopt(&owner).await.unwrap();
        node.dir.mind_space().await.unwrap();
        assert_eq!(node.dir.failure(), None);
        std::fs::rename(&path, temp.path().join("away")).unwrap();
        let _ = node.dir.mind_space().await;
        assert!(node.dir.failure().unwrap().contains("is gone"));
        node.crash().await;
    });
}

/// Of two folders of one shard only the one that failed is not called clean.
#[test]
fn a_stop_is_clean_for_each_folder_by_itself() {
    run(|| async {
        let (temp, second) = (TempDir::new("log-clean-one"), TempDir::new("log-clean-two"));
        let node = Node::start_direct(temp.path()).await;
        let dir = DataDir::open(second.path()).await.unwrap();
        let log = node.open("t", LogConfig::default()).await;
        let mut spec = node.spec("elsewhere", LogConfig::default());
        spec.data_dir = dir.clone();
        let elsewhere = node.shard.create_partition(spec).await.unwrap();
        put(&log, &batch(&[1])).await;
        put(&elsewhere, &batch(&[1])).await;
        fail(Operation::Sync, EIO, 1);
        let lost = append(&log, &batch(&[2]));
        assert!(log.wait_durable(lost.next_offset).await.is_err());
        drop((log, elsewhere));
        let failed = node.shard.stop_clean_by_folder().await;
        assert_eq!(failed.len(), 1);
        assert!(Arc::ptr_eq(&failed[0].0, &node.dir));
        dir.close_clean().await.unwrap();
        drop((node, dir, failed));
        assert!(!DataDir::open(temp.path()).await.unwrap().was_clean());
        assert!(DataDir::open(second.path()).await.unwrap().was_clean());
    });
}

/// Puts a folder where a file has to be made, so that making it fails.
fn obstruct(path: &Path) {
    std::fs::create_dir_all(path.join("in the way")).unwrap();
}

#[test]
fn an_index_that_cannot_be_written_poisons_its_partition_alone() {
    run(|| async {
        for kind in ["index", "timeindex"] {
            let temp = TempDir::new("log-index-fails");
            let node = Node::start(temp.path()).await;
            let config = LogConfig { segment_bytes: 200, ..LogConfig::default() };
            let (log, other) = (node.open("t", config).await, node.open("other", config).await);
            put(&log, &batch_of(&[1], 100)).await;
            obstruct(&segment_file(log.dir(), 0, kind));
            // It rolls, and the old segment cannot be sealed: what was durable is served, nothing follows.
            let second = append(&log, &batch_of(&[2], 100));
            assert!(matches!(log.wait_durable(second.next_offset).await, Err(LogError::Storage(_))), "{kind}");
            assert_eq!(read(&log, 0, everything()).await.unwrap(), vec![(0, 1)]);
            put(&other, &batch_of(&[1], 100)).await;
            put(&other, &batch_of(&[1], 100)).await;
            assert_eq!(node.shard.stats().unwritten_bytes, 0);
            assert!(node.shard.stop_clean().await.is_err());
            std::fs::remove_dir_all(segment_file(log.dir(), 0, kind)).unwrap();
            drop((log, other, node));
            let node = Node::start(temp.path()).await;
            let log = node.open("t", config).await;
            let found = read_all(&log, 0, 1 << 20).await;
            assert_eq!(found[0], (0, 1));
            put(&log, &batch_of(&[3], 100)).await;
            drop(log);
            node.stop().await;
        }
    });
}

#[test]
fn leaderships_that_cannot_be_saved_stop_the_roll_that_counts_on_them() {
    run(|| async {
        let temp = TempDir::new("log-epochs-fail");
        let node = Node::start(temp.path()).await;
        let config = LogConfig { segment_bytes: 200, ..LogConfig::default() };
        let log = node.open("t", config).await;
        put(&log, &batch_of(&[1], 100)).await;
        obstruct(&log.dir().join("leader-epoch-checkpoint.tmp"));
        let second = append(&log, &batch_of(&[2], 100));
        assert!(matches!(log.wait_durable(second.next_offset).await, Err(LogError::Storage(_))));
        assert_eq!(read(&log, 0, everything()).await.unwrap(), vec![(0, 1)]);
        std::fs::remove_dir_all(log.dir().join("leader-epoch-checkpoint.tmp")).unwrap();
        drop(log);
        node.crash().await;
        let node = Node::start(temp.path()).await;
        let log = node.open("t", config).await;
        assert_eq!(log.latest_epoch(), Some(EPOCH));
        put(&log, &batch_of(&[2], 100)).await;
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_checkpoint_that_cannot_be_renamed_delays_what_counts_on_it_and_nothing_else() {
    run(|| async {
        let temp = TempDir::new("log-rename-fails");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig { segment_bytes: 200, ..LogConfig::default() }).await;
        put(&log, &batch_of(&[1], 100)).await;
        log.settle().await.unwrap();
        log.home.flush().await.unwrap();
        // Renaming a file over a folder that holds something fails.
        let part = temp.path().join("ringlog.checkpoint.0");
        std::fs::remove_file(&part).ok();
        obstruct(&part);
        // Recovery points stay where they are; acknowledging goes on, rolls included.
        for i in 0..4 {
            put(&log, &batch_of(&[i], 100)).await;
        }
        assert!(log.segment_count() > 1 && log.failure().is_none());
        assert!(
            log.delete_records_before(Offset(2)).await.is_err(),
            "a log start that is not on disk is not acknowledged"
        );
        assert!(segment_file(log.dir(), 0, "log").exists(), "nor is anything unlinked for it");
        std::fs::remove_dir_all(&part).unwrap();
        assert_eq!(log.delete_records_before(Offset(2)).await.unwrap(), Offset(2));
        drop(log);
        node.stop().await;
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        assert_eq!(read_all(&log, 2, 1 << 20).await, vec![(2, 1), (3, 1), (4, 1)]);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_file_that_cannot_be_unlinked_stays_without_harm() {
    run(|| async {
        let temp = TempDir::new("log-unlink-fails");
        let node = Node::start(temp.path()).await;
        let config = LogConfig { segment_bytes: 200, file_delete_delay_ms: 0, ..LogConfig::default() };
        let log = node.open("t", config).await;
        for i in 0..5 {
            put(&log, &batch_of(&[i], 100)).await;
        }
        log.settle().await.unwrap();
        // A folder is not removed as a file is.
        let stuck = segment_file(log.dir(), 0, "index");
        std::fs::remove_file(&stuck).ok();
        obstruct(&stuck);
        log.delete_records_before(Offset(3)).await.unwrap();
        let started = runtime::clock::now_ms();
        while segment_file(log.dir(), 2, "log").exists() {
            assert!(runtime::clock::now_ms() - started < 5000, "the others do not go");
            runtime::clock::sleep(std::time::Duration::from_millis(2)).await;
        }
        assert!(log.failure().is_none());
        put(&log, &batch_of(&[9], 100)).await;
        drop(log);
        node.crash().await;
        let node = Node::start(temp.path()).await;
        let log = node.open("t", config).await;
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (Offset(3), Offset(6)));
        assert_eq!(read_all(&log, 3, 1 << 20).await.len(), 3);
        assert!(stuck.exists());
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_folder_whose_name_cannot_be_synced_acknowledges_nothing() {
    run(|| async {
        let temp = TempDir::new("log-folder-fails");
        let node = Node::start(temp.path()).await;
        let (log, other) = (node.open("t", LogConfig::default()).await, node.open("other", LogConfig::default()).await);
        // A file has the folder's name: it can be neither made nor synced.
        std::fs::write(temp.path().join("t-0"), b"in the way").unwrap();
        let first = append(&log, &batch(&[1]));
        assert!(matches!(log.wait_durable(first.next_offset).await, Err(LogError::Storage(_))));
        assert_eq!(log.durable_end(), Offset(0));
        put(&other, &batch(&[1])).await;
        std::fs::remove_file(temp.path().join("t-0")).unwrap();
        drop((log, other));
        node.crash().await;
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        assert_eq!(put(&log, &batch(&[1])).await.base_offset, Offset(0));
        drop(log);
        node.stop().await;
    });
}
