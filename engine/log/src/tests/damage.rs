//! Damage of what was durable: found before it is served, whichever way the bytes leave, and never at the cost of what lies
//! below or above it.

use runtime::faults::{self, Fault, Operation};
use runtime::testing::{TempDir, evict_pages, run};
use std::fs;
use std::os::unix::fs::FileExt;

use super::*;
use crate::limits::WINDOW_MIN;

/// How the bytes leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Past the page cache: the first reader of a range.
    Direct,
    /// Between two marks of a verified window.
    Sendfile,
    /// From the middle of a verified window.
    Copy,
}

const WAYS: [Way; 3] = [Way::Direct, Way::Sendfile, Way::Copy];

fn one_big_segment() -> LogConfig {
    LogConfig { segment_bytes: 64 << 20, index_interval_bytes: 400, ..LogConfig::default() }
}

/// A closed segment of `count` batches of one size, nothing of it in memory; gives the batch's length too.
async fn closed(node: &Node, config: LogConfig, count: i64, value_len: usize) -> (Rc<PartitionLog>, usize) {
    let log = node.open("t", config).await;
    for i in 0..count {
        append(&log, &batch_of(&[1000 + i, 1000 + i], value_len));
        if i % 200 == 0 {
            node.shard.wait_room().await;
        }
    }
    log.wait_durable(Offset(2 * count)).await.unwrap();
    log.roll_now(runtime::clock::wall_ms()).await.unwrap();
    log.settle().await.unwrap();
    log.drop_tail();
    let len = log.size_bytes() as usize / count as usize;
    (log, len)
}

/// Forgets everything that was verified, looked up or marked.
fn forget(log: &PartitionLog) {
    log.shard.memory.forget_log(log.id);
    log.damage.borrow_mut().clear();
    log.read_past_cache.set((Offset::ZERO, Offset::ZERO));
}

async fn read_by(log: &PartitionLog, way: Way, from: i64) -> Result<Vec<(i64, i32)>, LogError> {
    match way {
        Way::Direct => {
            log.read_past_cache.set((Offset::ZERO, Offset::ZERO));
            let (low, high) = (Offset(i64::MIN), Offset(i64::MAX));
            log.shard.memory.windows.remove_range((0, low, low), (u64::MAX, high, high));
        }
        Way::Sendfile | Way::Copy => log.read_past_cache.set((Offset::ZERO, Offset(i64::MAX))),
    }
    let max_bytes = if way == Way::Copy { 1 } else { 200_000 };
    read(log, from, ReadLimits { max_bytes, ..everything() }).await
}

