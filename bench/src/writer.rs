//! A producer's connection: sends requests that were encoded before, keeps at most `in_flight` unanswered, and notes when
//! each is answered.
//!
//! With a rate it is an open loop: request number k is meant to leave at `begun + k * interval` whatever the answers do, and its
//! latency counts from there; what is still owed when the load ends counts with the time it has waited so far. Without a
//! rate the next request leaves when there is room, and its latency counts from then. Owned by its thread.

use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::drive::{ENDING, Lane, Next, Shared, WINDOWS, histogram};
use crate::link::Link;
use crate::requests::{Request, check_all};

/// Batches whose offsets one connection notes for the end-to-end latency; a run that would note more fails instead.
const SENT_MAX: usize = 16_000_000;

/// A batch of an open loop that was answered: what a reader's arrival is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub partition: i32,
    pub base_offset: i64,
    pub records: u32,
    /// Since the run's beginning.
    pub meant: Duration,
}

/// When requests are meant to leave.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub begun: Instant,
    /// Nothing: as soon as there is room.
    pub interval: Option<Duration>,
    /// Of the first request.
    pub offset: Duration,
}

impl Pace {
    fn meant(&self, number: u64) -> Option<Instant> {
        let nanos = self.interval?.as_nanos() as u64;
        Some(self.begun + self.offset + Duration::from_nanos(nanos.saturating_mul(number)))
    }
}

struct Waiting {
    request: usize,
    meant: Instant,
}

pub struct Writer {
    link: Link,
    requests: Arc<Vec<Request>>,
    next: usize,
    number: u64,
    pace: Pace,
    in_flight: usize,
    waiting: VecDeque<Waiting>,
    shared: Arc<Shared>,
    notes_offsets: bool,
    owed_counted: bool,
    pub latencies: [Histogram<u64>; WINDOWS],
    /// Next offset of each partition as far as this connection was told.
    pub ends: Vec<i64>,
    pub records: u64,
    pub bytes: u64,
    pub sent: Vec<Sent>,
}

/// What writers of a run have in common.
pub struct Plan {
    pub port: u16,
    pub partitions: usize,
    pub in_flight: usize,
    pub requests: Arc<Vec<Request>>,
    pub shared: Arc<Shared>,
    /// Offsets are noted for the end-to-end latency.
    pub notes_offsets: bool,
}

impl Writer {
    /// `first`: which of the requests it begins with.
    pub fn connect(plan: &Plan, pace: Pace, first: usize) -> io::Result<Writer> {
        Ok(Writer {
            link: Link::connect(plan.port)?,
            next: first % plan.requests.len(),
            requests: plan.requests.clone(),
            number: 0,
            pace,
            in_flight: plan.in_flight,
            waiting: VecDeque::with_capacity(plan.in_flight),
            shared: plan.shared.clone(),
            notes_offsets: plan.notes_offsets,
            owed_counted: false,
            latencies: [histogram(), histogram()],
            ends: vec![0; plan.partitions],
            records: 0,
            bytes: 0,
            sent: Vec::new(),
        })
    }

    fn answers(&mut self, now: Instant) -> io::Result<()> {
        self.link.fill()?;
        while let Some(answer) = self.link.answer() {
            let Some(waiting) = self.waiting.pop_front() else {
                return Err(io::Error::other("the broker answered what was not asked"));
            };
            let request = &self.requests[waiting.request];
            let mut place = 0;
            let (ends, sent, notes) = (&mut self.ends, &mut self.sent, self.notes_offsets);
            let meant = waiting.meant.saturating_duration_since(self.pace.begun);
            check_all(answer, |partition, base_offset| {
                // Answers come in the request's order; where not, the partition is looked for.
                let at = match request.counts.get(place) {
                    Some(&(index, _)) if index == partition => place,
                    _ => request.counts.iter().position(|&(index, _)| index == partition).unwrap_or(0),
                };
                place = at + 1;
                let records = request.counts[at].1;
                let end = &mut ends[partition as usize];
                *end = (*end).max(base_offset + i64::from(records));
                if notes {
                    sent.push(Sent { partition, base_offset, records, meant });
                }
            })?;
            // What a warm-up still owed is no part of a window.
            if let Some(window) = self.shared.window_at(waiting.meant) {
                let micros = now.saturating_duration_since(waiting.meant).as_micros() as u64;
                self.latencies[window].saturating_record_n(micros, request.records);
            }
            self.records += request.records;
            self.bytes += request.bytes;
            self.shared.produced_records.fetch_add(request.records, Ordering::Relaxed);
            self.shared.produced_bytes.fetch_add(request.bytes, Ordering::Relaxed);
            if self.sent.len() > SENT_MAX {
                return Err(io::Error::other("more batches than latencies end to end are kept for: a shorter run"));
            }
        }
        Ok(())
    }

    fn send(&mut self, now: Instant) -> io::Result<()> {
        while self.waiting.len() < self.in_flight {
            let meant = match self.pace.meant(self.number) {
                Some(meant) if meant > now => break,
                Some(meant) => meant,
                // What waits for the socket has left no room.
                None if self.link.wants_write() => break,
                None => Instant::now(),
            };
            let request = self.next;
            self.next = (self.next + 1) % self.requests.len();
            self.number += 1;
            self.waiting.push_back(Waiting { request, meant });
            let frame = self.requests[request].frame.clone();
            self.link.send(frame)?;
        }
        Ok(())
    }

    /// Requests that should have left and did not count with the time they have waited.
    fn count_owed(&mut self, now: Instant) {
        if std::mem::replace(&mut self.owed_counted, true) {
            return;
        }
        let mut number = self.number;
        while let Some(meant) = self.pace.meant(number).filter(|meant| *meant <= now) {
            let records = self.requests[(self.next + (number - self.number) as usize) % self.requests.len()].records;
            if let Some(window) = self.shared.window_at(meant) {
                self.latencies[window].saturating_record_n((now - meant).as_micros() as u64, records);
            }
            number += 1;
        }
    }
}

impl Lane for Writer {
    fn fd(&self) -> RawFd {
        self.link.fd()
    }

    fn turn(&mut self, now: Instant, readable: bool) -> io::Result<Next> {
        self.link.flush()?;
        if readable {
            self.answers(now)?;
        }
        if self.shared.phase() == ENDING {
            self.count_owed(now);
            let done = self.waiting.is_empty() && !self.link.wants_write();
            return Ok(if done { Next::Done } else { Next::Wait { writing: self.link.wants_write(), at: None } });
        }
        self.send(now)?;
        let room = self.waiting.len() < self.in_flight;
        let at = if room { self.pace.meant(self.number) } else { None };
        Ok(Next::Wait { writing: self.link.wants_write(), at })
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
