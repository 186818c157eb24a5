//! kill -9 while everything goes on at once: an idempotent load on topics that roll, are cut by retention and are compacted,
//! a group whose offsets are committed without a pause, and topics that come and go. The load is by `ringlog`'s own
//! commands, so that our client is under the same test.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ringlog_e2e::broker::skip_on_kafka;
use ringlog_e2e::groups::{commit_until, committed, ready};
use ringlog_e2e::raw::Raw;
use ringlog_e2e::{Broker, cli, process, requests};

/// The load between two kills; varied so that they fall on different moments.
const LOAD_MS: [u64; 4] = [600, 350, 900, 417];
/// A command that outlives a restart ends well within this.
const LIMIT: Duration = Duration::from_secs(60);
/// Longer than retention takes to come round.
const SETTLED: Duration = Duration::from_millis(2_500);
const EARLIEST: i64 = -2;
const GROUP: &str = "committing";
const COMPACTED: &str = "compacted";
/// Keys of the compacted topic; number n has key n modulo this.
const KEYS: u64 = 20;

fn rounds() -> usize {
    std::env::var("E2E_KILL_ROUNDS").map_or(3, |rounds| rounds.parse().expect("E2E_KILL_ROUNDS is a number"))
}

/// What a thread may use of the broker while another kills it.
#[derive(Clone)]
struct Target {
    bootstrap: String,
    stop: Arc<AtomicBool>,
}

