//! How much the journal keeps in memory, and what is synced for that.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::limits::{BLOCK, CALM_WRITE};

const MEMORY: u64 = 32 << 10;

/// A ring that is not full before a test is over.
fn roomy() -> JournalConfig {
    JournalConfig { file_bytes: 4 << 20, memory_bytes: MEMORY, ..small_journal() }
}

async fn start(path: &std::path::Path) -> Node {
    Node::start_with(path, |config| config.journal = Some(roomy())).await
}

/// Appends batches of some kilobytes, the first ones until there is a ring.
async fn fill(node: &Node, log: &PartitionLog, count: usize) {
    while node.shard.stats().journal.rounds == 0 {
        put(log, &batch(&[1])).await;
        runtime::clock::sleep(std::time::Duration::from_millis(2)).await;
    }
    for _ in 0..count {
        put(log, &batch_of(&[2], 3000)).await;
        assert!(log.pinned() <= MEMORY + (4 << 10), "{} bytes are kept in memory", log.pinned());
    }
}

#[test]
fn what_is_written_for_memorys_sake_is_not_synced_before_the_ring_asks() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-journal-memory");
        let node = start(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        fill(&node, &log, 200).await;
        let stats = node.shard.stats();
        assert!(stats.destage.rounds > 3, "the segment was written again and again");
        assert_eq!(stats.destage.syncs.count(), 0, "for memory alone nothing is synced");
        {
            let state = log.state.borrow();
            assert!(state.active.durable < state.active.written, "the ring still vouches for it");
            assert!(state.active.fill.size - state.active.written <= MEMORY + BLOCK);
        }
        assert!(!log.held.borrow().is_empty());
        let end = log.log_end_offset().0;
        assert_eq!(read_all(&log, 0, 10 << 20).await.last(), Some(&(end - 1, 1)));
        drop(log);
        node.crash().await;
        let node = start(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        assert_eq!(log.log_end_offset().0, end);
        node.stop().await;
    });
}

#[test]
fn what_has_time_is_written_in_pieces_that_a_sync_can_wait_for() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-journal-memory");
        let memory_bytes = 48 * CALM_WRITE as u64;
        // Its one file is there when counting begins.
        let node = Node::start_with(folder.path(), |config| {
            config.journal =
                Some(JournalConfig { file_bytes: 16 << 20, files_max: 1, memory_bytes, ..small_journal() });
        })
        .await;
        let log = node.open("t", LogConfig::default()).await;
        fill(&node, &log, 0).await;
        let before = node.shard.stats();
        while node.shard.stats().destage.written_bytes < memory_bytes / 4 {
            put(&log, &batch_of(&[2], 3000)).await;
            assert!(log.pinned() < memory_bytes / 4 * 3, "it was written out before there was a hurry");
        }
        let after = node.shard.stats();
        assert_eq!(after.journal.files, before.journal.files);
        let rounds = after.journal.rounds - before.journal.rounds;
        let writes = after.device.writes - before.device.writes - rounds;
        let bytes = after.destage.written_bytes - before.destage.written_bytes;
        assert!(writes >= bytes / CALM_WRITE as u64, "{writes} writes of {bytes} bytes");
        node.stop().await;
    });
}

#[test]
fn nothing_is_left_to_sync_where_a_log_is_closed() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-journal-memory");
        let node = start(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        fill(&node, &log, 60).await;
        assert!(!log.held.borrow().is_empty());
        log.close().await.unwrap();
        let (durable, written, size) = {
            let active = &log.state.borrow().active;
            (active.durable, active.written, active.fill.size)
        };
        assert_eq!((durable, written), (size, size));
        assert!(log.held.borrow().is_empty());
        node.stop().await;
    });
}

#[test]
fn a_topic_that_asks_for_memory_only_still_leaves_the_ring() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-journal-memory");
        let node = start(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        fill(&node, &log, 30).await;
        assert!(!log.held.borrow().is_empty());
        log.set_config(LogConfig { durability: Durability::Memory, ..LogConfig::default() });
        put(&log, &batch(&[3])).await;
        log.settle().await.unwrap();
        assert!(log.held.borrow().is_empty(), "its files would never come free");
        node.stop().await;
    });
}
