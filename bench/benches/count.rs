//! Instructions of the whole node for each produced and each fetched batch, counted by callgrind and held against
//! `bench/guards.toml`: `cargo bench -p ringlog-bench --features sim --bench count`, with `-- --accept` to commit new counts.
//!
//! The node runs on the simulated back end: one thread, no kernel, the same instructions in every run. The program starts itself under
//! valgrind, with few and with many operations for each case; see `ringlog_bench::callgrind` for what is made of it. The driver is
//! a bare connection with frames that were encoded before.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use model::builder::BatchBuilder;
use model::config::BrokerConfig;
use ringlog_bench::answers::{FETCH_VERSION, PRODUCE_VERSION, batches, fetched, produced};
use ringlog_bench::callgrind::{Guards, Profile, ours, per_operation};
use runtime::net::Socket;
use runtime::sim::{Config, Ended, Process, Simulation};
use runtime::{ShardSpec, clock};
use server::{Node, NodeOptions};
use wire::generated::create_topics::CreatableTopic;
use wire::generated::fetch::{FetchPartition, FetchTopic};
use wire::generated::produce::{PartitionProduceData, TopicProduceData};
use wire::generated::{CreateTopicsRequest, FetchRequest, ProduceRequest};
use wire::{Records, Request};

const ADDRESS: &str = "127.0.0.1:9092";
const TOPIC: &str = "counted";
const RECORD_BYTES: usize = 500;
const STEP_LIMIT: u64 = 100_000_000;
const CREATE_VERSION: i16 = 4;

/// Name, partitions of each request, requests of the two runs.
const CASES: &[(&str, i32, [u32; 2])] = &[
    ("produce_1_partition", 1, [100, 300]),
    ("produce_64_partitions", 64, [10, 30]),
    ("fetch_1_partition", 1, [100, 300]),
    ("fetch_64_partitions", 64, [10, 30]),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match &words[..] {
        ["run", case, requests] => {
            run(case, requests.parse().expect("a number of requests"));
            Ok(())
        }
        [] => guard(false),
        ["--accept"] => guard(true),
        other => Err(format!("{other:?} is not understood; `--accept` writes the new counts")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("count: {sentence}");
            ExitCode::FAILURE
        }
    }
}

/// Counts every case and judges it.
fn guard(accept: bool) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("guards.toml");
    let mut found = BTreeMap::new();
    for (case, partitions, [few, many]) in CASES {
        let operations = f64::from((many - few) * *partitions as u32);
        let counts = per_operation(&under_callgrind(case, *few)?, &under_callgrind(case, *many)?, operations);
        let by_crate: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count:.0}")).collect();
        println!("{case}, instructions a batch: ours {:.0}; {}", ours(&counts), by_crate.join(", "));
        found.insert((*case).to_owned(), ours(&counts).round() as u64);
    }
    if accept {
        return Guards { instructions: found }.write(&path);
    }
    let findings = Guards::read(&path)?.findings(&found);
    if findings.is_empty() {
        return Ok(());
    }
    let accept = "cargo bench -p ringlog-bench --features sim --bench count -- --accept";
    Err(format!("{}\nif that is the price of something worth it, accept it: {accept}", findings.join("\n")))
}

