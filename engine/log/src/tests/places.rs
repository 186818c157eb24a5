//! A reader that goes on where a direct read ended reads no batch twice, and nothing is remembered of what has changed.

use runtime::testing::{TempDir, run};

use super::compaction::{clean, compacted, one, roll};
use super::*;

const BATCHES: i64 = 12;

/// A batch of two records: an index has its second offset.
fn two(ms: i64) -> Vec<u8> {
    batch_of(&[ms, ms], 150)
}

/// One batch a read.
fn one_batch() -> ReadLimits {
    ReadLimits { max_bytes: 1, ..everything() }
}

async fn cold(node: &Node, topic: &str, config: LogConfig) -> Rc<PartitionLog> {
    let log = node.open(topic, config).await;
    for i in 0..BATCHES {
        append(&log, &two(1000 + i));
    }
    let_go(&log).await;
    log
}

/// Where a walk for the offset starts.
async fn start(log: &PartitionLog, offset: i64) -> u64 {
    let segment = log.segment_of(Offset(offset)).await.unwrap();
    log.start_of(segment, Offset(offset)).await.unwrap().0
}

#[test]
fn the_next_read_starts_where_the_last_one_ended() {
    run(|| async {
        let temp = TempDir::new("log-places");
        let node = Node::start_direct(temp.path()).await;
        let log = cold(&node, "t", LogConfig { segment_bytes: 1 << 20, ..small() }).await;
        let size = two(1000).len() as u64;
        assert_eq!(start(&log, 10).await, 4 * size, "the index knows the batch before");
        for batch in 0..BATCHES {
            assert_eq!(start(&log, 2 * batch).await, batch as u64 * size, "{batch}");
            assert_eq!(read(&log, 2 * batch, one_batch()).await.unwrap(), [(2 * batch, 2)]);
        }
        // A few readers' places are kept, the newest.
        assert_eq!(start(&log, 2 * (BATCHES - 1)).await, (BATCHES as u64 - 1) * size);
        assert_eq!(start(&log, 2).await, 0);
        node.stop().await;
    });
}

#[test]
fn a_place_behind_the_end_serves_what_is_appended_there() {
    run(|| async {
        let temp = TempDir::new("log-places-end");
        let node = Node::start_direct(temp.path()).await;
        let log = cold(&node, "t", LogConfig { segment_bytes: 1 << 20, ..small() }).await;
        let end = 2 * BATCHES;
        read(&log, end - 2, one_batch()).await.unwrap();
        put(&log, &two(2000)).await;
        log.settle().await.unwrap();
        log.drop_tail();
        assert_eq!(start(&log, end).await, BATCHES as u64 * two(1000).len() as u64);
        assert_eq!(read(&log, end, one_batch()).await.unwrap(), [(end, 2)]);
        node.stop().await;
    });
}

#[test]
fn a_truncation_ends_what_was_known() {
    run(|| async {
        let temp = TempDir::new("log-places-cut");
        let node = Node::start_direct(temp.path()).await;
        let log = cold(&node, "t", LogConfig { segment_bytes: 1 << 20, ..small() }).await;
        read(&log, 6, one_batch()).await.unwrap();
        let segment = log.segment_of(Offset(8)).await.unwrap();
        assert!(log.place_of(segment, Offset(8)).is_some());
        log.truncate_to(Offset(6)).await.unwrap();
        // Other batches stand at the same offsets now, at other places.
        for i in 6..2 * BATCHES {
            put(&log, &batch_of(&[3000 + i], 30 + 5 * i as usize)).await;
        }
        log.settle().await.unwrap();
        log.drop_tail();
        let segment = log.segment_of(Offset(8)).await.unwrap();
        assert_eq!(log.place_of(segment, Offset(8)), None);
        assert_eq!(read_all(&log, 0, 1).await.len(), 3 + 2 * BATCHES as usize - 6);
        node.stop().await;
    });
}

#[test]
fn a_cleaned_segment_ends_what_was_known_of_it() {
    run(|| async {
        let temp = TempDir::new("log-places-clean");
        let node = Node::start_direct(temp.path()).await;
        let log = node.open("t", LogConfig { segment_bytes: 1 << 20, ..compacted() }).await;
        for i in 0..BATCHES {
            let key = if i % 3 == 0 { "kept".to_string() + &i.to_string() } else { "again".to_string() };
            put(&log, &one(1000 + i, &key, Some("value"))).await;
        }
        roll(&log).await;
        put(&log, &one(2000, "again", Some("last"))).await;
        roll(&log).await;
        log.drop_tail();
        for at in 0..BATCHES {
            read(&log, at, one_batch()).await.unwrap();
        }
        let segment = log.segment_of(Offset(BATCHES - 1)).await.unwrap();
        assert!(log.place_of(segment, Offset(BATCHES - 1)).is_some());
        clean(&log).await;
        let segment = log.segment_of(Offset(BATCHES - 1)).await.unwrap();
        assert_eq!(log.place_of(segment, Offset(BATCHES - 1)), None);
        let (mut at, mut found): (i64, Vec<(i64, i32)>) = (0, Vec::new());
        while at <= BATCHES {
            let part = read(&log, at, one_batch()).await.unwrap();
            found.extend(part.iter().copied());
            at = part.last().unwrap().0 + 1;
        }
        assert_eq!(found, [(0, 1), (3, 1), (6, 1), (9, 1), (BATCHES, 1)]);
        node.stop().await;
    });
}
