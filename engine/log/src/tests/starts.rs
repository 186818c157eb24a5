use runtime::clock;
use runtime::testing::{TempDir, run};
use std::fs;

use super::*;

const HOUR_MS: i64 = 3_600_000;

/// As after a power cut that took nothing but the clean mark.
fn take_clean_mark(path: &Path) {
    fs::remove_file(path.join("ringlog.clean")).unwrap();
}

/// A folder that was closed cleanly, with these topics of three records each.
async fn stopped(path: &Path, topics: &[&str]) {
    let node = Node::start(path).await;
    for topic in topics {
        let log = node.open(topic, LogConfig::default()).await;
        put(&log, &batch(&[1, 2, 3])).await;
    }
    node.stop().await;
}

#[test]
fn less_than_the_checkpoint_vouches_for_is_no_end() {
    run(|| async {
        let temp = TempDir::new("log-vouched");
        stopped(temp.path(), &["t"]).await;
        take_clean_mark(temp.path());
        let file = segment_file(&temp.path().join("t-0"), 0, "log");
        let bytes = fs::read(&file).unwrap();
        let try_open = async || {
            let node = Node::start(temp.path()).await;
            let log = node.open("t", LogConfig::default()).await;
            let (end, found) = (log.log_end_offset().0, read(&log, 0, everything()).await);
            drop(log);
            node.crash().await;
            (end, found)
        };
        fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
        assert!(matches!(try_open().await, (3, Err(LogError::Corrupt { position: 0, .. }))));
        fs::remove_file(&file).unwrap();
        assert!(matches!(try_open().await, (3, Err(LogError::Corrupt { .. }))));
        // Put back from a copy it is as it was.
        fs::write(&file, &bytes).unwrap();
        assert!(matches!(try_open().await, (3, Ok(_))));
    });
}

