//! Several data folders: partitions spread over them, a folder that is away at a start or lost while the broker runs, and
//! what the tools say. About Ringlog alone: Kafka's answers come from KRaft's directory ids, and take minutes.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ringlog_e2e::batch::Batch;
use ringlog_e2e::broker::{listening_port, ringlog_serve, skip_on_kafka};
use ringlog_e2e::java;
use ringlog_e2e::place::{self, TempDir};
use ringlog_e2e::process::{self, Running};
use ringlog_e2e::raw::Raw;
use ringlog_e2e::requests::{self, Produce};

const NOT_KAFKA: &str = "folders that fail or go missing are told in other ways there";
const PARTITIONS: i32 = 6;
const STORAGE_ERROR: i16 = 56;
const INVALID_REPLICATION_FACTOR: i16 = 38;
const NAMES: [&str; 3] = ["a", "b", "c"];
const LIMIT: Duration = Duration::from_secs(15);

/// A broker with three data folders on a port of its own.
struct Node {
    root: TempDir,
    port: u16,
    process: Option<Running>,
}

impl Node {
    fn new() -> Node {
        Node { root: TempDir::new(), port: place::free_port(), process: None }
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = ringlog_serve(&self.folder(NAMES[0]), &format!("127.0.0.1:{}", self.port));
        for name in &NAMES[1..] {
            command.arg("--data-dir").arg(self.folder(name));
        }
        command.args(more);
        command
    }

    #[track_caller]
    fn start(&mut self, more: &[&str]) -> Raw {
        let process = Running::start("ringlog", &mut self.command(more));
        assert_eq!(listening_port(&process), Some(self.port), "it does not listen:\n{}", process.tail());
        self.process = Some(process);
        Raw::connect_to(self.port)
    }

    fn process(&mut self) -> &mut Running {
        self.process.as_mut().unwrap()
    }

    fn stop(&mut self) {
        let mut process = self.process.take().unwrap();
        assert!(process.terminate(LIMIT).success(), "{}", process.tail());
    }

    /// Partitions of `topic` by the folder that they lie in.
    fn spread(&self, topic: &str) -> BTreeMap<&'static str, Vec<i32>> {
        let lies_in = |folder: &Path, partition: i32| folder.join(format!("{topic}-{partition}")).is_dir();
        NAMES.map(|name| (name, (0..PARTITIONS).filter(|p| lies_in(&self.folder(name), *p)).collect())).into()
    }
}

fn send(raw: &mut Raw, topic: &str, partition: i32, value: &str) -> i16 {
    let mut produce = Produce::new(topic, &Batch::of(&[value]));
    produce.partition = partition;
    produce.code(raw)
}

/// The code, and the values of a partition.
fn read(raw: &mut Raw, topic: &str, partition: i32) -> (i16, Vec<String>) {
    let request = requests::fetch_request(topic, vec![requests::fetch_partition(partition, 0, 1 << 20)], 1 << 20);
    let mut answer = raw.call(12, &request);
    let data = answer.responses.remove(0).partitions.remove(0);
    let batches = ringlog_e2e::batch::read(data.records.unwrap_or_default());
    let values = batches.iter().flat_map(ringlog_e2e::batch::values).map(|(_, value)| value);
    (data.error_code, values.collect())
}

fn fill(raw: &mut Raw, topic: &str) {
    requests::create_topic(raw, topic, PARTITIONS, &[]);
    requests::wait_for_leaders(raw, topic, PARTITIONS as usize);
    for partition in 0..PARTITIONS {
        assert_eq!(send(raw, topic, partition, &format!("first-{partition}")), 0);
    }
}

#[test]
fn partitions_are_spread_and_survive_a_kill() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let mut node = Node::new();
    let mut raw = node.start(&[]);
    fill(&mut raw, "t");
    let spread = node.spread("t");
    assert!(spread.values().all(|partitions| partitions.len() == 2), "{spread:?}");
    node.process.take().unwrap().kill();
    let mut raw = node.start(&[]);
    for partition in 0..PARTITIONS {
        assert_eq!(send(&mut raw, "t", partition, "second"), 0);
        assert_eq!(read(&mut raw, "t", partition), (0, vec![format!("first-{partition}"), "second".into()]));
    }
    assert_eq!(node.spread("t"), spread);
    // Each folder is closed cleanly by itself.
    node.stop();
    for name in NAMES {
        assert!(node.folder(name).join("ringlog.clean").exists(), "{name}");
    }
    let mut raw = node.start(&[]);
    assert_eq!(requests::delete_topic(&mut raw, "t"), 0);
    assert!(node.spread("t").values().all(Vec::is_empty));
    node.stop();
}

