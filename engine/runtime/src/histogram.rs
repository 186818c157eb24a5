//! How long things took: a histogram with fixed buckets, kept while serving and read now and then for metrics.
//!
//! Owned by one shard; never `Send`. Budget: recording is a few comparisons and two stores, no clock is read here. What
//! crosses to another thread is the copy that [`Histogram::snapshot`] makes. It lives in memory only: a process begins anew.

use std::cell::Cell;

/// Upper ends of the buckets, nanoseconds: from a fast drive's sync to what a client gives up on.
pub const BOUNDS_NS: [u64; 18] = [
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];
/// One more than bounds: the last bucket has no end.
const BUCKETS: usize = BOUNDS_NS.len() + 1;

/// See the module.
#[derive(Debug, Default)]
pub struct Histogram {
    counts: [Cell<u64>; BUCKETS],
    sum_ns: Cell<u64>,
}

impl Histogram {
    /// Counts one that took `took_ns`.
    #[inline]
    pub fn record(&self, took_ns: u64) {
        let bucket = BOUNDS_NS.iter().position(|bound| took_ns <= *bound).unwrap_or(BUCKETS - 1);
        let count = &self.counts[bucket];
        count.set(count.get() + 1);
        self.sum_ns.set(self.sum_ns.get().saturating_add(took_ns));
    }

    pub fn snapshot(&self) -> Latencies {
        Latencies { counts: std::array::from_fn(|bucket| self.counts[bucket].get()), sum_ns: self.sum_ns.get() }
    }
}

/// What a histogram had counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// By bucket: those up to each of [`BOUNDS_NS`] and above the one before, then those above all of them.
    pub counts: [u64; BUCKETS],
    pub sum_ns: u64,
}

impl Latencies {
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Latencies) -> Latencies {
        Latencies {
            counts: std::array::from_fn(|bucket| self.counts[bucket] + other.counts[bucket]),
            sum_ns: self.sum_ns.saturating_add(other.sum_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_goes_to_the_first_bucket_that_holds_it() {
        let histogram = Histogram::default();
        for ns in [0, 25_000, 25_001, 10_000_000_000, 10_000_000_001, u64::MAX] {
            histogram.record(ns);
        }
        let seen = histogram.snapshot();
        assert_eq!((seen.counts[0], seen.counts[1], seen.counts[17], seen.counts[18]), (2, 1, 1, 2));
        assert_eq!((seen.count(), seen.sum_ns), (6, u64::MAX));
    }

    #[test]
    fn sums_are_taken_bucket_by_bucket() {
        let (a, b) = (Histogram::default(), Histogram::default());
        a.record(60_000);
        b.record(60_000);
        b.record(2_000_000);
        let both = a.snapshot().plus(b.snapshot());
        assert_eq!((both.counts[2], both.counts[6], both.count(), both.sum_ns), (2, 1, 3, 2_120_000));
    }
}
