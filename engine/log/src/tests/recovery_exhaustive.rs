//! Recovery against the real file system: every way in which the end of the active segment may look, and what is missing or
//! in the place of a file. In each of them the log ends at the last whole valid batch with the bytes that were written, or
//! what was durable and is lost is marked. `RINGLOG_EXHAUSTIVE=1` cuts at every byte instead of at every few.

use runtime::testing::{TempDir, run};
use std::fs;
use std::os::unix::fs::FileExt;

use super::*;
use crate::limits::RECOVERY_POINT_BYTES;
use crate::partition::PartitionLog;

/// A batch as the file holds it.
struct Stored {
    base: i64,
    next: i64,
    position: u64,
    bytes: Vec<u8>,
}

impl Stored {
    fn end(&self) -> u64 {
        self.position + self.bytes.len() as u64
    }
}

/// The batches of one segment file.
fn stored(path: &Path, len: u64) -> Vec<Stored> {
    let bytes = fs::read(path).unwrap();
    let mut found = Vec::new();
    let mut at = 0;
    while (at as u64) < len {
        let batch = BatchView::parse(&bytes[at..]).unwrap();
        batch.check_crc().unwrap();
        let (base, next) = (batch.header.base_offset.0, batch.header.next_offset().0);
        found.push(Stored { base, next, position: at as u64, bytes: batch.bytes.to_vec() });
        at += batch.bytes.len();
    }
    found
}

/// A folder whose process was killed, and the next start of it, on which recoveries are tried.
struct Lab {
    _temp: TempDir,
    node: Node,
    config: LogConfig,
    file: PathBuf,
    batches: Vec<Stored>,
}

impl Lab {
    /// `count` batches of varied sizes in one segment, the leader epoch rising on the way.
    async fn with(name: &str, count: i64, config: LogConfig) -> Lab {
        let temp = TempDir::new(name);
        let node = Node::start_direct(temp.path()).await;
        let log = node.open("t", config).await;
        for i in 0..count {
            let sizes = [10, 300, 5000, 61, 900, 2000, 13_000, 40];
            let one = batch_of(&[i, i + 1], sizes[i as usize % sizes.len()]);
            let epoch = LeaderEpoch(EPOCH.0 + (i / 7) as i32);
            let appended = log.append(&one, Patch::leader(epoch)).unwrap();
            log.wait_durable(appended.next_offset).await.unwrap();
        }
        let len = log.state.borrow().active.fill.size;
        let file = segment_file(log.dir(), log.state.borrow().active.base_offset.0, "log");
        drop(log);
        node.crash().await;
        let batches = stored(&file, len);
        Lab { node: Node::start_direct(temp.path()).await, _temp: temp, config, file, batches }
    }

    async fn recover(&self) -> Result<Rc<PartitionLog>, LogError> {
        let entry = match self.node.dir.start_mode(key("t")) {
            StartMode::Unclean(entry) => entry.map(|e| *e),
            StartMode::Clean(_) => panic!("the process was killed"),
        };
        PartitionLog::recover(&self.node.shard, self.node.spec("t", self.config), entry).await
    }

    /// The log holds the first `count` batches and nothing else.
    async fn check_first(&self, count: usize, what: &str) {
        let log = self.recover().await.unwrap_or_else(|error| panic!("{what}: {error}"));
        let end = self.batches[..count].last().map_or(self.batches[0].base, |b| b.next);
        assert_eq!((log.log_end_offset().0, log.durable_end().0), (end, end), "{what}");
        assert!(log.damaged_ranges().is_empty(), "{what}");
        let expected: Vec<u8> = self.batches[..count].iter().flat_map(|b| b.bytes.clone()).collect();
        assert!(content(&log, self.batches[0].base).await == expected, "{what}: other bytes than were written");
    }

    fn restore(&self) {
        let bytes: Vec<u8> = self.batches.iter().flat_map(|b| b.bytes.clone()).collect();
        fs::write(&self.file, bytes).unwrap();
    }

