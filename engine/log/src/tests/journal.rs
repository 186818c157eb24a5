//! The journal with whole logs: what goes through it, how its files come free, what a start finds.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::rc::Rc;

use model::Offset;

use super::*;
use crate::journal::FOLDER;
use crate::limits::BLOCK;
use crate::partition::journaled::Held;

async fn start(path: &Path) -> Node {
    Node::start_with(path, |config| config.journal = Some(small_journal())).await
}

/// Appends until rounds are made: the ring's first file is ready.
async fn warm_up(node: &Node, log: &PartitionLog) {
    for _ in 0..500 {
        put(log, &batch(&[1])).await;
        if node.shard.stats().journal.rounds > 0 {
            return;
        }
        runtime::clock::sleep(std::time::Duration::from_millis(2)).await;
    }
    panic!("the journal never took a batch");
}

fn has_state(path: &Path) -> bool {
    let Ok(listing) = std::fs::read_dir(path.join(FOLDER)) else { return false };
    listing.filter_map(Result::ok).any(|entry| entry.file_name().to_string_lossy().ends_with(".state"))
}

fn written(log: &PartitionLog) -> u64 {
    log.state.borrow().active.written
}

#[test]
fn small_batches_are_durable_in_the_journal_before_their_segment_has_them() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-journal");
        let node = start(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        warm_up(&node, &log).await;
        let (before, rounds) = (written(&log), node.shard.stats().journal.rounds);
        let appended = put(&log, &batch(&[2, 3])).await;
        assert_eq!(log.durable_end(), appended.next_offset);
        assert_eq!(written(&log), before, "the segment was not written");
        assert!(node.shard.stats().journal.rounds > rounds);
        let end = log.log_end_offset().0;
        assert_eq!(read_all(&log, 0, 100_000).await.last(), Some(&(end - 2, 2)));
        node.stop().await;
        assert!(!has_state(folder.path()), "a clean stop leaves nothing to apply");
    });
}

#[test]
fn a_start_after_a_crash_finds_what_only_the_journal_had() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-journal");
        let node = start(folder.path()).await;
        let logs = [node.open("a", LogConfig::default()).await, node.open("b", LogConfig::default()).await];
        for log in &logs {
            warm_up(&node, log).await;
            for ms in 0..20 {
                put(log, &batch(&[ms, ms])).await;
            }
        }
        let ends = logs.each_ref().map(|log| log.log_end_offset());
        assert!(logs.iter().any(|log| written(log) < log.state.borrow().active.fill.size));
        drop(logs);
        node.crash().await;
        assert!(has_state(folder.path()));
        for _ in 0..2 {
            let node = start(folder.path()).await;
            assert!(!has_state(folder.path()), "applied once and for all");
            for (topic, end) in ["a", "b"].iter().zip(ends) {
                let log = node.open(topic, LogConfig::default()).await;
                assert_eq!(log.log_end_offset(), end);
                let found = read_all(&log, 0, 100_000).await;
                assert_eq!(found.last().map(|(base, count)| base + i64::from(*count)), Some(end.0));
            }
            node.crash().await;
        }
    });
}

#[test]
fn a_large_batch_goes_straight_to_its_segment_with_what_came_before() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-journal");
        let node = start(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        warm_up(&node, &log).await;
        put(&log, &batch(&[5])).await;
        assert!(written(&log) < log.state.borrow().active.fill.size);
        put(&log, &batch_of(&[6], 40_000)).await;
        assert_eq!(written(&log), log.state.borrow().active.fill.size);
        assert!(log.held.borrow().is_empty(), "the ring holds nothing that the segment does not");
        node.stop().await;
    });
}

