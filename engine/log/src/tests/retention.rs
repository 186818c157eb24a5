use runtime::clock;
use runtime::testing::{TempDir, run};

use super::*;

/// Ten segments of one batch each, stamped as asked.
async fn ten(node: &Node, config: LogConfig, timestamp_ms: impl Fn(i64) -> i64) -> Rc<PartitionLog> {
    let config = LogConfig { segment_bytes: 200, file_delete_delay_ms: 0, ..config };
    let log = node.open("t", config).await;
    for i in 0..10 {
        put(&log, &batch_of(&[timestamp_ms(i)], 100)).await;
    }
    log.settle().await.unwrap();
    assert_eq!(log.segment_count(), 10);
    log
}

#[test]
fn old_segments_go_and_the_move_survives_a_crash() {
    run(|| async {
        let temp = TempDir::new("log-retention-time");
        let node = Node::start(temp.path()).await;
        let now = clock::wall_ms();
        let config = LogConfig { retention_ms: 1000, ..LogConfig::default() };
        let log = ten(&node, config, |i| if i < 4 { now - 5000 } else { now }).await;
        let done = log.apply_retention(now).await.unwrap();
        assert_eq!((done.deleted_segments, done.log_start_offset), (4, Offset(4)));
        assert!(matches!(read(&log, 3, everything()).await, Err(LogError::OffsetOutOfRange { .. })));
        assert_eq!(read_all(&log, 4, 1 << 20).await.len(), 6);
        drop(log);
        node.crash().await;
        let node = Node::start(temp.path()).await;
        let log = node.open("t", config).await;
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (Offset(4), Offset(10)));
        drop(log);
        node.stop().await;
    });
}

#[test]
fn stamps_in_seconds_go_at_once_and_future_stamps_do_not_stay_for_ever() {
    run(|| async {
        let temp = TempDir::new("log-retention-units");
        let node = Node::start(temp.path()).await;
        let now = clock::wall_ms();
        let config = LogConfig { retention_ms: 3_600_000, ..LogConfig::default() };
        let log = ten(&node, config, |i| [now / 1000, 0, now * 1000, -1][i as usize % 4]).await;
        let done = log.apply_retention(now + 1000).await.unwrap();
        // Seconds and 0 are long ago; the stamp in the future holds back everything behind it, for now.
        assert_eq!((done.deleted_segments, done.log_start_offset), (2, Offset(2)));
        // An hour later nothing is left of the closed ones, and the active one is rolled away too.
        let done = log.apply_retention(now + 3_700_000).await.unwrap();
        assert_eq!((done.deleted_segments, done.log_start_offset), (8, Offset(10)));
        assert_eq!((log.segment_count(), log.size_bytes()), (1, 0));
        assert_eq!(put(&log, &batch(&[now])).await.base_offset, Offset(10));
        drop(log);
        node.crash().await;
        let node = Node::start(temp.path()).await;
        let log = node.open("t", config).await;
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (Offset(10), Offset(11)));
        drop(log);
        node.stop().await;
    });
}

#[test]
fn an_emptied_log_keeps_its_next_offset_over_every_kind_of_stop() {
    run(|| async {
        let temp = TempDir::new("log-retention-empty");
        let node = Node::start(temp.path()).await;
        let config = LogConfig { retention_ms: 1000, ..LogConfig::default() };
        let log = ten(&node, config, |_| 0).await;
        assert_eq!(log.apply_retention(clock::wall_ms()).await.unwrap().log_start_offset, Offset(10));
        drop(log);
        node.crash().await;
        for clean in [true, false, true] {
            let node = Node::start(temp.path()).await;
            let log = node.open("t", config).await;
            assert_eq!((log.log_start_offset(), log.log_end_offset()), (Offset(10), Offset(10)));
            drop(log);
            if clean { node.stop().await } else { node.crash().await }
        }
    });
}

