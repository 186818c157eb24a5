//! The memory of batches: how much of `buffer_memory` is in use, and buffers that wait to be used again.
//!
//! A buffer counts with its capacity from when it is taken until its batch ended; buffers that wait count for nothing
//! but are dropped rather than pass the limit together with those in use.

use bytes::BytesMut;

use super::limits::MAX_FREE_BUFFERS;

#[derive(Debug)]
pub struct Pool {
    limit: usize,
    used: usize,
    free: Vec<BytesMut>,
    free_bytes: usize,
    /// A taker went away empty-handed: batches should not linger.
    pub short: bool,
}

impl Pool {
    pub fn new(limit: usize) -> Pool {
        Pool { limit, used: 0, free: Vec::new(), free_bytes: 0, short: false }
    }

    pub fn used(&self) -> usize {
        self.used
    }

    /// An empty buffer of at least `bytes`; its capacity is charged.
    pub fn take(&mut self, bytes: usize) -> Option<BytesMut> {
        // One that is much too large would be charged for nothing.
        let fits = |buffer: &BytesMut| (bytes..=bytes.saturating_mul(2)).contains(&buffer.capacity());
        if let Some(at) = self.free.iter().rposition(fits) {
            let buffer = self.free.swap_remove(at);
            self.free_bytes -= buffer.capacity();
            self.used += buffer.capacity();
            return Some(buffer);
        }
        if self.limit.saturating_sub(self.used) < bytes {
            self.short = true;
            return None;
        }
        self.make_room(bytes);
        let buffer = BytesMut::with_capacity(bytes);
        self.used += buffer.capacity();
        Some(buffer)
    }

    /// Ends a charge; the buffer, if it is nobody else's, waits for its next batch.
    pub fn give_back(&mut self, charge: usize, buffer: Option<BytesMut>) {
        assert!(self.used >= charge, "memory is given back once");
        self.used -= charge;
        let Some(mut buffer) = buffer else { return };
        buffer.clear();
        let keep = self.free.len() < MAX_FREE_BUFFERS && self.used + self.free_bytes + buffer.capacity() <= self.limit;
        if keep {
            self.free_bytes += buffer.capacity();
            self.free.push(buffer);
        }
    }

    /// Charges what is there already: the pieces of a split batch, which may overdraw by their headers.
    pub fn charge(&mut self, bytes: usize) {
        self.used += bytes;
        self.make_room(0);
    }

    fn make_room(&mut self, bytes: usize) {
        while self.used + self.free_bytes + bytes > self.limit {
            let Some(buffer) = self.free.pop() else { return };
            self.free_bytes -= buffer.capacity();
        }
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
