//! kill -9 under an idempotent acks=all load, again and again: nothing acknowledged is lost, nothing is there twice,
//! nothing out of order, and committed offsets never go back. The start after each kill is measured.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::message::Message;
use rdkafka::producer::{BaseRecord, Producer};
use ringlog_e2e::batch::Batch;
use ringlog_e2e::broker::skip_on_kafka;
use ringlog_e2e::checker::{History, ReadBack};
use ringlog_e2e::groups::{commit_until, committed, ready};
use ringlog_e2e::raw::Raw;
use ringlog_e2e::requests::Produce;
use ringlog_e2e::{Broker, librdkafka, requests};

/// What is sent.
#[derive(Clone, Copy)]
struct Plan {
    partitions: i32,
    /// One record out of so many is larger than what the journal takes.
    large_every: u64,
}

/// A few partitions, all of it small.
const FEW: Plan = Plan { partitions: 4, large_every: u64::MAX };
/// Many partitions, batches of every size.
const MANY: Plan = Plan { partitions: 200, large_every: 701 };
const LARGE_BYTES: u64 = 200_000;

impl Plan {
    fn size_of(self, number: u64) -> usize {
        let is_large = number % self.large_every == self.large_every - 1;
        (if is_large { LARGE_BYTES + number % 5_000 } else { number % 700 }) as usize
    }
}

/// The load between two kills; varied so that they fall on different moments of a commit.
const LOAD_MS: [u64; 4] = [700, 350, 1100, 523];
/// No start takes this long, even in a build without optimisation on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(3);

fn rounds() -> usize {
    std::env::var("E2E_KILL_ROUNDS").map_or(3, |rounds| rounds.parse().expect("E2E_KILL_ROUNDS is a number"))
}

/// Kills and restarts the broker `rounds` times while `load` runs; how long each start took.
fn kill_in_rounds(broker: &mut Broker) -> Vec<Duration> {
    let mut starts = Vec::new();
    for round in 0..rounds() {
        thread::sleep(Duration::from_millis(LOAD_MS[round % LOAD_MS.len()]));
        broker.kill();
        starts.push(broker.start_again());
    }
    thread::sleep(Duration::from_millis(500));
    starts
}

fn print_starts(starts: &[Duration]) {
    let mut sorted = starts.to_vec();
    sorted.sort();
    let (median, slowest) = (sorted[sorted.len() / 2], sorted[sorted.len() - 1]);
    println!("start after kill -9 under load, {} rounds: median {median:?}, slowest {slowest:?}", starts.len());
    assert!(slowest < START_LIMIT, "{starts:?}");
}

/// Sends numbered records to every partition in turn until told to stop; what was sent and what became of it.
fn load(plan: Plan, broker_config: &rdkafka::ClientConfig, stop: &AtomicBool) -> (History, librdkafka::Outcomes) {
    let recorder = librdkafka::Recorder::default();
    let producer: librdkafka::RecordingProducer = broker_config.create_with_context(recorder.clone()).unwrap();
    let mut history = History::default();
    let mut number = 0u64;
    while !stop.load(Ordering::Relaxed) {
        let partition = (number % plan.partitions as u64) as i32;
        let value = format!("{number:020}{}", "x".repeat(plan.size_of(number)));
        let record = BaseRecord::with_opaque_to("load", Box::new(number)).partition(partition).key("k").payload(&value);
        match producer.send(record) {
            Ok(()) => {
                history.send(partition, number);
                number += 1;
            }
            Err(_) => thread::sleep(Duration::from_millis(5)), // The queue is full while the broker is away.
        }
        if number.is_multiple_of(100) {
            thread::sleep(Duration::from_millis(2));
        }
    }
    producer.flush(Duration::from_secs(60)).expect("everything is delivered in the end");
    (history, recorder.outcomes())
}

fn read_back(broker: &Broker, plan: Plan) -> BTreeMap<i32, ReadBack> {
    let mut all: BTreeMap<i32, ReadBack> = (0..plan.partitions).map(|index| (index, ReadBack::new())).collect();
    librdkafka::read_all_to_end(broker, "load", 0..plan.partitions, |message| {
        let value = std::str::from_utf8(message.payload().unwrap()).unwrap();
        let number: u64 = value[..20].parse().unwrap();
        assert_eq!(value.len(), 20 + plan.size_of(number), "record {number} is whole");
        all.get_mut(&message.partition()).unwrap().push((message.offset(), number));
    });
    all
}

#[test]
fn nothing_acknowledged_is_lost_doubled_or_out_of_order() {
    kill_under_load(FEW, &[]);
}

#[test]
fn many_partitions_and_batches_of_every_size_through_the_journal() {
    kill_under_load(MANY, &[("ringlog.journal", "true")]);
}

#[test]
fn many_partitions_and_batches_of_every_size_without_the_journal() {
    kill_under_load(MANY, &[("ringlog.journal", "false")]);
}

