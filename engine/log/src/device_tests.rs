#![allow(clippy::unwrap_used)]
use std::time::Duration;

use runtime::sync::all;
use runtime::testing::run;

use super::*;

#[test]
fn expected_times_give_the_limit_of_a_stall() {
    assert_eq!(stall_after_us(0), None);
    assert_eq!(stall_after_us(20_000), Some(400_000));
    assert_eq!(stall_after_us(50), Some(STALL_MIN_US), "a fast drive's every hiccup is no stall");
    assert_eq!(stall_after_us(u64::MAX), Some(u64::MAX));
}

#[test]
fn stalls_are_told_at_once_and_then_once_a_minute() {
    let mut log = StallLog::default();
    assert_eq!(log.stalled(7, 1_000), Some(Stalls { count: 1, longest_us: 7 }));
    assert_eq!(log.stalled(9, 1_001), None);
    assert_eq!(log.stalled(3, 1_000 + STALL_TELL_MS - 1), None);
    assert_eq!(log.stalled(5, 1_000 + STALL_TELL_MS), Some(Stalls { count: 3, longest_us: 9 }));
    assert_eq!(log.stalled(1, 1_001 + STALL_TELL_MS), None);
}

/// What `count` operations of `ms` each leave in the counters.
fn after(limits: DeviceLimits, count: usize, ms: u64) -> DeviceStats {
    run(move || async move {
        let device = Device::new(limits, Budget::new(1 << 20), WriteClock::default());
        let one = || device.run(Path::new("/data"), Operation::Write(4096), clock::sleep(Duration::from_millis(ms)));
        all((0..count).map(|_| one()).collect()).await;
        assert_eq!(device.slots.left(), limits.queue_depth as i64, "every slot came back");
        device.stats()
    })
}

#[test]
fn no_more_are_in_flight_than_the_depth() {
    for depth in [1, 3] {
        let stats = after(DeviceLimits { queue_depth: depth, ..DeviceLimits::default() }, 7, 2);
        assert_eq!((stats.writes, stats.most_in_flight, stats.stalls), (7, depth, 0));
    }
}

#[test]
fn only_what_takes_longer_than_the_limit_is_a_stall() {
    let limits = |us| DeviceLimits { stall_after_us: Some(us), ..DeviceLimits::default() };
    assert_eq!(after(limits(1_000), 2, 5).stalls, 2);
    assert_eq!(after(limits(60_000_000), 2, 5).stalls, 0);
}

#[test]
#[should_panic(expected = "whole blocks")]
fn a_write_that_is_no_multiple_of_a_block_is_a_programmers_error() {
    let limits = DeviceLimits { write_max_bytes: 70_000, ..DeviceLimits::default() };
    Device::new(limits, Budget::new(1 << 20), WriteClock::default());
}

/// Bytes of reads under way at once, at most, of many that are asked for together.
async fn most_at_once(device: &Device) -> usize {
    let len = READ_BESIDE_WRITES as usize;
    let (now, most) = (Cell::new(0), Cell::new(0));
    let work = || async {
        now.set(now.get() + len);
        most.set(most.get().max(now.get()));
        clock::sleep(Duration::from_millis(1)).await;
        now.set(now.get() - len);
    };
    all((0..64).map(|_| device.read(len, work())).collect()).await;
    most.get()
}

#[test]
fn reads_are_small_and_few_as_long_as_a_write_takes() {
    run(|| async {
        let device = Device::new(DeviceLimits::default(), Budget::new(64 << 20), WriteClock::default());
        assert_eq!(device.read_max(16 << 10), IO_MAX, "nobody writes");
        assert_eq!(most_at_once(&device).await, 64 * READ_BESIDE_WRITES as usize);

        let write = device.begins(Operation::Sync);
        assert_eq!(device.read_max(0), READ_BESIDE_WRITES);
        let some_fit = READ_BATCHES * READ_BESIDE_WRITES;
        assert_eq!(device.read_max(READ_BESIDE_WRITES as usize), some_fit, "some batches fit");
        assert_eq!(device.read_max(16 << 20), IO_MAX);
        assert_eq!(most_at_once(&device).await, 2 * READ_BESIDE_WRITES as usize);
        drop(write);
    });
}

#[test]
fn a_write_of_any_shard_is_recent_for_a_while() {
    run(|| async {
        let writes = WriteClock::default();
        let other_shard = Device::new(DeviceLimits::default(), Budget::new(1 << 20), writes.clone());
        assert!(!writes.is_recent(clock::now_ns()), "nobody ever wrote");
        let before_ns = clock::now_ns();
        drop(other_shard.begins(Operation::Sync));
        let (while_ns, after_ns) = (READS_GIVE_WAY_MS * 1_000_000, clock::now_ns());
        assert!(writes.is_recent(before_ns + while_ns - 1));
        assert!(!writes.is_recent(after_ns + while_ns));
    });
}