    fn append_to_file(&self, bytes: &[u8]) {
        self.restore();
        let file = fs::OpenOptions::new().write(true).open(&self.file).unwrap();
        file.write_all_at(bytes, self.batches.last().unwrap().end()).unwrap();
    }
}

/// All bytes from an offset to the end, as reads give them.
async fn content(log: &PartitionLog, from: i64) -> Vec<u8> {
    let (mut at, mut bytes) = (Offset(from), Vec::new());
    while at < log.log_end_offset() {
        let read = log.read(at, everything()).await.unwrap();
        assert!(read.next_offset > at, "nothing is read at {at}");
        for slice in &read.slices {
            bytes.extend_from_slice(&slice.load().await.unwrap());
        }
        at = read.next_offset;
    }
    bytes
}

fn is_exhaustive() -> bool {
    std::env::var_os("RINGLOG_EXHAUSTIVE").is_some_and(|v| v == "1")
}

#[test]
fn cut_at_every_byte_of_its_last_64_kib_the_log_ends_at_the_last_whole_batch() {
    run(|| async {
        let lab = Lab::with("log-cut-all", 40, LogConfig::default()).await;
        let end = lab.batches.last().unwrap().end();
        assert!(end > 64 << 10);
        let file = fs::OpenOptions::new().write(true).open(&lab.file).unwrap();
        file.set_len(end).unwrap();
        let (mut cut, lowest) = (end, end - (64 << 10));
        let mut last_count = usize::MAX;
        let mut tried = 0;
        while cut >= lowest {
            file.set_len(cut).unwrap();
            let count = lab.batches.iter().filter(|b| b.end() <= cut).count();
            if count != last_count {
                lab.check_first(count, &format!("cut at {cut}")).await;
                last_count = count;
            } else {
                let log = lab.recover().await.unwrap();
                let expected = lab.batches[count - 1].next;
                assert_eq!((log.log_end_offset().0, log.durable_end().0), (expected, expected), "cut at {cut}");
            }
            tried += 1;
            // Beside the borders of batches every byte, in any case.
            let near = lab.batches.iter().any(|b| b.end().abs_diff(cut) < 70);
            cut -= if is_exhaustive() || near { 1 } else { 61.min(cut) };
        }
        assert!(tried > if is_exhaustive() { 64 << 10 } else { 1000 });
        lab.node.crash().await;
    });
}

#[test]
fn a_page_of_zeros_ends_the_log_before_it() {
    run(|| async {
        let lab = Lab::with("log-zero-page", 40, LogConfig::default()).await;
        let whole: Vec<u8> = lab.batches.iter().flat_map(|b| b.bytes.clone()).collect();
        for page in 0..whole.len().div_ceil(4096) {
            let mut bytes = whole.clone();
            let end = whole.len().min((page + 1) * 4096);
            bytes[page * 4096..end].fill(0);
            let same = |b: &&Stored| bytes[b.position as usize..b.end() as usize] == b.bytes[..];
            let count = lab.batches.iter().take_while(same).count();
            fs::write(&lab.file, &bytes).unwrap();
            lab.check_first(count, &format!("page {page} of zeros")).await;
        }
        lab.node.crash().await;
    });
}

#[test]
fn preallocated_zeros_behind_the_end_are_no_data() {
    run(|| async {
        let lab = Lab::with("log-zeros", 10, LogConfig::default()).await;
        let end = lab.batches.last().unwrap().end();
        for zeros in [1, 60, 61, 4096, 32 << 20] {
            lab.restore();
            fs::OpenOptions::new().write(true).open(&lab.file).unwrap().set_len(end + zeros).unwrap();
            lab.check_first(10, &format!("{zeros} zeros")).await;
        }
        // Written, not only a length.
        let mut bytes = fs::read(&lab.file).unwrap();
        bytes.resize(end as usize + (32 << 20), 0);
        fs::write(&lab.file, bytes).unwrap();
        lab.check_first(10, "32 MiB of written zeros").await;
        lab.node.crash().await;
    });
}

