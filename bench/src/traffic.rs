//! One run of a workload against a broker that is already there: topic, preload, warm-up, windows, read-back.
//!
//! The run's thread moves the phase on and samples counters and CPU times together at the edges of the windows; threads of lanes do
//! the rest. Everything that was sent is answered before a run ends, and every record that was acknowledged has to be
//! read back where a workload reads and the contestant can: a run with other counts is a failure, not a figure.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::broker::{Broker, Kind};
use crate::client::Client;
use crate::drive::{BESIDE_READER, ENDING, Lane, Shared, WINDOW, drive};
use crate::gauge::{Cpu, drop_page_cache};
use crate::outcome::{MIB, Outcome, Sample, Volume};
use crate::reader::{self, Reader};
use crate::requests::{Request, check_all, make, one_each};
use crate::workload::{Consume, Side, Workload};
use crate::writer::{self, Pace, Writer};

pub const TOPIC: &str = "bench";
/// Between two looks at whether a window has ended; also how far it may overshoot.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);
/// Longest wait until every partition takes its first record: a leader may be named before it is ready.
const READY_LIMIT: Duration = Duration::from_secs(120);
/// Longest time for a preload, and for what runs without a bound of time: reading back.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// What a run needs.
pub struct Field<'a> {
    pub broker: &'a Broker,
    pub kind: Kind,
    pub workload: &'a Workload,
    /// CPUs for the client's threads, in turns; none: any.
    pub cpus: &'a [usize],
    /// Holds the broker's data.
    pub dir: &'a Path,
}

struct Run<'a> {
    field: &'a Field<'a>,
    topic: &'a str,
    requests: Arc<Vec<Request>>,
    /// Where the load begins, by partition.
    from: Arc<Vec<i64>>,
    outcome: Outcome,
}

pub fn run(field: &Field<'_>) -> Result<Outcome, String> {
    run_in(field, TOPIC)
}

/// The same in a topic of that name, which must not exist.
pub fn run_in(field: &Field<'_>, topic: &str) -> Result<Outcome, String> {
    let workload = field.workload;
    let requests =
        if workload.connections > 0 { make(workload, topic).map_err(|e| e.to_string())? } else { Vec::new() };
    let requests = Arc::new(requests);
    let begun = Instant::now();
    let from = Arc::new(prepare(field, topic).map_err(|e| e.to_string())?);
    let mut run = Run { field, topic, requests, from, outcome: Outcome::default() };
    run.outcome.note("create_topic_ms", begun.elapsed().as_secs_f64() * 1e3);
    let preloaded = if workload.preload_mib > 0 { Some(run.preload()?) } else { None };
    let (acknowledged, ends) = run.load(preloaded)?;
    // What the bare contestant no longer has in memory it does not read.
    if workload.consume == Consume::After && workload.connections > 0 && field.kind != Kind::Bare {
        run.read_back(acknowledged, ends)?;
    }
    Ok(run.outcome)
}

/// Makes the topic and writes a record to each partition; gives where each ends then.
fn prepare(field: &Field<'_>, topic: &str) -> std::io::Result<Vec<i64>> {
    let workload = field.workload;
    let mut client = Client::connect(field.broker.port)?;
    let synced: &[(&str, &str)] = match field.kind {
        Kind::Kafka if workload.syncs(Side::Kafka) => &[("flush.messages", "1")],
        _ => &[],
    };
    client.create_topic_with(topic, workload.partitions, synced)?;
    let mut ends = vec![0; workload.partitions as usize];
    let deadline = Instant::now() + READY_LIMIT;
    for request in one_each(workload, topic)? {
        loop {
            client.send_frame(&request.frame)?;
            match check_all(&client.receive()?, |partition, offset| ends[partition as usize] = offset + 1) {
                Ok(()) => break,
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }
    Ok(ends)
}

type Threads<L> = Vec<JoinHandle<Vec<L>>>;

/// Drives lanes on so many threads, dealt in turns.
fn launch<L: Lane + 'static>(lanes: Vec<L>, field: &Field<'_>, shared: &Arc<Shared>) -> Threads<L> {
    let threads = field.workload.client_threads.min(lanes.len()).max(1);
    let mut dealt: Vec<Vec<L>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, lane) in lanes.into_iter().enumerate() {
        dealt[number % threads].push(lane);
    }
    let start = |(number, mut lanes): (usize, Vec<L>)| {
        let shared = shared.clone();
        let cpu = field.cpus.get(number % field.cpus.len().max(1)).copied();
        std::thread::spawn(move || {
            if let Some(id) = cpu {
                core_affinity::set_for_current(core_affinity::CoreId { id });
            }
            if let Err(error) = drive(&mut lanes, &shared) {
                shared.fail(error.to_string());
            }
            lanes
        })
    };
    dealt.into_iter().enumerate().map(start).collect()
}