#[test]
fn a_segment_is_as_old_as_its_last_append_after_a_crash() {
    run(|| async {
        let temp = TempDir::new("log-recovered-age");
        let config = LogConfig { retention_ms: HOUR_MS, segment_ms: i64::MAX, ..LogConfig::default() };
        let now = clock::wall_ms();
        let node = Node::start(temp.path()).await;
        let log = node.open("t", config).await;
        put(&log, &batch(&[now])).await;
        // The segment was begun long ago.
        log.state.borrow_mut().active.created_ms = now - 100 * HOUR_MS;
        drop(log);
        node.stop().await;
        take_clean_mark(temp.path());
        let node = Node::start(temp.path()).await;
        let log = node.open("t", config).await;
        assert_eq!(log.state.borrow().active.created_ms, now - 100 * HOUR_MS);
        assert_eq!(log.apply_retention(now).await.unwrap().deleted_segments, 0);
        assert_eq!(log.apply_retention(now + 2 * HOUR_MS).await.unwrap().deleted_segments, 1);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_clean_stop_does_not_vouch_for_tails_that_no_one_looked_at() {
    run(|| async {
        let temp = TempDir::new("log-unopened");
        stopped(temp.path(), &["t", "u"]).await;
        take_clean_mark(temp.path());
        let node = Node::start(temp.path()).await;
        put(&*node.open("t", LogConfig::default()).await, &batch(&[4])).await;
        node.stop().await;
        let node = Node::start(temp.path()).await;
        assert!(!node.dir.was_clean());
        for topic in ["t", "u"] {
            assert!(node.open(topic, LogConfig::default()).await.log_end_offset() >= Offset(3));
        }
        node.stop().await;
        // Not opened after a clean stop is as good as it was.
        let node = Node::start(temp.path()).await;
        assert!(node.dir.was_clean());
        assert_eq!(node.open("t", LogConfig::default()).await.log_end_offset(), Offset(4));
        put(&node.shard.partition(key("t")).unwrap(), &batch(&[5])).await;
        node.stop().await;
        let node = Node::start(temp.path()).await;
        assert!(node.dir.was_clean());
        assert_eq!(node.open("u", LogConfig::default()).await.log_end_offset(), Offset(3));
        node.stop().await;
    });
}

#[test]
fn a_damaged_part_stops_the_clean_mark() {
    run(|| async {
        let temp = TempDir::new("log-damaged-part");
        let node = Node::start(temp.path()).await;
        put(&*node.open("t", LogConfig::default()).await, &batch(&[1])).await;
        node.shard.stop_clean().await.unwrap();
        fs::write(temp.path().join("ringlog.checkpoint.0"), b"not one").unwrap();
        assert!(matches!(node.dir.close_clean().await, Err(LogError::BadFolder { .. })));
        drop(node);
        let node = Node::start(temp.path()).await;
        assert!(!node.dir.was_clean());
        assert_eq!(node.open("t", LogConfig::default()).await.log_end_offset(), Offset(1));
        node.stop().await;
    });
}

#[test]
fn files_whose_delay_is_not_over_go_at_a_clean_stop() {
    run(|| async {
        let temp = TempDir::new("log-stop-unlinks");
        let node = Node::start(temp.path()).await;
        let config = LogConfig { file_delete_delay_ms: HOUR_MS, segment_bytes: 200, ..LogConfig::default() };
        let log = node.open("t", config).await;
        for i in 0..3 {
            put(&log, &batch_of(&[i], 100)).await;
        }
        log.settle().await.unwrap();
        log.delete_records_before(Offset(2)).await.unwrap();
        let files: Vec<PathBuf> = [0, 1, 2].into_iter().map(|base| segment_file(log.dir(), base, "log")).collect();
        assert!(files.iter().all(|f| f.exists()));
        drop(log);
        node.stop().await;
        assert_eq!(files.iter().map(|f| f.exists()).collect::<Vec<_>>(), [false, false, true]);
    });
}

#[test]
fn a_missing_index_of_the_active_segment_costs_a_scan() {
    run(|| async {
        let temp = TempDir::new("log-no-active-index");
        let config = LogConfig { index_interval_bytes: 0, ..LogConfig::default() };
        let node = Node::start(temp.path()).await;
        let log = node.open("t", config).await;
        for i in 0..10 {
            put(&log, &batch(&[1000 + i])).await;
        }
        drop(log);
        node.stop().await;
        for extension in ["index", "timeindex"] {
            fs::remove_file(segment_file(&temp.path().join("t-0"), 0, extension)).unwrap();
        }
        let node = Node::start(temp.path()).await;
        assert!(node.dir.was_clean());
        let log = node.open("t", config).await;
        assert_eq!(read(&log, 5, everything()).await.unwrap()[0], (5, 1));
        let segment = log.segment_of(Offset(5)).await.unwrap();
        assert_eq!(log.time_start(segment, 1005).await.unwrap(), Offset(0));
        drop(log);
        node.crash().await;
    });
}

#[test]
fn the_name_of_a_file_is_synced_once_memory_is_not_enough_any_more() {
    run(|| async {
        let temp = TempDir::new("log-memory-to-fsync");
        let node = Node::start(temp.path()).await;
        let config = LogConfig { durability: Durability::Memory, ..LogConfig::default() };
        let log = node.open("t", config).await;
        put(&log, &batch(&[1])).await;
        log.settle().await.unwrap();
        assert!(!log.state.borrow().active.name_synced);
        assert!(log.folder_synced.get());
        log.set_config(LogConfig::default());
        put(&log, &batch(&[2])).await;
        assert!(log.state.borrow().active.name_synced);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn an_entry_that_knows_of_no_data_does_not_vouch_for_an_empty_log() {
    run(|| async {
        let temp = TempDir::new("log-empty-point");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", small()).await;
        put(&log, &batch(&[1, 1])).await;
        put(&log, &batch(&[2])).await;
        // The recovery point is the segment's beginning now.
        log.truncate_to(Offset(2)).await.unwrap();
        put(&log, &batch(&[3])).await;
        drop(log);
        node.crash().await;
        // A start at which this partition cannot be opened; another one is, and all is stopped in order.
        let node = Node::start(temp.path()).await;
        let other = node.open("other", small()).await;
        put(&other, &batch(&[1])).await;
        drop(other);
        node.stop().await;
        let node = Node::start(temp.path()).await;
        assert!(!node.dir.was_clean());
        let log = node.open("t", small()).await;
        assert_eq!(read_all(&log, 0, 3000).await, vec![(0, 2), (2, 1)]);
        drop(log);
        node.stop().await;
    });
}