fn kill_under_load(plan: Plan, broker_settings: &[(&str, &str)]) {
    if skip_on_kafka("Kafka without sync does not promise it, and takes 15 s a start") {
        return;
    }
    let mut broker = Broker::with(broker_settings);
    requests::create_topic(&mut Raw::connect(&broker), "load", plan.partitions, &[]);
    let settings =
        [("enable.idempotence", "true"), ("acks", "all"), ("linger.ms", "1"), ("reconnect.backoff.max.ms", "200")];
    let config = librdkafka::config(&broker, &settings);
    let stop = Arc::new(AtomicBool::new(false));
    let sender = thread::spawn({
        let stop = Arc::clone(&stop);
        move || load(plan, &config, &stop)
    });
    let starts = kill_in_rounds(&mut broker);
    stop.store(true, Ordering::Relaxed);
    let (mut history, outcomes) = sender.join().unwrap();
    let mut failed = Vec::new();
    for (number, outcome) in outcomes {
        match outcome {
            Ok((partition, offset)) => history.acknowledge(partition, number, offset),
            Err(error) => failed.push(format!("{number}: {error}")),
        }
    }
    let read = read_back(&broker, plan);
    let contradictions = history.contradictions(&read);
    let count: usize = read.values().map(Vec::len).sum();
    println!("sent {}, acknowledged {}, read back {count}", history.sent(), history.acknowledged());
    assert!(
        contradictions.is_empty(),
        "{} of them:\n{}",
        contradictions.len(),
        contradictions[..contradictions.len().min(20)].join("\n")
    );
    assert!(
        failed.is_empty(),
        "an idempotent producer outlives a restart: {} failed: {:?}",
        failed.len(),
        failed.first()
    );
    assert!(history.acknowledged() > 1000, "too little load to tell anything");
    print_starts(&starts);

    broker.restart();
    assert!(history.contradictions(&read_back(&broker, plan)).is_empty(), "the same after a clean restart");
}

#[test]
fn committed_offsets_never_go_back() {
    if skip_on_kafka("Kafka without sync does not promise it, and takes 15 s a start") {
        return;
    }
    let mut broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    requests::create_topic(&mut raw, "load", 1, &[]);
    ready(&mut raw, "g");
    drop(raw);
    let (stop, port) = (Arc::new(AtomicBool::new(false)), broker.port());
    let committer = thread::spawn({
        let stop = Arc::clone(&stop);
        move || commit_until(&stop, port, "g", "load")
    });
    let starts = kill_in_rounds(&mut broker);
    stop.store(true, Ordering::Relaxed);
    let (acknowledged, attempted) = committer.join().unwrap();
    let there = committed(&mut Raw::connect(&broker), "g", "load").0;
    println!("commits: last acknowledged {acknowledged}, last attempted {attempted}, found {there}");
    assert!((acknowledged..=attempted).contains(&there), "{there} is not within {acknowledged}..={attempted}");
    assert!(acknowledged > 50, "too little load to tell anything");
    print_starts(&starts);
}

#[test]
fn acknowledged_with_acks_1_survives_kill_9_too() {
    if skip_on_kafka("Kafka takes 15 s a start") {
        return;
    }
    let mut broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    requests::create_topic(&mut raw, "one", 1, &[]);
    for at in 0..200 {
        let send = Produce { acks: 1, ..Produce::new("one", &Batch::of(&["v"])) };
        assert_eq!(send.send(&mut raw).base_offset, at);
    }
    broker.kill();
    broker.start_again();
    let mut raw = Raw::connect(&broker);
    let end = requests::until("the partition is led", || {
        let answer = requests::list_offset(&mut raw, 7, "one", -1);
        (answer.error_code == 0).then_some(answer.offset)
    });
    assert_eq!(end, 200);
}

#[test]
fn a_start_with_many_partitions_is_quick() {
    if skip_on_kafka("it measures Ringlog's start") {
        return;
    }
    let mut broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    requests::create_topic(&mut raw, "wide", 1000, &[]);
    for partition in 0..1000 {
        let send = Produce { partition, ..Produce::new("wide", &Batch::of(&["v"])) };
        assert_eq!(send.code(&mut raw), 0);
    }
    broker.kill();
    let after_kill = broker.start_again();
    let begun = Instant::now();
    broker.stop();
    let stopped = begun.elapsed();
    let after_stop = broker.start_again();
    println!("1 000 partitions: start {after_kill:?} after kill -9, {after_stop:?} after a clean stop ({stopped:?})");
    assert!(after_kill < START_LIMIT && after_stop < START_LIMIT);
    let mut raw = Raw::connect(&broker);
    for partition in [0, 499, 999] {
        let send = Produce { partition, ..Produce::new("wide", &Batch::of(&["v"])) };
        assert_eq!(send.send(&mut raw).base_offset, 1, "partition {partition}");
    }
}

/// A node that stops before it has looked at every log must not vouch for them: a clean start believes the checkpoint.
#[test]
fn a_quick_stop_after_a_crash_hides_nothing() {
    if skip_on_kafka("Kafka scans every log before it stops") {
        return;
    }
    const TOPIC_PARTITIONS: i32 = 40;
    let mut broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    requests::create_topic(&mut raw, "many", TOPIC_PARTITIONS, &[]);
    let send_everywhere = |raw: &mut Raw| {
        for partition in 0..TOPIC_PARTITIONS {
            let send = Produce { partition, ..Produce::new("many", &Batch::of(&["acknowledged"])) };
            assert_eq!(send.code(raw), 0);
        }
    };
    send_everywhere(&mut raw);
    drop(raw);
    broker.restart();
    let mut raw = Raw::connect(&broker);
    send_everywhere(&mut raw);
    broker.kill();
    for _ in 0..2 {
        broker.start_again();
        broker.stop();
    }
    broker.start_again();
    let mut raw = Raw::connect(&broker);
    for partition in 0..TOPIC_PARTITIONS {
        let part = requests::fetch_partition(partition, 1, 1 << 20);
        let request = requests::fetch_request("many", vec![part], 1 << 20);
        let answer = raw.call(12, &request).responses.remove(0).partitions.remove(0);
        assert_eq!((answer.error_code, answer.high_watermark), (0, 2), "partition {partition}");
    }
}
