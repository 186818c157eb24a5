//! The producer's settings, with Kafka's names and defaults. All times in milliseconds, all sizes in bytes.

use std::fmt;

use model::Codec;

use super::limits::{MAX_IN_FLIGHT, MAX_IN_FLIGHT_IDEMPOTENT};
use crate::ClientError;

/// Who must have a batch before it counts as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// Nobody: the broker does not even answer.
    None,
    Leader,
    /// All replicas in sync.
    All,
}

impl Acks {
    /// The number on the wire.
    pub fn code(self) -> i16 {
        match self {
            Acks::None => 0,
            Acks::Leader => 1,
            Acks::All => -1,
        }
    }
}

impl fmt::Display for Acks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Acks::None => "0",
            Acks::Leader => "1",
            Acks::All => "all",
        })
    }
}

/// Who chooses a partition for a record that names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionerKind {
    /// By the key's murmur2, as Java has it; without a key a batch's worth to one partition, then another.
    Default,
    /// One after the other, key or not.
    RoundRobin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerConfig {
    pub acks: Acks,
    /// How long a record may wait for company.
    pub linger_ms: i64,
    /// A batch's size before compression; 0: every record is a batch.
    pub batch_size: usize,
    /// Memory for batches that are not acknowledged yet.
    pub buffer_memory: usize,
    /// The batches of one request together, and so the largest record.
    pub max_request_size: usize,
    /// `max.in.flight.requests.per.connection`.
    pub max_in_flight: usize,
    /// Further attempts for a batch; `delivery_timeout_ms` ends them too.
    pub retries: u32,
    pub retry_backoff_ms: i64,
    pub retry_backoff_max_ms: i64,
    pub request_timeout_ms: i64,
    /// From `send` to the record's fate, all attempts together.
    pub delivery_timeout_ms: i64,
    /// How long `send` waits for metadata and for room.
    pub max_block_ms: i64,
    pub enable_idempotence: bool,
    /// At the codec's usual level.
    pub compression: Codec,
    pub partitioner: PartitionerKind,
}

impl Default for ProducerConfig {
    fn default() -> ProducerConfig {
        ProducerConfig {
            acks: Acks::All,
            linger_ms: 5,
            batch_size: 16_384,
            buffer_memory: 32 << 20,
            max_request_size: 1 << 20,
            max_in_flight: 5,
            retries: i32::MAX as u32,
            retry_backoff_ms: 100,
            retry_backoff_max_ms: 1_000,
            request_timeout_ms: 30_000,
            delivery_timeout_ms: 120_000,
            max_block_ms: 60_000,
            enable_idempotence: true,
            compression: Codec::None,
            partitioner: PartitionerKind::Default,
        }
    }
}

impl ProducerConfig {
    /// A batch's size before compression: no batch may be larger than a request.
    pub fn batch_limit(&self) -> usize {
        self.batch_size.min(self.max_request_size)
    }

    /// Refuses what contradicts itself, with the way out.
    pub fn check(&self) -> Result<(), ClientError> {
        self.check_ranges()?;
        let refuse = |key, reason: String| Err(ClientError::BadConfig { key, reason });
        let least = self.linger_ms + self.request_timeout_ms;
        if self.delivery_timeout_ms < least {
            return refuse(
                "delivery.timeout.ms",
                format!("must be at least linger.ms + request.timeout.ms, which is {least}"),
            );
        }
        if self.buffer_memory < self.max_request_size {
            return refuse(
                "buffer.memory",
                format!("must hold at least one request: max.request.size is {}", self.max_request_size),
            );
        }
        if self.enable_idempotence && self.acks != Acks::All {
            return refuse(
                "acks",
                format!("must be all, not {}, for an idempotent producer: or set enable.idempotence=false", self.acks),
            );
        }
        if self.enable_idempotence && self.max_in_flight > MAX_IN_FLIGHT_IDEMPOTENT {
            return refuse(
                "max.in.flight.requests.per.connection",
                format!(
                    "must be at most {MAX_IN_FLIGHT_IDEMPOTENT} for an idempotent producer: or set enable.idempotence=false"
                ),
            );
        }
        if self.enable_idempotence && self.retries == 0 {
            return refuse(
                "retries",
                "must not be 0 for an idempotent producer: or set enable.idempotence=false".to_string(),
            );
        }
        Ok(())
    }

    fn check_ranges(&self) -> Result<(), ClientError> {
        let times = [
            ("linger.ms", self.linger_ms, 0),
            ("retry.backoff.ms", self.retry_backoff_ms, 0),
            ("retry.backoff.max.ms", self.retry_backoff_max_ms, 0),
            ("request.timeout.ms", self.request_timeout_ms, 1),
            ("delivery.timeout.ms", self.delivery_timeout_ms, 1),
            ("max.block.ms", self.max_block_ms, 0),
        ];
        for (key, value, least) in times {
            if !(least..=i64::from(i32::MAX)).contains(&value) {
                let reason = format!("must be {least} to {} milliseconds, not {value}", i32::MAX);
                return Err(ClientError::BadConfig { key, reason });
            }
        }
        let sizes = [
            ("batch.size", self.batch_size, 0, i32::MAX as usize),
            ("max.request.size", self.max_request_size, 128, i32::MAX as usize / 2),
            ("buffer.memory", self.buffer_memory, 128, isize::MAX as usize),
            ("max.in.flight.requests.per.connection", self.max_in_flight, 1, MAX_IN_FLIGHT),
        ];
        for (key, value, least, most) in sizes {
            if !(least..=most).contains(&value) {
                return Err(ClientError::BadConfig { key, reason: format!("must be {least} to {most}, not {value}") });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
