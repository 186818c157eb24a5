//! What happens to a log while it is being cleaned.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use runtime::testing::{TempDir, run};
use runtime::{clock, spawn};

use super::compaction::*;
use super::*;

/// Slow enough that others get in between.
fn slow() -> CleanLimits {
    CleanLimits { piece_bytes: 4096, bytes_per_second: 2_000_000.0, ..CleanLimits::default() }
}

async fn long(node: &Node, config: LogConfig) -> Rc<PartitionLog> {
    let log = node.open("t", LogConfig { segment_bytes: 4000, ..config }).await;
    let value = "v".repeat(200);
    for i in 0..600 {
        append(&log, &one(i, &format!("k{}", i % 50), Some(&value)));
        if i % 50 == 0 {
            log.settle().await.unwrap();
        }
    }
    roll(&log).await;
    log.drop_tail();
    log
}

fn begin(log: &Rc<PartitionLog>) -> runtime::TaskHandle<Result<Option<Cleaned>, LogError>> {
    let log = log.clone();
    spawn("clean", async move { log.clean(slow(), BTreeMap::new(), 1000).await })
}

#[test]
fn readers_see_every_last_value_at_all_times() {
    run(|| async {
        let temp = TempDir::new("log-compact-readers");
        let node = Node::start(temp.path()).await;
        let log = long(&node, compacted()).await;
        let cleaning = begin(&log);
        let done = Rc::new(Cell::new(false));
        let readers: Vec<_> = (0..3)
            .map(|reader| {
                let (log, done) = (log.clone(), done.clone());
                spawn("reader", async move {
                    let mut rounds = 0;
                    while !done.get() || rounds < 2 {
                        let all = batches(&log, 0, [500, 5000, 1 << 20][reader]).await;
                        let mut last = BTreeMap::new();
                        for (_, records) in all {
                            last.extend(records.into_iter().map(|r| (r.2, r.0)));
                        }
                        assert_eq!(last.len(), 50);
                        assert!(last.values().all(|offset| *offset >= 550), "{last:?}");
                        let hit = log.offset_for_time(590, Offset(i64::MAX)).await.unwrap().unwrap();
                        assert_eq!(hit.offset, Offset(590));
                        rounds += 1;
                        runtime::task::yield_now().await;
                    }
                })
            })
            .collect();
        let cleaned = cleaning.join().await.unwrap().unwrap().unwrap();
        assert_eq!((cleaned.kept_records, cleaned.dropped_records), (50, 550));
        done.set(true);
        for reader in readers {
            reader.join().await.unwrap();
        }
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_truncation_a_stop_and_a_deletion_do_not_wait_for_long() {
    run(|| async {
        let temp = TempDir::new("log-compact-way");
        for what in ["truncate", "delete", "stop"] {
            let path = temp.path().join(what);
            let node = Node::start(&path).await;
            let log = long(&node, compacted()).await;
            let cleaning = begin(&log);
            clock::sleep(Duration::from_millis(20)).await;
            assert!(log.is_being_cleaned());
            match what {
                "truncate" => {
                    log.truncate_to(Offset(590)).await.unwrap();
                    assert_eq!(log.log_end_offset(), Offset(590));
                }
                "delete" => log.clone().delete().await.unwrap(),
                _ => node.shard.hold_cleaning(),
            }
            assert_eq!(cleaning.join().await.unwrap().unwrap(), None, "{what}");
            if what == "truncate" {
                let names =
                    std::fs::read_dir(log.dir()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
                assert!(names.into_iter().all(|n| !n.contains("cleaned")));
                put(&log, &one(1, "k7", Some("new"))).await;
                roll(&log).await;
                clean(&log).await;
                assert_eq!(records(&log).await.len(), 50);
            }
            drop(log);
            node.stop().await;
        }
    });
}

#[test]
fn deleted_records_stay_deleted() {
    run(|| async {
        let temp = TempDir::new("log-compact-delete-records");
        let node = Node::start(temp.path()).await;
        let log = long(&node, compacted()).await;
        let cleaning = begin(&log);
        clock::sleep(Duration::from_millis(20)).await;
        log.delete_records_before(Offset(575)).await.unwrap();
        let _ = cleaning.join().await.unwrap().unwrap();
        clean(&log).await;
        assert_eq!(log.log_start_offset(), Offset(575));
        assert!(records(&log).await.iter().filter(|r| r.0 >= 575).count() == 25);
        drop(log);
        node.crash().await;
        let node = Node::start(temp.path()).await;
        let log = node.open("t", compacted()).await;
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (Offset(575), Offset(600)));
        drop(log);
        node.stop().await;
    });
}

#[test]
fn what_is_appended_behind_a_cut_is_dirty_again() {
    run(|| async {
        let temp = TempDir::new("log-compact-cut");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", compacted()).await;
        for i in 0..20 {
            put(&log, &one(i, &format!("k{i}"), Some("old"))).await;
        }
        roll(&log).await;
        assert_eq!(clean(&log).await.cleaned_to, Offset(20));
        log.truncate_to(Offset(10)).await.unwrap();
        let end = log.log_end_offset();
        for i in 0..20 {
            put(&log, &one(i, &format!("k{}", i % 5), Some("new"))).await;
        }
        roll(&log).await;
        assert!(log.cleanable(100).await.unwrap().unwrap().dirty_bytes > 0);
        clean(&log).await;
        let left = records(&log).await;
        assert_eq!(left.iter().filter(|r| r.3.as_deref() == Some("new")).count(), 5);
        assert!(left.iter().filter(|r| r.0 < end.0).all(|r| r.2[1..].parse::<i64>().unwrap() >= 5));
        drop(log);
        node.stop().await;
    });
}
