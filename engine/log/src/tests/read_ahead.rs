//! Reading ahead of a reader that goes on, for one that does, and never what is not the log's any more.

use std::time::Duration;

use runtime::testing::{TempDir, run};

use super::*;
use crate::limits::{READ_AHEAD_BYTES, READ_AHEAD_KEPT_MS, READ_AHEAD_MOST};

const VALUE: usize = 4_000;
/// A reader's limit: some batches.
const ASK: usize = 256 << 10;

/// A log of one open segment, nothing of it in memory.
async fn cold(node: &Node, topic: &str, batches: i64) -> Rc<PartitionLog> {
    let log = node.open(topic, LogConfig { index_interval_bytes: 4_096, ..LogConfig::default() }).await;
    for i in 0..batches {
        append(&log, &batch_of(&[1000 + i], VALUE));
        // The journal of the tests is small.
        if i % 8 == 7 {
            log.settle().await.unwrap();
        }
    }
    let_go(&log).await;
    log
}

fn limits(max_bytes: usize) -> ReadLimits {
    ReadLimits { max_bytes, ..everything() }
}

/// Reads on twice, which makes the shard read ahead, and waits for it. Gives where the reader stands.
async fn go_on(node: &Node, log: &PartitionLog) -> i64 {
    let mut at = 0;
    for _ in 0..2 {
        at = log.read(Offset(at), limits(ASK)).await.unwrap().next_offset.0;
    }
    until_read(node).await;
    at
}

/// Nothing is being read ahead any more.
async fn until_read(node: &Node) {
    while node.shard.read_ahead.is_reading() {
        runtime::clock::sleep(Duration::from_millis(1)).await;
    }
}

fn taken(node: &Node) -> usize {
    node.shard.read_ahead.taken()
}