#[test]
fn the_only_file_takes_rounds_however_large_it_is() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-journal");
        let large = JournalConfig { file_bytes: 64 << 20, ..small_journal() };
        let node = Node::start_with(folder.path(), |config| config.journal = Some(large)).await;
        let log = node.open("t", LogConfig::default()).await;
        warm_up(&node, &log).await;
        let rounds = node.shard.stats().journal.rounds;
        for ms in 0..20 {
            put(&log, &batch(&[ms])).await;
        }
        assert_eq!(node.shard.stats().journal.rounds, rounds + 20);
        node.stop().await;
    });
}

#[test]
fn files_come_free_lap_after_lap() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-journal");
        let node = start(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        warm_up(&node, &log).await;
        // Ten times the ring.
        let mut ms = 0;
        while node.shard.stats().journal.written_bytes < 10 * 3 * (64 << 10) {
            put(&log, &batch_of(&[ms], 3000)).await;
            ms += 1;
            assert!(ms < 5000, "batches go past the journal: {:?}", node.shard.stats().journal);
        }
        let stats = node.shard.stats().journal;
        assert!(stats.files <= 3 && stats.destages > 5, "{stats:?}");
        let end = log.log_end_offset();
        drop(log);
        node.crash().await;
        let node = start(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        assert_eq!(log.log_end_offset(), end);
        let found = read_all(&log, 0, 1 << 20).await;
        assert_eq!(found.len() as i64, end.0);
        node.stop().await;
    });
}

#[test]
fn a_truncated_tail_does_not_come_back() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-journal");
        let node = start(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        warm_up(&node, &log).await;
        let kept = put(&log, &batch(&[1])).await.next_offset;
        for _ in 0..5 {
            put(&log, &batch_of(&[2], 500)).await;
        }
        log.truncate_to(kept).await.unwrap();
        let appended = put(&log, &batch_of(&[3], 50)).await;
        assert_eq!(appended.base_offset, kept);
        drop(log);
        node.crash().await;
        let node = start(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        assert_eq!(log.log_end_offset(), Offset(kept.0 + 1));
        assert_eq!(read_all(&log, kept.0, 100_000).await, [(kept.0, 1)]);
        node.stop().await;
    });
}

#[test]
fn a_deleted_topics_entries_are_not_applied_to_its_successor() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-journal");
        let node = start(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        warm_up(&node, &log).await;
        put(&log, &batch_of(&[2], 900)).await;
        log.delete().await.unwrap();
        node.crash().await;
        let node = start(folder.path()).await;
        assert!(node.dir.found_partition("t", PartitionIndex(0)).is_none());
        let log = node.open("t", LogConfig::default()).await;
        assert_eq!(log.log_end_offset(), Offset::ZERO);
        node.stop().await;
    });
}

#[test]
fn idle_partitions_leave_the_ring_and_many_share_a_round() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-journal");
        let node = start(folder.path()).await;
        let mut logs: Vec<Rc<PartitionLog>> = Vec::new();
        for n in 0..20 {
            let log = node.open(&format!("t{n}"), LogConfig::default()).await;
            warm_up(&node, &log).await;
            logs.push(log);
        }
        let before = node.shard.stats().journal;
        let appended: Vec<Appended> = logs.iter().map(|log| append(log, &batch(&[7]))).collect();
        for (log, appended) in logs.iter().zip(appended) {
            log.wait_durable(appended.next_offset).await.unwrap();
        }
        let after = node.shard.stats().journal;
        assert!(after.rounds - before.rounds <= 3, "twenty partitions in {} rounds", after.rounds - before.rounds);
        for log in &logs {
            log.request_destage();
        }
        for log in &logs {
            while !log.held.borrow().is_empty() {
                runtime::clock::sleep(std::time::Duration::from_millis(1)).await;
            }
            assert_eq!(written(log), log.state.borrow().active.fill.size);
        }
        node.stop().await;
    });
}

