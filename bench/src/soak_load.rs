//! The soak's traffic: an open loop of Produce requests at intended times, whatever the answers do, and a reader at the
//! tail. Latency is from the time at which a request was meant to leave until its answer is there.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hdrhistogram::Histogram;
use model::builder::BatchBuilder;
use wire::generated::fetch::{FetchPartition, FetchTopic};
use wire::generated::produce::{PartitionProduceData, TopicProduceData};
use wire::generated::{FetchRequest, FetchResponse, ProduceRequest};
use wire::{Decode, Reader, Records};

use crate::client::{Client, FETCH_VERSION, PRODUCE_VERSION, check_produced, invalid};
use crate::drive::histogram;

/// Between two requests of a topic.
pub const TICK: Duration = Duration::from_millis(10);
/// Requests whose answers are awaited; the sender waits beyond it, which its latencies then show.
const IN_FLIGHT: usize = 4_096;

/// One topic's load.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub topic: &'static str,
    pub partitions: i32,
    pub records_per_second: u32,
    pub record_bytes: usize,
    /// Records have one of so many keys; 0: none.
    pub keys: u64,
}

/// What was measured since it was last taken.
#[derive(Debug)]
pub struct Meter {
    latencies: Mutex<Histogram<u64>>,
    pub records: AtomicU64,
}

impl Meter {
    pub fn new() -> Arc<Meter> {
        Arc::new(Meter { latencies: Mutex::new(histogram()), records: AtomicU64::new(0) })
    }

    fn note(&self, latency: Duration, records: u64) {
        let mut latencies = self.latencies.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        latencies.saturating_record(latency.as_micros() as u64);
        self.records.fetch_add(records, Ordering::Relaxed);
    }

    pub fn take(&self) -> (Histogram<u64>, u64) {
        let mut latencies = self.latencies.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        (std::mem::replace(&mut *latencies, histogram()), self.records.swap(0, Ordering::Relaxed))
    }
}

/// A thread that ends when told to; its error is the load's.
pub type Worker = JoinHandle<io::Result<()>>;

/// Starts a stream: one thread sends, one reads answers.
pub fn produce(port: u16, stream: Stream, meter: &Arc<Meter>, stop: &Arc<AtomicBool>) -> io::Result<[Worker; 2]> {
    let (sender, receiver) = Client::connect(port)?.split()?;
    let (sent, awaited) = sync_channel(IN_FLIGHT);
    let stop = stop.clone();
    let meter = meter.clone();
    Ok([
        std::thread::spawn(move || send(sender, &Maker::new(stream), &sent, &stop)),
        std::thread::spawn(move || answers(receiver, &awaited, &meter)),
    ])
}

fn send(mut client: Client, load: &Maker, sent: &SyncSender<(Instant, u64)>, stop: &AtomicBool) -> io::Result<()> {
    let begun = Instant::now();
    let mut made = 0;
    for tick in 1u32.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let meant = begun + TICK * tick;
        std::thread::sleep(meant.saturating_duration_since(Instant::now()));
        let wanted = (meant - begun).as_secs_f64() * f64::from(load.stream.records_per_second);
        let count = (wanted as u64).saturating_sub(made);
        if count == 0 {
            continue;
        }
        let request = load.request(made, count);
        made += count;
        if sent.send((meant, count)).is_err() {
            break;
        }
        client.send(PRODUCE_VERSION, &request)?;
    }
    Ok(())
}

/// Ends with the sender, once everything that was sent is answered.
fn answers(mut client: Client, awaited: &Receiver<(Instant, u64)>, meter: &Meter) -> io::Result<()> {
    while let Ok((meant, records)) = awaited.recv() {
        check_produced(&client.receive()?)?;
        meter.note(meant.elapsed(), records);
    }
    Ok(())
}

/// Makes a stream's requests.
struct Maker {
    stream: Stream,
    /// Bytes that do not compress, a slice for each record.
    noise: Vec<u8>,
}

impl Maker {
    fn new(stream: Stream) -> Maker {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let byte = |_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as u8
        };
        Maker { stream, noise: (0..stream.record_bytes + 4_096).map(byte).collect() }
    }

    /// Records `first` to `first + count`, dealt to partitions in turn.
    fn request(&self, first: u64, count: u64) -> ProduceRequest<'static> {
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64);
        let partitions = self.stream.partitions as u64;
        let mut batches: Vec<BatchBuilder> = (0..partitions).map(|_| BatchBuilder::new()).collect();
        for number in first..first + count {
            let at = (number % 4_096) as usize;
            let value = &self.noise[at..at + self.stream.record_bytes];
            let key = (self.stream.keys > 0).then(|| format!("key-{}", number.wrapping_mul(7_919) % self.stream.keys));
            batches[(number % partitions) as usize].push(now_ms, key.as_deref().map(str::as_bytes), Some(value), &[]);
        }
        let data = |(index, batch): (usize, BatchBuilder)| PartitionProduceData {
            index: index as i32,
            records: Records::from(Bytes::from(batch.finish())),
        };
        let partition_data = batches.into_iter().enumerate().filter(|(_, b)| !b.is_empty()).map(data).collect();
        let topic = TopicProduceData { name: self.stream.topic, topic_id: [0; 16], partition_data };
        ProduceRequest { transactional_id: None, acks: -1, timeout_ms: 60_000, topic_data: vec![topic] }
    }
}

/// Reads a stream's topic at its tail, in a thread of its own.
pub fn consume(port: u16, stream: Stream, stop: &Arc<AtomicBool>) -> io::Result<Worker> {
    let mut client = Client::connect(port)?;
    let stop = stop.clone();
    Ok(std::thread::spawn(move || {
        let mut offsets = vec![0i64; stream.partitions as usize];
        while !stop.load(Ordering::Relaxed) {
            fetch(&mut client, stream.topic, &mut offsets)?;
        }
        Ok(())
    }))
}

fn fetch(client: &mut Client, topic: &'static str, offsets: &mut [i64]) -> io::Result<()> {
    let partition = |(index, &fetch_offset): (usize, &i64)| FetchPartition {
        partition: index as i32,
        fetch_offset,
        partition_max_bytes: 1 << 20,
        ..FetchPartition::default()
    };
    let partitions = offsets.iter().enumerate().map(partition).collect();
    let request = FetchRequest {
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: 16 << 20,
        topics: vec![FetchTopic { topic, topic_id: [0; 16], partitions }],
        ..FetchRequest::default()
    };
    client.send(FETCH_VERSION, &request)?;
    let answer = client.receive()?;
    let response = FetchResponse::decode(&mut Reader::new(&answer), FETCH_VERSION).map_err(invalid)?;
    for data in response.responses.iter().flat_map(|t| &t.partitions) {
        let offset = &mut offsets[data.partition_index as usize];
        match data.error_code {
            0 => *offset = crate::client::count(&data.records)?.2.unwrap_or(*offset),
            // Retention passed it: the reader was held up.
            1 => *offset = data.log_start_offset.max(0),
            code => return Err(invalid(format!("fetch failed: error {code}"))),
        }
    }
    Ok(())
}
