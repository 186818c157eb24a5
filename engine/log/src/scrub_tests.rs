#![allow(clippy::unwrap_used)]
use super::*;
use model::{PartitionIndex, TopicId};

#[test]
fn the_pause_spreads_what_there_is_over_the_interval() {
    let pause =
        |read, closed, interval_ms, bytes_per_s| pause_ms(read, closed, ScrubLimits { interval_ms, bytes_per_s });
    // 1 TiB in a week, 256 KiB a read.
    assert_eq!(pause(256 << 10, 1 << 40, 604_800_000, 16 << 20), 144);
    // The bound of bytes holds where the interval would ask for more.
    assert_eq!(pause(1 << 20, 1 << 50, 1000, 1 << 20), 1000);
    // Neither zero nor for ever, and no overflow.
    assert_eq!(pause(0, 0, 1, 0), 1);
    assert_eq!(pause(u64::MAX, u64::MAX, i64::MAX, 1), SCRUB_PAUSE_MAX_MS);
    assert_eq!(pause(1, 0, 604_800_000, 1), SCRUB_PAUSE_MAX_MS);
}

#[test]
fn every_key_has_the_next_one_behind_it() {
    let key = |id: u8, partition| PartitionKey { topic_id: TopicId([id; 16]), partition: PartitionIndex(partition) };
    assert_eq!(after(key(1, 0)).unwrap(), key(1, 1));
    let next = after(key(1, i32::MAX)).unwrap();
    assert!(next > key(1, i32::MAX) && next.partition.0 == 0);
    assert_eq!(after(key(255, i32::MAX)), None);
}
