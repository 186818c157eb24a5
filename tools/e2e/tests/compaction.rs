//! Log compaction as clients and Kafka's own tools see it: the last value of each key, tombstones that go, gaps in the
//! offsets, and files that dump-log reads.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ringlog_e2e::batch::Batch;
use ringlog_e2e::broker::skip_on_kafka;
use ringlog_e2e::groups::{Commit, committed, delete_group, ready};
use ringlog_e2e::java::{self, Tool};
use ringlog_e2e::raw::Raw;
use ringlog_e2e::requests::{self, Produce, within};
use ringlog_e2e::{Broker, kcat, librdkafka, place, process};

/// Longer than a roll, a round of the cleaner and the next on a busy machine.
const LIMIT: Duration = Duration::from_secs(40);
const TOPIC: [(&str, &str); 4] = [
    ("cleanup.policy", "compact"),
    ("segment.ms", "400"),
    ("min.cleanable.dirty.ratio", "0.01"),
    ("delete.retention.ms", "1000"),
];

fn start() -> (Broker, Raw) {
    let broker = Broker::with(&[
        ("log.cleaner.backoff.ms", "200"),
        ("log.cleaner.min.cleanable.ratio", "0.01"),
        ("log.cleaner.delete.retention.ms", "500"),
        ("offsets.topic.num.partitions", "1"),
    ]);
    let raw = Raw::connect(&broker);
    (broker, raw)
}

/// Offset, key and value of everything that kcat reads.
fn read(broker: &Broker, topic: &str) -> Vec<(i64, String, String)> {
    let text = kcat::consume(broker, topic, "%o %k %s\n");
    let parts = |line: &str| {
        let mut parts = line.splitn(3, ' ').map(str::to_owned);
        (parts.next().unwrap().parse().unwrap(), parts.next().unwrap(), parts.next().unwrap_or_default())
    };
    text.lines().map(parts).collect()
}

/// One more record: Kafka rolls a segment with the append that finds it too old.
fn poke(broker: &Broker, topic: &str) {
    kcat::produce(broker, topic, &["-K:"], "poke:x\n");
}

#[test]
fn the_last_value_of_each_key_stays_and_tombstones_go() {
    let (mut broker, mut raw) = start();
    requests::create_topic(&mut raw, "table", 1, &TOPIC);
    for (round, codec) in ["none", "gzip", "snappy", "lz4", "zstd"].iter().enumerate() {
        let lines: String = (0..300).map(|i| format!("k{}:{round}-{i}\n", i % 30)).collect();
        kcat::produce(&broker, "table", &["-K:", "-z", codec], &lines);
    }
    let tombstones: String = (0..10).map(|i| format!("k{i}:\n")).collect();
    kcat::produce(&broker, "table", &["-K:", "-Z"], &tombstones);
    let wanted: BTreeMap<String, String> = (10..30).map(|i| (format!("k{i}"), format!("4-{}", 270 + i))).collect();
    let left = within(LIMIT, || {
        std::thread::sleep(Duration::from_millis(500));
        poke(&broker, "table");
        let mut left = read(&broker, "table");
        left.retain(|(_, key, _)| key != "poke");
        (left.len() == wanted.len()).then_some(left)
    });
    let left = left.unwrap_or_else(|| panic!("not compacted: {:?}", read(&broker, "table")));
    assert_eq!(left.iter().map(|(_, k, v)| (k.clone(), v.clone())).collect::<BTreeMap<_, _>>(), wanted);
    assert!(left.iter().all(|(offset, _, _)| (1470..1500).contains(offset)), "offsets stay: {left:?}");
    // A fetch in a gap gives what comes next, to librdkafka too.
    let mut seen = Vec::new();
    librdkafka::read_to_end(&broker, "table", 0, |message| seen.push(rdkafka::Message::offset(message)));
    assert!(seen.is_sorted_by(|a, b| a < b) && seen[0] >= 1470, "{seen:?}");
    broker.stop();
    check_files(&broker, "table-0");
    broker.start_again();
    let mut again = read(&broker, "table");
    again.retain(|(_, key, _)| key != "poke");
    assert_eq!(again, left);
}

/// dump-log finds every batch and index entry of a partition's files right.
fn check_files(broker: &Broker, partition: &str) {
    let dumped = dump(broker, partition, &["log"], &["--deep-iteration"]);
    assert!(dumped.contains("baseOffset: "), "{dumped}");
    assert_eq!(dumped.matches("isvalid: true").count(), dumped.matches("baseOffset:").count(), "{dumped}");
    let indexes = dump(broker, partition, &["index", "timeindex"], &["--verify-index-only"]);
    for damage in ["Mismatches", "isn't", "out of order", "Exception"] {
        assert!(!indexes.contains(damage), "{damage}: {indexes}");
    }
}