#[test]
fn a_folder_that_is_away_at_a_start_is_offline_and_never_empty() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let mut node = Node::new();
    let mut raw = node.start(&[]);
    fill(&mut raw, "t");
    let spread = node.spread("t");
    node.stop();
    let (here, away) = (node.folder("b"), node.folder("away"));
    std::fs::rename(&here, &away).unwrap();
    // Once with nothing in its place, once with an empty folder there.
    for round in 0..2 {
        let mut raw = node.start(&[]);
        let told = node.process().lines().join("\n");
        assert!(told.contains(&format!("data folder {} is offline", here.display())), "{told}");
        for partition in 0..PARTITIONS {
            let is_away = spread["b"].contains(&partition);
            let code = if is_away { STORAGE_ERROR } else { 0 };
            assert_eq!(send(&mut raw, "t", partition, "later"), code, "round {round}, {partition}");
            let (found, values) = read(&mut raw, "t", partition);
            assert_eq!((found, values.is_empty()), (code, is_away), "round {round}, {partition}");
        }
        let first_away = spread["b"][0];
        let listed = list_offset(&mut raw, "t", first_away);
        assert_eq!(listed, STORAGE_ERROR);
        // New topics go elsewhere.
        let name = format!("new-{round}");
        fill(&mut raw, &name);
        assert!(node.spread(&name)["b"].is_empty());
        node.stop();
        if round == 0 {
            assert!(!here.exists(), "what is missing is not made");
            std::fs::create_dir(&here).unwrap();
        }
    }
    assert_eq!(std::fs::read_dir(&here).unwrap().count(), 0, "an empty mount point stays empty");
    std::fs::remove_dir(&here).unwrap();
    std::fs::rename(&away, &here).unwrap();
    let mut raw = node.start(&[]);
    for partition in 0..PARTITIONS {
        let (code, values) = read(&mut raw, "t", partition);
        assert_eq!((code, values[0].as_str()), (0, format!("first-{partition}").as_str()));
        assert_eq!(send(&mut raw, "t", partition, "again"), 0);
    }
    node.stop();
}

fn list_offset(raw: &mut Raw, topic: &str, partition: i32) -> i16 {
    use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
    let asked = ListOffsetsPartition::default().with_partition_index(partition).with_timestamp(-1);
    let topic = ListOffsetsTopic::default().with_name(requests::topic_name(topic)).with_partitions(vec![asked]);
    let request = kafka_protocol::messages::ListOffsetsRequest::default().with_topics(vec![topic]);
    raw.call(7, &request).topics[0].partitions[0].error_code
}

#[test]
fn a_folder_that_is_lost_while_running_takes_only_its_partitions_down() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let mut node = Node::new();
    let mut raw = node.start(&[]);
    fill(&mut raw, "t");
    let spread = node.spread("t");
    let lost = node.folder("c");
    std::fs::rename(&lost, node.folder("lost")).unwrap();
    node.process().wait_for_line(LIMIT, "failed (ringlog.meta is gone)");
    for partition in 0..PARTITIONS {
        let code = if spread["c"].contains(&partition) { STORAGE_ERROR } else { 0 };
        assert_eq!(send(&mut raw, "t", partition, "later"), code, "{partition}");
        assert_eq!(read(&mut raw, "t", partition).0, code, "{partition}");
    }
    let told = node.process().lines().iter().filter(|line| line.contains("ringlog.meta is gone")).count();
    assert_eq!(told, 1, "once");
    // Kafka's own tool sees it, and the others with their sizes.
    let mut tool = java::Tool::LogDirs.command();
    tool.args(["--bootstrap-server", &format!("127.0.0.1:{}", node.port), "--describe", "--topic-list", "t"]);
    let shown = process::run(&mut tool, b"", java::LIMIT).ok().text();
    let json: serde_json::Value = serde_json::from_str(shown.lines().last().unwrap()).unwrap();
    let dirs = json["brokers"][0]["logDirs"].as_array().unwrap();
    assert_eq!(dirs.len(), NAMES.len(), "{shown}");
    for dir in dirs {
        let is_lost = dir["logDir"] == lost.to_str().unwrap();
        assert_eq!(dir["error"].is_string(), is_lost, "{shown}");
        assert_eq!(dir["partitions"].as_array().unwrap().len(), if is_lost { 0 } else { 2 }, "{shown}");
    }
    std::fs::rename(node.folder("lost"), &lost).unwrap();
    node.process.take().unwrap().kill();
    let mut raw = node.start(&[]);
    for partition in 0..PARTITIONS {
        assert_eq!(read(&mut raw, "t", partition).1[0], format!("first-{partition}"));
    }
    node.stop();
}

