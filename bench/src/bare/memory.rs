//! The newest bytes of the log, in a circle of aligned memory: batches are copied into it once, written from it, and sent from it.
//!
//! A position counts all bytes ever taken and never goes back; its place in memory is the rest of a division by the memory's length.
//! Owned by the server's thread. What the kernel reads (a write under way, an answer that is being sent) is lent: nothing from the
//! oldest lent position on is overwritten, which `take` asserts. The memory is never freed: the process ends with it, and the
//! kernel may read from it until then.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::collections::BTreeMap;
use std::ptr::NonNull;

use super::limits::{BLOCK, ROOM_BYTES};

#[derive(Debug)]
pub struct Memory {
    start: NonNull<u8>,
    len: u64,
    /// Where the next byte goes.
    head: u64,
    /// Positions that the kernel or an answer reads from, with how often.
    lent: BTreeMap<u64, u32>,
}

impl Memory {
    pub fn new(len: u64) -> Memory {
        assert!(len.is_multiple_of(BLOCK) && len > 2 * ROOM_BYTES, "{len} bytes are no memory for a log");
        let layout = Layout::from_size_align(len as usize, BLOCK as usize).expect("a block is a power of two");
        // SAFETY: the layout's size was asserted to be more than zero.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        // Zeroed memory has no pages yet, and a page fault is no work of a broker's.
        for at in (0..len).step_by(BLOCK as usize) {
            // SAFETY: inside the allocation, to which nothing else has a pointer yet.
            unsafe { start.add(at as usize).write_volatile(0) };
        }
        Memory { start, len, head: 0, lent: BTreeMap::new() }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn head(&self) -> u64 {
        self.head
    }

    /// From here on everything is still what was appended.
    pub fn oldest(&self) -> u64 {
        self.head.saturating_sub(self.len)
    }

    /// Whether a batch of any size can be taken.
    pub fn has_room(&self) -> bool {
        self.head + ROOM_BYTES <= self.lent.keys().next().map_or(self.head, |oldest| *oldest) + self.len
    }

    /// Whether so many bytes would have to begin at the start of the memory, because they do not fit before its end.
    pub fn wraps(&self, len: u64) -> bool {
        self.head % self.len + len > self.len
    }

    /// Goes on at the start of the memory.
    pub fn skip_to_start(&mut self) {
        self.head = self.head.next_multiple_of(self.len);
    }

    /// The next bytes, to be filled by the caller.
    pub fn take(&mut self, len: u64) -> &mut [u8] {
        assert!(!self.wraps(len), "what is taken lies in one piece");
        let end = self.head + len;
        assert!(
            self.lent.keys().next().is_none_or(|oldest| end <= oldest + self.len),
            "lent bytes are not overwritten"
        );
        let at = (self.head % self.len) as usize;
        self.head = end;
        // SAFETY: inside the allocation, and by the assertions above no one else reads these bytes while they are borrowed: what
        // is lent lies at other places of the circle, and `&mut self` excludes `bytes`.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(at).as_ptr(), len as usize) }
    }

    /// Zeros up to the next block.
    pub fn fill_block(&mut self) {
        let rest = self.head.next_multiple_of(BLOCK) - self.head;
        self.take(rest).fill(0);
    }

    /// Until it is given back, nothing from there on is overwritten.
    pub fn lend(&mut self, position: u64) {
        assert!(position >= self.oldest(), "bytes that are gone cannot be lent");
        *self.lent.entry(position).or_default() += 1;
    }

    pub fn give_back(&mut self, position: u64) {
        let times = self.lent.get_mut(&position).expect("only what was lent is given back");
        *times -= 1;
        if *times == 0 {
            self.lent.remove(&position);
        }
    }

    /// Where the kernel finds the bytes at a position; valid for as long as the process lives.
    pub fn address(&self, position: u64) -> *const u8 {
        assert!(position >= self.oldest() && position <= self.head, "there are no bytes there");
        // SAFETY: inside the allocation.
        unsafe { self.start.add((position % self.len) as usize) }.as_ptr()
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
