//! Which partition a record goes to when it names none.
//!
//! With a key: Java's murmur2 of it over all partitions, so that a key stays where other clients put it. Without: a
//! batch's worth to one partition, then another, among those that have a leader (KIP-794, without its weights by
//! queue length). One [`Chooser`] per topic; randomness comes from the producer's seeded [`Random`].

use super::config::PartitionerKind;

const SEED: u32 = 0x9747_b28c;
const M: u32 = 0x5bd1_e995;
const R: u32 = 24;

/// MurmurHash2 as Kafka's Java clients have it.
pub fn murmur2(bytes: &[u8]) -> u32 {
    let mut h = SEED ^ bytes.len() as u32;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> R;
        h = h.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !rest.is_empty() {
        for (at, byte) in rest.iter().enumerate() {
            h ^= u32::from(*byte) << (8 * at);
        }
        h = h.wrapping_mul(M);
    }
    h ^= h >> 13;
    h = h.wrapping_mul(M);
    h ^ (h >> 15)
}

/// The partition of a key. `partitions` is not zero.
pub fn partition_of_key(key: &[u8], partitions: usize) -> i32 {
    assert!(partitions > 0, "a topic has partitions");
    // The sign bit is masked, not negated: that is what Java's clients do.
    ((murmur2(key) & 0x7fff_ffff) as usize % partitions) as i32
}

/// xorshift64*: spreads load, guards nothing.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// 0 to `bound - 1`; `bound` is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "nothing to choose from");
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

/// What one topic's choice remembers.
#[derive(Clone, Debug, Default)]
pub struct Chooser {
    sticky: Option<i32>,
    sticky_bytes: usize,
    turn: usize,
}

impl Chooser {
    /// The partition for a record. `available`: partitions with a leader, ascending; none means that any will do.
    pub fn choose(
        &mut self,
        kind: PartitionerKind,
        key: Option<&[u8]>,
        partitions: usize,
        available: &[i32],
        random: &mut Random,
    ) -> i32 {
        assert!(partitions > 0, "a topic has partitions");
        match (kind, key) {
            (PartitionerKind::RoundRobin, _) => {
                self.turn = self.turn.wrapping_add(1);
                if available.is_empty() {
                    (self.turn % partitions) as i32
                } else {
                    available[self.turn % available.len()]
                }
            }
            (PartitionerKind::Default, Some(key)) => partition_of_key(key, partitions),
            (PartitionerKind::Default, None) => match self.sticky {
                Some(partition) => partition,
                None => self.stick(partitions, available, random),
            },
        }
    }

    fn stick(&mut self, partitions: usize, available: &[i32], random: &mut Random) -> i32 {
        let partition = if available.is_empty() {
            random.below(partitions) as i32
        } else {
            available[random.below(available.len())]
        };
        self.sticky = Some(partition);
        self.sticky_bytes = 0;
        partition
    }

    /// Counts what went to the sticky partition. It is left at the end of a batch once `batch_size` bytes went there;
    /// with small batches (linger) at twice that at the latest.
    pub fn sent(&mut self, partition: i32, bytes: usize, batch_size: usize, batch_ended: bool) {
        if self.sticky != Some(partition) {
            return;
        }
        self.sticky_bytes += bytes;
        let enough = self.sticky_bytes >= batch_size;
        if (enough && batch_ended) || self.sticky_bytes >= 2 * batch_size {
            self.sticky = None;
        }
    }

    /// The cluster changed: leaves a partition that has no leader any more.
    pub fn cluster_changed(&mut self, partitions: usize, available: &[i32]) {
        let Some(partition) = self.sticky else { return };
        let gone = partition as usize >= partitions;
        let leaderless = !available.is_empty() && available.binary_search(&partition).is_err();
        if gone || leaderless {
            self.sticky = None;
        }
    }
}

#[cfg(test)]
#[path = "partitioner_tests.rs"]
mod tests;
