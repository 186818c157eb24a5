//! The scrub finds what nobody reads, at its pace, while segments come and go under it.

use runtime::testing::{TempDir, run};
use std::fs;

use super::*;
use crate::limits::{SCRUB_PAUSE_MAX_MS, SCRUB_READ};
use crate::{Scrub, ScrubLimits};

const FAST: ScrubLimits = ScrubLimits { interval_ms: 1, bytes_per_s: u64::MAX };

async fn filled(node: &Node, topic: &str, segments: i64) -> Rc<PartitionLog> {
    let log = node.open(topic, LogConfig { segment_bytes: 200, ..small() }).await;
    for i in 0..=segments {
        put(&log, &batch_of(&[i], 100)).await;
    }
    log.settle().await.unwrap();
    assert_eq!(log.segment_count() as i64, segments + 1);
    log
}

/// Steps until `passes` more were ended. The first pass of a process begins somewhere.
async fn passes(node: &Node, scrub: &mut Scrub, passes: u64) {
    let wanted = node.shard.stats().damage.scrub_passes + passes;
    for _ in 0..10_000 {
        scrub.step(&node.shard, FAST).await;
        if node.shard.stats().damage.scrub_passes >= wanted {
            return;
        }
        runtime::clock::sleep(std::time::Duration::from_micros(300)).await;
    }
    panic!("the scrub does not come around");
}

fn damage(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 4;
    fs::write(path, bytes).unwrap();
}

#[test]
fn what_nobody_reads_is_found() {
    run(|| async {
        let temp = TempDir::new("log-scrub");
        let node = Node::start(temp.path()).await;
        let logs = [filled(&node, "a", 5).await, filled(&node, "b", 9).await, filled(&node, "c", 2).await];
        let mut scrub = Scrub::new();
        passes(&node, &mut scrub, 2).await;
        assert_eq!(node.shard.stats().damage.damaged_ranges, 0);
        // One whole pass reads all there is.
        let before = node.shard.stats().damage.scrubbed_bytes;
        passes(&node, &mut scrub, 1).await;
        let closed: u64 = logs.iter().map(|log| log.state.borrow().closed_bytes).sum();
        assert_eq!(node.shard.stats().damage.scrubbed_bytes - before, closed);
        // A payload, a base offset, a leader epoch, a lost file.
        damage(&segment_file(logs[0].dir(), 2, "log"), 100);
        damage(&segment_file(logs[1].dir(), 0, "log"), 7);
        damage(&segment_file(logs[1].dir(), 8, "log"), 15);
        fs::remove_file(segment_file(logs[1].dir(), 4, "log")).unwrap();
        passes(&node, &mut scrub, 2).await;
        let marks = |log: &PartitionLog| log.damaged_ranges().iter().map(|d| d.from_offset.0).collect::<Vec<_>>();
        assert_eq!(marks(&logs[0]), vec![2]);
        // A file that vanished under a running broker is met by a reader, or after the next start.
        assert_eq!(marks(&logs[1]), vec![0, 8]);
        assert!(marks(&logs[2]).is_empty());
        // What is still in memory is sound.
        assert_eq!(read(&logs[0], 2, everything()).await.unwrap()[0], (2, 1));
        logs[0].drop_tail();
        assert!(matches!(read(&logs[0], 2, everything()).await, Err(LogError::Corrupt { .. })));
        assert_eq!(read(&logs[0], 3, everything()).await.unwrap()[0], (3, 1));
        drop(logs);
        node.stop().await;
    });
}

#[test]
fn records_missing_between_segments_are_found_unless_the_topic_is_compacted() {
    run(|| async {
        for gaps in [false, true] {
            let temp = TempDir::new("log-scrub-gap");
            let node = Node::start(temp.path()).await;
            let log = filled(&node, "t", 6).await;
            let dir = log.dir().to_path_buf();
            drop(log);
            node.stop().await;
            fs::remove_file(segment_file(&dir, 3, "log")).unwrap();
            let node = Node::start(temp.path()).await;
            let log = node.open("t", LogConfig { segment_bytes: 200, gaps, ..small() }).await;
            let mut scrub = Scrub::new();
            passes(&node, &mut scrub, 2).await;
            assert_eq!(log.damaged_ranges().len(), usize::from(!gaps));
            assert_eq!(read(&log, 3, everything()).await.is_err(), !gaps);
            assert_eq!(read(&log, 4, everything()).await.unwrap()[0], (4, 1));
            drop(log);
            node.stop().await;
        }
    });
}

