//! `ringlog log import`: a data folder that Apache Kafka wrote is taken over and read back, byte for byte.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use kafka_protocol::messages::fetch_response::PartitionData;
use ringlog_e2e::batch::{self, Batch, Codec, Fetched};
use ringlog_e2e::broker::{listening_port, ringlog_serve, skip_on_kafka};
use ringlog_e2e::process::{self, Finished, Running};
use ringlog_e2e::raw::Raw;
use ringlog_e2e::requests::{self, Produce};
use ringlog_e2e::{kafka, place};

const NOT_KAFKA: &str = "it starts Kafka itself";
const CODECS: [Codec; 5] = [Codec::None, Codec::Gzip, Codec::SnappyXerial, Codec::SnappyRaw, Codec::Zstd];
const PARTITIONS: i32 = 3;
const NOT_LEADER: i16 = 6;
const LIMIT: Duration = Duration::from_secs(60);
/// Records below it are deleted before Kafka stops.
const LOG_START: i64 = 5;

/// What a partition gives: from where, up to where, and every batch in between.
#[derive(PartialEq, Debug)]
struct Content {
    log_start_offset: i64,
    high_watermark: i64,
    batches: Vec<Fetched>,
}

fn fetch(raw: &mut Raw, topic: &str, partition: i32, offset: i64) -> PartitionData {
    let request = requests::fetch_request(topic, vec![requests::fetch_partition(partition, offset, 1 << 20)], 4 << 20);
    raw.call(12, &request).responses.remove(0).partitions.remove(0)
}

fn content(raw: &mut Raw, topic: &str, partition: i32, from: i64) -> Content {
    let mut content = Content { log_start_offset: 0, high_watermark: 0, batches: Vec::new() };
    let mut offset = from;
    loop {
        let data = fetch(raw, topic, partition, offset);
        assert_eq!(data.error_code, 0, "{topic}-{partition} at {offset}");
        content.log_start_offset = data.log_start_offset;
        content.high_watermark = data.high_watermark;
        let batches = batch::read(data.records.unwrap_or_default());
        content.batches.extend(batches);
        let next = content.batches.last().map_or(from, |last| last.base_offset + i64::from(last.last_offset_delta) + 1);
        if next >= data.high_watermark {
            return content;
        }
        offset = next;
    }
}

fn contents(raw: &mut Raw) -> Vec<Content> {
    (0..PARTITIONS).map(|p| content(raw, "t", p, if p == 0 { LOG_START } else { 0 })).collect()
}

fn send(raw: &mut Raw, partition: i32, batch: &Batch) -> i64 {
    let produce = Produce { partition, ..Produce::new("t", batch) };
    // Kafka names a leader a moment before that one knows of it.
    let answer =
        requests::until("a leader", || Some(produce.send(raw)).filter(|answer| answer.error_code != NOT_LEADER));
    assert_eq!(answer.error_code, 0, "{:?}", answer.error_message);
    answer.base_offset
}

/// All codecs, several segments, an idempotent producer, deleted records.
fn fill(raw: &mut Raw) -> (uuid::Uuid, Batch) {
    let id = requests::create_topic(raw, "t", PARTITIONS, &[("segment.bytes", "1048576"), ("retention.ms", "-1")]);
    requests::wait_for_leaders(raw, "t", PARTITIONS as usize);
    let value = "x".repeat(30_000);
    for round in 0..12 {
        for codec in CODECS {
            send(raw, 0, &Batch::of(&["a", "bb", "ccc"]).with_codec(codec));
            send(raw, 1, &Batch::stamped(&[1_000 + round, 3_000, 2_000]).with_codec(codec));
        }
        send(raw, 0, &Batch::of(&[value.as_str(); 5]));
    }
    let (code, producer_id, epoch) = requests::init_producer_id(raw, None);
    assert_eq!(code, 0);
    send(raw, 1, &Batch::idempotent(producer_id, epoch, 0, 3));
    let last = Batch::idempotent(producer_id, epoch, 3, 2);
    send(raw, 1, &last);
    let (code, low) = requests::delete_records(raw, "t", LOG_START);
    assert_eq!((code, low), (0, LOG_START));
    (id, last)
}

fn import(kafka: &Path, ours: &Path, more: &[&str]) -> Finished {
    let mut command = Command::new(place::ringlog());
    command.args(["log", "import"]).arg(kafka).arg("--data-dir").arg(ours).args(more);
    process::run(&mut command, b"", LIMIT)
}

