//! Produce: judge, place, remember; and waiting for what `acks` asks for.
//!
//! Budget: one copy of the batch (into the log's chunk), no allocation besides what the log and the producer table need.

use std::rc::Rc;

use log::{Patch, Timestamps};
use model::config::TimestampType;
use model::{BatchHeader, Offset};
use runtime::{clock, sync};

use crate::error::ReplicaError;
use crate::lifecycle::Replica;
use crate::producers::Sequence;
use crate::snapshot;
use crate::validate::{Refused, TimestampPatch, validate};

/// Where a batch lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    pub base_offset: Offset,
    /// Wait for this end before answering.
    pub next_offset: Offset,
    /// The broker's timestamp where `message.timestamp.type` is LogAppendTime, else -1.
    pub log_append_time_ms: i64,
}

/// Why a batch was not placed.
#[derive(Clone, Debug)]
pub enum ProduceError {
    Refused(Refused),
    Failed(ReplicaError),
}

impl From<Refused> for ProduceError {
    fn from(refused: Refused) -> ProduceError {
        ProduceError::Refused(refused)
    }
}

impl From<ReplicaError> for ProduceError {
    fn from(error: ReplicaError) -> ProduceError {
        ProduceError::Failed(error)
    }
}

impl Replica {
    /// A client's batch. Never waits: when it returns, the batch's place is fixed and the next one may come.
    pub fn produce(self: &Rc<Self>, batch: &[u8], wall_ms: i64) -> Result<Placed, ProduceError> {
        let checked = validate(batch, &self.config.get(), wall_ms)?;
        match self.producers.check(&checked.header)? {
            Sequence::Next => {}
            Sequence::Duplicate(seen) => {
                let by_broker = self.config.get().message_timestamp_type == TimestampType::LogAppendTime;
                return Ok(Placed {
                    base_offset: seen.first_offset,
                    next_offset: seen.last_offset.plus(1),
                    log_append_time_ms: if by_broker { seen.timestamp_ms } else { -1 },
                });
            }
        }
        let log_append_time_ms = match checked.patch {
            TimestampPatch::LogAppendTime(ms) => ms,
            _ => -1,
        };
        let placed = self.place(batch, &checked.header, checked.max_timestamp_ms(), checked.patch)?;
        Ok(Placed { log_append_time_ms, ..placed })
    }

    /// A batch of the broker's own (internal topics): built here, so not validated again.
    pub fn append_own(self: &Rc<Self>, batch: &[u8]) -> Result<Placed, ReplicaError> {
        let header = BatchHeader::parse(batch)
            .map_err(|_| log::LogError::BadBatch("the broker built a batch without header"))?;
        self.place(batch, &header, header.max_timestamp_ms, TimestampPatch::Keep)
    }

    fn place(
        self: &Rc<Self>,
        batch: &[u8],
        header: &BatchHeader,
        max_timestamp_ms: i64,
        timestamps: TimestampPatch,
    ) -> Result<Placed, ReplicaError> {
        self.offer_snapshot();
        let timestamps = match timestamps {
            TimestampPatch::Keep => Timestamps::Keep,
            TimestampPatch::MaxTimestamp(ms) => Timestamps::SetMax(ms),
            TimestampPatch::LogAppendTime(ms) => Timestamps::LogAppendTime(ms),
        };
        let patch = Patch::leader(self.leader_epoch.get()).with_timestamps(timestamps);
        let appended = self.log.append(batch, patch)?;
        let mut remembered = *header;
        remembered.max_timestamp_ms = max_timestamp_ms;
        self.producers.remember(&remembered, appended.base_offset, clock::wall_ms());
        Ok(Placed { base_offset: appended.base_offset, next_offset: appended.next_offset, log_append_time_ms: -1 })
    }

    /// Hands the log a producer snapshot if it wants one. The table describes the log up to its end, and between asking and
    /// encoding nothing is appended.
    fn offer_snapshot(self: &Rc<Self>) {
        let Some(state_offset) = self.log.take_snapshot_wish() else { return };
        let bytes = snapshot::encode(&self.producers);
        let log = self.log.clone();
        let topic = self.topic.clone();
        runtime::spawn("producer snapshot", async move {
            // Without it the next start reads more of the log; nothing is lost.
            if let Err(error) = log.put_producer_snapshot(state_offset, bytes).await {
                eprintln!("ringlog: producer snapshot of {topic}-{} failed: {error}", log.key().partition);
            }
        });
    }

    /// `acks=all`: resolves when the high watermark has passed the batch.
    pub async fn committed(&self, next_offset: Offset, deadline_ms: i64) -> Result<(), ReplicaError> {
        if self.high_watermark() >= next_offset {
            return Ok(());
        }
        before_deadline(deadline_ms, self.log.wait_durable(next_offset)).await
    }

    /// `acks=1`: resolves when the batch was handed to the device, so that it survives the process.
    pub async fn written(&self, next_offset: Offset, deadline_ms: i64) -> Result<(), ReplicaError> {
        if self.log.written_end() >= next_offset {
            return Ok(());
        }
        before_deadline(deadline_ms, self.log.wait_written(next_offset)).await
    }
}

async fn before_deadline(
    deadline_ms: i64,
    wait: impl Future<Output = Result<(), log::LogError>>,
) -> Result<(), ReplicaError> {
    match sync::before(deadline_ms, wait).await {
        Some(result) => result.map_err(ReplicaError::from),
        None => Err(ReplicaError::TimedOut),
    }
}