#[test]
fn size_keeps_at_least_the_limit() {
    run(|| async {
        let temp = TempDir::new("log-retention-size");
        let node = Node::start(temp.path()).await;
        let now = clock::wall_ms();
        let log = ten(&node, LogConfig::default(), |_| now).await;
        let one = log.size_bytes() / 10;
        log.set_config(LogConfig { retention_bytes: (one * 4 + one / 2) as i64, ..log.config() });
        // Kafka's rule: a segment goes while what is over the limit is at least its size.
        assert_eq!(log.apply_retention(now).await.unwrap().deleted_segments, 5);
        assert_eq!(log.apply_retention(now).await.unwrap().deleted_segments, 0);
        assert_eq!(log.log_start_offset(), Offset(5));
        // Not beyond what the replica allows.
        log.set_config(LogConfig { retention_bytes: 0, ..log.config() });
        log.set_retention_bound(Offset(7));
        assert_eq!(log.apply_retention(now).await.unwrap().log_start_offset, Offset(7));
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_topic_that_is_only_compacted_is_not_cut() {
    run(|| async {
        let temp = TempDir::new("log-retention-compacted");
        let node = Node::start(temp.path()).await;
        let config = LogConfig { retention_ms: 1, retention_bytes: 1, cleanup_delete: false, ..LogConfig::default() };
        let log = ten(&node, config, |_| 0).await;
        assert_eq!(log.apply_retention(clock::wall_ms()).await.unwrap().deleted_segments, 0);
        assert_eq!((log.segment_count(), log.log_start_offset()), (10, Offset(0)));
        drop(log);
        node.stop().await;
    });
}

#[test]
fn delete_records_moves_the_start_durably() {
    run(|| async {
        let temp = TempDir::new("log-delete-records");
        let node = Node::start(temp.path()).await;
        let now = clock::wall_ms();
        let log = ten(&node, LogConfig::default(), |_| now).await;
        assert_eq!(log.delete_records_before(Offset(6)).await.unwrap(), Offset(6));
        assert_eq!(log.segment_count(), 4);
        assert_eq!(log.delete_records_before(Offset(2)).await.unwrap(), Offset(6));
        assert!(matches!(log.delete_records_before(Offset(11)).await, Err(LogError::OffsetOutOfRange { .. })));
        assert_eq!(log.epoch_for_offset(Offset(6)), Some(EPOCH));
        assert_eq!(log.epoch_for_offset(Offset(5)), None);
        drop(log);
        node.crash().await;
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        assert_eq!(log.log_start_offset(), Offset(6));
        assert_eq!(log.delete_records_before(Offset(10)).await.unwrap(), Offset(10));
        drop(log);
        node.stop().await;
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (Offset(10), Offset(10)));
        assert_eq!(read(&log, 10, everything()).await.unwrap(), vec![]);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn unlinking_waits_for_the_delay() {
    run(|| async {
        let temp = TempDir::new("log-delete-delay");
        let node = Node::start(temp.path()).await;
        let log = ten(&node, LogConfig::default(), |_| 0).await;
        log.set_config(LogConfig { file_delete_delay_ms: 300, ..log.config() });
        let gone = segment_file(log.dir(), 0, "log");
        log.delete_records_before(Offset(3)).await.unwrap();
        assert!(gone.exists());
        clock::sleep(std::time::Duration::from_millis(600)).await;
        assert!(!gone.exists());
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_deleted_partition_is_renamed_and_its_waiters_are_told() {
    run(|| async {
        let temp = TempDir::new("log-delete");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig { file_delete_delay_ms: 0, ..LogConfig::default() }).await;
        put(&log, &batch(&[1])).await;
        let waiting = log.clone();
        let waiter = runtime::spawn("waiter", async move { waiting.wait_durable(Offset(5)).await });
        runtime::task::yield_now().await;
        log.clone().delete().await.unwrap();
        assert!(matches!(waiter.join().await, Some(Err(LogError::Closed))));
        assert!(!temp.path().join("t-0").exists());
        assert!(matches!(log.append(&batch(&[1]), Patch::leader(EPOCH)), Err(LogError::Closed)));
        // Made again under the same name it starts empty.
        let mut spec = node.spec("t", LogConfig::default());
        spec.key = key("t again");
        let again = node.shard.create_partition(spec).await.unwrap();
        assert_eq!(put(&again, &batch(&[1])).await.base_offset, Offset(0));
        clock::sleep(std::time::Duration::from_millis(100)).await;
        let names = std::fs::read_dir(temp.path()).unwrap().map(|e| e.unwrap().file_name());
        assert_eq!(names.filter(|name| name.to_string_lossy().starts_with("t-0")).count(), 1);
        drop((log, again));
        node.stop().await;
    });
}

#[test]
fn a_delayed_unlink_spares_the_topic_that_was_made_again() {
    run(|| async {
        let temp = TempDir::new("log-delete-remade");
        let node = Node::start(temp.path()).await;
        let log = ten(&node, LogConfig::default(), |_| 0).await;
        log.set_config(LogConfig { file_delete_delay_ms: 200, ..log.config() });
        log.delete_records_before(Offset(3)).await.unwrap();
        // Whoever still holds the old log must not matter.
        log.clone().delete().await.unwrap();
        let mut spec = node.spec("t", LogConfig::default());
        spec.key = key("t again");
        let again = node.shard.create_partition(spec).await.unwrap();
        put(&again, &batch(&[1])).await;
        clock::sleep(std::time::Duration::from_millis(500)).await;
        assert!(segment_file(again.dir(), 0, "log").exists());
        drop((log, again));
        node.stop().await;
    });
}
