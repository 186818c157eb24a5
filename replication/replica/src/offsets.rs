//! Offsets by time, by epoch, and the moving log start.

use log::TimeHit;
use model::{LeaderEpoch, Offset};

use crate::error::ReplicaError;
use crate::lifecycle::Replica;

/// What ListOffsets asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetQuery {
    /// -1: the high watermark.
    Latest,
    /// -2: the log start.
    Earliest,
    /// -3: the earliest record among those with the largest timestamp (KIP-734).
    MaxTimestamp,
    /// -4: the log start of this broker's disk, the same as earliest without tiered storage (KIP-405).
    EarliestLocal,
    /// The first record at or after a time in milliseconds.
    At(i64),
    /// -5 and -6: what tiered storage holds; there is none.
    Tiered,
}

/// What ListOffsets answers; -1 where there is nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    pub timestamp_ms: i64,
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
}

impl Listed {
    pub const NOTHING: Listed = Listed { timestamp_ms: -1, offset: Offset(-1), leader_epoch: LeaderEpoch::UNKNOWN };
}

impl From<Option<TimeHit>> for Listed {
    fn from(hit: Option<TimeHit>) -> Listed {
        hit.map_or(Listed::NOTHING, |hit| Listed {
            timestamp_ms: hit.timestamp_ms,
            offset: hit.offset,
            leader_epoch: hit.leader_epoch,
        })
    }
}

impl Replica {
    pub async fn list_offset(&self, query: OffsetQuery) -> Result<Listed, ReplicaError> {
        let bound = self.high_watermark();
        let at = |offset: Offset, leader_epoch| Listed { timestamp_ms: -1, offset, leader_epoch };
        Ok(match query {
            OffsetQuery::Latest => at(bound, self.leader_epoch()),
            OffsetQuery::Earliest | OffsetQuery::EarliestLocal => {
                let start = self.log.log_start_offset();
                at(start, self.log.epoch_for_offset(start).unwrap_or(self.leader_epoch()))
            }
            OffsetQuery::MaxTimestamp => self.log.max_timestamp_hit(bound).await?.into(),
            OffsetQuery::At(timestamp_ms) => self.log.offset_for_time(timestamp_ms, bound).await?.into(),
            OffsetQuery::Tiered => Listed::NOTHING,
        })
    }

    /// Where `epoch` ends (KIP-101, KIP-279): the largest epoch at or below it and its end offset; -1 and -1 when there
    /// is none.
    pub fn epoch_end(&self, epoch: LeaderEpoch) -> (LeaderEpoch, Offset) {
        if epoch == self.leader_epoch() {
            return (epoch, self.high_watermark());
        }
        self.log.epoch_end(epoch).unwrap_or((LeaderEpoch::UNKNOWN, Offset(-1)))
    }

    /// DeleteRecords (KIP-107): moves the log start, durably. -1 means up to the high watermark. Gives the new start.
    pub async fn delete_records(&self, asked: i64) -> Result<Offset, ReplicaError> {
        let high_watermark = self.high_watermark();
        let before = if asked == -1 { high_watermark } else { Offset(asked) };
        let log_start_offset = self.log.log_start_offset();
        if before.0 < 0 || before > high_watermark {
            return Err(log::LogError::OffsetOutOfRange {
                asked: before,
                log_start_offset,
                log_end_offset: high_watermark,
            }
            .into());
        }
        Ok(self.log.delete_records_before(before).await?)
    }
}
