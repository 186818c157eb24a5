//! Fetch: whole batches from an offset, never beyond the high watermark.

use log::{LogError, ReadLimits, Slice};
use model::Offset;

use crate::error::ReplicaError;
use crate::lifecycle::Replica;

/// What one partition of a Fetch may give.
#[derive(Clone, Copy, Debug)]
pub struct FetchLimits {
    pub max_bytes: usize,
    /// Give the first batch even if it is larger than `max_bytes` (KIP-74), so that no consumer gets stuck.
    pub min_one_batch: bool,
}

/// One partition's part of a Fetch answer. Record bytes are references into the log's chunks or ranges of its files.
#[derive(Debug)]
pub struct Fetched {
    pub high_watermark: Offset,
    pub log_start_offset: Offset,
    pub slices: Vec<Slice>,
    pub bytes: usize,
}

impl Replica {
    pub async fn fetch(&self, from: Offset, limits: FetchLimits) -> Result<Fetched, ReplicaError> {
        let high_watermark = self.high_watermark();
        let log_start_offset = self.log.log_start_offset();
        let log_end_offset = self.log.log_end_offset();
        if from < log_start_offset || from > log_end_offset {
            return Err(LogError::OffsetOutOfRange { asked: from, log_start_offset, log_end_offset }.into());
        }
        let nothing = || Fetched { high_watermark, log_start_offset, slices: Vec::new(), bytes: 0 };
        if from >= high_watermark || (limits.max_bytes == 0 && !limits.min_one_batch) {
            return Ok(nothing());
        }
        let limits = ReadLimits {
            max_bytes: limits.max_bytes,
            min_one_batch: limits.min_one_batch,
            upper_bound: high_watermark,
        };
        let read = self.log.read(from, limits).await?;
        Ok(Fetched { high_watermark, log_start_offset, slices: read.slices, bytes: read.bytes })
    }

    /// Whether a fetch from `from` would find something now, or an error: either way it need not wait.
    pub fn has_news_for(&self, from: Offset) -> bool {
        from < self.high_watermark() || from < self.log.log_start_offset() || from > self.log.log_end_offset()
    }
}