/// A batch with this place in the log.
fn at(base: i64, epoch: i32, value_len: usize) -> Vec<u8> {
    let mut bytes = batch_of(&[7, 8], value_len);
    model::batch::patch_position(&mut bytes, Offset(base), LeaderEpoch(epoch));
    bytes
}

#[test]
fn old_data_behind_the_end_is_not_taken_for_the_logs() {
    run(|| async {
        let lab = Lab::with("log-old-data", 10, LogConfig::default()).await;
        let end = lab.batches.last().unwrap().next;
        let epoch = EPOCH.0 + 1;
        let crc_of_zero = {
            let mut bytes = at(end, epoch, 50);
            bytes[17..21].fill(0);
            bytes
        };
        let cases: Vec<(&str, Vec<u8>)> = vec![
            ("an earlier lap of the partition, further on", at(end + 2, epoch, 50)),
            ("an earlier lap of the partition, far further on", at(end + 1_000_000, epoch, 50)),
            ("an earlier lap of the partition, further back", at(end - 2, epoch, 50)),
            ("the first batch again", lab.batches[0].bytes.clone()),
            ("an older leader epoch at the very offset", at(end, epoch - 1, 50)),
            ("no leader epoch at the very offset", at(end, -1, 50)),
            ("another partition's", at(end / 2, epoch + 3, 50)),
            ("a CRC of 0", crc_of_zero.clone()),
            ("a torn one and a whole one that would line up", [&crc_of_zero[..], &at(end + 2, epoch, 50)].concat()),
            ("garbage", vec![0xa5; 70_000]),
            ("zeros and then one that would line up", [&[0; 100][..], &at(end, epoch, 50)].concat()),
        ];
        for (what, bytes) in &cases {
            lab.append_to_file(bytes);
            lab.check_first(10, what).await;
        }
        // At the right offset, in a leadership that may be, and sound: there is nothing by which it could be told from a
        // batch of this lap, which is why segment files are never used again.
        lab.append_to_file(&at(end, epoch, 50));
        assert_eq!(lab.recover().await.unwrap().log_end_offset(), Offset(end + 2));
        lab.node.crash().await;
    });
}

#[test]
fn each_small_file_may_be_lost() {
    run(|| async {
        for clean in [false, true] {
            for lost in [".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint", "ringlog.checkpoint", "all"] {
                let temp = TempDir::new("log-lost-small");
                let node = Node::start_direct(temp.path()).await;
                let log = node.open("t", small()).await;
                for i in 0..40 {
                    put(&log, &batch_of(&[1000 + i], 200)).await;
                    if i % 10 == 5 {
                        log.put_producer_snapshot(log.log_end_offset(), b"state".to_vec()).await.unwrap();
                    }
                }
                log.settle().await.unwrap();
                let expected = content(&log, 0).await;
                drop(log);
                if clean {
                    node.stop().await
                } else {
                    node.crash().await
                }
                let mut removed = 0;
                for folder in [temp.path().to_path_buf(), temp.path().join("t-0")] {
                    for entry in fs::read_dir(folder).unwrap() {
                        let path = entry.unwrap().path();
                        let name = path.file_name().unwrap().to_string_lossy().into_owned();
                        let all = [".index", ".timeindex", ".snapshot", "checkpoint"];
                        let hit = if lost == "all" {
                            all.iter().any(|part| name.ends_with(part)) || name.starts_with("ringlog.checkpoint")
                        } else {
                            name.ends_with(lost) || (lost == "ringlog.checkpoint" && name.starts_with(lost))
                        };
                        if hit {
                            fs::remove_file(path).unwrap();
                            removed += 1;
                        }
                    }
                }
                assert!(removed > 0, "{lost}");
                let node = Node::start_direct(temp.path()).await;
                let log = node.open("t", small()).await;
                assert_eq!(log.log_end_offset(), Offset(40), "{lost}, clean {clean}");
                for from in [0, 7, 39] {
                    assert_eq!(read(&log, from, everything()).await.unwrap()[0], (from, 1), "{lost}");
                }
                assert!(content(&log, 0).await == expected, "{lost}");
                let hit = log.offset_for_time(1007, Offset(i64::MAX)).await.unwrap().unwrap();
                assert_eq!(hit.offset, Offset(7), "{lost}");
                assert!(log.damaged_ranges().is_empty());
                put(&log, &batch(&[1])).await;
                drop(log);
                node.stop().await;
            }
        }
    });
}

