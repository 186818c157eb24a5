use runtime::testing::{TempDir, run};

use super::*;

/// One partition far behind the drive and many with a little, so that both the pieces of a range and the partitions of
/// a round compete for slots.
async fn load(node: &Node) -> Vec<Rc<PartitionLog>> {
    let mut logs = Vec::new();
    for partition in 0..40 {
        let mut spec = node.spec("t", LogConfig::default());
        spec.key.partition = PartitionIndex(partition);
        logs.push(node.shard.create_partition(spec).await.unwrap());
    }
    for i in 0..30 {
        append(&logs[0], &batch_of(&[i], 100_000));
        for log in &logs[1..] {
            append(log, &batch_of(&[i], 50));
        }
        if i % 10 == 0 {
            logs[0].wait_durable(Offset(i + 1)).await.unwrap();
        }
    }
    for log in &logs {
        log.wait_durable(Offset(30)).await.unwrap();
    }
    logs
}

/// Writes, crashes, reads everything back (with CRCs), stops cleanly and reads again. Gives the first start's counters.
fn round_trip(device: DeviceLimits) -> DeviceStats {
    run(move || async move {
        let temp = TempDir::new("log-device");
        let node = Node::start_direct_with(temp.path(), |c| c.device = device).await;
        let logs = load(&node).await;
        let stats = node.shard.stats().device;
        drop(logs);
        node.crash().await;
        let all: Vec<(i64, i32)> = (0..30).map(|offset| (offset, 1)).collect();
        for _ in 0..2 {
            let node = Node::start_direct_with(temp.path(), |c| c.device = device).await;
            for partition in [0, 1, 39] {
                let mut spec = node.spec("t", LogConfig::default());
                spec.key.partition = PartitionIndex(partition);
                let mode = node.dir.start_mode(spec.key);
                let log = node.shard.open_partition(spec, mode).await.unwrap().log;
                assert_eq!(read_all(&log, 0, 1 << 20).await, all, "partition {partition}");
            }
            node.stop().await;
        }
        stats
    })
}

#[test]
fn the_smallest_settings_keep_their_bounds_and_the_data() {
    let stats = round_trip(DeviceLimits { write_max_bytes: 4096, queue_depth: 1, stall_after_us: None });
    assert_eq!((stats.largest_write_bytes, stats.most_in_flight, stats.stalls), (4096, 1, 0), "{stats:?}");
    assert!(stats.writes >= 3_000_000 / 4096 && stats.syncs >= 40, "{stats:?}");
}

#[test]
fn small_writes_and_a_small_depth_are_used_and_never_exceeded() {
    let stats = round_trip(DeviceLimits { write_max_bytes: 65_536, queue_depth: 3, stall_after_us: None });
    assert_eq!((stats.largest_write_bytes, stats.most_in_flight), (65_536, 3), "{stats:?}");
}

#[test]
fn without_settings_a_range_goes_out_in_large_writes() {
    let stats = round_trip(DeviceLimits::default());
    assert!(stats.largest_write_bytes > 65_536 && stats.largest_write_bytes <= 1 << 20, "{stats:?}");
    assert!(stats.most_in_flight > 3 && stats.most_in_flight <= 64, "{stats:?}");
}

#[test]
fn slow_writes_and_syncs_are_counted() {
    // No drive is done in no time, and none takes an hour.
    let stats = round_trip(DeviceLimits { stall_after_us: Some(0), ..DeviceLimits::default() });
    assert!(stats.stalls > stats.writes / 2 && stats.stalls <= stats.writes + stats.syncs, "{stats:?}");
    let stats = round_trip(DeviceLimits { stall_after_us: Some(3_600_000_000), ..DeviceLimits::default() });
    assert_eq!(stats.stalls, 0);
}

/// Durable writes that one batch of so many bytes takes once its segment is there, in a round of the journal or not.
fn durable_writes(journal: bool, value_len: usize, tell_written: bool) -> u64 {
    run(move || async move {
        let temp = TempDir::new("log-device");
        let node = match journal {
            true => Node::start_with(temp.path(), |config| config.journal = Some(small_journal())).await,
            false => Node::start_direct_with(temp.path(), |_| {}).await,
        };
        let log = node.open("t", LogConfig::default()).await;
        put(&log, &batch_of(&[1], 10)).await;
        while journal && node.shard.stats().journal.rounds == 0 {
            put(&log, &batch_of(&[1], 10)).await;
        }
        let before = node.shard.stats().device;
        if tell_written {
            log.tell_written();
        }
        put(&log, &batch_of(&[2], value_len)).await;
        let after = node.shard.stats().device;
        assert!(after.writes > before.writes && after.syncs > before.syncs, "{after:?}");
        node.stop().await;
        after.durable_writes - before.durable_writes
    })
}

#[test]
fn what_is_small_is_written_and_synced_in_one_go_unless_somebody_waits_for_the_write() {
    for journal in [false, true] {
        assert_eq!(durable_writes(journal, 1_000, false), 1, "journal: {journal}");
        assert_eq!(durable_writes(journal, 1_000, true), 0, "journal: {journal}");
        assert_eq!(durable_writes(journal, 100_000, false), 0, "journal: {journal}");
    }
}
