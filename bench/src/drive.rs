//! One thread of the load generator: lanes, each with a connection, driven by readiness and by their own deadlines.
//!
//! Owned by its thread. What threads share is in [`Shared`]: counters that only grow, which the run samples together with CPU times,
//! and the phase, which only the run moves on. Budget: a wait, and what the lanes do.

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::epoll::Epoll;

/// Longest time without any answer before a run counts as failed.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);
/// Longest wait between two looks at the phase.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Longest latency that is told apart, microseconds.
const LATENCY_MAX_US: u64 = 600_000_000;

/// Where a run is. Latencies count in the two windows.
pub const WARM_UP: u8 = 0;
pub const WINDOW: u8 = 1;
pub const BESIDE_READER: u8 = 2;
pub const ENDING: u8 = 3;
/// Windows whose latencies are kept apart.
pub const WINDOWS: usize = 2;

pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(LATENCY_MAX_US, 3).expect("three digits up to ten minutes fit")
}

/// The window of a phase, if it has one.
fn window_of(phase: u8) -> Option<usize> {
    matches!(phase, WINDOW | BESIDE_READER).then(|| usize::from(phase - WINDOW))
}

/// What all threads of a run share.
#[derive(Debug, Default)]
pub struct Shared {
    phase: AtomicU8,
    /// When each phase began.
    begun: [OnceLock<Instant>; 4],
    pub produced_records: AtomicU64,
    pub produced_bytes: AtomicU64,
    pub fetched_records: AtomicU64,
    pub fetched_bytes: AtomicU64,
    /// Where each partition ends once nothing more is produced; readers at the tail end there.
    pub ends: OnceLock<Vec<i64>>,
    failure: Mutex<Option<String>>,
}

impl Shared {
    pub fn phase(&self) -> u8 {
        self.phase.load(Ordering::Relaxed)
    }

    pub fn enter(&self, phase: u8) {
        assert!(phase >= self.phase(), "phases only go on");
        let _ = self.begun[usize::from(phase)].set(Instant::now());
        self.phase.store(phase, Ordering::Relaxed);
    }

    /// The window that a moment lies in, if it lies in one.
    pub fn window_at(&self, moment: Instant) -> Option<usize> {
        let began = |phase: &u8| self.begun[usize::from(*phase)].get().is_some_and(|begun| *begun <= moment);
        [ENDING, BESIDE_READER, WINDOW].iter().find(|phase| began(phase)).and_then(|phase| window_of(*phase))
    }

    /// The first failure is the run's.
    pub fn fail(&self, sentence: String) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(sentence);
    }

    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What a lane wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Done,
    /// To be called when the socket can be read, can be written where `writing`, or at `at`.
    Wait {
        writing: bool,
        at: Option<Instant>,
    },
}

/// A connection and what it does.
pub trait Lane: Send {
    fn fd(&self) -> RawFd;

    /// Does what can be done now. `readable`: something has arrived.
    fn turn(&mut self, now: Instant, readable: bool) -> io::Result<Next>;
}

struct Seat<'a> {
    lane: &'a mut dyn Lane,
    next: Next,
    /// What the kernel was told last.
    writing: bool,
}

/// Drives lanes until all are done.
pub fn drive<L: Lane>(lanes: &mut [L], shared: &Shared) -> io::Result<()> {
    let mut epoll = Epoll::new()?;
    let mut seats = Vec::with_capacity(lanes.len());
    for (token, lane) in lanes.iter_mut().enumerate() {
        epoll.add(lane.fd(), token, false)?;
        let next = lane.turn(Instant::now(), false)?;
        seats.push(Seat { lane, next, writing: false });
    }
    let mut heard = Instant::now();
    let mut phase = shared.phase();
    loop {
        let now = Instant::now();
        let limit = settle(&epoll, &mut seats, now)?;
        let Some(limit) = limit else { return Ok(()) };
        let ready = epoll.wait(limit.min(LOOK_INTERVAL))?.to_vec();
        let now = Instant::now();
        if shared.failure().is_some() {
            return Err(io::Error::other("another connection failed"));
        }
        if !ready.is_empty() {
            heard = now;
        } else if now - heard > SILENCE_LIMIT {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the broker has been silent for a minute"));
        }
        for event in &ready {
            let seat = &mut seats[event.token];
            if seat.next != Next::Done {
                seat.next = seat.lane.turn(now, event.readable)?;
            }
        }
        let moved_on = std::mem::replace(&mut phase, shared.phase()) != phase;
        for seat in &mut seats {
            let due = matches!(seat.next, Next::Wait { at: Some(at), .. } if at <= now);
            if due || (moved_on && seat.next != Next::Done) {
                seat.next = seat.lane.turn(now, false)?;
            }
        }
    }
}

/// Tells the kernel what lanes want; gives the time until the next deadline, nothing when all are done.
fn settle(epoll: &Epoll, seats: &mut [Seat<'_>], now: Instant) -> io::Result<Option<Duration>> {
    let mut limit = None;
    for (token, seat) in seats.iter_mut().enumerate() {
        let Next::Wait { writing, at } = seat.next else { continue };
        if writing != seat.writing {
            epoll.change(seat.lane.fd(), token, writing)?;
            seat.writing = writing;
        }
        let wait = at.map_or(LOOK_INTERVAL, |at| at.saturating_duration_since(now));
        limit = Some(limit.map_or(wait, |limit: Duration| limit.min(wait)));
    }
    Ok(limit)
}