fn flip(path: &Path, at: u64, mask: u8) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ mask], at).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn a_flip_anywhere_in_a_batch_is_found_on_every_way_and_costs_that_batch_alone() {
    run(|| async {
        let temp = TempDir::new("log-flips");
        let node = Node::start(temp.path()).await;
        let (log, len) = closed(&node, one_big_segment(), 40, 30).await;
        let file = segment_file(log.dir(), 0, "log");
        for hit in [0, 17, 39] {
            for byte in (0..len).step_by(if hit == 17 { 1 } else { 7 }) {
                // Base offset, length, epoch, magic, CRC, everything behind.
                let mask = 1 << (byte % 8);
                flip(&file, (hit * len + byte) as u64, mask);
                for way in WAYS {
                    forget(&log);
                    let what = format!("byte {byte} of batch {hit}, {way:?}");
                    let (from, next) = (2 * hit as i64, 2 * hit as i64 + 2);
                    let refused = read_by(&log, way, from).await;
                    assert!(matches!(refused, Err(LogError::Corrupt { .. })), "{what}: {refused:?}");
                    assert!(read_by(&log, way, from + 1).await.is_err(), "{what}");
                    let marks = log.damaged_ranges();
                    assert_eq!(marks.len(), 1, "{what}");
                    assert_eq!((marks[0].from_offset.0, marks[0].to_offset.0), (from, next), "{what}");
                    assert_eq!(marks[0].position, (hit * len) as u64, "{what}");
                    if hit > 0 {
                        let below = read_by(&log, way, from - 1).await.unwrap();
                        assert_eq!(below, vec![(from - 2, 2)], "{what}");
                    }
                    if next < 80 {
                        assert_eq!(read_by(&log, way, next).await.unwrap()[0], (next, 2), "{what}");
                        assert_eq!(read_by(&log, way, next + 1).await.unwrap()[0], (next, 2), "{what}");
                    }
                }
                flip(&file, (hit * len + byte) as u64, mask);
            }
        }
        forget(&log);
        assert_eq!(read_all(&log, 0, 10_000).await.len(), 40);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn what_lies_above_is_served_though_nobody_met_the_damage_before() {
    run(|| async {
        let temp = TempDir::new("log-above");
        let node = Node::start(temp.path()).await;
        // No index entry helps: the walk begins at the segment's first byte.
        let config = LogConfig { index_interval_bytes: 1 << 20, ..one_big_segment() };
        let (log, len) = closed(&node, config, 40, 30).await;
        let file = segment_file(log.dir(), 0, "log");
        // Three batches in a row, by their length and by their magic, and one further on by its offset.
        for (hit, byte) in [(5, 9), (6, 16), (7, 8), (20, 5)] {
            flip(&file, (hit * len + byte) as u64, 0x40);
        }
        for way in WAYS {
            forget(&log);
            assert_eq!(read_by(&log, way, 79).await.unwrap(), vec![(78, 2)], "{way:?}");
            assert_eq!(read_by(&log, way, 16).await.unwrap()[0], (16, 2), "{way:?}");
            assert_eq!(read_by(&log, way, 8).await.unwrap(), vec![(8, 2)], "{way:?}");
            for refused in [10, 13, 15, 40, 41] {
                assert!(read_by(&log, way, refused).await.is_err(), "{way:?} at {refused}");
            }
            let marks: Vec<(i64, i64)> =
                log.damaged_ranges().iter().map(|d| (d.from_offset.0, d.to_offset.0)).collect();
            assert_eq!(marks, vec![(10, 16), (40, 42)], "{way:?}");
        }
        drop(log);
        node.stop().await;
    });
}

/// Verifies the window that holds `from`, and says whether it leaves as a file range now.
async fn verified(log: &PartitionLog, from: i64) -> bool {
    log.read_past_cache.set((Offset::ZERO, Offset(i64::MAX)));
    let limits = ReadLimits { max_bytes: 64 << 10, ..everything() };
    let read = log.read(Offset(from), limits).await.unwrap();
    read.slices.iter().any(|slice| matches!(slice, Slice::File { .. }))
}

#[test]
fn damage_that_comes_with_pages_that_had_left_the_page_cache_is_found() {
    run(|| async {
        let temp = TempDir::new("log-evicted");
        let node = Node::start(temp.path()).await;
        let (log, len) = closed(&node, one_big_segment(), 200, 1000).await;
        let file = segment_file(log.dir(), 0, "log");
        for way in [Way::Sendfile, Way::Copy] {
            forget(&log);
            assert!(verified(&log, 0).await);
            flip(&file, (3 * len + 500) as u64, 1);
            evict_pages(&file);
            assert_eq!(read_by(&log, way, 4).await.unwrap()[0], (4, 2));
            let refused = read_by(&log, way, 6).await;
            assert!(matches!(refused, Err(LogError::Corrupt { .. })), "{way:?}: {refused:?}");
            assert!(!read_by(&log, way, 8).await.unwrap().is_empty());
            flip(&file, (3 * len + 500) as u64, 1);
        }
        drop(log);
        node.stop().await;
    });
}

#[test]
fn pages_that_another_window_brings_back_do_not_pass_for_verified() {
    run(|| async {
        let temp = TempDir::new("log-brought-back");
        let node = Node::start(temp.path()).await;
        let (log, len) = closed(&node, one_big_segment(), 1600, 1000).await;
        let file = segment_file(log.dir(), 0, "log");
        assert!(log.size_bytes() > 3 * WINDOW_MIN);
        // A window somewhere behind the first two, verified while its bytes were sound.
        let batch_at = |position: u64| position / len as u64;
        let middle = 2 * batch_at(WINDOW_MIN + WINDOW_MIN / 2) as i64;
        assert!(verified(&log, middle).await);
        // The first batches of it go bad on the device, and the pages are needed for something else.
        for ahead in 0..4 {
            flip(&file, middle as u64 / 2 * len as u64 + ahead * len as u64 + 300, 4);
        }
        evict_pages(&file);
        // Readers of what stands before it: one window ends within the other's, one just before.
        assert!(verified(&log, 2 * batch_at(WINDOW_MIN) as i64).await);
        assert!(verified(&log, 0).await);
        for way in [Way::Sendfile, Way::Copy] {
            for ahead in 0..4 {
                let refused = read_by(&log, way, middle + 2 * ahead).await;
                assert!(matches!(refused, Err(LogError::Corrupt { .. })), "{way:?} {ahead}: {refused:?}");
            }
            assert_eq!(read_by(&log, way, middle + 8).await.unwrap()[0], (middle + 8, 2));
        }
        drop(log);
        node.stop().await;
    });
}

#[test]
fn the_kernel_reads_nothing_ahead_of_its_own_in_a_segment() {
    run(|| async {
        let temp = TempDir::new("log-read-ahead");
        let node = Node::start(temp.path()).await;
        let (log, _) = closed(&node, one_big_segment(), 1600, 1000).await;
        let path = segment_file(log.dir(), 0, "log");
        evict_pages(&path);
        let file = log.shared_file(Offset(0)).await.unwrap();
        assert!(!file.is_resident(0, 1) && file.read_resident(0, 10).is_none());
        for window in 0..2 {
            file.look(window << 20, 1 << 20, |_| ()).await.unwrap();
        }
        assert!(file.is_resident(0, 2 << 20));
        assert_eq!(file.read_resident(100, 5000).unwrap().len(), 5000);
        assert!(!file.is_resident(2 << 20, 1), "the page behind was not asked for");
        assert!(file.read_resident((2 << 20) - 10, 20).is_none());
        drop((file, log));
        node.stop().await;
    });
}

#[test]
fn an_index_that_misleads_is_built_anew_and_no_damage_of_the_log() {
    run(|| async {
        let temp = TempDir::new("log-index-lies");
        let node = Node::start(temp.path()).await;
        let (log, _) = closed(&node, one_big_segment(), 100, 30).await;
        let path = segment_file(log.dir(), 0, "index");
        let good = fs::read(&path).unwrap();
        assert!(good.len() >= 80);
        // The low byte of an entry's offset, and of its position.
        for at in [4 * 8 + 3, 4 * 8 + 7] {
            for way in WAYS {
                forget(&log);
                let mut bad = good.clone();
                bad[at] ^= 1;
                fs::write(&path, bad).unwrap();
                for from in 0..200 {
                    assert_eq!(read_by(&log, way, from).await.unwrap()[0], (from / 2 * 2, 2), "{way:?} {at} {from}");
                }
                assert!(log.damaged_ranges().is_empty());
                // Windows that were verified need no index.
                assert!(way != Way::Direct || fs::read(&path).unwrap() == good, "{at}");
            }
        }
        drop(log);
        node.stop().await;
    });
}

#[test]
fn damage_in_the_active_segment_refuses_its_range_and_appends_go_on() {
    run(|| async {
        let temp = TempDir::new("log-active-damage");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        for i in 0..30 {
            put(&log, &batch_of(&[i, i], 100)).await;
        }
        let len = log.size_bytes() as usize / 30;
        drop(log);
        node.stop().await;
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        flip(&segment_file(log.dir(), 0, "log"), (11 * len + 130) as u64, 1);
        assert_eq!(read(&log, 21, everything()).await.unwrap(), vec![(20, 2)]);
        assert!(matches!(read(&log, 22, everything()).await, Err(LogError::Corrupt { .. })));
        assert_eq!(read(&log, 24, everything()).await.unwrap().len(), 18);
        assert_eq!(put(&log, &batch(&[1])).await.base_offset, Offset(60));
        // The replica comes by it, too.
        let mut scan = log.scan_headers(Offset(18));
        let mut bases = Vec::new();
        while let Some(header) = scan.next().await.unwrap() {
            bases.push(header.base_offset.0);
        }
        assert_eq!(bases[..3], [18, 20, 24]);
        assert_eq!(bases.last(), Some(&60));
        // A truncation takes the mark with the range.
        log.truncate_to(Offset(20)).await.unwrap();
        assert!(log.damaged_ranges().is_empty());
        assert_eq!(put(&log, &batch(&[1, 2])).await.base_offset, Offset(20));
        assert_eq!(read(&log, 21, everything()).await.unwrap(), vec![(20, 2)]);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn marks_are_bounded_and_nothing_damaged_gets_out_beyond_the_bound() {
    run(|| async {
        let temp = TempDir::new("log-many-marks");
        let node = Node::start(temp.path()).await;
        let (log, len) = closed(&node, one_big_segment(), 300, 30).await;
        let file = segment_file(log.dir(), 0, "log");
        for hit in (1..300).step_by(2) {
            flip(&file, (hit * len + 70) as u64, 1);
        }
        for hit in 0..300 {
            let found = read_by(&log, Way::Direct, 2 * hit).await;
            assert!(found.is_err() || hit % 2 == 0);
        }
        assert_eq!(log.damage.borrow().len(), crate::limits::DAMAGE_MARKS);
        assert!(read_by(&log, Way::Direct, 0).await.is_ok());
        drop(log);
        node.stop().await;
    });
}

#[test]
fn retention_takes_a_damaged_segment_like_any_other() {
    run(|| async {
        let temp = TempDir::new("log-retain-damage");
        let node = Node::start(temp.path()).await;
        let now = runtime::clock::wall_ms();
        let config = LogConfig { segment_bytes: 200, retention_ms: 1000, file_delete_delay_ms: 0, ..small() };
        let log = node.open("t", config).await;
        for _ in 0..6 {
            put(&log, &batch_of(&[now], 100)).await;
        }
        log.settle().await.unwrap();
        let file = segment_file(log.dir(), 1, "log");
        fs::write(&file, vec![0x77; fs::metadata(&file).unwrap().len() as usize]).unwrap();
        for base in 0..5 {
            fs::remove_file(segment_file(log.dir(), base, "timeindex")).unwrap();
        }
        forget(&log);
        log.drop_tail();
        assert!(read(&log, 1, everything()).await.is_err());
        let done = log.apply_retention(now + 10_000).await.unwrap();
        assert_eq!(done.log_start_offset, Offset(6));
        assert!(log.damaged_ranges().is_empty(), "what was deleted is refused for another reason");
        drop(log);
        node.stop().await;
    });
}

#[test]
fn an_index_rebuilt_while_the_log_is_cut_is_not_written_over_the_cut() {
    run(|| async {
        let temp = TempDir::new("log-rebuild-race");
        let node = Node::start(temp.path()).await;
        for delay in 0..12 {
            let topic = format!("t{delay}");
            let log = node.open(&topic, LogConfig { segment_bytes: 40_000, ..small() }).await;
            for i in 0..200 {
                append(&log, &batch_of(&[1000 + i], 500));
            }
            log.wait_durable(Offset(200)).await.unwrap();
            log.settle().await.unwrap();
            log.drop_tail();
            let bases: Vec<Offset> = log.closed_refs().iter().map(|s| s.base_offset).collect();
            assert!(bases.len() >= 2);
            for base in &bases {
                fs::remove_file(segment_file(log.dir(), base.0, "index")).unwrap();
            }
            log.shard.memory.forget_log(log.id);
            // Readers that have every index to build, and a cut into the first segment at some moment of that.
            let readers: Vec<_> = bases
                .iter()
                .map(|&base| {
                    let log = log.clone();
                    runtime::spawn("reader", async move {
                        let _ = log.read(base, everything()).await;
                    })
                })
                .collect();
            for _ in 0..delay {
                runtime::clock::sleep(std::time::Duration::from_micros(200)).await;
            }
            log.truncate_to(Offset(3)).await.unwrap();
            for reader in readers {
                reader.join().await.unwrap();
            }
            for base in &bases[1..] {
                for kind in ["log", "index", "timeindex"] {
                    let left = segment_file(log.dir(), base.0, kind);
                    assert!(!left.exists(), "delay {delay}: {} came back", left.display());
                }
            }
            let entries = fs::metadata(segment_file(log.dir(), 0, "index")).map_or(0, |meta| meta.len());
            assert_eq!(entries, 0, "delay {delay}: entries of what was cut");
            put(&log, &batch(&[1])).await;
            assert_eq!(read_all(&log, 0, 1 << 20).await.len(), 4);
        }
        node.stop().await;
    });
}

#[test]
fn a_device_that_fails_to_read_once_leaves_no_mark() {
    run(|| async {
        let temp = TempDir::new("log-read-error");
        let node = Node::start(temp.path()).await;
        let (log, _) = closed(&node, one_big_segment(), 20, 30).await;
        faults::inject(Fault { operation: Operation::Read, path_part: "/t-0/".into(), passes: 0, times: 1, errno: 5 });
        assert!(matches!(read_by(&log, Way::Direct, 0).await, Err(LogError::Io(_))));
        assert_eq!(faults::clear(), 0);
        assert_eq!(read_by(&log, Way::Direct, 0).await.unwrap().len(), 20);
        assert!(log.damaged_ranges().is_empty());
        drop(log);
        node.stop().await;
    });
}
