//! Produce requests, encoded before a run and sent again and again: the client's work while it measures is a write.
//!
//! Values are pseudo-random bytes up to `random_share` and a repeated word behind, the same in every run; keys are drawn so
//! that a key always goes to the same partition. Budget: `POOL_BYTES` of memory, made once; connections share it.

use std::io;

use bytes::Bytes;
use model::builder::BatchBuilder;
use wire::Records;
use wire::generated::ProduceRequest;
use wire::generated::produce::{PartitionProduceData, TopicProduceData};

use crate::answers::PRODUCE_VERSION;
use crate::client::{frame, invalid};
use crate::workload::{Codec, Workload};

/// Memory of a workload's requests; at least one turn through all partitions is made whatever it takes.
const POOL_BYTES: usize = 64 << 20;
/// Different requests at most, and different batches of a size.
const REQUESTS_MAX: usize = 4_096;
const BATCHES: usize = 16;
/// Requests that are made even of one partition, so that bytes differ.
const REQUESTS_MIN: usize = 4;
const WORD: &[u8] = b"a visitor looked at a page, then at the next one; ";
/// Attributes of a batch whose codec is lz4.
const LZ4: i16 = 3;

/// One request, ready to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    pub frame: Bytes,
    /// Records for each partition, by partition.
    pub counts: Vec<(i32, u32)>,
    pub records: u64,
    /// Of record batches as they cross the network.
    pub bytes: u64,
}

/// xorshift64*: any sequence that is the same everywhere does.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound.max(1)
    }
}

/// Makes batches of a workload.
struct Maker<'a> {
    workload: &'a Workload,
    random: Random,
    now_ms: i64,
}

impl Maker<'_> {
    fn value(&mut self) -> Vec<u8> {
        let size = self.workload.record_bytes;
        let noise = (size as f64 * self.workload.random_share) as usize;
        let mut value = Vec::with_capacity(size + 8);
        while value.len() < noise {
            value.extend_from_slice(&self.random.number().to_le_bytes());
        }
        value.truncate(noise);
        value.extend(WORD.iter().copied().cycle().take(size - noise));
        value
    }

    /// A key that belongs to the partition.
    fn key(&mut self, partition: i32) -> Option<String> {
        let (keys, partitions) = (self.workload.keys, self.workload.partitions as u64);
        (keys > 0).then(|| {
            let turns = self.random.below(keys / partitions);
            format!("key-{}", turns * partitions + partition as u64)
        })
    }

    /// Gives the batch and its records' count.
    fn batch(&mut self, partition: i32, records: usize) -> Bytes {
        let compressed = self.workload.codec == Codec::Lz4;
        let mut builder = BatchBuilder::new().attributes(if compressed { LZ4 } else { 0 });
        for _ in 0..records {
            let (key, value) = (self.key(partition), self.value());
            builder.push(self.now_ms, key.as_deref().map(str::as_bytes), Some(&value), &[]);
        }
        if !compressed {
            return builder.finish().into();
        }
        builder.finish_with_payload(&lz4(builder.payload())).into()
    }
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    let written = io::Write::write_all(&mut encoder, bytes);
    assert!(written.is_ok(), "writing to memory succeeds");
    encoder.finish().expect("finishing in memory succeeds")
}

fn request(topic: &str, batches: Vec<(i32, u32, Bytes)>) -> io::Result<Request> {
    let counts: Vec<(i32, u32)> = batches.iter().map(|(partition, count, _)| (*partition, *count)).collect();
    let bytes = batches.iter().map(|(_, _, batch)| batch.len() as u64).sum();
    let data = |(index, _, batch)| PartitionProduceData { index, records: Records::from(batch) };
    let partition_data = batches.into_iter().map(data).collect();
    let topic_data = vec![TopicProduceData { name: topic, topic_id: [0; 16], partition_data }];
    let message = ProduceRequest { transactional_id: None, acks: -1, timeout_ms: 30_000, topic_data };
    let frame = frame(1, PRODUCE_VERSION, &message)?.into();
    let records = counts.iter().map(|&(_, count)| u64::from(count)).sum();
    Ok(Request { frame, counts, records, bytes })
}

