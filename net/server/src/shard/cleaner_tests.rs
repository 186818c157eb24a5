use model::{PartitionIndex, TopicId};

use super::*;

fn key(partition: i32) -> PartitionKey {
    PartitionKey { topic_id: TopicId([1; 16]), partition: PartitionIndex(partition) }
}

#[test]
fn a_failing_partition_waits_longer_each_time_and_the_others_do_not() {
    let mut failures = Failures::default();
    let mut now_ms = 1_000_000;
    let mut waits = Vec::new();
    for _ in 0..10 {
        let (wait_ms, _) = failures.failed(key(1), now_ms);
        assert!(failures.waits(key(1), now_ms + wait_ms - 1) && !failures.waits(key(1), now_ms + wait_ms));
        assert!(!failures.waits(key(2), now_ms));
        waits.push(wait_ms / 1000);
        now_ms += wait_ms;
    }
    assert_eq!(waits, [15, 30, 60, 120, 240, 480, 900, 900, 900, 900]);
}

#[test]
fn failures_are_told_once_a_minute_with_their_count() {
    let mut failures = Failures::default();
    let told: Vec<Option<u64>> =
        [0, 10_000, 59_999, 60_000, 200_000].iter().map(|at_ms| failures.failed(key(1), *at_ms).1).collect();
    assert_eq!(told, [Some(1), None, None, Some(3), Some(1)]);
}

#[test]
fn what_is_due_or_too_dirty_is_wanted() {
    let found = |clean_bytes, dirty_bytes, is_due| Cleanable { clean_bytes, dirty_bytes, is_due };
    assert!(is_wanted(&found(49, 51, false), 0.5));
    assert!(!is_wanted(&found(50, 50, false), 0.5));
    assert!(is_wanted(&found(99, 1, false), 0.0));
    assert!(!is_wanted(&found(0, 100, false), 1.0));
    assert!(is_wanted(&found(100, 0, true), 1.0));
}

#[test]
fn the_shards_share_what_is_configured() {
    let config = model::config::BrokerConfig::default().cleaner;
    assert!(config.enabled);
    let limits = limits(&config, 4);
    assert_eq!((limits.map_bytes, limits.piece_bytes), (32 << 20, 512 << 10));
    assert!(limits.bytes_per_second > 1e300);
}
