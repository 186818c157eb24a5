//! Fetch: where in a batch an offset lies, limits, sessions, topic ids, waiting.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::messages::FetchRequest;
use ringlog_e2e::Broker;
use ringlog_e2e::batch::{self, Batch};
use ringlog_e2e::raw::Raw;
use ringlog_e2e::requests::{
    self, Produce, create_topic, fetch, fetch_batches, fetch_partition, fetch_request, produce,
};
use uuid::Uuid;

use crate::with_topic;

const OFFSET_OUT_OF_RANGE: i16 = 1;
const UNKNOWN_TOPIC_ID: i16 = 100;
const FETCH_SESSION_ID_NOT_FOUND: i16 = 70;
const INVALID_FETCH_SESSION_EPOCH: i16 = 71;
const FETCH_SESSION_TOPIC_ID_ERROR: i16 = 106;

fn base_offsets(records: Option<Bytes>) -> Vec<i64> {
    batch::read(records.expect("records are never null")).iter().map(|batch| batch.base_offset).collect()
}

#[test]
fn positions_inside_at_the_end_and_past_the_end() {
    let (_broker, mut raw) = with_topic(&[]);
    assert_eq!(produce(&mut raw, "t", &Batch::of(&["a0", "a1"])), 0);
    assert_eq!(produce(&mut raw, "t", &Batch::of(&["b2", "b3"])), 2);

    for (offset, expected) in [(0, &[0, 2][..]), (1, &[0, 2]), (2, &[2]), (3, &[2]), (4, &[])] {
        let answer = fetch(&mut raw, "t", offset);
        assert_eq!((answer.error_code, answer.high_watermark), (0, 4), "at {offset}");
        assert_eq!(base_offsets(answer.records), expected, "at {offset}");
    }
    for offset in [5, -1, i64::MAX] {
        let answer = fetch(&mut raw, "t", offset);
        assert_eq!((answer.error_code, answer.high_watermark), (OFFSET_OUT_OF_RANGE, -1), "at {offset}");
        assert_eq!(answer.records, Some(Bytes::new()), "records are never null");
    }
}

#[test]
fn what_is_fetched_is_what_was_produced() {
    let (mut broker, mut raw) = with_topic(&[]);
    produce(&mut raw, "t", &Batch::of(&["one", "two"]));
    produce(&mut raw, "t", &Batch::of(&["three"]));
    let expected = [(0, "one"), (1, "two"), (2, "three")].map(|(offset, value)| (offset, value.to_owned()));
    for round in ["from the cache", "after a restart"] {
        let batches = fetch_batches(&mut raw, "t", 0);
        assert!(batches.iter().all(|batch| batch.crc_holds), "{round}");
        assert_eq!(batches.iter().flat_map(batch::values).collect::<Vec<_>>(), expected, "{round}");
        broker.restart();
        raw = Raw::connect(&broker);
        requests::until("the partition is led again", || (fetch(&mut raw, "t", 0).error_code == 0).then_some(()));
    }
}

#[test]
fn a_small_limit_gives_the_first_batch_whole_and_the_other_partition_its_turn() {
    let broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    create_topic(&mut raw, "two", 2, &[]);
    let large = "x".repeat(4096);
    for partition in [0, 1] {
        let send = Produce { partition, ..Produce::new("two", &Batch::of(&[&large])) };
        assert_eq!(send.code(&mut raw), 0);
    }
    let both = vec![fetch_partition(0, 0, 1024), fetch_partition(1, 0, 1024)];
    let request = fetch_request("two", both, 1024).with_session_epoch(0);
    let first = raw.call(12, &request);
    assert!(first.session_id != 0, "a session was asked for");
    assert_eq!(with_data(&first), [0], "one whole batch over the limit, nothing more");

    let next = fetch_request("two", vec![fetch_partition(0, 1, 1024)], 1024)
        .with_session_id(first.session_id)
        .with_session_epoch(1);
    let second = raw.call(12, &next);
    assert_eq!((second.error_code, with_data(&second)), (0, vec![1]), "the other partition's turn");
}

/// The partitions of an answer that bring records.
fn with_data(answer: &kafka_protocol::messages::FetchResponse) -> Vec<i32> {
    let partitions = answer.responses.iter().flat_map(|topic| &topic.partitions);
    let full = partitions.filter(|partition| partition.records.as_ref().is_some_and(|records| !records.is_empty()));
    full.map(|partition| partition.partition_index).collect()
}

