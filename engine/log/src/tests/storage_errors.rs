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