/// A log of one batch a segment, killed; gives its folder.
async fn one_batch_each(path: &Path, count: i64) -> PathBuf {
    let node = Node::start_direct(path).await;
    let log = node.open("t", LogConfig { segment_bytes: 200, ..small() }).await;
    for i in 0..count {
        put(&log, &batch_of(&[i], 100)).await;
    }
    log.settle().await.unwrap();
    log.home.flush().await.unwrap();
    let dir = log.dir().to_path_buf();
    drop(log);
    node.crash().await;
    dir
}

fn config_of_one_each() -> LogConfig {
    LogConfig { segment_bytes: 200, ..small() }
}

/// Which offsets are refused and which are served, one batch each.
async fn refused(log: &PartitionLog) -> Vec<i64> {
    let mut refused = Vec::new();
    for offset in log.log_start_offset().0..log.log_end_offset().0 {
        match read(log, offset, everything()).await {
            Ok(found) => assert_eq!(found[0], (offset, 1)),
            Err(LogError::Corrupt { .. } | LogError::BadFolder { .. }) => refused.push(offset),
            Err(error) => panic!("{error}"),
        }
    }
    refused
}

#[test]
fn what_is_in_the_place_of_a_segment_has_a_defined_outcome() {
    run(|| async {
        // What is done to segment 3 of 0..=7, and which offsets are refused then.
        let missing: &[i64] = &[3];
        type Deed = fn(&Path);
        let cases: [(&str, Deed, &[i64]); 6] = [
            ("missing", |p| fs::remove_file(p).unwrap(), missing),
            ("empty", |p| fs::write(p, []).unwrap(), missing),
            (
                "cut",
                |p| {
                    let len = fs::metadata(p).unwrap().len();
                    fs::OpenOptions::new().write(true).open(p).unwrap().set_len(len - 1).unwrap();
                },
                missing,
            ),
            (
                "a folder",
                |p| {
                    fs::remove_file(p).unwrap();
                    fs::create_dir(p).unwrap();
                },
                missing,
            ),
            (
                "a link to it",
                |p| {
                    let aside = p.with_extension("elsewhere");
                    fs::rename(p, &aside).unwrap();
                    std::os::unix::fs::symlink(aside, p).unwrap();
                },
                &[],
            ),
            (
                "a link to nothing",
                |p| {
                    fs::remove_file(p).unwrap();
                    std::os::unix::fs::symlink("/nowhere/at/all", p).unwrap();
                },
                missing,
            ),
        ];
        for (what, deed, expected) in cases {
            let temp = TempDir::new("log-in-place");
            let dir = one_batch_each(temp.path(), 8).await;
            deed(&segment_file(&dir, 3, "log"));
            for life in 0..2 {
                let node = Node::start_direct(temp.path()).await;
                let log = node.open("t", config_of_one_each()).await;
                let end = 8 + life;
                assert_eq!((log.log_start_offset().0, log.log_end_offset().0), (0, end), "{what}");
                assert_eq!(refused(&log).await, expected, "{what}");
                let marks: Vec<(i64, i64)> =
                    log.damaged_ranges().iter().map(|d| (d.from_offset.0, d.to_offset.0)).collect();
                let wanted: Vec<(i64, i64)> = expected.iter().map(|o| (*o, o + 1)).collect();
                assert_eq!(marks, wanted, "{what}");
                assert_eq!(node.shard.stats().damage.damaged_ranges, expected.len() as u64, "{what}");
                // Producers are not kept out by what was lost long ago.
                assert_eq!(put(&log, &batch_of(&[1], 100)).await.base_offset.0, end);
                drop(log);
                if life == 0 { node.stop().await } else { node.crash().await }
            }
        }
    });
}