/// All lanes once they are done; the run's failure if it has one.
fn join<L>(threads: Threads<L>, shared: &Shared) -> Result<Vec<L>, String> {
    let mut lanes = Vec::new();
    for thread in threads {
        lanes.extend(thread.join().map_err(|_| "a thread of the client panicked")?);
    }
    shared.failure().map_or(Ok(lanes), Err)
}

/// Waits until `done`; fails with the run's failure.
fn wait_until(shared: &Shared, limit: Duration, mut done: impl FnMut() -> bool) -> Result<(), String> {
    let deadline = Instant::now() + limit;
    while !done() {
        if let Some(sentence) = shared.failure() {
            return Err(sentence);
        }
        if Instant::now() > deadline {
            return Err(format!("it was not done within {} s", limit.as_secs()));
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    Ok(())
}

fn largest(writers: &[Writer], from: &[i64]) -> Vec<i64> {
    let end = |(partition, &from): (usize, &i64)| writers.iter().map(|w| w.ends[partition]).fold(from, i64::max);
    from.iter().enumerate().map(end).collect()
}

impl Run<'_> {
    fn count(&mut self, writers: &[Writer]) {
        self.outcome.produced_records += writers.iter().map(|w| w.records).sum::<u64>();
        self.outcome.produced_bytes += writers.iter().map(|w| w.bytes).sum::<u64>();
    }

    fn sample(&self, shared: &Shared) -> Sample {
        let of = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        Sample {
            cpu: Cpu::now(self.field.broker),
            produced: (of(&shared.produced_records), of(&shared.produced_bytes)),
            fetched: (of(&shared.fetched_records), of(&shared.fetched_bytes)),
        }
    }

    fn writers(&self, shared: &Arc<Shared>, begun: Instant, paced: bool) -> Result<Vec<Writer>, String> {
        let workload = self.field.workload;
        let plan = writer::Plan {
            port: self.field.broker.port,
            partitions: workload.partitions as usize,
            in_flight: workload.in_flight,
            requests: self.requests.clone(),
            shared: shared.clone(),
            notes_offsets: paced && workload.consume == Consume::Tail,
        };
        let connections = workload.connections.max(1);
        let every = workload.records_per_request() as f64 / workload.rate.max(1) as f64;
        let pace = |number: usize| Pace {
            begun,
            interval: paced.then(|| Duration::from_secs_f64(every * connections as f64)),
            offset: if paced { Duration::from_secs_f64(every * number as f64) } else { Duration::ZERO },
        };
        let first = |number: usize| number * self.requests.len() / connections;
        let made = (0..workload.connections).map(|number| Writer::connect(&plan, pace(number), first(number)));
        made.collect::<std::io::Result<_>>().map_err(|e| e.to_string())
    }

    fn readers(&self, plan: &reader::Plan) -> Result<Vec<Reader>, String> {
        let workload = self.field.workload;
        let all = (0..workload.groups).flat_map(|_| 0..workload.consumers);
        let made = all.map(|number| Reader::connect(plan, number, workload.consumers));
        made.collect::<std::io::Result<_>>().map_err(|e| e.to_string())
    }

    fn reader_plan(&self, shared: &Arc<Shared>, from: &Arc<Vec<i64>>, begun: Instant) -> reader::Plan {
        reader::Plan {
            port: self.field.broker.port,
            topic: self.topic.to_owned(),
            shared: shared.clone(),
            begun,
            from: from.clone(),
            until: None,
            notes_arrivals: false,
        }
    }

    /// Writes what a reader behind will read, and lets the page cache forget it; gives where each partition ends then.
    fn preload(&mut self) -> Result<Arc<Vec<i64>>, String> {
        let shared = Arc::new(Shared::default());
        let threads = launch(self.writers(&shared, Instant::now(), false)?, self.field, &shared);
        let wanted = self.field.workload.preload_mib << 20;
        let enough = || shared.produced_bytes.load(Ordering::Relaxed) >= wanted;
        let waited = wait_until(&shared, PATIENCE, enough);
        shared.enter(ENDING);
        let writers = join(threads, &shared)?;
        waited?;
        self.count(&writers);
        if let Err(sentence) = drop_page_cache(self.field.dir) {
            eprintln!("bench: {sentence}");
        }
        Ok(Arc::new(largest(&writers, &self.from)))
    }

    /// The measured load; gives the records acknowledged in it and where each partition ends.
    fn load(&mut self, preloaded: Option<Arc<Vec<i64>>>) -> Result<(u64, Arc<Vec<i64>>), String> {
        let workload = self.field.workload;
        let (shared, begun) = (Arc::new(Shared::default()), Instant::now());
        let mut plan = self.reader_plan(&shared, &self.from.clone(), begun);
        plan.notes_arrivals = workload.rate > 0;
        let tail = if workload.consume == Consume::Tail { self.readers(&plan)? } else { Vec::new() };
        let tail = launch(tail, self.field, &shared);
        let writers = launch(self.writers(&shared, begun, workload.rate > 0)?, self.field, &shared);
        let windows = self.windows(&shared, plan, preloaded.as_ref());
        shared.enter(ENDING);
        let writers = join(writers, &shared)?;
        let from = preloaded.unwrap_or_else(|| self.from.clone());
        let ends = Arc::new(largest(&writers, &from));
        let _ = shared.ends.set(ends.to_vec());
        let tail = join(tail, &shared)?;
        let (window, beside) = windows?;
        let records: u64 = writers.iter().map(|w| w.records).sum();
        self.count(&writers);
        self.outcome.latencies(&writers, beside);
        self.check_tail(&tail, records)?;
        if workload.rate > 0 && workload.consume == Consume::Tail {
            self.outcome.end_to_end(&writers, tail, (window.0 - begun, window.1 - begun));
        }
        Ok((records, ends))
    }

    /// Warm-up and the windows; gives the first one's edges, and whether there was a second.
    fn windows(
        &mut self,
        shared: &Arc<Shared>,
        mut plan: reader::Plan,
        preloaded: Option<&Arc<Vec<i64>>>,
    ) -> Result<((Instant, Instant), bool), String> {
        let workload = self.field.workload;
        let until = Instant::now() + Duration::from_secs_f64(workload.warm_up_seconds);
        wait_until(shared, PATIENCE, || Instant::now() >= until)?;
        let before = self.sample(shared);
        shared.enter(WINDOW);
        let until = before.cpu.at + Duration::from_secs_f64(workload.seconds);
        let bytes = before.produced.1 + (workload.mib << 20);
        wait_until(shared, PATIENCE, || {
            let enough = workload.mib > 0 && shared.produced_bytes.load(Ordering::Relaxed) >= bytes;
            enough || Instant::now() >= until
        })?;
        let after = self.sample(shared);
        let resident = (self.field.broker.resident_mib(), self.field.broker.resident_peak_mib());
        self.outcome.window(before, after, resident);
        let edges = (before.cpu.at, after.cpu.at);
        let Some(preloaded) = preloaded else { return Ok((edges, false)) };
        shared.enter(BESIDE_READER);
        plan.until = Some(preloaded.clone());
        plan.notes_arrivals = false;
        let before = self.sample(shared);
        let readers = launch(self.readers(&plan)?, self.field, shared);
        wait_until(shared, PATIENCE, || readers.iter().all(JoinHandle::is_finished))?;
        let spent = self.sample(shared).cpu.since(before.cpu);
        let readers = join(readers, shared)?;
        let bytes: u64 = readers.iter().map(|r| r.bytes).sum();
        self.outcome.note("fetch_mib_per_s", bytes as f64 / MIB / spent.seconds);
        Ok((edges, true))
    }

    fn check_tail(&self, readers: &[Reader], acknowledged: u64) -> Result<(), String> {
        let read: u64 = readers.iter().map(|r| r.records).sum();
        let wanted = acknowledged * self.field.workload.groups as u64;
        if !readers.is_empty() && read != wanted {
            return Err(format!("{wanted} records had to come out at the tail, {read} came"));
        }
        Ok(())
    }

    /// Reads everything back from where the load began; the page cache holds what the load left in it.
    fn read_back(&mut self, acknowledged: u64, ends: Arc<Vec<i64>>) -> Result<(), String> {
        let shared = Arc::new(Shared::default());
        let mut plan = self.reader_plan(&shared, &self.from.clone(), Instant::now());
        plan.until = Some(ends);
        let readers = self.readers(&plan)?;
        let before = self.sample(&shared);
        let threads = launch(readers, self.field, &shared);
        wait_until(&shared, PATIENCE, || threads.iter().all(JoinHandle::is_finished))?;
        let after = self.sample(&shared);
        let readers = join(threads, &shared)?;
        let records: u64 = readers.iter().map(|r| r.records).sum();
        let wanted = acknowledged * self.field.workload.groups as u64;
        if records != wanted {
            return Err(format!("{wanted} records had to come out, {records} came"));
        }
        let bytes = readers.iter().map(|r| r.bytes).sum::<u64>() as f64;
        self.outcome.volume("fetch", Volume { records: records as f64, bytes }, after.cpu.since(before.cpu));
        Ok(())
    }
}
