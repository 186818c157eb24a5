//! A blocking client of raw frames. Batches are encoded once and sent again and again, so that the client costs little.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bytes::Bytes;
use model::builder::BatchBuilder;
use wire::generated::create_topics::{CreatableTopic, CreatableTopicConfig};
use wire::generated::fetch::{FetchPartition, FetchTopic};
use wire::generated::metadata::MetadataRequestTopic;
use wire::generated::produce::{PartitionProduceData, TopicProduceData};
use wire::generated::{
    CreateTopicsRequest, CreateTopicsResponse, FetchRequest, FetchResponse, MetadataRequest, MetadataResponse,
    ProduceRequest, ProduceResponse,
};
use wire::{Chunk, Decode, Reader, Records, Request};

pub(crate) const PRODUCE_VERSION: i16 = 8;
pub(crate) const FETCH_VERSION: i16 = 11;
pub(crate) const CREATE_VERSION: i16 = 4;
const METADATA_VERSION: i16 = 4;
/// Longest wait for an answer: making ten thousand partitions takes Apache Kafka minutes.
const READ_LIMIT: Duration = Duration::from_secs(600);
const REQUEST_TIMED_OUT: i16 = 7;
/// Produce requests under way, as Kafka's clients have at most.
const IN_FLIGHT: usize = 5;

/// What a run moved.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    pub records: u64,
    /// Of record batches.
    pub bytes: u64,
    pub seconds: f64,
}

/// A connection.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    next_id: i32,
}

/// Whether a broker gives a Metadata answer on this port.
pub fn answers(port: u16) -> bool {
    let Ok(mut client) = Client::connect(port) else { return false };
    client.topic_partitions("none").is_ok()
}

pub(crate) fn invalid(text: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.to_string())
}

pub(crate) fn frame<R: Request>(id: i32, version: i16, request: &R) -> io::Result<Vec<u8>> {
    let chunks = wire::encode_request(id, Some("ringlog-bench"), version, request).map_err(invalid)?;
    let mut out = Vec::new();
    for chunk in chunks {
        match chunk {
            Chunk::Bytes(bytes) => out.extend_from_slice(&bytes),
            Chunk::External { .. } => return Err(invalid("a request has no file ranges")),
        }
    }
    Ok(out)
}

