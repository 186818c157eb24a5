//! What a journal says of its ring for metrics: how full it is, how often its files came free, and how long there was no room.
//! Plain numbers of the shard, in memory only; the clock is read where a full ring begins and ends, not for each round.

use std::cell::Cell;

/// How often and for how long the ring had no room for those who came: they waited, or went straight to their segments.
#[derive(Debug, Default)]
pub(super) struct Fullness {
    since_ns: Cell<Option<u64>>,
    times: Cell<u64>,
    total_ns: Cell<u64>,
}

impl Fullness {
    pub fn begins(&self, now_ns: impl FnOnce() -> u64) {
        if self.since_ns.get().is_none() {
            self.since_ns.set(Some(now_ns()));
            self.times.set(self.times.get() + 1);
        }
    }

    pub fn ends(&self, now_ns: impl FnOnce() -> u64) {
        if let Some(since_ns) = self.since_ns.take() {
            self.total_ns.set(self.total_ns.get() + now_ns().saturating_sub(since_ns));
        }
    }

    /// Times, and nanoseconds in all; what lasts still counts.
    pub fn so_far(&self, now_ns: u64) -> (u64, u64) {
        let lasts = self.since_ns.get().map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
        (self.times.get(), self.total_ns.get() + lasts)
    }
}

/// A ring as it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingStats {
    /// Bytes of its files.
    pub capacity_bytes: u64,
    /// Bytes of rounds in files that are still needed: what a start would read and apply.
    pub fill_bytes: u64,
    /// Times that a file came free.
    pub recycles: u64,
    /// Times that there was no room, and nanoseconds in all.
    pub full: u64,
    pub full_ns: u64,
}

impl RingStats {
    #[must_use]
    pub fn plus(self, other: RingStats) -> RingStats {
        RingStats {
            capacity_bytes: self.capacity_bytes + other.capacity_bytes,
            fill_bytes: self.fill_bytes + other.fill_bytes,
            recycles: self.recycles + other.recycles,
            full: self.full + other.full,
            full_ns: self.full_ns + other.full_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_ring_counts_once_until_there_is_room() {
        let fullness = Fullness::default();
        fullness.ends(|| unreachable!("the clock is read for an end alone"));
        fullness.begins(|| 100);
        fullness.begins(|| unreachable!("it is full already"));
        assert_eq!(fullness.so_far(150), (1, 50));
        fullness.ends(|| 170);
        fullness.begins(|| 200);
        assert_eq!(fullness.so_far(201), (2, 71));
    }
}