#[track_caller]
fn refused(ended: &Finished, words: &str) {
    let said = ended.errors();
    assert!(!ended.status.success() && said.contains(words) && !said.contains("panicked"), "{words}: {}", ended.all());
}

struct Ours {
    process: Running,
    raw: Raw,
}

fn serve(ours: &Path) -> Ours {
    let process = Running::start("ringlog", &mut ringlog_serve(ours, "127.0.0.1:0"));
    let port = listening_port(&process).unwrap_or_else(|| panic!("it does not listen:\n{}", process.tail()));
    Ours { process, raw: Raw::connect_to(port) }
}

fn stop(mut running: Running) {
    let status = running.terminate(LIMIT);
    assert!(status.success() || status.code() == Some(143), "{status}: {}", running.tail());
}

#[test]
fn a_folder_of_kafkas_is_taken_over_and_read_back_identically() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let root = place::TempDir::new();
    let (ours, linked, source) = (root.path().join("ours"), root.path().join("linked"), root.path().join("data"));
    let settings = [("log.initial.task.delay.ms".to_string(), "300".to_string())];
    let port = place::free_port();
    let running = kafka::launch(root.path(), port, &settings);
    let mut raw = Raw::connect_to(port);
    let (id, last) = fill(&mut raw);
    refused(&import(&source, &ours, &[]), "in use by a live Apache Kafka");
    stop(running);
    // A second life: its leader epochs are higher, and its batches carry them.
    let running = kafka::launch(root.path(), port, &settings);
    let mut raw = Raw::connect_to(port);
    requests::wait_for_leaders(&mut raw, "t", PARTITIONS as usize);
    send(&mut raw, 0, &Batch::of(&["second life"]));
    let expected = contents(&mut raw);
    assert!(expected[0].batches.iter().any(|batch| batch.leader_epoch > 0), "epochs rose");
    assert_eq!((expected[0].log_start_offset, expected[2].batches.len()), (LOG_START, 0));
    stop(running);

    refused(&import(&source, &ours, &[]), "no node was ever started");
    for folder in [&ours, &linked] {
        let node = serve(folder);
        if folder == &ours {
            refused(&import(&source, folder, &[]), "in use by a live process");
        }
        stop(node.process);
    }
    let dry = import(&source, &ours, &["--dry-run"]).ok();
    assert!(dry.text().contains("1 topic with 3 partitions"), "{}", dry.all());
    for (folder, more) in [(&ours, &[][..]), (&linked, &["--link"][..])] {
        let done = import(&source, folder, &[&["--config", "retention.ms=-1"], more].concat()).ok();
        assert!(done.text().contains("3 partitions imported"), "{}", done.all());
        assert!(folder.join("ringlog.clean").exists(), "a clean folder stays one");
        refused(&import(&source, folder, &[]), "topic t exists");
        let Ours { process, mut raw } = serve(folder);
        assert!(!process.lines().join("\n").contains("not clean"), "{}", process.tail());
        let topics = requests::all_topics(&mut raw);
        let topic = topics.iter().find(|topic| topic.name.as_ref().is_some_and(|name| name.0.as_str() == "t")).unwrap();
        assert_eq!((topic.topic_id, topic.partitions.len()), (id, PARTITIONS as usize));
        assert_eq!(contents(&mut raw), expected, "{}", folder.display());
        assert_eq!(fetch(&mut raw, "t", 0, LOG_START - 1).error_code, 1, "below the log start");
        // A retry of the producer's last batch finds its answer, and new records go behind the old ones.
        let end = expected[1].high_watermark;
        assert_eq!(send(&mut raw, 1, &last), end - 2, "a duplicate is known");
        assert_eq!(send(&mut raw, 1, &Batch::of(&["new"])), end);
        let newest = content(&mut raw, "t", 1, end);
        let before = expected[1].batches.iter().map(|batch| batch.leader_epoch).max().unwrap();
        assert!(newest.batches[0].leader_epoch > before, "an epoch never falls");
        drop(raw);
        let mut process = process;
        process.kill();
        let mut again = serve(folder);
        assert_eq!(content(&mut again.raw, "t", 1, 0).high_watermark, end + 1, "also after a crash");
        stop(again.process);
    }
}