impl Client {
    pub fn connect(port: u16) -> io::Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_LIMIT))?;
        Ok(Client { stream, buffer: Vec::new(), next_id: 0 })
    }

    pub(crate) fn send<R: Request>(&mut self, version: i16, request: &R) -> io::Result<()> {
        self.next_id += 1;
        self.stream.write_all(&frame(self.next_id, version, request)?)
    }

    /// A frame that was encoded before.
    pub(crate) fn send_frame(&mut self, frame: &[u8]) -> io::Result<()> {
        self.stream.write_all(frame)
    }

    /// The next answer's bytes behind its correlation id. Only versions with the short response header are used.
    pub(crate) fn receive(&mut self) -> io::Result<Bytes> {
        let mut size = [0; 4];
        self.stream.read_exact(&mut size)?;
        let size = u32::from_be_bytes(size) as usize;
        self.buffer.resize(size, 0);
        self.stream.read_exact(&mut self.buffer)?;
        Ok(Bytes::copy_from_slice(&self.buffer[4..]))
    }

    /// Reads an answer and drops it, but for its first bytes.
    fn skip_answer(&mut self) -> io::Result<()> {
        let mut size = [0; 4];
        self.stream.read_exact(&mut size)?;
        self.buffer.resize(u32::from_be_bytes(size) as usize, 0);
        self.stream.read_exact(&mut self.buffer)
    }

    fn topic_partitions(&mut self, topic: &str) -> io::Result<usize> {
        let topics = vec![MetadataRequestTopic { topic_id: [0; 16], name: Some(topic) }];
        let request =
            MetadataRequest { topics: Some(topics), allow_auto_topic_creation: false, ..MetadataRequest::default() };
        self.send(METADATA_VERSION, &request)?;
        let answer = self.receive()?;
        let response = MetadataResponse::decode(&mut Reader::new(&answer), METADATA_VERSION).map_err(invalid)?;
        if response.brokers.is_empty() {
            return Err(invalid("no broker yet"));
        }
        Ok(response.topics.first().map_or(0, |t| t.partitions.iter().filter(|p| p.leader_id >= 0).count()))
    }

    /// Makes a topic and waits until all its partitions have a leader.
    pub fn create_topic(&mut self, name: &str, partitions: i32) -> io::Result<()> {
        self.create_topic_with(name, partitions, &[])
    }

    /// The same with configurations.
    pub fn create_topic_with(&mut self, name: &str, partitions: i32, configs: &[(&str, &str)]) -> io::Result<()> {
        let configs = configs.iter().map(|&(name, value)| CreatableTopicConfig { name, value: Some(value) }).collect();
        let topic =
            CreatableTopic { name, num_partitions: partitions, replication_factor: 1, configs, ..Default::default() };
        let timeout_ms = READ_LIMIT.as_millis() as i32;
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms, ..Default::default() };
        self.send(CREATE_VERSION, &request)?;
        let answer = self.receive()?;
        let response = CreateTopicsResponse::decode(&mut Reader::new(&answer), CREATE_VERSION).map_err(invalid)?;
        // A broker that answers too early is still at it: the leaders will show.
        let failed = |code: i16| code != 0 && code != REQUEST_TIMED_OUT;
        if let Some(failed) = response.topics.iter().find(|t| failed(t.error_code)) {
            return Err(invalid(format!("the topic was not made: error {}", failed.error_code)));
        }
        let deadline = Instant::now() + READ_LIMIT;
        while self.topic_partitions(name)? < partitions as usize {
            if Instant::now() > deadline {
                return Err(invalid("the topic's partitions have no leaders"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Two halves of the connection: requests are written through one, answers read from the other.
    pub(crate) fn split(self) -> io::Result<(Client, Client)> {
        let stream = self.stream.try_clone()?;
        Ok((Client { stream, buffer: Vec::new(), next_id: self.next_id }, self))
    }

    /// One Produce request for all of a load's partitions, ready to be sent any number of times, and the bytes of its batches.
    pub(crate) fn produce_frame(load: &Load<'_>) -> io::Result<(Vec<u8>, u64)> {
        let batch = batch(load.record_bytes, load.records_per_batch());
        let data = |index| PartitionProduceData { index, records: Records::from(batch.clone()) };
        let partition_data = (0..load.partitions).map(data).collect();
        let topic = TopicProduceData { name: load.topic, topic_id: [0; 16], partition_data };
        let request = ProduceRequest { transactional_id: None, acks: -1, timeout_ms: 30_000, topic_data: vec![topic] };
        Ok((frame(1, PRODUCE_VERSION, &request)?, batch.len() as u64 * load.partitions as u64))
    }

    /// Sends a Produce request and waits for its answer.
    pub(crate) fn produce_once(&mut self, request: &[u8]) -> io::Result<()> {
        self.send_frame(request)?;
        check_produced(&self.receive()?)
    }

    /// Sends `bytes` of records of `record_bytes` each, `batch_bytes` for each partition of a request, acks=all.
    pub fn produce(&mut self, load: &Load<'_>) -> io::Result<Moved> {
        let (bytes, per_request) = Client::produce_frame(load)?;
        let requests = load.bytes.div_ceil(per_request);
        self.warm_up(&bytes)?;
        let begun = Instant::now();
        let (mut sent, mut answered) = (1, 1);
        while answered < requests {
            if sent < requests && sent - answered < IN_FLIGHT as u64 {
                self.stream.write_all(&bytes)?;
                sent += 1;
            } else {
                let answer = self.receive()?;
                check_produced(&answer)?;
                answered += 1;
            }
        }
        let records = requests * load.records_per_batch() as u64 * load.partitions as u64;
        Ok(Moved { records, bytes: requests * per_request, seconds: begun.elapsed().as_secs_f64() })
    }

    /// Sends the first request until every partition takes it: a leader may be named before it is ready.
    pub(crate) fn warm_up(&mut self, request: &[u8]) -> io::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            match self.produce_once(request) {
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Reads a topic from its beginning until `bytes` came back.
    pub fn fetch(&mut self, load: &Load<'_>) -> io::Result<Moved> {
        let mut offsets = vec![0i64; load.partitions as usize];
        let mut moved = Moved::default();
        let begun = Instant::now();
        while moved.bytes < load.bytes {
            let partition = |(index, &fetch_offset): (usize, &i64)| FetchPartition {
                partition: index as i32,
                fetch_offset,
                partition_max_bytes: 1 << 20,
                ..FetchPartition::default()
            };
            let topic = FetchTopic {
                topic: load.topic,
                topic_id: [0; 16],
                partitions: offsets.iter().enumerate().map(partition).collect(),
            };
            let request = FetchRequest {
                max_wait_ms: 500,
                min_bytes: 1,
                max_bytes: 50 << 20,
                topics: vec![topic],
                ..FetchRequest::default()
            };
            self.send(FETCH_VERSION, &request)?;
            let answer = self.receive()?;
            let response = FetchResponse::decode(&mut Reader::new(&answer), FETCH_VERSION).map_err(invalid)?;
            let before = moved.bytes;
            for data in response.responses.iter().flat_map(|t| &t.partitions) {
                if data.error_code != 0 {
                    return Err(invalid(format!("fetch failed: error {}", data.error_code)));
                }
                let (records, bytes, next) = count(&data.records)?;
                moved.records += records;
                moved.bytes += bytes;
                if let Some(next) = next {
                    offsets[data.partition_index as usize] = next;
                }
            }
            if moved.bytes == before {
                return Err(invalid("the topic ends too early"));
            }
        }
        moved.seconds = begun.elapsed().as_secs_f64();
        Ok(moved)
    }

    /// Round trips of one small Metadata request, for a first look at latency.
    pub fn ping(&mut self, count: usize) -> io::Result<Duration> {
        let request = MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() };
        let begun = Instant::now();
        for _ in 0..count {
            self.send(METADATA_VERSION, &request)?;
            self.skip_answer()?;
        }
        Ok(begun.elapsed() / count.max(1) as u32)
    }
}

/// What to produce or fetch.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    pub topic: &'a str,
    pub partitions: i32,
    pub record_bytes: usize,
    pub batch_bytes: usize,
    pub bytes: u64,
}

impl Load<'_> {
    fn records_per_batch(&self) -> usize {
        (self.batch_bytes / self.record_bytes).max(1)
    }
}

fn batch(record_bytes: usize, count: usize) -> Bytes {
    let mut builder = BatchBuilder::new();
    let mut value = vec![0u8; record_bytes];
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64);
    for _ in 0..count {
        for byte in &mut value {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (seed >> 33) as u8;
        }
        builder.push(now, None, Some(&value), &[]);
    }
    builder.finish().into()
}

pub(crate) fn check_produced(answer: &Bytes) -> io::Result<()> {
    let response = ProduceResponse::decode(&mut Reader::new(answer), PRODUCE_VERSION).map_err(invalid)?;
    match response.responses.iter().flat_map(|t| &t.partition_responses).find(|p| p.error_code != 0) {
        Some(failed) => Err(invalid(format!("produce failed: error {}", failed.error_code))),
        None => Ok(()),
    }
}

/// Records, bytes and next offset of whole batches; a cut one at the end does not count.
pub(crate) fn count(records: &Records) -> io::Result<(u64, u64, Option<i64>)> {
    let bytes = records.to_bytes().unwrap_or_default();
    let (mut at, mut found, mut next) = (0, 0, None);
    while at < bytes.len() {
        let Ok(view) = model::BatchView::parse(&bytes[at..]) else { break };
        at += view.bytes.len();
        found += view.header.record_count as u64;
        next = Some(view.header.next_offset().0);
    }
    Ok((found, at as u64, next))
}
