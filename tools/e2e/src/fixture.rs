//! The data folder that a version leaves behind: what is put into it, and how a later version is asked for all of it.
//!
//! `tools/e2e/fixtures/data-v1` was made by `cargo run -p ringlog-e2e --bin make_fixture`; it is never made again for the
//! same version, a new format gets a folder of its own beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::batch::{Batch, Codec};
use crate::broker::Broker;
use crate::groups::{Commit, committed, ready};
use crate::raw::Raw;
use crate::requests::{self, Produce};
use crate::{cli, place};

/// Records and commits are as old as the fixture: nothing of it may expire.
pub const SETTINGS: &[(&str, &str)] = &[
    ("offsets.topic.num.partitions", "1"),
    ("offsets.retention.minutes", "100000000"),
    ("ringlog.disk.reserve.bytes", "0"),
];
const KEEP: (&str, &str) = ("retention.ms", "-1");
const CODECS: [Codec; 5] = [Codec::None, Codec::Gzip, Codec::SnappyXerial, Codec::SnappyRaw, Codec::Zstd];
/// The first that a cluster gives.
const PRODUCER: i64 = 0;
const RECORDS_OF_PRODUCER: usize = 3;
const GROUP: &str = "readers";
const COMMITTED: i64 = 2;
/// Segments of the topic `rolled`.
const SEGMENTS: usize = 3;

pub fn folder() -> PathBuf {
    place::workspace().join("tools/e2e/fixtures/data-v1")
}

/// Every kind of state that a folder can hold.
pub fn fill(broker: &mut Broker) {
    let mut raw = Raw::connect(broker);
    requests::create_topic(&mut raw, "plain", 2, &[KEEP]);
    requests::create_topic(&mut raw, "packed", 1, &[KEEP]);
    requests::create_topic(&mut raw, "rolled", 1, &[KEEP, ("segment.ms", "50")]);
    requests::create_topic(&mut raw, "once", 1, &[KEEP]);
    requests::create_topic(&mut raw, "set", 1, &[("retention.ms", "123456789"), ("cleanup.policy", "compact")]);
    requests::create_topic(&mut raw, "gone", 1, &[]);
    for (partition, values) in [(0, ["a", "b"]), (1, ["c", "d"])] {
        assert_eq!(Produce { partition, ..Produce::new("plain", &Batch::of(&values)) }.code(&mut raw), 0);
    }
    for (number, codec) in CODECS.into_iter().enumerate() {
        let batch = Batch::of(&[&format!("{number} {}", "x".repeat(60)), "second"]).with_codec(codec);
        requests::produce(&mut raw, "packed", &batch);
    }
    for number in 0..SEGMENTS {
        requests::produce(&mut raw, "rolled", &Batch::of(&[&format!("segment {number}")]));
        thread::sleep(Duration::from_millis(100));
    }
    let (code, id, epoch) = requests::init_producer_id(&mut raw, None);
    assert_eq!((code, id, epoch), (0, PRODUCER, 0), "the first id of a new cluster");
    requests::produce(&mut raw, "once", &Batch::idempotent(id, epoch, 0, RECORDS_OF_PRODUCER));
    ready(&mut raw, GROUP);
    assert_eq!(Commit::new(GROUP, "plain", COMMITTED).send(&mut raw), 0);
    assert_eq!(requests::delete_topic(&mut raw, "gone"), 0);
    drop(raw);
    // Another leader epoch.
    broker.restart();
    requests::produce(&mut Raw::connect(broker), "plain", &Batch::of(&["behind the restart"]));
}

/// Everything of [`fill`] is there and goes on.
pub fn check(broker: &Broker) {
    let mut raw = Raw::connect(broker);
    let mut names: Vec<String> =
        requests::all_topics(&mut raw).iter().filter_map(|t| t.name.as_ref()).map(|name| name.to_string()).collect();
    names.sort();
    assert_eq!(names, ["__consumer_offsets", "once", "packed", "plain", "rolled", "set"]);
    let rows = |topic, format| {
        let mut rows: Vec<String> = cli::consume(broker, topic, &["-f", format]).lines().map(str::to_owned).collect();
        rows.sort();
        rows
    };
    assert_eq!(rows("plain", "%p %o %v\n"), ["0 0 a", "0 1 b", "0 2 behind the restart", "1 0 c", "1 1 d"]);
    let long = "x".repeat(60);
    let packed: Vec<String> = (0..CODECS.len()).flat_map(|n| [format!("{n} {long}"), "second".to_owned()]).collect();
    let read = cli::consume(broker, "packed", &["-f", "%v\n"]);
    assert_eq!(read.lines().collect::<Vec<_>>(), packed);
    assert_eq!(rows("rolled", "%o %v\n"), ["0 segment 0", "1 segment 1", "2 segment 2"]);
    assert_eq!(rows("once", "%o\n").len(), RECORDS_OF_PRODUCER);
    assert_eq!(requests::describe_config(&mut raw, "set", "retention.ms").as_deref(), Some("123456789"));
    assert_eq!(requests::describe_config(&mut raw, "set", "cleanup.policy").as_deref(), Some("compact"));
    assert_eq!(committed(&mut raw, GROUP, "plain").0, COMMITTED);
    // The producer's sequence numbers: a retry gets its first answer, a gap is refused, the next batch goes on.
    let batch = |sequence, count| Batch::idempotent(PRODUCER, 0, sequence, count);
    let send = |raw: &mut Raw, batch: &Batch| Produce::new("once", batch).send(raw);
    let next = RECORDS_OF_PRODUCER as i32;
    let again = send(&mut raw, &batch(0, RECORDS_OF_PRODUCER));
    assert_eq!((again.error_code, again.base_offset), (0, 0), "the retry of a batch from before");
    assert_eq!(send(&mut raw, &batch(next + 7, 1)).error_code, 45, "OUT_OF_ORDER_SEQUENCE_NUMBER");
    assert_eq!(send(&mut raw, &batch(next, 1)).base_offset, RECORDS_OF_PRODUCER as i64);
    let (code, id, _) = requests::init_producer_id(&mut raw, None);
    assert!(code == 0 && id > PRODUCER, "ids are never given twice");
}

/// Every file with its bytes, by path within `folder`.
pub fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let path_within = |path: &Path| path.strip_prefix(folder).expect("it was found below").to_path_buf();
    let read = |path: PathBuf| (path_within(&path), fs::read(&path).expect("a file that was just listed"));
    place::files_below(folder, |_| true).into_iter().map(read).collect()
}

pub fn copy(from: &Path, to: &Path) {
    for (path, bytes) in files(from) {
        let path = to.join(path);
        fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("a folder for the copy");
        fs::write(path, bytes).expect("the copy is written");
    }
}
