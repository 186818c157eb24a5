use model::batch::crc32c;
use runtime::testing::{TempDir, run};

use super::*;

#[test]
fn appended_batches_are_read_back_before_and_after_a_clean_stop() {
    run(|| async {
        let temp = TempDir::new("log-reopen");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        let first = put(&log, &batch(&[1, 2])).await;
        assert_eq!((first.base_offset, first.last_offset, first.next_offset), (Offset(0), Offset(1), Offset(2)));
        put(&log, &batch(&[3, 4])).await;
        assert_eq!(log.written_end(), Offset(4));
        let expect = vec![(0, 2), (2, 2)];
        assert_eq!(read(&log, 0, everything()).await.unwrap(), expect);
        // In the middle of a batch the whole batch is returned, at the end nothing, beyond it an error.
        assert_eq!(read(&log, 1, everything()).await.unwrap(), expect);
        assert_eq!(read(&log, 3, everything()).await.unwrap(), vec![(2, 2)]);
        assert_eq!(read(&log, 4, everything()).await.unwrap(), vec![]);
        assert!(matches!(read(&log, 5, everything()).await, Err(LogError::OffsetOutOfRange { .. })));
        drop(log);
        node.stop().await;

        let node = Node::start(temp.path()).await;
        assert!(node.dir.was_clean());
        let log = node.open("t", LogConfig::default()).await;
        assert_eq!(log.log_end_offset(), Offset(4));
        assert_eq!(read(&log, 0, everything()).await.unwrap(), expect);
        let third = put(&log, &batch(&[5])).await;
        assert_eq!(third.base_offset, Offset(4));
        assert_eq!(read_all(&log, 0, 1 << 20).await, vec![(0, 2), (2, 2), (4, 1)]);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_start_without_writes_stays_clean() {
    run(|| async {
        let temp = TempDir::new("log-stays-clean");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        put(&log, &batch(&[1])).await;
        drop(log);
        node.stop().await;
        for _ in 0..2 {
            let node = Node::start(temp.path()).await;
            assert!(node.dir.was_clean());
            let log = node.open("t", LogConfig::default()).await;
            assert_eq!(read(&log, 0, everything()).await.unwrap(), vec![(0, 1)]);
            drop(log);
            node.crash().await;
        }
        // The first append takes the mark away, and it is back after a clean stop.
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        put(&log, &batch(&[1])).await;
        assert!(!temp.path().join("ringlog.clean").exists());
        drop(log);
        node.stop().await;
        assert!(temp.path().join("ringlog.clean").exists());
    });
}

#[test]
fn limits_cut_between_batches() {
    run(|| async {
        let temp = TempDir::new("log-limits");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        for _ in 0..4 {
            put(&log, &batch_of(&[1, 2], 2000)).await;
        }
        let one = ReadLimits { max_bytes: 1024, ..everything() };
        assert_eq!(read(&log, 0, one).await.unwrap(), vec![(0, 2)]);
        let none = ReadLimits { min_one_batch: false, ..one };
        assert_eq!(read(&log, 0, none).await.unwrap(), vec![]);
        let bound = ReadLimits { upper_bound: Offset(5), ..everything() };
        assert_eq!(read(&log, 0, bound).await.unwrap(), vec![(0, 2), (2, 2)]);
        assert_eq!(read(&log, 5, bound).await.unwrap(), vec![]);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn patches_change_the_copy_and_its_crc() {
    run(|| async {
        let temp = TempDir::new("log-patch");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        let original = batch(&[100, 300, 200]);
        let before = original.clone();
        log.append(&original, Patch::leader(EPOCH).with_timestamps(Timestamps::LogAppendTime(777))).unwrap();
        log.append(&original, Patch::leader(EPOCH).with_timestamps(Timestamps::SetMax(999))).unwrap();
        assert_eq!(original, before);
        log.wait_durable(Offset(6)).await.unwrap();
        let slices = log.read(Offset(0), everything()).await.unwrap().slices;
        let bytes = slices[0].load().await.unwrap();
        let stamped = BatchView::parse(&bytes).unwrap();
        assert!(stamped.header.is_log_append_time());
        assert_eq!((stamped.header.max_timestamp_ms, stamped.header.base_timestamp_ms), (777, 100));
        assert_eq!(stamped.header.leader_epoch, EPOCH);
        assert_eq!(stamped.header.crc, crc32c(&stamped.bytes[21..]));
        let second = BatchView::parse(&bytes[stamped.bytes.len()..]).unwrap();
        assert_eq!((second.header.max_timestamp_ms, second.header.is_log_append_time()), (999, false));
        second.check_crc().unwrap();
        drop((log, bytes, slices));
        node.stop().await;
    });
}

#[test]
fn batches_larger_than_a_chunk_and_rows_of_chunks_are_contiguous() {
    run(|| async {
        let temp = TempDir::new("log-large");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        for i in 0..12 {
            append(&log, &batch_of(&[1], if i % 4 == 0 { 3 << 20 } else { 50_000 }));
        }
        log.wait_durable(Offset(12)).await.unwrap();
        let expect: Vec<_> = (0..12).map(|i| (i, 1)).collect();
        assert_eq!(read_all(&log, 0, 1 << 20).await, expect);
        // The same from disk, as an open segment's uncached rest.
        log.drop_tail();
        assert_eq!(read_all(&log, 0, 1 << 20).await, expect);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn an_idle_partition_reads_its_last_block_back() {
    run(|| async {
        let temp = TempDir::new("log-idle");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        let mut expect = Vec::new();
        for i in 0..60 {
            expect.push((put(&log, &batch_of(&[1], 300 + i)).await.base_offset.0, 1));
            if i % 3 == 0 {
                log.settle().await.unwrap();
                log.rest();
                assert_eq!(node.shard.stats().cached_bytes, 0);
            }
        }
        assert_eq!(read_all(&log, 0, 1 << 20).await, expect);
        drop(log);
        node.crash().await;
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        assert_eq!(read_all(&log, 0, 1 << 20).await, expect);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn unusable_bytes_are_refused() {
    run(|| async {
        let temp = TempDir::new("log-bad-batch");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig { gaps: true, ..LogConfig::default() }).await;
        let good = batch(&[1]);
        let longer = [good.clone(), vec![0]].concat();
        for bad in [&good[..60], &good[..good.len() - 1], &longer, &[]] {
            assert!(matches!(log.append(bad, Patch::leader(EPOCH)), Err(LogError::BadBatch(_))));
        }
        assert_eq!(log.log_end_offset(), Offset(0));
        // A follower's append keeps the offsets, which may leave a gap but never go back.
        let mut stored = good.clone();
        model::batch::patch_position(&mut stored, Offset(7), EPOCH);
        assert_eq!(log.append(&stored, Patch::as_stored()).unwrap().next_offset, Offset(8));
        assert!(log.append(&stored, Patch::as_stored()).is_err());
        log.wait_durable(Offset(8)).await.unwrap();
        assert_eq!(read(&log, 0, everything()).await.unwrap(), vec![(7, 1)]);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn memory_durability_moves_the_ends_with_the_append() {
    run(|| async {
        let temp = TempDir::new("log-memory");
        let node = Node::start(temp.path()).await;
        let config = LogConfig { durability: Durability::Memory, ..LogConfig::default() };
        let log = node.open("t", config).await;
        let seen = log.durable_advanced().version();
        append(&log, &batch(&[1]));
        assert_eq!((log.durable_end(), log.written_end()), (Offset(1), Offset(1)));
        assert_ne!(log.durable_advanced().version(), seen);
        log.settle().await.unwrap();
        drop(log);
        node.crash().await;
        let node = Node::start(temp.path()).await;
        let log = node.open("t", config).await;
        assert_eq!(read(&log, 0, everything()).await.unwrap(), vec![(0, 1)]);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn an_evicted_chunk_leaves_the_block_that_the_next_write_begins_in() {
    run(|| async {
        let temp = TempDir::new("log-evicted-block");
        let node = Node::start_direct_with(temp.path(), |c| c.cache_bytes = 1).await;
        let log = node.open("t", LogConfig::default()).await;
        put(&log, &batch(&[1])).await;
        log.settle().await.unwrap();
        assert!(log.state.borrow().tail.chunks.is_empty() && !log.state.borrow().tail.is_empty());
        // What the file has is not asked: the block is written as it was.
        let path = segment_file(log.dir(), 0, "log");
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[0; 16], 0).unwrap();
        file.sync_all().unwrap();
        put(&log, &batch(&[2])).await;
        assert_eq!(read_all(&log, 0, 1 << 20).await, vec![(0, 1), (1, 1)]);
        log.drop_tail();
        assert!(log.state.borrow().tail.is_empty());
        drop(log);
        node.stop().await;
    });
}

#[test]
fn who_writes_gives_back_its_own_where_older_chunks_of_others_cannot_go() {
    run(|| async {
        let temp = TempDir::new("log-gives-back");
        let node = Node::start_direct_with(temp.path(), |c| c.cache_bytes = 1).await;
        let mut held = Vec::new();
        for number in 0..8 {
            let log = node.open(&format!("held-{number}"), LogConfig::default()).await;
            log.paused.set(1);
            append(&log, &batch(&[1]));
            held.push(log);
        }
        let log = node.open("t", LogConfig::default()).await;
        put(&log, &batch(&[1])).await;
        log.settle().await.unwrap();
        assert!(log.state.borrow().tail.chunks.is_empty());
        assert!(held.iter().all(|log| log.state.borrow().tail.chunks.len() == 1), "not written yet");
        for log in &held {
            log.paused.set(0);
            log.register();
        }
        for log in &held {
            log.wait_durable(Offset(1)).await.unwrap();
            log.settle().await.unwrap();
        }
        assert_eq!(node.shard.stats().cached_bytes, 0);
        drop((log, held));
        node.stop().await;
    });
}

#[test]
fn a_leaders_batch_too_far_behind_the_end_is_refused() {
    run(|| async {
        let temp = TempDir::new("log-far-offset");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig { gaps: true, ..LogConfig::default() }).await;
        put(&log, &batch(&[1])).await;
        let mut far = batch(&[2]);
        for (base, fits) in [(i64::from(i32::MAX) + 2, false), (i64::from(i32::MAX) + 1, true)] {
            model::batch::patch_position(&mut far, Offset(base), EPOCH);
            let appended = log.append(&far, Patch::as_stored());
            assert_eq!(appended.is_ok(), fits, "{appended:?}");
        }
        log.settle().await.unwrap();
        drop(log);
        node.stop().await;
    });
}