/// All requests of a workload, in the order in which they are sent, again and again.
pub fn make(workload: &Workload, topic: &str) -> io::Result<Vec<Request>> {
    let mut maker = Maker { workload, random: Random::new(7), now_ms: now_ms() };
    if workload.scattered_records > 0 { scattered(&mut maker, topic) } else { in_turns(&mut maker, topic) }
}

/// Requests of some partitions each, in turns; batches are taken from a few that were made.
fn in_turns(maker: &mut Maker<'_>, topic: &str) -> io::Result<Vec<Request>> {
    let workload = maker.workload;
    let (partitions, at_once) = (workload.partitions as usize, workload.batches_per_request());
    let records = workload.records_per_batch();
    let turn = partitions.div_ceil(at_once);
    let request_bytes = at_once * records * workload.record_bytes;
    let fit = (POOL_BYTES / request_bytes.max(1)).clamp(1, REQUESTS_MIN * turn.max(1));
    let requests = fit.div_ceil(turn) * turn;
    // With keys every partition needs batches of its own.
    let keyed = workload.keys > 0;
    let shared: Vec<Bytes> = if keyed { Vec::new() } else { (0..BATCHES).map(|_| maker.batch(0, records)).collect() };
    let mut made = Vec::with_capacity(requests);
    for number in 0..requests {
        let first = number % turn * at_once;
        let batches = (first..(first + at_once).min(partitions)).map(|partition| {
            let batch = match shared.get((number + partition) % BATCHES) {
                Some(batch) => batch.clone(),
                None => maker.batch(partition as i32, records),
            };
            (partition as i32, records as u32, batch)
        });
        made.push(request(topic, batches.collect())?);
    }
    Ok(made)
}

/// Requests of so many records, each to a random partition, as a client's accumulator would have grouped them.
fn scattered(maker: &mut Maker<'_>, topic: &str) -> io::Result<Vec<Request>> {
    let workload = maker.workload;
    let request_bytes = workload.scattered_records * (workload.record_bytes + 80);
    let requests = (POOL_BYTES / request_bytes.max(1)).clamp(REQUESTS_MIN, REQUESTS_MAX);
    let mut made = Vec::with_capacity(requests);
    for _ in 0..requests {
        let mut counts = std::collections::BTreeMap::<i32, u32>::new();
        for _ in 0..workload.scattered_records {
            *counts.entry(maker.random.below(workload.partitions as u64) as i32).or_default() += 1;
        }
        let batches = counts.into_iter().map(|(p, count)| (p, count, maker.batch(p, count as usize))).collect();
        made.push(request(topic, batches)?);
    }
    Ok(made)
}

/// One record for every partition, in requests of at most so many: what shows that all leaders are there.
pub fn one_each(workload: &Workload, topic: &str) -> io::Result<Vec<Request>> {
    const AT_ONCE: usize = 1_000;
    let mut maker = Maker { workload, random: Random::new(8), now_ms: now_ms() };
    let partitions: Vec<i32> = (0..workload.partitions).collect();
    let batches = |some: &[i32]| some.iter().map(|&p| (p, 1, maker.batch(p, 1))).collect::<Vec<_>>();
    partitions.chunks(AT_ONCE).map(batches).map(|batches| request(topic, batches)).collect()
}

fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |time| time.as_millis() as i64)
}

/// The answer to a request that must succeed wholly.
pub fn check_all(answer: &[u8], mut each: impl FnMut(i32, i64)) -> io::Result<()> {
    let mut failed = None;
    crate::answers::produced(answer, |one| match one.error {
        0 => each(one.partition, one.base_offset),
        code => failed = Some((one.partition, code)),
    })?;
    match failed {
        Some((partition, code)) => Err(invalid(format!("producing to partition {partition} failed: error {code}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "requests_tests.rs"]
mod tests;