#[test]
fn session_ids_are_unique_and_epochs_are_checked() {
    let (broker, _raw) = with_topic(&[]);
    let mut ids = BTreeSet::new();
    let mut connections: Vec<Raw> = (0..12).map(|_| Raw::connect(&broker)).collect();
    let open = fetch_request("t", vec![fetch_partition(0, 0, 1024)], 1024).with_max_wait_ms(0).with_session_epoch(0);
    for raw in connections.iter_mut().chain(&mut []) {
        for _ in 0..5 {
            ids.insert(raw.call(12, &open).session_id);
        }
    }
    assert!(ids.len() == 60 && !ids.contains(&0), "{} different ids of 60", ids.len());

    let known = *ids.first().unwrap();
    let empty = FetchRequest::default().with_max_wait_ms(0).with_max_bytes(1024).with_session_id(known);
    let raw = connections.last_mut().unwrap();
    let from_elsewhere = raw.call(12, &empty.clone().with_session_epoch(1));
    assert_eq!((from_elsewhere.error_code, from_elsewhere.session_id), (0, known), "any connection may continue it");
    assert!(from_elsewhere.responses.is_empty(), "nothing changed, nothing is said");
    assert_eq!(raw.call(12, &empty.clone().with_session_epoch(7)).error_code, INVALID_FETCH_SESSION_EPOCH);
    let unknown = (1..).find(|id| !ids.contains(id)).unwrap();
    let lost = raw.call(12, &empty.with_session_id(unknown).with_session_epoch(1));
    assert_eq!(lost.error_code, FETCH_SESSION_ID_NOT_FOUND);
}

#[test]
fn topic_ids_name_topics() {
    let broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    let id = create_topic(&mut raw, "t", 1, &[]);
    produce(&mut raw, "t", &Batch::of(&["a"]));
    let mut request = fetch_request("t", vec![fetch_partition(0, 0, 1024)], 1024);
    request.topics[0].topic_id = id;
    let answer = raw.call(16, &request).responses.remove(0);
    assert_eq!((answer.topic_id, answer.partitions[0].error_code), (id, 0));
    assert_eq!(base_offsets(answer.partitions[0].records.clone()), [0]);

    request.topics[0].topic_id = Uuid::from_u128(0xdead);
    let answer = raw.call(16, &request);
    assert_eq!(answer.responses[0].partitions[0].error_code, UNKNOWN_TOPIC_ID);
}

#[test]
fn a_waiting_fetch_is_woken_by_an_append_and_ends_at_its_time() {
    let (broker, mut raw) = with_topic(&[]);
    let wait = |ms| fetch_request("t", vec![fetch_partition(0, 0, 1024)], 1024).with_max_wait_ms(ms);

    let begun = Instant::now();
    let empty = raw.call(12, &wait(500));
    assert!(with_data(&empty).is_empty());
    assert!((450..5_000).contains(&begun.elapsed().as_millis()), "waited {:?} for 500 ms", begun.elapsed());

    raw.send(12, &wait(20_000));
    let producer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        produce(&mut Raw::connect(&broker), "t", &Batch::of(&["wake up"]));
        broker
    });
    let begun = Instant::now();
    let (_, woken) = raw.receive::<FetchRequest>(12);
    assert_eq!(with_data(&woken), [0]);
    assert!(begun.elapsed() < Duration::from_secs(10), "woken after {:?}", begun.elapsed());
    drop(producer.join().unwrap());
}

#[test]
fn a_session_goes_on_as_it_began_by_name_or_by_id() {
    let (_broker, mut raw) = with_topic(&[]);
    let open = fetch_request("t", vec![fetch_partition(0, 0, 1024)], 1024).with_max_wait_ms(0).with_session_epoch(0);
    let by_name = raw.call(12, &open).session_id;
    let empty = FetchRequest::default().with_max_wait_ms(0).with_max_bytes(1024).with_session_id(by_name);
    let answer = raw.call(13, &empty.clone().with_session_epoch(1));
    assert_eq!((answer.error_code, answer.session_id), (FETCH_SESSION_TOPIC_ID_ERROR, 0));
    // The epoch is judged first, and the refused request did not move it.
    assert_eq!(raw.call(13, &empty.clone().with_session_epoch(7)).error_code, INVALID_FETCH_SESSION_EPOCH);
    assert_eq!(raw.call(12, &empty.with_session_epoch(1)).error_code, 0);
}