#[test]
fn a_lost_first_segment_does_not_move_the_log_start_in_silence() {
    run(|| async {
        let temp = TempDir::new("log-lost-first");
        let dir = one_batch_each(temp.path(), 5).await;
        for base in [0, 1] {
            fs::remove_file(segment_file(&dir, base, "log")).unwrap();
        }
        for _ in 0..2 {
            let node = Node::start_direct(temp.path()).await;
            let log = node.open("t", config_of_one_each()).await;
            assert_eq!((log.log_start_offset(), log.log_end_offset()), (Offset(0), Offset(5)));
            assert_eq!(refused(&log).await, vec![0, 1]);
            assert_eq!(log.damaged_ranges().len(), 1);
            drop(log);
            node.stop().await;
        }
        // Whoever decides to live without them says so.
        let node = Node::start_direct(temp.path()).await;
        let log = node.open("t", config_of_one_each()).await;
        log.delete_records_before(Offset(2)).await.unwrap();
        assert_eq!(refused(&log).await, Vec::<i64>::new());
        assert!(log.damaged_ranges().is_empty());
        drop(log);
        node.stop().await;
    });
}

#[test]
fn an_empty_last_segment_file_is_the_end_of_the_one_before() {
    run(|| async {
        let temp = TempDir::new("log-empty-last");
        let dir = one_batch_each(temp.path(), 4).await;
        fs::write(segment_file(&dir, 4, "log"), []).unwrap();
        let node = Node::start_direct(temp.path()).await;
        let log = node.open("t", config_of_one_each()).await;
        assert_eq!(log.log_end_offset(), Offset(4));
        assert_eq!(refused(&log).await, Vec::<i64>::new());
        assert_eq!(put(&log, &batch_of(&[1], 100)).await.base_offset, Offset(4));
        drop(log);
        node.stop().await;
    });
}

#[test]
fn foreign_names_in_the_folder_are_let_alone() {
    run(|| async {
        let temp = TempDir::new("log-names");
        let dir = one_batch_each(temp.path(), 4).await;
        let names = [
            "0.log",
            "00000000000000000001.LOG",
            "000000000000000000001.log",
            "-0000000000000000001.log",
            "99999999999999999999.log",
            "00000000000000000002.log.bak",
            "0000000000000000000x.log",
            "lost+found",
            ".hidden",
            "a b c",
        ];
        for name in names {
            fs::write(dir.join(name), fs::read(segment_file(&dir, 1, "log")).unwrap()).unwrap();
        }
        let node = Node::start_direct(temp.path()).await;
        let log = node.open("t", config_of_one_each()).await;
        assert_eq!((log.log_start_offset(), log.log_end_offset(), log.segment_count()), (Offset(0), Offset(4), 4));
        assert_eq!(refused(&log).await, Vec::<i64>::new());
        put(&log, &batch(&[1])).await;
        drop(log);
        node.stop().await;
        assert!(names.iter().all(|name| dir.join(name).exists()), "nobody's files are removed");
    });
}

/// A partition with a recovery point in its active segment; gives the batches of that file, and how many are vouched for.
async fn vouched(path: &Path) -> (PathBuf, Vec<Stored>, usize) {
    let node = Node::start_direct(path).await;
    let log = node.open("t", LogConfig::default()).await;
    for i in 0..30 {
        put(&log, &batch_of(&[i, i], 3000)).await;
    }
    let (fill, index, times) = {
        let state = log.state.borrow();
        (state.active.fill, state.active.index.len(), state.active.time_index.len())
    };
    log.renew_recovery_point(Offset(0), fill, index, times);
    log.settle().await.unwrap();
    log.home.flush().await.unwrap();
    for i in 0..5 {
        put(&log, &batch_of(&[i, i], 3000)).await;
    }
    let len = log.size_bytes();
    assert!(len < RECOVERY_POINT_BYTES);
    drop(log);
    node.crash().await;
    let file = segment_file(&path.join("t-0"), 0, "log");
    let batches = stored(&file, len);
    assert_eq!(batches.len(), 35);
    (file, batches, 30)
}