#[test]
fn cordoned_folders_take_nothing_new() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let mut node = Node::new();
    let cordoned = format!("cordoned.log.dirs={},{}", node.folder("a").display(), node.folder("c").display());
    let mut raw = node.start(&["--set", &cordoned]);
    fill(&mut raw, "t");
    let spread = node.spread("t");
    assert_eq!(spread["b"].len(), PARTITIONS as usize, "{spread:?}");
    node.stop();
    let mut raw = node.start(&["--set", "cordoned.log.dirs=*"]);
    let made = requests::create_topics(&mut raw, vec![requests::new_topic("nowhere", 1, &[])], false);
    assert_eq!(made, [("nowhere".to_string(), INVALID_REPLICATION_FACTOR)]);
    assert_eq!(send(&mut raw, "t", 0, "what is there goes on"), 0);
    node.stop();
}

#[test]
fn a_quota_holds_producers_back_and_deleting_lets_them_go_on() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let mut node = Node::new();
    let mut raw =
        node.start(&["--set", "ringlog.log.dir.quota.bytes=4194304", "--set", "log.segment.delete.delay.ms=0"]);
    for topic in ["full", "other"] {
        requests::create_topic(&mut raw, topic, 1, &[("segment.bytes", "1048576"), ("file.delete.delay.ms", "0")]);
        requests::wait_for_leaders(&mut raw, topic, 1);
    }
    let value = "x".repeat(500_000);
    let mut sent = 0;
    let refused = requests::until("the quota", || {
        match send(&mut raw, "full", 0, &value) {
            0 => sent += 1,
            code => return Some(code),
        }
        assert!(sent < 30, "the quota was passed");
        None
    });
    assert!(refused == STORAGE_ERROR || refused == 7, "a retriable error: {refused}");
    assert!(sent >= 4, "{sent}");
    assert_eq!(read_count(&mut raw, "full"), sent, "fetches go on");
    assert_eq!(send(&mut raw, "other", 0, "small, in another folder"), 0);
    assert_eq!(requests::delete_records(&mut raw, "full", sent as i64 - 1).0, 0);
    requests::until("producing again", || (send(&mut raw, "full", 0, "again") == 0).then_some(()));
    node.stop();
}

fn read_count(raw: &mut Raw, topic: &str) -> usize {
    let listed = requests::list_offset(raw, 7, topic, -1);
    let fetched = requests::fetch_batches(raw, topic, 0);
    assert!(!fetched.is_empty());
    usize::try_from(listed.offset).unwrap()
}

#[test]
fn folders_that_are_one_or_of_others_are_refused_with_a_sentence() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let mut node = Node::new();
    node.start(&[]);
    let refused = |command: &mut Command, words: &[&str]| {
        let ended = process::run(command, b"", LIMIT);
        let said = ended.errors();
        assert!(!ended.status.success() && !said.contains("panicked"), "{}", ended.all());
        words.iter().for_each(|word| assert!(said.contains(word), "{word:?} is not in:\n{said}"));
    };
    // In use by the live one, though the first folder is another.
    let mut other = ringlog_serve(&node.folder("new"), "127.0.0.1:0");
    other.arg("--data-dir").arg(node.folder("b"));
    refused(&mut other, &["none of log.dirs holds the metadata log", "/b "]);
    node.stop();
    let mut alone = ringlog_serve(&node.folder("new"), "127.0.0.1:0");
    let mut fresh = Running::start("ringlog", &mut alone);
    assert!(listening_port(&fresh).is_some());
    assert!(fresh.terminate(LIMIT).success());
    let mut mixed = ringlog_serve(&node.folder("new"), "127.0.0.1:0");
    mixed.arg("--data-dir").arg(node.folder("b"));
    refused(&mut mixed, &["/b is of cluster"]);
    let mut inside = ringlog_serve(&node.folder("a"), "127.0.0.1:0");
    inside.arg("--data-dir").arg(node.folder("a/in"));
    refused(&mut inside, &["the same folder, or one lies in the other"]);
    std::os::unix::fs::symlink(node.folder("a"), node.folder("link")).unwrap();
    let mut twice = ringlog_serve(&node.folder("a"), "127.0.0.1:0");
    twice.arg("--data-dir").arg(node.folder("link"));
    refused(&mut twice, &["the same folder"]);
}
