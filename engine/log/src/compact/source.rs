//! Reads a closed segment from one end to the other for a cleaning: whole batches, a bounded piece at a time, past the page
//! cache, with a file of its own, so that neither the page cache nor the table of open files forgets what readers need.

use bytes::Bytes;
use model::batch::HEADER_LEN;
use model::{BatchHeader, Offset};
use runtime::{DirectFile, OpenMode};

use crate::error::LogError;
use crate::format::names::FileKind;
use crate::limits::MAX_BATCH;
use crate::partition::PartitionLog;
use crate::partition::segments::SegmentRef;
use crate::segment::path;

/// Whole batches of a segment.
pub(crate) struct Piece {
    pub position: u64,
    pub bytes: Bytes,
    /// The segment ends here.
    pub is_last: bool,
}

pub(crate) struct Source {
    file: DirectFile,
    segment: SegmentRef,
    position: u64,
    /// The next batch begins here or later.
    next_offset: Offset,
    piece_bytes: usize,
}

impl Source {
    pub async fn open(log: &PartitionLog, segment: SegmentRef, piece_bytes: usize) -> Result<Source, LogError> {
        let path = path(log.dir(), segment.base_offset, FileKind::Log);
        let file = DirectFile::open(&path, OpenMode::Read).await?;
        Ok(Source { file, segment, position: 0, next_offset: segment.base_offset, piece_bytes })
    }

    /// `None` at the end.
    pub async fn next(&mut self, log: &PartitionLog) -> Result<Option<Piece>, LogError> {
        let position = self.position;
        let left = self.segment.size - position;
        if left == 0 {
            return Ok(None);
        }
        let mut len = (self.piece_bytes as u64).min(left) as usize;
        loop {
            let read = self.file.read_pooled(position, len, &log.shard.config.pool);
            let bytes = log.shard.device.read(len, read).await?;
            let damaged =
                |at: usize, why: &str| log.corrupt(self.segment.base_offset, position + at as u64, why.into());
            if bytes.len() < len {
                return Err(damaged(bytes.len(), "the file is shorter than its log"));
            }
            let (whole, next_offset) = self.whole_batches(&bytes).map_err(|(at, why)| damaged(at, &why))?;
            if whole > 0 {
                self.position += whole as u64;
                self.next_offset = next_offset;
                let is_last = self.position == self.segment.size;
                return Ok(Some(Piece { position, bytes: bytes.slice(0..whole), is_last }));
            }
            let need = BatchHeader::parse(&bytes).map_or(HEADER_LEN, |header| header.size());
            if need <= len || need as u64 > left || need > MAX_BATCH {
                return Err(damaged(0, "a batch leads beyond the end of the segment"));
            }
            len = need;
        }
    }

    /// How many bytes are whole batches, with offsets that may be there, and where the next one has to begin.
    fn whole_batches(&self, bytes: &[u8]) -> Result<(usize, Offset), (usize, String)> {
        let (mut at, mut next_offset) = (0, self.next_offset);
        while bytes.len() - at >= HEADER_LEN {
            let header = BatchHeader::parse(&bytes[at..]).map_err(|why| (at, why.to_string()))?;
            if header.base_offset < next_offset
                || header.base_offset >= self.segment.next_offset
                || header.last_offset_delta < 0
                || header.next_offset() > self.segment.next_offset
            {
                return Err((at, format!("its offset {} cannot be there", header.base_offset)));
            }
            if header.size() > bytes.len() - at {
                break;
            }
            at += header.size();
            next_offset = header.next_offset();
        }
        Ok((at, next_offset))
    }

    pub async fn close(self) {
        // Nothing was written through it.
        let _ = self.file.close().await;
    }
}
