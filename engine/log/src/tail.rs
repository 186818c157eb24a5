//! The tail of a partition: a row of ref-counted chunks that the append way fills and the fetch way serves from. The
//! row is contiguous in offsets and ends at the log end; an idle partition has none.
//!
//! Owned by the partition. A chunk belongs to one segment. Its memory offset agrees with the file position modulo a
//! block, so that whole blocks are aligned in both.

use std::collections::VecDeque;

use bytes::Bytes;
use model::{BatchHeader, Offset};
use runtime::Chunk;

use crate::limits::BLOCK;

#[derive(Debug)]
pub(crate) struct TailChunk {
    pub id: u64,
    pub segment_base: Offset,
    /// File position of the first byte, and the unused bytes before it in memory.
    pub start: u64,
    pad: usize,
    pub first_offset: Offset,
    pub chunk: Chunk,
}

impl TailChunk {
    pub fn new(id: u64, segment_base: Offset, start: u64, first_offset: Offset, mut chunk: Chunk) -> TailChunk {
        let pad = (start % BLOCK) as usize;
        chunk.append(&[0; BLOCK as usize][..pad]);
        TailChunk { id, segment_base, start, pad, first_offset, chunk }
    }

    pub fn end(&self) -> u64 {
        self.start + (self.chunk.len() - self.pad) as u64
    }

    /// Bytes of the file range, which must lie within the chunk.
    pub fn slice(&self, from: u64, to: u64) -> Bytes {
        assert!(self.start <= from && from <= to && to <= self.end(), "a slice lies within its chunk");
        let at = |position: u64| (position - self.start) as usize + self.pad;
        self.chunk.slice(at(from)..at(to))
    }

    /// Everything in it, borrowed.
    pub fn bytes(&self) -> &[u8] {
        &self.chunk.published()[self.pad..]
    }
}

/// What the committer is to write, or what it has to read first.
#[derive(Debug)]
pub(crate) enum Parts {
    Ready(Vec<Bytes>),
    /// The block that the range begins in started before the row: these bytes have to come from the file.
    NeedHead {
        position: u64,
        len: usize,
    },
}

#[derive(Debug, Default)]
pub(crate) struct Tail {
    pub chunks: VecDeque<TailChunk>,
    /// Bytes before the first chunk of a segment, from a block's start: kept from the chunk that held them, or read back
    /// from the file.
    head: Option<(Offset, u64, Bytes)>,
}

impl Tail {
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.head.is_none()
    }

    pub fn first_offset(&self) -> Option<Offset> {
        self.chunks.front().map(|c| c.first_offset)
    }

    /// The chunk that holds `offset`. The caller checked that the row does.
    pub fn index_of(&self, offset: Offset) -> usize {
        self.chunks.partition_point(|c| c.first_offset <= offset).saturating_sub(1)
    }

    pub fn set_head(&mut self, segment_base: Offset, position: u64, bytes: Bytes) {
        self.head = Some((segment_base, position, bytes));
    }

    /// Gives the first chunk's memory back. `written` is how far its segment is, if that is still open: when the next
    /// write begins in a block that the chunk holds, that part (less than a block) is kept, so that it is not read back.
    pub fn pop_front(&mut self, written: Option<u64>) -> usize {
        let Some(chunk) = self.chunks.pop_front() else { return 0 };
        let block = written.map(|written| written / BLOCK * BLOCK);
        if let Some(block) = block.filter(|block| (chunk.start..chunk.end()).contains(block)) {
            let rest = Bytes::copy_from_slice(&chunk.slice(block, chunk.end()));
            self.set_head(chunk.segment_base, block, rest);
        }
        chunk.chunk.capacity()
    }

    pub fn clear(&mut self) -> usize {
        let bytes = self.chunks.iter().map(|c| c.chunk.capacity()).sum();
        *self = Tail::default();
        bytes
    }

    /// Whether the row reaches to this position of a segment.
    pub fn reaches(&self, segment_base: Offset, position: u64) -> bool {
        self.chunks.iter().any(|c| c.segment_base == segment_base && c.end() >= position)
    }

    /// Slices that cover the file range `from..to` of a segment. `to` lies within the row.
    pub fn parts(&self, segment_base: Offset, from: u64, to: u64) -> Parts {
        let mut parts = Vec::new();
        let mut at = from;
        for chunk in self.chunks.iter().filter(|c| c.segment_base == segment_base) {
            if at == to {
                break;
            }
            if at < chunk.start {
                match self.head_part(segment_base, at, chunk.start) {
                    Some(head) => parts.push(head),
                    None => return Parts::NeedHead { position: at, len: (chunk.start - at) as usize },
                }
                at = chunk.start;
            }
            let end = chunk.end().min(to);
            if at < end {
                parts.push(chunk.slice(at, end));
                at = end;
            }
        }
        assert!(at == to, "what is not written lies in the row");
        Parts::Ready(parts)
    }

    /// The last end of a batch at or before a position that lies within the row; one end before it is known.
    pub fn batch_end(&self, segment_base: Offset, known: u64, position: u64) -> Option<u64> {
        let holds = |c: &&TailChunk| c.segment_base == segment_base && c.start <= position && position <= c.end();
        let chunk = self.chunks.iter().find(holds)?;
        let (bytes, mut at) = (chunk.bytes(), chunk.start.max(known));
        while at < position {
            let header = BatchHeader::parse(bytes.get((at - chunk.start) as usize..)?).ok()?;
            let end = at + header.size() as u64;
            if end > position {
                break;
            }
            at = end;
        }
        Some(at)
    }

    fn head_part(&self, segment_base: Offset, from: u64, to: u64) -> Option<Bytes> {
        let (base, position, bytes) = self.head.as_ref()?;
        let start = usize::try_from(from.checked_sub(*position)?).ok()?;
        let end = usize::try_from(to.checked_sub(*position)?).ok()?;
        (*base == segment_base && end <= bytes.len()).then(|| bytes.slice(start..end))
    }
}
