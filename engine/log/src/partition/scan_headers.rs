//! Walk of batch headers from an offset to the log's end: the replica rebuilds its producer state with it at a start.

use std::collections::VecDeque;
use std::rc::Rc;

use model::{BatchHeader, BatchView, Offset};

use super::PartitionLog;
use crate::error::LogError;
use crate::limits::IO_MAX;
use crate::scan::ReadLimits;

/// Reads a MiB at a time, so a long log does not come into memory.
#[derive(Debug)]
pub struct HeaderScan {
    log: Rc<PartitionLog>,
    next_offset: Offset,
    ready: VecDeque<BatchHeader>,
}

impl PartitionLog {
    pub fn scan_headers(&self, from: Offset) -> HeaderScan {
        let from = from.max(self.log_start_offset());
        HeaderScan { log: self.me(), next_offset: from, ready: VecDeque::new() }
    }
}

impl HeaderScan {
    /// The next batch's header; `None` at the log's end.
    pub async fn next(&mut self) -> Result<Option<BatchHeader>, LogError> {
        // A read may find nothing where compaction left a gap.
        while self.ready.is_empty() && self.next_offset < self.log.log_end_offset() {
            let before = self.next_offset;
            self.fill().await?;
            if self.next_offset == before {
                break;
            }
        }
        Ok(self.ready.pop_front())
    }

    async fn fill(&mut self) -> Result<(), LogError> {
        let limits = ReadLimits { max_bytes: IO_MAX as usize, min_one_batch: true, upper_bound: Offset(i64::MAX) };
        let read = match self.log.read(self.next_offset, limits).await {
            Ok(read) => read,
            // What the lost records said of their producers is lost with them; the rest still counts.
            Err(error) => match self.log.damage_at(self.next_offset) {
                Some(damage) => {
                    self.next_offset = damage.to_offset;
                    return Ok(());
                }
                None => return Err(error),
            },
        };
        for slice in &read.slices {
            let bytes = slice.load().await?;
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let batch = BatchView::parse(rest).map_err(|why| LogError::Io(why.to_string().into()))?;
                self.ready.push_back(batch.header);
                rest = &rest[batch.header.size()..];
            }
        }
        self.next_offset = self.next_offset.max(read.next_offset);
        Ok(())
    }
}