#[test]
fn a_reader_that_goes_on_finds_everything_once_and_in_order() {
    run(|| async {
        let temp = TempDir::new("log-ahead");
        let node = Node::start(temp.path()).await;
        let log = cold(&node, "t", 400).await;
        for max_bytes in [1, 5_000, 100_000, ASK, 700_000] {
            let reads = node.shard.stats().device.reads;
            let expect: Vec<(i64, i32)> = (0..400).map(|at| (at, 1)).collect();
            assert_eq!(read_all(&log, 0, max_bytes).await, expect, "{max_bytes}");
            if max_bytes >= 100_000 {
                let reads = node.shard.stats().device.reads - reads;
                let bytes = log.size_bytes();
                assert!(reads <= 2 * bytes.div_ceil(100_000), "{reads} reads of {bytes} bytes, {max_bytes} at once");
            }
            assert_eq!(taken(&node), 0, "nothing is left at the end");
        }
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_reader_that_jumps_makes_nobody_read_ahead() {
    run(|| async {
        let temp = TempDir::new("log-ahead-jumps");
        let node = Node::start(temp.path()).await;
        let log = cold(&node, "t", 400).await;
        for at in [0, 300, 10, 200, 100] {
            log.read(Offset(at), limits(20_000)).await.unwrap();
            assert_eq!(taken(&node), 0, "{at}");
        }
        let at = go_on(&node, &log).await;
        assert_eq!(taken(&node), ASK);
        let reads = node.shard.stats().device.reads;
        assert_eq!(read(&log, at, limits(ASK)).await.unwrap()[0], (at, 1));
        assert!(node.shard.stats().device.reads <= reads + 1, "it lay there, and the next is begun");
        drop(log);
        node.stop().await;
    });
}

#[test]
fn batches_that_are_larger_than_what_is_asked_for_are_not_read_in_vain() {
    run(|| async {
        let temp = TempDir::new("log-ahead-large");
        let node = Node::start_direct(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        for i in 0..20 {
            put(&log, &batch_of(&[1000 + i], 300_000)).await;
        }
        let_go(&log).await;
        let reads = node.shard.stats().device.reads;
        let expect: Vec<(i64, i32)> = (0..20).map(|at| (at, 1)).collect();
        assert_eq!(read_all(&log, 0, 100_000).await, expect);
        let reads = node.shard.stats().device.reads - reads;
        assert!(reads <= 26, "{reads} reads for 20 batches");
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_truncation_makes_void_what_was_read_ahead() {
    run(|| async {
        let temp = TempDir::new("log-ahead-cut");
        let node = Node::start(temp.path()).await;
        let log = cold(&node, "t", 300).await;
        let at = go_on(&node, &log).await;
        assert!(taken(&node) > 0 && at < 200, "{at}");
        log.truncate_to(Offset(at + 1)).await.unwrap();
        let other = batch_of(&[7, 7, 7], 100);
        put(&log, &other).await;
        let_go(&log).await;
        assert_eq!(read(&log, at, limits(ASK)).await.unwrap(), [(at, 1), (at + 1, 3)]);
        assert_eq!(taken(&node), 0);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn what_was_read_ahead_is_given_out_by_the_limits_of_who_asks() {
    run(|| async {
        let temp = TempDir::new("log-ahead-limits");
        let node = Node::start(temp.path()).await;
        let log = cold(&node, "t", 400).await;
        let at = go_on(&node, &log).await;
        let below = ReadLimits { upper_bound: Offset(at + 2), ..limits(ASK) };
        assert_eq!(read(&log, at, below).await.unwrap(), [(at, 1), (at + 1, 1)]);
        let size = batch_of(&[1], VALUE).len();
        assert_eq!(read(&log, at + 2, limits(3 * size)).await.unwrap(), [(at + 2, 1), (at + 3, 1), (at + 4, 1)]);
        assert_eq!(read(&log, at + 5, limits(1)).await.unwrap(), [(at + 5, 1)]);
        let nothing = ReadLimits { min_one_batch: false, ..limits(10) };
        assert_eq!(read(&log, at + 6, nothing).await.unwrap(), []);
        let bound = ReadLimits { upper_bound: Offset(at + 6), ..limits(ASK) };
        assert_eq!(read(&log, at + 6, bound).await.unwrap(), []);
        let found = read(&log, at + 6, limits(ASK)).await.unwrap();
        assert_eq!(found[0], (at + 6, 1));
        assert!(found.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1), "{found:?}");
        drop(log);
        node.stop().await;
    });
}

#[test]
fn two_readers_at_one_place_both_get_everything() {
    run(|| async {
        let temp = TempDir::new("log-ahead-two");
        let node = Node::start(temp.path()).await;
        let log = cold(&node, "t", 400).await;
        let expect: Vec<(i64, i32)> = (0..400).map(|at| (at, 1)).collect();
        let both = runtime::sync::all((0..2).map(|_| read_all(&log, 0, ASK)).collect()).await;
        assert_eq!(both, [expect.clone(), expect]);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn room_is_bounded_and_comes_back_when_nobody_comes() {
    run(|| async {
        let temp = TempDir::new("log-ahead-room");
        let node = Node::start(temp.path()).await;
        let mut logs = Vec::new();
        for topic in 0..2 + READ_AHEAD_BYTES / READ_AHEAD_MOST {
            logs.push(cold(&node, &format!("t{topic}"), 60).await);
        }
        for log in &logs {
            log.begin_ahead(Offset(0), limits(64 << 20));
            log.begin_ahead(Offset(0), limits(64 << 20));
        }
        assert_eq!(taken(&node), READ_AHEAD_BYTES, "a share for each, as long as there is room");
        until_read(&node).await;
        node.shard.read_ahead.drop_old(runtime::clock::now_ms());
        assert!(taken(&node) > 0);
        node.shard.read_ahead.drop_old(runtime::clock::now_ms() + READ_AHEAD_KEPT_MS);
        assert_eq!(taken(&node), 0);
        for log in &logs {
            assert_eq!(read_all(log, 0, ASK).await.len(), 60);
        }
        drop(logs);
        node.stop().await;
    });
}
