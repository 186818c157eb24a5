use runtime::testing::{TempDir, run};
use std::fs;

use super::*;

/// A crashed partition with some batches: (end offset, end position) after each.
async fn crashed(path: &Path, config: LogConfig) -> Vec<(i64, u64)> {
    let node = Node::start_direct(path).await;
    let log = node.open("t", config).await;
    let mut ends = vec![(0, 0)];
    for i in 0..4 {
        put(&log, &batch_of(&[i, i + 1], 10 + 20 * i as usize)).await;
        ends.push((log.log_end_offset().0, log.size_bytes()));
    }
    drop(log);
    node.crash().await;
    ends
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn the_active_segment_cut_at_every_byte_ends_at_the_last_whole_batch() {
    run(|| async {
        let temp = TempDir::new("log-cut");
        let original = temp.path().join("original");
        let ends = crashed(&original, LogConfig::default()).await;
        let last = ends.last().unwrap().1;
        let bytes = fs::read(segment_file(&original.join("t-0"), 0, "log")).unwrap();
        for cut in 0..=last {
            let copy = temp.path().join("copy");
            copy_dir(&original, &copy);
            let file = fs::OpenOptions::new().write(true).open(segment_file(&copy.join("t-0"), 0, "log")).unwrap();
            file.set_len(cut).unwrap();
            if cut % 3 == 0 {
                // Preallocated zeros behind the tear.
                file.set_len(cut + 5000).unwrap();
            }
            let node = Node::start_direct(&copy).await;
            let log = node.open("t", LogConfig::default()).await;
            // A batch whose last bytes are zeros is whole again with zeros behind the cut.
            let zeros = bytes[cut as usize..last as usize].iter().take_while(|b| cut % 3 == 0 && **b == 0).count();
            let expect = ends.iter().rfind(|(_, position)| *position <= cut + zeros as u64).unwrap().0;
            assert_eq!(log.log_end_offset(), Offset(expect), "cut at {cut}");
            assert_eq!(log.durable_end(), Offset(expect));
            if cut % 16 == 0 {
                put(&log, &batch(&[1])).await;
                let all = read_all(&log, 0, 1 << 20).await;
                assert_eq!(all.last(), Some(&(expect, 1)));
                drop(log);
                node.crash().await;
                let node = Node::start_direct(&copy).await;
                let log = node.open("t", LogConfig::default()).await;
                assert_eq!(read_all(&log, 0, 1 << 20).await, all);
                drop(log);
                node.crash().await;
            } else {
                drop(log);
                node.crash().await;
            }
            fs::remove_dir_all(&copy).unwrap();
        }
    });
}

#[test]
fn garbage_behind_the_end_never_comes_back() {
    run(|| async {
        let temp = TempDir::new("log-garbage");
        let ends = crashed(temp.path(), LogConfig::default()).await;
        let (end, position) = *ends.last().unwrap();
        let path = segment_file(&temp.path().join("t-0"), 0, "log");
        // A torn batch, then a whole one that would line up if the torn one were overwritten with the same length.
        let torn = batch(&[9]);
        let mut lined_up = batch(&[9]);
        model::batch::patch_position(&mut lined_up, Offset(end + 1), EPOCH);
        let mut bytes = fs::read(&path).unwrap();
        bytes.truncate(position as usize);
        let mut damaged = torn.clone();
        damaged[30] ^= 1;
        bytes.extend_from_slice(&damaged);
        bytes.extend_from_slice(&lined_up);
        fs::write(&path, &bytes).unwrap();
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        assert_eq!(log.log_end_offset(), Offset(end));
        put(&log, &torn).await;
        drop(log);
        node.crash().await;
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        assert_eq!(log.log_end_offset(), Offset(end + 1));
        drop(log);
        node.stop().await;
    });
}

#[test]
fn acknowledged_batches_survive_crash_after_crash() {
    run(|| async {
        let temp = TempDir::new("log-crashes");
        let mut expect = Vec::new();
        for round in 0..6 {
            let node = Node::start(temp.path()).await;
            assert!(!node.dir.was_clean());
            let log = node.open("t", small()).await;
            assert_eq!(log.log_end_offset().0, expect.len() as i64);
            assert_eq!(read_all(&log, 0, 3000).await, expect);
            for i in 0..20 {
                let at = put(&log, &batch_of(&[round * 100 + i], 100 * (i as usize % 7))).await;
                expect.push((at.base_offset.0, 1));
            }
            drop(log);
            node.crash().await;
        }
    });
}

#[test]
fn indexes_are_the_same_after_recovery_as_after_a_clean_stop() {
    run(|| async {
        let temp = TempDir::new("log-index-recovery");
        let mut files = Vec::new();
        for crash in [false, true] {
            let path = temp.path().join(format!("{crash}"));
            let node = Node::start(&path).await;
            let log = node.open("t", small()).await;
            for i in 0..30 {
                put(&log, &batch_of(&[1000 + i * 7 % 50], 100)).await;
            }
            drop(log);
            if crash {
                node.crash().await;
                let node = Node::start(&path).await;
                drop(node.open("t", small()).await);
                node.stop().await;
            } else {
                node.stop().await;
            }
            let mut found = Vec::new();
            for entry in fs::read_dir(path.join("t-0")).unwrap() {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                found.push((name, fs::read(entry.path()).unwrap()));
            }
            found.sort();
            files.push(found);
        }
        let names: Vec<&String> = files[0].iter().map(|(name, _)| name).collect();
        assert!(names.len() > 6, "{names:?}");
        assert_eq!(files[0], files[1]);
    });
}

#[test]
fn a_folder_of_another_topic_of_that_name_is_refused() {
    run(|| async {
        let temp = TempDir::new("log-foreign");
        let node = Node::start(temp.path()).await;
        put(&*node.open("t", LogConfig::default()).await, &batch(&[1])).await;
        node.crash().await;
        let node = Node::start(temp.path()).await;
        assert_eq!(node.dir.found().len(), 1);
        assert_eq!(node.dir.found()[0].topic_id, Some(key("t").topic_id));
        let mut spec = node.spec("t", LogConfig::default());
        spec.key = key("another");
        let refused = node.shard.open_partition(spec.clone(), node.dir.start_mode(spec.key)).await;
        assert!(matches!(refused, Err(LogError::ForeignFolder { .. })));
        // Decided for another topic, or for a folder that is not there: nothing happens.
        let other = Some(key("another").topic_id);
        for (topic, expected) in [("t", other), ("t", None), ("u", None)] {
            assert_eq!(node.dir.discard(topic, PartitionIndex(0), expected).await.unwrap(), None);
        }
        let found = node.dir.found()[0].topic_id;
        let aside = node.dir.discard("t", PartitionIndex(0), found).await.unwrap().unwrap();
        assert!(aside.exists());
        let log = node.shard.open_partition(spec.clone(), node.dir.start_mode(spec.key)).await.unwrap().log;
        assert_eq!(put(&log, &batch(&[1])).await.base_offset, Offset(0));
        assert_eq!(node.dir.remove_deleted().await.unwrap(), 1);
        assert!(!aside.exists());
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_missing_folder_is_not_an_empty_partition() {
    run(|| async {
        let temp = TempDir::new("log-missing");
        let node = Node::start(temp.path()).await;
        put(&*node.open("t", small()).await, &batch(&[1])).await;
        node.stop().await;
        fs::remove_dir_all(temp.path().join("t-0")).unwrap();
        fs::remove_file(temp.path().join("ringlog.clean")).unwrap();
        let node = Node::start(temp.path()).await;
        assert!(matches!(node.try_open("t", small()).await, Err(LogError::BadFolder { .. })));
        node.crash().await;
    });
}

#[test]
fn a_damaged_checkpoint_costs_a_scan_and_no_data() {
    run(|| async {
        let temp = TempDir::new("log-checkpoint-damage");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", small()).await;
        for i in 0..40 {
            put(&log, &batch_of(&[i], 200)).await;
        }
        let expect = read_all(&log, 0, 5000).await;
        drop(log);
        node.stop().await;
        let path = temp.path().join("ringlog.checkpoint");
        let mut bytes = fs::read(&path).unwrap();
        bytes[20] ^= 1;
        fs::write(&path, bytes).unwrap();
        let node = Node::start(temp.path()).await;
        assert!(!node.dir.was_clean());
        let log = node.open("t", small()).await;
        assert_eq!(read_all(&log, 0, 5000).await, expect);
        assert_eq!(log.latest_epoch(), Some(EPOCH));
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_data_folder_knows_its_owner() {
    run(|| async {
        let temp = TempDir::new("log-owner");
        let ours = Identity { cluster_id: "c".into(), node_id: model::NodeId(1) };
        let dir = DataDir::open(temp.path()).await.unwrap();
        dir.adopt(&ours).await.unwrap();
        assert!(matches!(DataDir::open(temp.path()).await, Err(DataDirError::InUse(_))));
        drop(dir);
        let dir = DataDir::open(temp.path()).await.unwrap();
        assert_eq!(dir.identity(), Some(&ours));
        dir.adopt(&ours).await.unwrap();
        let other = Identity { node_id: model::NodeId(2), ..ours.clone() };
        assert!(matches!(dir.adopt(&other).await, Err(DataDirError::OtherNode { .. })));
        let other = Identity { cluster_id: "d".into(), ..ours };
        assert!(matches!(dir.adopt(&other).await, Err(DataDirError::OtherCluster { .. })));
    });
}

#[test]
fn a_recovery_point_in_a_segment_that_went_hides_no_later_one() {
    run(|| async {
        let temp = TempDir::new("log-old-point");
        let node = Node::start(temp.path()).await;
        let config = LogConfig { segment_bytes: 200, ..small() };
        let log = node.open("t", config).await;
        for i in 0..4 {
            put(&log, &batch_of(&[i], 100)).await;
        }
        log.delete_records_before(Offset(2)).await.unwrap();
        while segment_file(log.dir(), 0, "log").exists() {
            runtime::clock::sleep(std::time::Duration::from_millis(1)).await;
        }
        let old = Fill { size: 170, next_offset: Offset(1), ..Fill::empty(Offset(0)) };
        log.put_recovery_point(Offset(0), old, 0, 0);
        log.home.flush().await.unwrap();
        put(&log, &batch_of(&[9], 100)).await;
        drop(log);
        node.crash().await;
        let node = Node::start(temp.path()).await;
        let log = node.open("t", config).await;
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (Offset(2), Offset(5)));
        assert_eq!(read_all(&log, 2, 1 << 20).await, vec![(2, 1), (3, 1), (4, 1)]);
        drop(log);
        node.stop().await;
    });
}
