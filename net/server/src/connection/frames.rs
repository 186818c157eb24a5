//! Bytes of a connection, received into pooled chunks and cut into frames.
//!
//! A frame is a slice of the chunk it was received into; the chunk's memory goes back to the pool with its last slice, to be
//! received into again while its pages are still mapped and perhaps cached. Owned by the connection's reader.
//!
//! Budgets: no byte is copied, but for the beginning of a frame that does not fit behind its predecessors: of a large one
//! [`LOOK_BYTES`] as a rule, since what follows a large frame is looked at before more is read, and of a larger one than
//! [`FRAME_GROWTH_BYTES`] what came before each doubling. Memory grows as bytes come, not as a prefix says. While it waits a
//! connection holds what it read last, and at most [`READ_BYTES`] when no frame has begun.

use std::io;

use runtime::{Chunk, ChunkPool, Socket};
use wire::{PREFIX_LEN, Split, WireError, frame_len};

use crate::limits::{FIRST_READ_BYTES, FRAME_GROWTH_BYTES, LOOK_BYTES, READ_BYTES, RECEIVE_BYTES};

pub(super) struct Frames {
    pool: ChunkPool,
    chunk: Chunk,
    /// Bytes of the chunk that were cut off.
    taken: usize,
    /// What is asked for while nothing larger is announced: as much as the client sends at once.
    read_bytes: usize,
    limit: usize,
}

impl Frames {
    /// `limit`: of a frame's length.
    pub fn new(pool: ChunkPool, limit: usize) -> Frames {
        Frames { pool, chunk: Chunk::with_capacity(FIRST_READ_BYTES), taken: 0, read_bytes: FIRST_READ_BYTES, limit }
    }

    fn begun(&self) -> &[u8] {
        &self.chunk.published()[self.taken..]
    }

    /// The next frame, or how many bytes it lacks at least.
    pub fn next(&mut self) -> Result<Split, WireError> {
        let begun = self.begun().len();
        let Some(len) = frame_len(self.begun(), self.limit)? else { return Ok(Split::Need(PREFIX_LEN - begun)) };
        if begun < PREFIX_LEN + len {
            return Ok(Split::Need(PREFIX_LEN + len - begun));
        }
        let from = self.taken + PREFIX_LEN;
        self.taken = from + len;
        if len > READ_BYTES {
            self.read_bytes = LOOK_BYTES;
        }
        Ok(Split::Frame(self.chunk.slice(from..from + len)))
    }

    /// Receives once, for a frame that lacks so many bytes. 0: the peer closed its side.
    pub async fn receive(&mut self, socket: &Socket, missing: usize) -> io::Result<usize> {
        let ask = self.make_room(missing);
        let count = socket.receive(&mut self.chunk, ask).await?;
        if count == self.read_bytes {
            self.read_bytes = (count * 2).min(READ_BYTES);
        }
        Ok(count)
    }

    /// Sees to it that the chunk has room for a receive, and says for how many bytes.
    fn make_room(&mut self, missing: usize) -> usize {
        if missing > self.read_bytes {
            let room = self.chunk.room();
            // The rest of it at once, or twice as much as there is, and that only when this chunk is full: what came is copied.
            if room == 0 || (room < missing && missing <= FRAME_GROWTH_BYTES) {
                let begun = self.begun().len();
                self.take_chunk(missing.min(begun.max(FRAME_GROWTH_BYTES)));
            }
            // Nothing of the next frame: it would have to be copied.
            return missing.min(self.chunk.room()).min(RECEIVE_BYTES);
        }
        if self.begun().is_empty() && self.chunk.capacity() <= READ_BYTES && self.chunk.reuse() {
            self.taken = 0;
        }
        let too_large = self.begun().is_empty() && self.chunk.capacity() > READ_BYTES;
        if too_large || self.chunk.room() < missing.max(self.read_bytes / 4) {
            self.take_chunk(self.read_bytes);
        }
        self.chunk.room().min(self.read_bytes)
    }

    /// Goes on in a new chunk that has room for so many bytes behind the frame that has begun.
    fn take_chunk(&mut self, room: usize) {
        let begun = self.begun();
        let capacity = begun.len() + room;
        let mut chunk = if capacity <= FIRST_READ_BYTES {
            Chunk::with_capacity(FIRST_READ_BYTES)
        } else {
            self.pool.take(capacity)
        };
        chunk.append(begun);
        self.chunk = chunk;
        self.taken = 0;
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