fn files(broker: &Broker, partition: &str, extensions: &[&str]) -> Vec<std::path::PathBuf> {
    let wanted = |path: &Path| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        path.parent().and_then(Path::file_name).is_some_and(|name| *name == *partition)
            && extension.is_some_and(|extension| extensions.contains(&extension))
    };
    place::files_below(&broker.data_dir(), wanted)
}

fn dump(broker: &Broker, partition: &str, extensions: &[&str], more: &[&str]) -> String {
    let files = files(broker, partition, extensions);
    let files: Vec<&str> = files.iter().map(|path| path.to_str().unwrap()).collect();
    let mut command: Command = Tool::DumpLog.command();
    command.args(["--files", &files.join(",")]).args(more);
    process::run(&mut command, b"", java::LIMIT).ok().all()
}

#[test]
fn committed_offsets_are_compacted_and_loaded_again() {
    let (mut broker, mut raw) = start();
    requests::create_topic(&mut raw, "read", 1, &[]);
    ready(&mut raw, "stays");
    ready(&mut raw, "goes");
    assert_eq!(requests::alter_config(&mut raw, "__consumer_offsets", "segment.ms", "400"), 0);
    for offset in 0..1500 {
        assert_eq!(Commit::new("stays", "read", offset).send(&mut raw), 0);
        assert_eq!(Commit::new("goes", "read", offset).send(&mut raw), 0);
    }
    assert_eq!(delete_group(&mut raw, "goes"), 0);
    let shrunk = within(LIMIT, || {
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(Commit::new("stays", "read", 1500).send(&mut raw), 0);
        // The tombstones of the other group go with a later cleaning than what they hide.
        (count_records(&broker) < 40 && !keys(&broker).contains("goes")).then_some(())
    });
    assert!(shrunk.is_some(), "{} records are left", count_records(&broker));
    assert_eq!(committed(&mut raw, "stays", "read").0, 1500);
    broker.stop();
    let dumped = dump(&broker, "__consumer_offsets-0", &["log"], &["--offsets-decoder"]);
    assert!(dumped.contains("stays") && !dumped.contains("goes"), "{dumped}");
    check_files(&broker, "__consumer_offsets-0");
    broker.start_again();
    let mut raw = Raw::connect(&broker);
    assert_eq!(committed(&mut raw, "stays", "read").0, 1500);
    assert_eq!(committed(&mut raw, "goes", "read").0, -1);
}

fn keys(broker: &Broker) -> String {
    kcat::consume(broker, "__consumer_offsets", "%k\n")
}

fn count_records(broker: &Broker) -> usize {
    kcat::consume(broker, "__consumer_offsets", "%o\n").lines().count()
}

#[test]
fn a_producers_duplicate_is_known_after_its_records_were_compacted_away() {
    if skip_on_kafka("it removes producer snapshots, which Kafka makes again from its own checkpoints") {
        return;
    }
    let (mut broker, mut raw) = start();
    requests::create_topic(&mut raw, "once", 1, &TOPIC);
    let (_, producer, epoch) = requests::init_producer_id(&mut raw, None);
    let first = Batch::idempotent(producer, epoch, 0, 2);
    assert_eq!(requests::produce(&mut raw, "once", &first), 0);
    assert_eq!(requests::produce(&mut raw, "once", &Batch::of(&["new", "new"])), 2);
    let cleaned = within(LIMIT, || {
        std::thread::sleep(Duration::from_millis(300));
        poke(&broker, "once");
        read(&broker, "once").iter().all(|(offset, _, _)| *offset >= 2).then_some(())
    });
    assert!(cleaned.is_some(), "{:?}", read(&broker, "once"));
    let end = requests::list_offset(&mut raw, 5, "once", -1).offset;
    broker.kill();
    for snapshot in files(&broker, "once-0", &["snapshot"]) {
        std::fs::remove_file(snapshot).unwrap();
    }
    broker.start_again();
    let mut raw = Raw::connect(&broker);
    let answer = Produce::new("once", &first).send(&mut raw);
    assert_eq!((answer.error_code, answer.base_offset), (0, 0), "{answer:?}");
    assert_eq!(requests::list_offset(&mut raw, 5, "once", -1).offset, end);
    assert_eq!(requests::produce(&mut raw, "once", &Batch::idempotent(producer, epoch, 2, 1)), end);
}