fn under_callgrind(case: &str, requests: u32) -> Result<Profile, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let out = std::env::temp_dir().join(format!("ringlog-count-{}-{case}-{requests}", std::process::id()));
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "-q"]).arg(format!("--callgrind-out-file={}", out.display()));
    let output = command.arg(program).args(["run", case, &requests.to_string()]).output();
    let output = output.map_err(|e| format!("valgrind does not start: {e}"))?;
    let text = std::fs::read_to_string(&out).unwrap_or_default();
    let _ = std::fs::remove_file(&out);
    if !output.status.success() || text.is_empty() {
        return Err(format!("{case} failed under valgrind: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(Profile::parse(&text))
}

/// One case, in this process.
fn run(case: &str, requests: u32) {
    let (_, partitions, _) = CASES.iter().find(|(name, ..)| *name == case).expect("a case's name");
    let (partitions, fetches) = (*partitions, case.starts_with("fetch"));
    let mut simulation = Simulation::new(1, Config { step_limit: STEP_LIMIT, ..Config::default() });
    let ended = simulation.life(async move {
        let (ready, started) = flume::bounded(1);
        let node = Process::start("broker", async move {
            let node = Node::start(options()).await.map_err(|error| error.to_string());
            let node = node.expect("the node starts");
            let _ = ready.send(());
            clock::sleep(Duration::from_secs(1 << 20)).await;
            drop(node);
        });
        started.recv_async().await.expect("the node starts");
        let mut driver = Driver::connect().await;
        driver.make_topic(partitions).await;
        driver.produce(partitions, if fetches { 0 } else { requests }).await;
        if fetches {
            driver.fetch(partitions, requests).await;
        }
        drop(node);
    });
    if let Ended::Panicked(text) | Ended::Stuck(text) = ended {
        panic!("{text}");
    }
}

fn options() -> NodeOptions {
    let listener = format!("PLAINTEXT://{ADDRESS}");
    let pairs = [
        ("node.id", "1"),
        ("log.dirs", "/var/data"),
        ("listeners", listener.as_str()),
        ("ringlog.batch.cache.bytes", "33554432"),
        ("ringlog.io.memory.bytes", "4194304"),
    ];
    let config = BrokerConfig::from_pairs(pairs).expect("the configuration is valid");
    NodeOptions { config, shards: vec![ShardSpec::default()], helper_cpu: None }
}

fn frame<R: Request>(version: i16, request: &R) -> Bytes {
    let chunks = wire::encode_request(1, Some("count"), version, request).expect("a valid request");
    Records::Chunks(chunks).to_bytes().expect("a request has no file ranges")
}

fn batch() -> Bytes {
    BatchBuilder::new().record(1, None, Some(&[7; RECORD_BYTES])).finish().into()
}

struct Driver {
    socket: Socket,
    input: BytesMut,
}

impl Driver {
    async fn connect() -> Driver {
        let address = ADDRESS.parse().expect("an address");
        let socket = Socket::connect(address, Duration::from_secs(1)).await.expect("the node listens");
        Driver { socket, input: BytesMut::new() }
    }

    /// Sends a frame and gives the answer behind its correlation id.
    async fn call(&mut self, frame: &Bytes) -> Bytes {
        self.socket.send_bytes(vec![frame.clone()]).await.expect("the node is there");
        loop {
            if let Some(size) = self.input.first_chunk::<4>() {
                let size = u32::from_be_bytes(*size) as usize;
                if self.input.len() >= size + 4 {
                    self.input.advance(8);
                    return self.input.split_to(size - 4).freeze();
                }
            }
            let read = self.socket.read(&mut self.input, 1 << 16).await.expect("the node is there");
            assert!(read > 0, "the node closed the connection");
        }
    }

    async fn make_topic(&mut self, partitions: i32) {
        let topic =
            CreatableTopic { name: TOPIC, num_partitions: partitions, replication_factor: 1, ..Default::default() };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 30_000, ..Default::default() };
        self.call(&frame(CREATE_VERSION, &request)).await;
    }

    /// One request until all partitions take it, then so many more.
    async fn produce(&mut self, partitions: i32, requests: u32) {
        let batch = batch();
        let data = |index| PartitionProduceData { index, records: Records::from(batch.clone()) };
        let partition_data = (0..partitions).map(data).collect();
        let topic_data = vec![TopicProduceData { name: TOPIC, topic_id: [0; 16], partition_data }];
        let request = ProduceRequest { transactional_id: None, acks: -1, timeout_ms: 30_000, topic_data };
        let frame = frame(PRODUCE_VERSION, &request);
        let mut answered = 0;
        for attempt in 0.. {
            let answer = self.call(&frame).await;
            let (mut good, mut bad) = (0, 0);
            produced(&answer, |one| if one.error == 0 { good += 1 } else { bad += 1 }).expect("a whole answer");
            if bad == 0 {
                assert_eq!(good, partitions);
                answered += 1;
            } else {
                assert!(answered == 0 && attempt < 1_000, "{bad} partitions refuse");
                clock::sleep(Duration::from_millis(10)).await;
            }
            if answered > requests {
                return;
            }
        }
    }

    /// Reads the first batch of every partition again and again, from memory.
    async fn fetch(&mut self, partitions: i32, requests: u32) {
        let partition = |partition| FetchPartition {
            partition,
            fetch_offset: 0,
            partition_max_bytes: batch().len() as i32,
            ..FetchPartition::default()
        };
        let topic =
            FetchTopic { topic: TOPIC, topic_id: [0; 16], partitions: (0..partitions).map(partition).collect() };
        let request = FetchRequest {
            max_wait_ms: 500,
            min_bytes: 1,
            max_bytes: 50 << 20,
            session_epoch: -1,
            topics: vec![topic],
            ..FetchRequest::default()
        };
        let frame = frame(FETCH_VERSION, &request);
        for _ in 0..requests {
            let answer = self.call(&frame).await;
            let mut found = 0;
            let head = fetched(&answer, |one| found += batches(one.records).records);
            assert_eq!(head.map(|(error, _)| error), Ok(0));
            assert_eq!(found, partitions as u64, "a batch of each partition");
        }
    }
}