#[test]
fn a_ring_whose_file_is_gone_is_no_reason_to_start_without_it() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-journal");
        let node = start(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        warm_up(&node, &log).await;
        drop(log);
        node.crash().await;
        let rings = std::fs::read_dir(folder.path().join(FOLDER)).unwrap().filter_map(Result::ok);
        rings.filter(|e| e.file_name().to_string_lossy().ends_with(".ring")).for_each(|e| {
            std::fs::remove_file(e.path()).unwrap();
        });
        let error = DataDir::open(folder.path()).await.unwrap_err().to_string();
        assert!(error.contains("it may hold acknowledged records"), "{error}");
        assert!(has_state(folder.path()), "nothing was changed");
    });
}

#[test]
fn a_ring_that_cannot_grow_gets_on_with_the_files_it_has() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-journal");
        // The second file cannot be made: a folder has its name.
        std::fs::create_dir_all(folder.path().join(FOLDER).join("00000.00001.ring").join("in the way")).unwrap();
        let node = start(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        warm_up(&node, &log).await;
        let mut ms = 0;
        while node.shard.stats().journal.written_bytes < 5 * (64 << 10) {
            put(&log, &batch_of(&[ms], 3000)).await;
            ms += 1;
            assert!(ms < 5000, "the only file never comes free: {:?}", node.shard.stats().journal);
        }
        assert_eq!(node.shard.stats().journal.files, 1);
        let end = log.log_end_offset();
        // It needs room in the ring for its void.
        log.truncate_to(Offset(end.0 - 3)).await.unwrap();
        drop(log);
        node.crash().await;
        let node = start(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        assert_eq!(log.log_end_offset(), Offset(end.0 - 3));
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_poisoned_partition_of_which_nothing_was_acknowledged_in_the_ring_keeps_no_file() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-journal");
        let node = start(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        warm_up(&node, &log).await;
        log.settle().await.unwrap();
        // As a round leaves it that was under way when the partition failed.
        let base = log.state.borrow().active.base_offset;
        log.held.borrow_mut().push_back(Held { lap: log.newest_lap.get(), segment_base: base, end: u64::MAX });
        log.poison(&LogError::Storage("for a test".into()));
        assert!(log.take_carry().is_empty());
        assert!(log.held.borrow().is_empty());
        drop(log);
        assert!(node.shard.stop_clean().await.is_err());
    });
}

#[test]
fn the_journals_writes_and_syncs_are_counted_with_the_drives() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-journal");
        let node = start(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        warm_up(&node, &log).await;
        let before = node.shard.stats();
        put(&log, &batch(&[7])).await;
        let after = node.shard.stats();
        assert_eq!(after.journal.rounds, before.journal.rounds + 1);
        assert_eq!((after.device.writes, after.device.syncs), (before.device.writes + 1, before.device.syncs + 1));
        drop(log);
        node.stop().await;
    });
}

#[test]
fn figures_of_the_ring_go_up_and_down() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-journal");
        let node = start(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        warm_up(&node, &log).await;
        let before = node.shard.stats();
        put(&log, &batch(&[2, 3])).await;
        let after = node.shard.stats();
        assert_eq!(after.appended.batches, before.appended.batches + 1);
        assert_eq!(after.appended.records, before.appended.records + 2);
        assert_eq!(after.appended.bytes, before.appended.bytes + batch(&[2, 3]).len() as u64);
        assert!(after.journal.ring.fill_bytes > before.journal.ring.fill_bytes);
        assert!(after.journal.syncs.count() > before.journal.syncs.count());
        assert!(log.journal_debt_bytes() >= batch(&[2, 3]).len() as u64);
        let mut most = 0;
        let mut has_fallen = false;
        for ms in 0..400 {
            put(&log, &batch_of(&[ms], 3000)).await;
            let fill = node.shard.stats().journal.ring.fill_bytes;
            has_fallen |= fill < most;
            most = most.max(fill);
        }
        let stats = node.shard.stats();
        assert!(has_fallen && most <= stats.journal.ring.capacity_bytes, "{stats:?}");
        assert!(stats.journal.ring.recycles > 0 && stats.destage.written_bytes > 0, "{stats:?}");
        log.request_destage();
        for _ in 0..500 {
            if log.journal_debt_bytes() == 0 {
                break;
            }
            runtime::clock::sleep(std::time::Duration::from_millis(2)).await;
        }
        assert_eq!(log.journal_debt_bytes(), 0, "the segment has everything");
        node.stop().await;
    });
}

