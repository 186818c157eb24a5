//! A consumer's connection: a fetch session over its share of the partitions, one request under way, as Kafka's clients do.
//!
//! It ends when all its partitions were read to their ends: given at once, or by the run when producers have ended. Nothing of
//! records is looked at but the batches' headers. Owned by its thread.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use wire::generated::FetchRequest;
use wire::generated::fetch::{FetchPartition, FetchTopic};

use crate::answers::{Batches, FETCH_VERSION, batches, fetched};
use crate::client::{frame, invalid};
use crate::drive::{ENDING, Lane, Next, Shared};
use crate::link::Link;

/// Defaults of Kafka's consumers.
const MAX_WAIT_MS: i32 = 500;
const MAX_BYTES: i32 = 50 << 20;
const PARTITION_MAX_BYTES: i32 = 1 << 20;
/// A broker may forget a session; everything is asked for anew then.
const FETCH_SESSION_ID_NOT_FOUND: i16 = 70;
const INVALID_FETCH_SESSION_EPOCH: i16 = 71;

/// A fetch brought a partition up to an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub partition: i32,
    pub next_offset: i64,
    /// Since the run's beginning.
    pub at: Duration,
}

/// What readers of a run have in common.
#[derive(Clone)]
pub struct Plan {
    pub port: u16,
    pub topic: String,
    pub shared: Arc<Shared>,
    pub begun: Instant,
    /// Where to begin, by partition.
    pub from: Arc<Vec<i64>>,
    /// Where to end, by partition; nothing: where `Shared::ends` says, once it does.
    pub until: Option<Arc<Vec<i64>>>,
    pub notes_arrivals: bool,
}

pub struct Reader {
    link: Link,
    plan: Plan,
    partitions: Vec<i32>,
    offsets: Vec<i64>,
    session: (i32, i32),
    /// Partitions whose place the broker's session does not know yet.
    changed: BTreeSet<i32>,
    asked: bool,
    pub records: u64,
    pub bytes: u64,
    pub polls: u64,
    pub arrivals: Vec<Arrival>,
}

impl Reader {
    /// Reads every `of`-th partition from `number` on.
    pub fn connect(plan: &Plan, number: usize, of: usize) -> io::Result<Reader> {
        let partitions: Vec<i32> = (0..plan.from.len()).filter(|p| p % of == number).map(|p| p as i32).collect();
        Ok(Reader {
            link: Link::connect(plan.port)?,
            offsets: plan.from.to_vec(),
            changed: partitions.iter().copied().collect(),
            partitions,
            plan: plan.clone(),
            session: (0, 0),
            asked: false,
            records: 0,
            bytes: 0,
            polls: 0,
            arrivals: Vec::new(),
        })
    }

    fn ask(&mut self) -> io::Result<()> {
        let (session_id, session_epoch) = self.session;
        let partition = |&partition: &i32| FetchPartition {
            partition,
            fetch_offset: self.offsets[partition as usize],
            partition_max_bytes: PARTITION_MAX_BYTES,
            ..FetchPartition::default()
        };
        let partitions: Vec<_> = self.changed.iter().map(partition).collect();
        let topic = FetchTopic { topic: &self.plan.topic, topic_id: [0; 16], partitions };
        let request = FetchRequest {
            max_wait_ms: MAX_WAIT_MS,
            min_bytes: 1,
            max_bytes: MAX_BYTES,
            session_id,
            session_epoch,
            topics: if self.changed.is_empty() { Vec::new() } else { vec![topic] },
            ..FetchRequest::default()
        };
        let frame = frame(2, FETCH_VERSION, &request)?;
        self.changed.clear();
        self.asked = true;
        self.link.send(frame.into())
    }

    fn answers(&mut self, now: Instant) -> io::Result<()> {
        self.link.fill()?;
        let Some(answer) = self.link.answer() else { return Ok(()) };
        let at = now.saturating_duration_since(self.plan.begun);
        let (offsets, changed, arrivals) = (&mut self.offsets, &mut self.changed, &mut self.arrivals);
        let (mut sum, mut refused) = (Batches::default(), None);
        let notes = self.plan.notes_arrivals;
        let (error, session_id) = fetched(answer, |one| {
            if one.error != 0 {
                refused = Some((one.partition, one.error));
                return;
            }
            let found = batches(one.records);
            sum.records += found.records;
            sum.bytes += found.bytes;
            if let Some(next) = found.next_offset {
                offsets[one.partition as usize] = next;
                changed.insert(one.partition);
                if notes {
                    arrivals.push(Arrival { partition: one.partition, next_offset: next, at });
                }
            }
        })?;
        self.asked = false;
        if error == FETCH_SESSION_ID_NOT_FOUND || error == INVALID_FETCH_SESSION_EPOCH {
            self.keep_session(0);
            return Ok(());
        }
        if let Some((partition, code)) = refused {
            return Err(invalid(format!("fetching partition {partition} failed: error {code}")));
        }
        if error != 0 {
            return Err(invalid(format!("a fetch failed: error {error}")));
        }
        self.polls += 1;
        self.records += sum.records;
        self.bytes += sum.bytes;
        self.plan.shared.fetched_records.fetch_add(sum.records, Ordering::Relaxed);
        self.plan.shared.fetched_bytes.fetch_add(sum.bytes, Ordering::Relaxed);
        self.keep_session(session_id);
        Ok(())
    }

    /// A broker without a session for us gets everything each time.
    fn keep_session(&mut self, session_id: i32) {
        if session_id == 0 {
            self.session = (0, 0);
            self.changed = self.partitions.iter().copied().collect();
        } else {
            self.session = (session_id, self.session.1 + 1);
        }
    }

    fn at_end(&self) -> bool {
        let Some(ends) = self.plan.until.as_deref().or_else(|| self.plan.shared.ends.get()) else { return false };
        self.partitions.iter().all(|&partition| self.offsets[partition as usize] >= ends[partition as usize])
    }
}

impl Lane for Reader {
    fn fd(&self) -> RawFd {
        self.link.fd()
    }

    fn turn(&mut self, now: Instant, readable: bool) -> io::Result<Next> {
        self.link.flush()?;
        if readable {
            self.answers(now)?;
        }
        if self.at_end() {
            return Ok(Next::Done);
        }
        if !self.asked {
            self.ask()?;
        }
        // The ends may be told while a long poll is under way.
        let at = (self.plan.shared.phase() == ENDING).then(|| now + Duration::from_millis(5));
        Ok(Next::Wait { writing: self.link.wants_write(), at })
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
