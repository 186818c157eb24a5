//! When a cleaning is due, how far it goes, and what it leaves alone.

use std::collections::BTreeMap;

use runtime::clock;
use runtime::testing::{TempDir, run};

use super::compaction::*;
use super::*;

#[test]
fn the_share_of_dirty_bytes_is_told_and_young_records_stay() {
    run(|| async {
        let temp = TempDir::new("log-compact-lags");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", compacted()).await;
        for i in 0..20 {
            put(&log, &one(1000 * i, "k", Some("v"))).await;
        }
        roll(&log).await;
        let all = log.cleanable(20_000).await.unwrap().unwrap();
        assert_eq!((all.clean_bytes, all.is_due), (0, false));
        assert!((all.dirty_ratio() - 1.0).abs() < 1e-9);
        // Segments whose youngest record is not old enough do not count.
        log.set_config(LogConfig { min_compaction_lag_ms: 10_000, ..log.config() });
        let some = log.cleanable(20_000).await.unwrap().unwrap();
        assert!(some.dirty_bytes > 0 && some.dirty_bytes < all.dirty_bytes);
        let cleaned = clean_at(&log, 20_000).await;
        assert!(cleaned.cleaned_to > Offset(5) && cleaned.cleaned_to <= Offset(11), "{cleaned:?}");
        assert_eq!(records(&log).await.len() as i64, 20 - cleaned.cleaned_to.0 + 1);
        assert_eq!(log.cleanable(20_000).await.unwrap(), None);
        // The rest comes of age; by its largest lag it is due.
        let later = log.cleanable(60_000).await.unwrap().unwrap();
        assert!(later.clean_bytes > 0 && !later.is_due && later.dirty_ratio() < 1.0);
        log.set_config(LogConfig { max_compaction_lag_ms: 30_000, ..log.config() });
        assert!(log.cleanable(60_000).await.unwrap().unwrap().is_due);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_compacted_segment_rolls_no_later_than_its_records_must_be_cleaned() {
    run(|| async {
        let temp = TempDir::new("log-compact-roll");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig { max_compaction_lag_ms: 5000, ..compacted() }).await;
        put(&log, &one(1, "k", Some("v"))).await;
        let now_ms = clock::wall_ms();
        assert_eq!(log.roll_if_due(now_ms + 1000).await.unwrap(), Rolled::NotDue);
        assert_eq!(log.roll_if_due(now_ms + 6000).await.unwrap(), Rolled::Rolled);
        assert!(log.cleanable(now_ms + 6000).await.unwrap().unwrap().is_due);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_map_that_is_full_ends_the_section_and_the_next_cleaning_goes_on() {
    run(|| async {
        let temp = TempDir::new("log-compact-full-map");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", compacted()).await;
        for round in 0..2 {
            for i in 0..40 {
                put(&log, &one(1, &format!("k{i}"), Some(&format!("{round}")))).await;
            }
        }
        roll(&log).await;
        let limits = CleanLimits { map_bytes: 0, ..CleanLimits::default() };
        let mut ends = Vec::new();
        while log.cleanable(10).await.unwrap().is_some() {
            let cleaned = log.clean(limits, BTreeMap::new(), 10).await.unwrap().unwrap();
            ends.push(cleaned.cleaned_to.0);
        }
        log.drop_tail();
        assert!(ends.len() > 4 && ends.is_sorted_by(|a, b| a < b), "{ends:?}");
        assert_eq!(ends.last(), Some(&80));
        let left = records(&log).await;
        assert_eq!(left.len(), 40);
        assert!(left.iter().all(|r| r.3.as_deref() == Some("1")));
        drop(log);
        node.stop().await;
    });
}

#[test]
fn nothing_above_the_replicas_bound_is_touched() {
    run(|| async {
        let temp = TempDir::new("log-compact-bound");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", compacted()).await;
        for _ in 0..20 {
            put(&log, &one(1, "k", Some("v"))).await;
        }
        roll(&log).await;
        log.set_retention_bound(Offset(9));
        let cleaned = clean(&log).await;
        assert!(cleaned.cleaned_to <= Offset(9));
        assert_eq!(records(&log).await.len() as i64, 20 - cleaned.cleaned_to.0 + 1);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn small_segments_become_one_as_far_as_a_segment_goes() {
    run(|| async {
        let temp = TempDir::new("log-compact-groups");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig { segment_bytes: 100, ..compacted() }).await;
        for i in 0..30 {
            put(&log, &one(i, &format!("k{i}"), Some("v"))).await;
        }
        roll(&log).await;
        assert_eq!(log.segment_count(), 31);
        log.set_config(LogConfig { segment_bytes: 800, ..log.config() });
        clock::sleep(std::time::Duration::from_millis(50)).await;
        let cleaned = clean(&log).await;
        assert_eq!((cleaned.dropped_records, cleaned.segments_before), (0, 30));
        // When its last record was appended does not change with the file: retention asks for it.
        let stamped = std::fs::metadata(segment_file(log.dir(), 0, "log")).unwrap().modified().unwrap();
        assert!(stamped.elapsed().unwrap().as_millis() >= 50);
        assert!(cleaned.segments_after < 5 && log.segment_count() == cleaned.segments_after + 1);
        assert_eq!(records(&log).await.len(), 30);
        let names = std::fs::read_dir(log.dir()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let odd: Vec<String> = names.filter(|n| n.contains(".cleaned") || n.contains("replace")).collect();
        assert_eq!(odd, Vec::<String>::new());
        // Clean segments that lose nothing are not written again.
        let before = std::fs::metadata(segment_file(log.dir(), 0, "log")).unwrap().modified().unwrap();
        put(&log, &one(1, "new", Some("v"))).await;
        roll(&log).await;
        clean(&log).await;
        assert_eq!(std::fs::metadata(segment_file(log.dir(), 0, "log")).unwrap().modified().unwrap(), before);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn compact_and_delete_do_both() {
    run(|| async {
        let temp = TempDir::new("log-compact-delete");
        let now = clock::wall_ms();
        let node = Node::start(temp.path()).await;
        let config = LogConfig { cleanup_delete: true, retention_ms: 60_000, ..compacted() };
        let log = node.open("t", config).await;
        for i in 0..30 {
            let time_ms = if i < 15 { now - 120_000 } else { now };
            put(&log, &one(time_ms, &format!("k{}", i % 6), Some("v"))).await;
        }
        roll(&log).await;
        let retained = log.apply_retention(now).await.unwrap();
        assert!(retained.deleted_segments > 0 && retained.log_start_offset > Offset(8), "{retained:?}");
        clean(&log).await;
        assert_eq!(records(&log).await.iter().map(|r| r.0).collect::<Vec<_>>(), [24, 25, 26, 27, 28, 29]);
        // Alone, `compact` moves no log start.
        log.set_config(LogConfig { cleanup_delete: false, ..config });
        assert_eq!(log.apply_retention(now + 1_000_000).await.unwrap().deleted_segments, 0);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_damaged_batch_ends_the_cleaning_and_changes_nothing() {
    run(|| async {
        let temp = TempDir::new("log-compact-damage");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", compacted()).await;
        for _ in 0..20 {
            put(&log, &one(1, "k", Some("value"))).await;
        }
        roll(&log).await;
        let before = log.segment_count();
        let file = segment_file(log.dir(), 0, "log");
        let mut bytes = std::fs::read(&file).unwrap();
        let at = bytes.len() - 2;
        bytes[at] ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        for _ in 0..2 {
            let error = log.clean(CleanLimits::default(), BTreeMap::new(), 10).await.unwrap_err();
            assert!(matches!(error, LogError::Corrupt { .. }), "{error}");
        }
        assert_eq!((log.segment_count(), std::fs::read(&file).unwrap()), (before, bytes.clone()));
        // Mended, it is cleaned.
        bytes[at] ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        assert_eq!(clean(&log).await.kept_records, 1);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_lost_clean_point_costs_a_cleaning_and_a_newer_one_is_left_alone() {
    run(|| async {
        let temp = TempDir::new("log-compact-point");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", compacted()).await;
        for i in 0..20 {
            put(&log, &one(1, &format!("k{}", i % 4), Some("v"))).await;
        }
        roll(&log).await;
        clean(&log).await;
        let file = log.dir().join("ringlog.cleaner");
        drop(log);
        node.stop().await;
        std::fs::write(&file, b"rubbish").unwrap();
        let node = Node::start(temp.path()).await;
        let log = node.open("t", compacted()).await;
        assert!(log.cleanable(10).await.unwrap().is_some());
        assert_eq!(clean(&log).await.kept_records, 4);
        drop(log);
        node.stop().await;
        let body = "version=2\n";
        let newer = format!("{body}crc={:08x}\n", crc32fast::hash(body.as_bytes()));
        std::fs::write(&file, &newer).unwrap();
        let node = Node::start(temp.path()).await;
        let log = node.open("t", compacted()).await;
        let error = log.clean(CleanLimits::default(), BTreeMap::new(), 10).await.unwrap_err();
        assert!(error.to_string().contains("newer version"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), newer);
        drop(log);
        node.stop().await;
    });
}
