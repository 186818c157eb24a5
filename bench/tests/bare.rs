//! The bare contestant as a process: offsets, what is on the disk after a kill, consumers at the tail, load that fills its memory many
//! times over, a stop in order.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use model::BatchView;
use ringlog_bench::broker::{Broker, Kind, Programs};
use ringlog_bench::client::Client;
use ringlog_bench::requests::{Request, check_all, one_each};
use ringlog_bench::traffic::{self, Field};
use ringlog_bench::workload::{Consume, Workload};
use runtime::testing::TempDir;

const BLOCK: usize = 4_096;

fn start(dir: &Path, settings: &[&str]) -> Broker {
    let bench = PathBuf::from(env!("CARGO_BIN_EXE_bench"));
    let programs = Programs { ringlog: PathBuf::new(), kafka_packages: PathBuf::new(), bench, cpus: None };
    Broker::start_with(Kind::Bare, &programs, dir, settings).unwrap()
}

fn send(stream: &mut TcpStream, request: &Request) {
    stream.write_all(&request.frame).unwrap();
}

fn answer(stream: &mut TcpStream) -> Vec<u8> {
    let mut size = [0; 4];
    stream.read_exact(&mut size).unwrap();
    let mut answer = vec![0; u32::from_be_bytes(size) as usize];
    stream.read_exact(&mut answer).unwrap();
    answer.split_off(4)
}

/// The base offsets of all whole batches in the file, in its order.
fn batches_in(file: &[u8]) -> Vec<i64> {
    let (mut at, mut found) = (0, Vec::new());
    while at < file.len() {
        match BatchView::parse(&file[at..]).ok().filter(|batch| batch.check_crc().is_ok()) {
            Some(batch) => {
                found.push(batch.header.base_offset.0);
                at += batch.bytes.len();
            }
            // The rest of a round's last block; a round behind it begins at the next.
            None => at = (at + 1).next_multiple_of(BLOCK),
        }
    }
    found
}

fn some_of(path: &Path, len: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    std::fs::File::open(path).unwrap().take(len).read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn what_was_answered_is_on_the_disk_after_a_kill() {
    const TURNS: i64 = 50;
    const PARTITIONS: i32 = 3;
    let dir = TempDir::new("bare-kill");
    let broker = start(dir.path(), &[]);
    Client::connect(broker.port).unwrap().create_topic("bench", PARTITIONS).unwrap();
    let workload = Workload { partitions: PARTITIONS, ..Workload::default() };
    let request = &one_each(&workload, "bench").unwrap()[0];
    let mut stream = TcpStream::connect(("127.0.0.1", broker.port)).unwrap();
    // Two under way at once: answers come in the requests' order.
    send(&mut stream, request);
    for turn in 0..TURNS {
        if turn + 1 < TURNS {
            send(&mut stream, request);
        }
        let mut offsets = Vec::new();
        check_all(&answer(&mut stream), |partition, offset| offsets.push((partition, offset))).unwrap();
        assert_eq!(offsets, (0..PARTITIONS).map(|partition| (partition, turn)).collect::<Vec<_>>());
    }
    // Kills it.
    drop(broker);
    let file = some_of(&dir.path().join("data").join(ringlog_bench::bare::FILE_NAME), 4 << 20);
    let wanted: Vec<i64> = (0..TURNS).flat_map(|turn| [turn; PARTITIONS as usize]).collect();
    assert_eq!(batches_in(&file), wanted);
}

#[test]
fn what_it_does_not_know_is_refused() {
    let dir = TempDir::new("bare-refusals");
    let broker = start(dir.path(), &[]);
    let mut client = Client::connect(broker.port).unwrap();
    client.create_topic("bench", 1).unwrap();
    assert!(client.create_topic("bench", 1).is_err(), "the name is taken");
    let workload = Workload { partitions: 2, ..Workload::default() };
    let request = &one_each(&workload, "bench").unwrap()[0];
    let mut stream = TcpStream::connect(("127.0.0.1", broker.port)).unwrap();
    send(&mut stream, request);
    let refused = check_all(&answer(&mut stream), |_, _| {}).unwrap_err();
    assert!(refused.to_string().contains("partition 1 failed: error 3"), "{refused}");
    let mut damaged = request.frame.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    stream.write_all(&damaged).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0, "a checksum that does not fit ends the connection");
    broker.stop().unwrap();
}

#[test]
fn a_client_that_leaves_in_the_middle_of_a_batch_leaves_nothing_behind() {
    let dir = TempDir::new("bare-half");
    let broker = start(dir.path(), &[]);
    Client::connect(broker.port).unwrap().create_topic("bench", 1).unwrap();
    let request = &one_each(&Workload::default(), "bench").unwrap()[0];
    for sent in [1, 7, 40, request.frame.len() - 1] {
        let mut stream = TcpStream::connect(("127.0.0.1", broker.port)).unwrap();
        stream.write_all(&request.frame[..sent]).unwrap();
    }
    let mut stream = TcpStream::connect(("127.0.0.1", broker.port)).unwrap();
    send(&mut stream, request);
    let mut offsets = Vec::new();
    check_all(&answer(&mut stream), |_, offset| offsets.push(offset)).unwrap();
    assert_eq!(offsets, [0]);
    broker.stop().unwrap();
}

/// Runs a load, which checks by itself that every answer comes and every record goes out at the tail.
fn load(name: &str, settings: &[&str], workload: &Workload) -> u64 {
    let dir = TempDir::new(name);
    let broker = start(dir.path(), settings);
    let field = Field { broker: &broker, kind: Kind::Bare, workload, cpus: &[], dir: dir.path() };
    let outcome = traffic::run(&field).unwrap();
    broker.stop().unwrap();
    outcome.produced_bytes
}

#[test]
fn consumers_at_the_tail_get_every_record() {
    let workload = Workload {
        partitions: 6,
        batch_bytes: 5_000,
        partitions_per_request: 2,
        connections: 3,
        rate: 5_000,
        warm_up_seconds: 0.2,
        seconds: 1.0,
        consume: Consume::Tail,
        groups: 2,
        consumers: 2,
        ..Workload::default()
    };
    assert!(load("bare-tail", &[], &workload) > 1_000_000);
}

#[test]
fn load_fills_the_memory_many_times_over() {
    let large = Workload {
        partitions: 2,
        batch_bytes: 1_000_000,
        partitions_per_request: 1,
        connections: 3,
        warm_up_seconds: 0.0,
        seconds: 60.0,
        mib: 100,
        consume: Consume::After,
        ..Workload::default()
    };
    assert!(load("bare-large", &["memory-mib=8"], &large) >= 100 << 20);
    let small = Workload { batch_bytes: 3_000, partitions: 20, partitions_per_request: 5, mib: 30, ..large };
    assert!(load("bare-small", &["memory-mib=8", "layout=ring"], &small) >= 30 << 20);
}