impl Target {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether the command ended well: its work was acknowledged. One that met no broker at all is begun again.
    fn run(&self, arguments: &[&str], input: &str) -> bool {
        loop {
            let mut command: Command = cli::alone(arguments);
            command.args(["--bootstrap", &self.bootstrap, "--timeout-ms", "20000"]);
            let ended = process::run(&mut command, input.as_bytes(), LIMIT);
            let said = ended.errors();
            if !said.contains("no broker answered") || said.contains("were acknowledged") {
                return ended.status.success();
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Numbers sent to one partition by one `produce` after the other; each is acknowledged as a whole or not known.
fn load(target: &Target, topic: &str) -> (u64, bool) {
    let mut next = 0;
    while !target.is_over() {
        let line = |number| format!("{}:{number:08}{}\n", number % KEYS, "x".repeat(490));
        let input: String = (next..next + 2_000).map(line).collect();
        if !target.run(&["produce", topic, "--quiet", "-K", ":"], &input) {
            return (next, false);
        }
        next += 2_000;
    }
    (next, true)
}

/// What became of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Made,
    Filled,
    Deleted,
    /// Its deletion was asked for and not acknowledged.
    Unknown,
}

fn topics_come_and_go(target: &Target) -> BTreeMap<String, Fate> {
    let mut fates = BTreeMap::new();
    for number in 0.. {
        if target.is_over() {
            return fates;
        }
        let name = format!("churn-{number}");
        if !target.run(&["topic", "create", &name, "--partitions", "3", "--if-not-exists"], "") {
            continue;
        }
        fates.insert(name.clone(), Fate::Made);
        if target.run(&["produce", &name, "--quiet", "--partition", "1"], "kept\n") {
            fates.insert(name.clone(), Fate::Filled);
        }
        if number % 2 == 1 {
            let is_gone = target.run(&["topic", "delete", &name, "--if-exists"], "");
            fates.insert(name, if is_gone { Fate::Deleted } else { Fate::Unknown });
        }
    }
    fates
}

/// Waits until retention has cut what it cuts: a log start that moves while it is read looks like a gap.
fn settle(broker: &Broker, topic: &str) {
    let mut raw = Raw::connect(broker);
    let (mut last, mut since) = (-1, Instant::now());
    let met = requests::within(LIMIT, || {
        let start = requests::list_offset(&mut raw, 4, topic, EARLIEST).offset;
        if start != last {
            (last, since) = (start, Instant::now());
        }
        (start >= 0 && since.elapsed() > SETTLED).then_some(())
    });
    assert!(met.is_some(), "{topic}: its log start keeps moving, {last} now");
}

/// The numbers of a topic of one partition from its start: contiguous, each once, up to the last acknowledged.
fn check_numbers(broker: &Broker, topic: &str, acknowledged: u64, all: bool) {
    let text = cli::consume(broker, topic, &["-f", "%o %v\n"]);
    let rows: Vec<(u64, u64)> = text
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(offset, value)| (offset.parse().unwrap(), value[..8].parse().unwrap()))
        .collect();
    let first = *rows.first().unwrap_or_else(|| panic!("{topic} is empty, {acknowledged} were acknowledged"));
    assert_eq!(first.0, first.1, "{topic}: every number has its own offset, so nothing is there twice");
    assert!(!all || first.0 == 0, "{topic}: it begins at {first:?}");
    for (row, expected) in rows.iter().zip(first.0..) {
        assert_eq!(*row, (expected, expected), "{topic}: a gap, a repetition or another order");
    }
    assert!(first.0 + rows.len() as u64 >= acknowledged, "{topic}: {acknowledged} acknowledged, {} there", rows.len());
    println!("{topic}: {acknowledged} acknowledged, read {} to {}", first.0, first.0 + rows.len() as u64 - 1);
}

/// The numbers of the compacted topic: each at its own offset, in order, and the last one of every key is there.
fn check_compacted(broker: &Broker, acknowledged: u64) {
    let text = cli::consume(broker, COMPACTED, &["-f", "%o %k %v\n"]);
    let mut last = BTreeMap::new();
    let mut before = None;
    for line in text.lines() {
        let mut words = line.split(' ');
        let mut next = || words.next().unwrap();
        let (offset, key, value): (u64, u64, u64) =
            (next().parse().unwrap(), next().parse().unwrap(), next()[..8].parse().unwrap());
        assert_eq!((offset, key), (value, value % KEYS), "{COMPACTED}: every number keeps its offset and key");
        assert!(before < Some(offset), "{COMPACTED}: {offset} comes behind {before:?}");
        before = Some(offset);
        last.insert(key, value);
    }
    for key in 0..KEYS.min(acknowledged) {
        let newest = (acknowledged - 1 - key) / KEYS * KEYS + key;
        assert_eq!(last.get(&key), Some(&newest), "{COMPACTED}: the last value of key {key} of {acknowledged}");
    }
    let kept = text.lines().count() as u64;
    assert!(kept < acknowledged || acknowledged < 8_000, "{COMPACTED}: all {kept} are there, nothing was cleaned");
    println!("{COMPACTED}: {acknowledged} acknowledged, {kept} kept, the last of each key among them");
}

#[test]
fn rolls_retention_and_topics_that_come_and_go_survive_kill_9() {
    if skip_on_kafka("Kafka without sync does not promise it, and takes 15 s a start") {
        return;
    }
    let mut broker = Broker::with(&[
        ("log.retention.check.interval.ms", "200"),
        ("log.segment.delete.delay.ms", "100"),
        ("log.cleaner.backoff.ms", "100"),
    ]);
    let mut raw = Raw::connect(&broker);
    requests::create_topic(&mut raw, "rolls", 1, &[("segment.bytes", "1048576")]);
    requests::create_topic(&mut raw, "short", 1, &[("segment.bytes", "1048576"), ("retention.bytes", "2000000")]);
    let compact = [("segment.bytes", "1048576"), ("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "0.05")];
    requests::create_topic(&mut raw, COMPACTED, 1, &compact);
    ready(&mut raw, GROUP);
    let target = Target { bootstrap: broker.bootstrap(), stop: Arc::default() };
    let commits = thread::spawn({
        let (stop, port) = (Arc::clone(&target.stop), broker.port());
        move || commit_until(&stop, port, GROUP, "rolls")
    });
    let loads = ["rolls", "short", COMPACTED].map(|topic| {
        let target = target.clone();
        thread::spawn(move || (topic, load(&target, topic)))
    });
    let churn = thread::spawn({
        let target = target.clone();
        move || topics_come_and_go(&target)
    });
    for round in 0..rounds() {
        thread::sleep(Duration::from_millis(LOAD_MS[round % LOAD_MS.len()]));
        broker.kill();
        broker.start_again();
    }
    thread::sleep(Duration::from_millis(300));
    target.stop.store(true, Ordering::Relaxed);
    let acknowledged = loads.map(|load| load.join().unwrap());
    let fates = churn.join().unwrap();
    let (committed_last, attempted) = commits.join().unwrap();
    assert!(committed_last > 20, "too few commits to tell anything: {committed_last}");
    for round in ["after the last kill", "after a clean restart"] {
        for (topic, (count, is_whole)) in acknowledged {
            assert!(is_whole, "{topic}: a producer outlives restarts, {round}");
            if topic == COMPACTED {
                check_compacted(&broker, count);
                continue;
            }
            settle(&broker, topic);
            check_numbers(&broker, topic, count, topic == "rolls");
        }
        check_topics(&broker, &fates);
        let there = committed(&mut Raw::connect(&broker), GROUP, "rolls").0;
        assert!((committed_last..=attempted).contains(&there), "{there} is not within {committed_last}..={attempted}");
        println!("{round}: offset {there} is committed, {committed_last} was acknowledged");
        broker.restart();
        println!("{round}: {} topics as they should be", fates.len());
    }
}

fn check_topics(broker: &Broker, fates: &BTreeMap<String, Fate>) {
    let mut raw = Raw::connect(broker);
    let there: Vec<String> = requests::all_topics(&mut raw)
        .into_iter()
        .filter_map(|topic| topic.name.map(|name| name.to_string()))
        .collect();
    assert!(fates.len() > 1, "too little came and went to tell anything");
    for (name, fate) in fates {
        let is_there = there.contains(name);
        match fate {
            Fate::Made => assert!(is_there, "{name} was made and is gone"),
            Fate::Filled => {
                assert!(is_there, "{name} was made and is gone");
                assert_eq!(cli::consume(broker, name, &[]), "kept\n", "{name}: its record was acknowledged");
            }
            Fate::Deleted => assert!(!is_there, "{name} was deleted and is back"),
            Fate::Unknown => {}
        }
    }
}