#[test]
fn large_batches_and_segments_of_many_reads_are_walked_over() {
    run(|| async {
        let temp = TempDir::new("log-scrub-large");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        for i in 0..20 {
            put(&log, &batch_of(&[i], if i % 5 == 0 { 3 * SCRUB_READ } else { 50_000 })).await;
        }
        log.roll_now(runtime::clock::wall_ms()).await.unwrap();
        let file = segment_file(log.dir(), 0, "log");
        let mut scrub = Scrub::new();
        passes(&node, &mut scrub, 2).await;
        assert!(log.damaged_ranges().is_empty());
        // In the middle of a large one, and in the one behind it.
        let large = BatchView::parse(&fs::read(&file).unwrap()).unwrap().bytes.len();
        damage(&file, large / 2);
        damage(&file, large + 200);
        passes(&node, &mut scrub, 2).await;
        let marks: Vec<(i64, i64)> = log.damaged_ranges().iter().map(|d| (d.from_offset.0, d.to_offset.0)).collect();
        assert_eq!(marks, vec![(0, 2)]);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn segments_that_go_under_it_are_no_damage() {
    run(|| async {
        let temp = TempDir::new("log-scrub-moving");
        let node = Node::start(temp.path()).await;
        let (first, second) = (filled(&node, "a", 12).await, filled(&node, "b", 12).await);
        let mut scrub = Scrub::new();
        for turn in 0..60 {
            scrub.step(&node.shard, FAST).await;
            runtime::clock::sleep(std::time::Duration::from_millis(1)).await;
            match turn {
                5 | 15 | 25 => {
                    let to = Offset(first.log_start_offset().0 + 3);
                    first.delete_records_before(to).await.unwrap();
                }
                10 | 30 => second.truncate_to(Offset(second.log_end_offset().0 - 4)).await.unwrap(),
                20 => {
                    append(&second, &batch_of(&[1], 100));
                }
                40 => second.clone().delete().await.unwrap(),
                _ => {}
            }
        }
        assert!(first.damaged_ranges().is_empty() && second.damaged_ranges().is_empty());
        assert_eq!(node.shard.stats().damage.damaged_ranges, 0);
        drop((first, second));
        node.stop().await;
    });
}

#[test]
fn it_keeps_its_pace_and_is_off_at_zero() {
    run(|| async {
        let temp = TempDir::new("log-scrub-pace");
        let node = Node::start(temp.path()).await;
        let log = filled(&node, "t", 10).await;
        let closed = log.state.borrow().closed_bytes as i64;
        let off = ScrubLimits { interval_ms: 0, bytes_per_s: 1 };
        assert_eq!(Scrub::new().step(&node.shard, off).await, SCRUB_PAUSE_MAX_MS);
        let mut scrub = Scrub::from_front();
        assert_eq!(node.shard.stats().damage, Default::default());
        // Spread over the interval: ten segments in ten seconds are one a second.
        let slow = ScrubLimits { interval_ms: 10_000, bytes_per_s: u64::MAX };
        assert_eq!(scrub.step(&node.shard, slow).await, 1000);
        // Not faster than the bound.
        let bound = ScrubLimits { interval_ms: 1, bytes_per_s: closed as u64 / 20 };
        let pause = scrub.step(&node.shard, bound).await;
        assert!((1990..=2020).contains(&pause), "{pause}");
        // Not stopped for a week by a small log.
        let week = ScrubLimits { interval_ms: 7 * 86_400_000, bytes_per_s: u64::MAX };
        assert_eq!(scrub.step(&node.shard, week).await, SCRUB_PAUSE_MAX_MS);
        drop(log);
        node.stop().await;
    });
}
