use runtime::testing::{TempDir, run};
use std::fs;

use super::*;

/// A log of closed segments, nothing of it in memory.
async fn cold(node: &Node, batches: i64) -> Rc<PartitionLog> {
    let log = node.open("t", small()).await;
    for i in 0..batches {
        append(&log, &batch_of(&[1000 + i], 150));
    }
    let_go(&log).await;
    log
}

#[test]
fn closed_segments_leave_as_file_ranges() {
    run(|| async {
        let temp = TempDir::new("log-file-slices");
        let node = Node::start(temp.path()).await;
        let log = cold(&node, 60).await;
        let files = |read: &ReadSlices| read.slices.iter().filter(|s| matches!(s, Slice::File { .. })).count();
        let first = log.read(Offset(0), everything()).await.unwrap();
        assert_eq!(files(&first), 0, "the first reader leaves the page cache alone");
        let found = log.read(Offset(0), everything()).await.unwrap();
        assert!(files(&found) >= 2, "the second one brings it in for all who follow");
        assert_eq!((first.bytes, first.next_offset), (found.bytes, found.next_offset));
        // In the middle of a window the batch that holds the offset still comes first.
        for from in 0..60 {
            assert_eq!(read(&log, from, everything()).await.unwrap()[0], (from, 1));
        }
        drop((found, log));
        node.stop().await;
    });
}

#[test]
fn damage_refuses_its_range_only() {
    run(|| async {
        let temp = TempDir::new("log-damage");
        let node = Node::start(temp.path()).await;
        let log = cold(&node, 60).await;
        let path = segment_file(log.dir(), 0, "log");
        let mut bytes = fs::read(&path).unwrap();
        let len = BatchView::parse(&bytes).unwrap().bytes.len();
        // The third batch's value.
        bytes[2 * len + 100] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert_eq!(read(&log, 0, everything()).await.unwrap(), vec![(0, 1), (1, 1)]);
        assert!(matches!(read(&log, 2, everything()).await, Err(LogError::Corrupt { position, .. })
            if position == 2 * len as u64));
        assert_eq!(read(&log, 3, everything()).await.unwrap()[0], (3, 1));
        assert_eq!(read(&log, 59, everything()).await.unwrap(), vec![(59, 1)]);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_missing_or_damaged_index_is_built_again() {
    run(|| async {
        let temp = TempDir::new("log-index-rebuild");
        let node = Node::start(temp.path()).await;
        let log = cold(&node, 60).await;
        let dir = log.dir().to_path_buf();
        drop(log);
        node.stop().await;
        let index = segment_file(&dir, 0, "index");
        let time_index = segment_file(&dir, 0, "timeindex");
        let (good, good_times) = (fs::read(&index).unwrap(), fs::read(&time_index).unwrap());
        assert!(good.len() >= 16 && good_times.len() >= 12);
        for damage in 0..3 {
            match damage {
                0 => {
                    fs::remove_file(&index).unwrap();
                    fs::remove_file(&time_index).unwrap();
                }
                1 => {
                    fs::write(&index, &good[..good.len() - 3]).unwrap();
                    fs::write(&time_index, vec![0xff; 24]).unwrap();
                }
                _ => {
                    fs::write(&index, [&good[8..16], &good[..8]].concat()).unwrap();
                    fs::write(&time_index, []).unwrap();
                }
            }
            let node = Node::start(temp.path()).await;
            let log = node.open("t", small()).await;
            assert_eq!(read(&log, 7, everything()).await.unwrap()[0], (7, 1));
            let hit = log.offset_for_time(1005, Offset(i64::MAX)).await.unwrap().unwrap();
            assert_eq!((hit.offset, hit.timestamp_ms), (Offset(5), 1005));
            assert_eq!((fs::read(&index).unwrap(), fs::read(&time_index).unwrap()), (good.clone(), good_times.clone()));
            drop(log);
            node.stop().await;
        }
    });
}

#[test]
fn a_deleted_segment_file_is_an_error_of_its_range() {
    run(|| async {
        let temp = TempDir::new("log-lost-file");
        let node = Node::start(temp.path()).await;
        let log = cold(&node, 60).await;
        let dir = log.dir().to_path_buf();
        drop(log);
        node.stop().await;
        fs::remove_file(segment_file(&dir, 0, "log")).unwrap();
        let node = Node::start(temp.path()).await;
        let log = node.open("t", small()).await;
        assert!(read(&log, 0, everything()).await.is_err());
        assert_eq!(read(&log, 59, everything()).await.unwrap(), vec![(59, 1)]);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn the_index_of_a_segment_is_looked_at_anew_once_it_is_closed() {
    run(|| async {
        let temp = TempDir::new("log-index-sealed");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", small()).await;
        for i in 0..5 {
            put(&log, &batch_of(&[i], 300)).await;
        }
        log.lock_indexes().await;
        log.flush_active_indexes(false).await.unwrap();
        log.unlock_indexes();
        let segment = log.segment_of(Offset(3)).await.unwrap();
        log.start_entry(segment, Offset(3)).await.unwrap();
        assert!(log.shard.memory.indexes.get((log.id, Offset(0))).is_some());
        while log.segment_count() == 1 {
            put(&log, &batch_of(&[9], 300)).await;
        }
        log.settle().await.unwrap();
        assert!(log.shard.memory.indexes.get((log.id, Offset(0))).is_none());
        let last = Offset(log.log_end_offset().0 - 2);
        let segment = log.segment_of(last).await.unwrap();
        assert!(!segment.open);
        let entry = log.start_entry(segment, last).await.unwrap().unwrap();
        assert!(segment.size - (entry.position as u64) < 1200);
        drop(log);
        node.stop().await;
    });
}