#[test]
fn the_direct_way_counts_what_it_writes_and_syncs() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-direct");
        let node = Node::start_direct(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        let bytes: u64 = [batch(&[1]), batch(&[2, 3])].iter().map(|b| b.len() as u64).sum();
        put(&log, &batch(&[1])).await;
        put(&log, &batch(&[2, 3])).await;
        let stats = node.shard.stats();
        assert_eq!((stats.direct.written_bytes, stats.appended.bytes, stats.appended.records), (bytes, bytes, 3));
        assert_eq!(stats.direct.first_bytes, bytes, "nobody else had them");
        assert!(stats.direct.rounds >= 2 && stats.direct.syncs.count() >= 2, "{stats:?}");
        assert_eq!((stats.destage, stats.journal), Default::default());
        node.stop().await;
    });
}

#[test]
fn who_finds_the_ring_full_waits_for_a_file() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-journal");
        let node = start(folder.path()).await;
        let mut logs: Vec<Rc<PartitionLog>> = Vec::new();
        for n in 0..8 {
            let log = node.open(&format!("t{n}"), LogConfig::default()).await;
            warm_up(&node, &log).await;
            logs.push(log);
        }
        let before = node.shard.stats();
        let mut ms = 0;
        while node.shard.stats().journal.ring.full < 10 {
            // Half a file's worth at once.
            let appended: Vec<Appended> = logs.iter().map(|log| append(log, &batch_of(&[ms], 4000))).collect();
            for (log, appended) in logs.iter().zip(appended) {
                log.wait_durable(appended.next_offset).await.unwrap();
            }
            ms += 1;
            assert!(ms < 2000, "the ring is never full: {:?}", node.shard.stats().journal);
        }
        // One waits while somebody waits for it.
        let cut = logs[0].log_end_offset();
        for log in &logs {
            append(log, &batch_of(&[ms], 4000));
        }
        logs[0].truncate_to(cut).await.unwrap();
        let after = node.shard.stats();
        let journalled = after.journal.payload_bytes - before.journal.payload_bytes;
        // New space of a segment is taken on the direct way.
        let direct = after.direct.first_bytes - before.direct.first_bytes;
        assert!(direct * 2 < journalled, "{direct} bytes went past the journal, {journalled} did not");
        assert!(after.journal.ring.full_ns > 0);
        drop(logs);
        node.stop().await;
    });
}

#[test]
fn what_leaves_the_ring_ends_with_whole_blocks_and_a_start_finds_the_rest() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-journal");
        let node = start(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        warm_up(&node, &log).await;
        let begin = log.state.borrow().active.fill.size;
        let len = batch_of(&[0], 700).len() as u64;
        let (mut cuts, mut ms) = (0, 0);
        while cuts < 3 {
            put(&log, &batch_of(&[ms], 700)).await;
            ms += 1;
            assert!(ms < 5000, "no move ended within a batch: {:?}", node.shard.stats());
            let (written, whole) = (written(&log), log.state.borrow().active.whole);
            assert!(whole <= written);
            if whole < written {
                assert_eq!(written % BLOCK, 0);
                assert!(written - whole < len && (whole - begin).is_multiple_of(len), "{whole} of {written}");
                assert_eq!(log.segment_of(Offset::ZERO).await.unwrap().size, whole, "readers see whole batches");
                assert!(!log.held.borrow().is_empty(), "the ring has the rest");
                cuts += 1;
            }
        }
        let end = log.log_end_offset();
        drop(log);
        node.crash().await;
        let node = start(folder.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        assert_eq!(log.log_end_offset(), end);
        assert_eq!(read_all(&log, 0, 1 << 20).await.len() as i64, end.0);
        node.stop().await;
    });
}