#[test]
fn a_segment_shorter_than_its_recovery_point_is_refused_from_there_and_the_log_goes_on_behind() {
    run(|| async {
        for cut_to in [0, 1, 10] {
            let temp = TempDir::new("log-short");
            let (file, batches, count) = vouched(temp.path()).await;
            let (vouched_end, lost) = (batches[count - 1].next, batches[cut_to].base);
            let len = batches[cut_to].position + 100;
            fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(len).unwrap();
            let mut end = vouched_end;
            for clean in [true, false, true] {
                let node = Node::start_direct(temp.path()).await;
                let log = node.open("t", LogConfig::default()).await;
                assert_eq!(log.log_end_offset().0, end, "no offset that was vouched for is given away again");
                for stored in &batches[..count] {
                    let found = log.read(Offset(stored.base), everything()).await;
                    assert_eq!(found.is_err(), stored.base >= lost, "at {}: {found:?}", stored.base);
                }
                let marks = log.damaged_ranges();
                assert_eq!(marks.len(), 1, "{:?}", log.read(Offset(lost), everything()).await);
                assert_eq!((marks[0].from_offset.0, marks[0].to_offset.0), (lost, vouched_end));
                let more = put(&log, &batch(&[1])).await;
                assert_eq!(more.base_offset.0, end);
                assert_eq!(read(&log, end, everything()).await.unwrap(), vec![(end, 1)]);
                end = more.next_offset.0;
                drop(log);
                if clean { node.stop().await } else { node.crash().await }
            }
        }
    });
}

#[test]
fn a_lost_file_of_the_recovery_point_gives_no_offset_away_again() {
    run(|| async {
        let temp = TempDir::new("log-lost-active");
        let (file, batches, count) = vouched(temp.path()).await;
        fs::remove_file(&file).unwrap();
        let end = batches[count - 1].next;
        let node = Node::start_direct(temp.path()).await;
        let log = node.open("t", LogConfig::default()).await;
        assert_eq!((log.log_start_offset().0, log.log_end_offset().0), (0, end));
        assert!(log.read(Offset(0), everything()).await.is_err());
        assert!(log.read(Offset(end - 1), everything()).await.is_err());
        let marks = log.damaged_ranges();
        assert_eq!((marks.len(), marks[0].from_offset.0, marks[0].to_offset.0), (1, 0, end));
        assert_eq!(put(&log, &batch(&[1])).await.base_offset.0, end);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn damage_below_the_recovery_point_costs_its_batch_and_not_the_tail() {
    run(|| async {
        for without_index in [false, true] {
            let temp = TempDir::new("log-below-point");
            let (file, batches, _) = vouched(temp.path()).await;
            let hit = 12;
            let open = fs::OpenOptions::new().write(true).open(&file).unwrap();
            open.write_all_at(&[0x55; 9], batches[hit].position + 200).unwrap();
            if without_index {
                fs::remove_file(file.with_extension("index")).unwrap();
            }
            for _ in 0..2 {
                let node = Node::start_direct(temp.path()).await;
                let log = node.open("t", LogConfig::default()).await;
                assert_eq!(log.log_end_offset().0, batches[34].next, "without index: {without_index}");
                for (i, stored) in batches.iter().enumerate() {
                    let found = log.read(Offset(stored.base), everything()).await;
                    assert_eq!(found.is_err(), i == hit, "batch {i}, without index: {without_index}");
                }
                let marks = log.damaged_ranges();
                let range = (batches[hit].base, batches[hit].next);
                assert_eq!((marks.len(), (marks[0].from_offset.0, marks[0].to_offset.0)), (1, range));
                drop(log);
                node.crash().await;
            }
        }
    });
}
