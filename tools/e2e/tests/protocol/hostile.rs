//! Bytes that no client sends: the named error or a closed connection, and nobody else notices.

use std::fs;
use std::time::{Duration, Instant};

use bytes::BufMut;
use kafka_protocol::messages::{ApiVersionsRequest, MetadataRequest};
use ringlog_e2e::Broker;
use ringlog_e2e::batch::Batch;
use ringlog_e2e::broker::skip_on_kafka;
use ringlog_e2e::raw::{Raw, frame, old_header, sized};
use ringlog_e2e::requests::{Produce, api_versions, create_topic, produce};

const CLOSE_LIMIT: Duration = Duration::from_secs(10);

/// A broker with a topic `t`, and a client that must not notice anything.
fn with_bystander(settings: &[(&str, &str)]) -> (Broker, Raw) {
    let broker = Broker::with(settings);
    let mut bystander = Raw::connect(&broker);
    create_topic(&mut bystander, "t", 1, &[]);
    (broker, bystander)
}

#[test]
fn impossible_sizes_end_the_connection() {
    let (broker, mut bystander) = with_bystander(&[]);
    for (at, size) in [0i32, -1, i32::MIN, i32::MAX, 101 << 20].into_iter().enumerate() {
        let mut raw = Raw::connect(&broker);
        raw.send_bytes(&size.to_be_bytes());
        assert!(raw.is_closed_within(CLOSE_LIMIT), "size {size}");
        assert_eq!(produce(&mut bystander, "t", &Batch::of(&["unharmed"])), at as i64);
    }
}

#[test]
fn half_a_frame_and_silence_holds_up_nobody_and_is_ended_when_idle() {
    let (broker, mut bystander) = with_bystander(&[("connections.max.idle.ms", "2000")]);
    let whole = frame(1, 9, &Produce::new("t", &Batch::of(&["half"])).request());
    let mut halves: Vec<Raw> = (0..20).map(|_| Raw::connect(&broker)).collect();
    for (at, raw) in halves.iter_mut().enumerate() {
        raw.send_bytes(&whole[..1 + at * (whole.len() - 2) / 20]);
    }
    let begun = Instant::now();
    produce(&mut bystander, "t", &Batch::of(&["unharmed"]));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    for raw in &mut halves {
        assert!(raw.is_closed_within(Duration::from_secs(20)), "an idle connection is ended");
    }
}

#[test]
fn a_client_that_hangs_up_in_the_middle_harms_nobody() {
    let (broker, mut bystander) = with_bystander(&[]);
    let whole = frame(1, 9, &Produce::new("t", &Batch::of(&["cut"])).request());
    for cut in 1..whole.len() {
        let mut raw = Raw::connect(&broker);
        raw.send_bytes(&whole[..cut]);
        raw.finish_sending();
    }
    assert_eq!(produce(&mut bystander, "t", &Batch::of(&["unharmed"])), 0, "no half request was obeyed");
}

/// Resident memory of a process in MiB.
fn resident_mib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a live process");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[test]
fn ten_thousand_pipelined_requests_without_reading() {
    let (mut broker, mut bystander) = with_bystander(&[]);
    let before = resident_mib(broker.process().pid());
    let mut raw = Raw::connect(&broker);
    let one = frame(1, 12, &MetadataRequest::default().with_topics(None));
    let flood = one.repeat(10_000);
    let sent = raw.send_until_full(&flood, Duration::from_secs(10));
    for _ in 0..20 {
        let begun = Instant::now();
        produce(&mut bystander, "t", &Batch::of(&["unharmed"]));
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
    let grown = resident_mib(broker.process().pid()).saturating_sub(before);
    assert!(grown < 200, "memory grew by {grown} MiB");
    let whole = sent / one.len();
    for answer in 0..whole {
        assert!(raw.receive_frame().is_some(), "answer {answer} of {whole}");
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let (_broker, mut raw) = with_bystander(&[]);
    let ids: Vec<i32> = (0..200)
        .map(|at| match at % 3 {
            0 => raw.send(12, &MetadataRequest::default().with_topics(None)),
            1 => raw.send(3, &ApiVersionsRequest::default()),
            _ => raw.send(9, &Produce::new("t", &Batch::of(&["in order"])).request()),
        })
        .collect();
    for id in ids {
        let frame = raw.receive_frame().expect("an answer");
        assert_eq!(i32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]), id);
    }
}

#[test]
fn counts_larger_than_the_frame() {
    let (broker, mut bystander) = with_bystander(&[]);
    let advertised = api_versions(&mut bystander, 3).api_keys;
    let bodies: [&[u8]; 5] = [
        &[],
        &[0xff; 40],
        &[0x7f, 0xff, 0xff, 0xff].repeat(10),
        &[0x00, 0x7f].repeat(20),
        &[0xff, 0xff, 0xff, 0x07].repeat(9),
    ];
    for api in &advertised {
        for version in api.min_version..=api.max_version {
            for body in bodies {
                let mut raw = Raw::connect(&broker);
                let mut request = old_header(api.api_key, version, 1);
                // The flexible header's tagged fields: none, for versions that have them; a stray byte for the others.
                request.put_u8(0);
                request.put_slice(body);
                raw.send_bytes(&sized(&request));
                raw.finish_sending();
                while raw.receive_frame().is_some() {}
            }
        }
        bystander.call(12, &MetadataRequest::default());
    }
    produce(&mut bystander, "t", &Batch::of(&["unharmed"]));
}

#[test]
fn connections_beyond_the_bound_are_refused_and_the_others_live() {
    if skip_on_kafka("Kafka accepts beyond the bound on its only listener") {
        return;
    }
    let (broker, mut bystander) = with_bystander(&[("max.connections", "30")]);
    let mut crowd: Vec<Raw> = (0..60).map(|_| Raw::connect(&broker)).collect();
    let open = crowd.iter_mut().filter_map(|raw| raw.is_silent_for(Duration::from_millis(100)).filter(|open| *open));
    let open = open.count();
    assert!((20..30).contains(&open), "{open} of 60 connections are open beside the first, the bound is 30");
    produce(&mut bystander, "t", &Batch::of(&["unharmed"]));
}

#[test]
fn a_crowd_of_connections_comes_and_goes() {
    if skip_on_kafka("it measures Ringlog's memory") {
        return;
    }
    let (mut broker, mut bystander) = with_bystander(&[]);
    let before = resident_mib(broker.process().pid());
    for _ in 0..10 {
        let mut crowd: Vec<Raw> = (0..100).map(|_| Raw::connect(&broker)).collect();
        for raw in &mut crowd {
            api_versions(raw, 3);
        }
    }
    produce(&mut bystander, "t", &Batch::of(&["unharmed"]));
    let grown = resident_mib(broker.process().pid()).saturating_sub(before);
    assert!(grown < 100, "memory grew by {grown} MiB over 1 000 connections");
}
