//! Memory for direct writes: aligned, and used again by its shard.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::fmt;
use std::ptr::NonNull;

use crate::limits::{BLOCK, IO_BUFFERS_KEPT};

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept { buffers: Vec::new(), bytes: 0 }) };
}

/// Free buffers of this thread, the last that came back at the end.
struct Kept {
    buffers: Vec<IoBuffer>,
    bytes: usize,
}

/// A power of two of bytes, from a block on. On drop it is kept for the next of its size, if not too much is kept.
pub(crate) struct IoBuffer {
    at: NonNull<u8>,
    capacity: usize,
    len: usize,
}

impl fmt::Debug for IoBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IoBuffer({} of {})", self.len, self.capacity)
    }
}

fn layout(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, BLOCK).expect("buffers are small multiples of a block")
}

impl IoBuffer {
    /// `parts` one behind the other, padded with zeros to whole blocks.
    pub fn gather(parts: &[&[u8]]) -> IoBuffer {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let padded = len.next_multiple_of(BLOCK);
        let mut buffer = IoBuffer::take(padded);
        let mut at = buffer.at.as_ptr();
        for part in parts {
            // SAFETY: the parts together have `len` bytes, which the buffer has room for; nobody else refers to it.
            unsafe {
                std::ptr::copy_nonoverlapping(part.as_ptr(), at, part.len());
                at = at.add(part.len());
            }
        }
        // SAFETY: the rest of the last block, within the buffer.
        unsafe { std::ptr::write_bytes(at, 0, padded - len) };
        buffer.len = padded;
        buffer
    }

    fn take(len: usize) -> IoBuffer {
        let capacity = len.next_power_of_two().max(BLOCK);
        let kept = KEPT.with_borrow_mut(|kept| {
            let found = kept.buffers.iter().rposition(|buffer| buffer.capacity == capacity)?;
            kept.bytes -= capacity;
            Some(kept.buffers.swap_remove(found))
        });
        kept.unwrap_or_else(|| {
            // SAFETY: the layout has a size above zero.
            let at = unsafe { alloc(layout(capacity)) };
            let at = NonNull::new(at).unwrap_or_else(|| handle_alloc_error(layout(capacity)));
            IoBuffer { at, capacity, len: 0 }
        })
    }

    pub fn address(&self) -> *const u8 {
        self.at.as_ptr()
    }

    pub fn len(&self) -> usize {
        self.len
    }
}

impl Drop for IoBuffer {
    fn drop(&mut self) {
        let back = IoBuffer { at: self.at, capacity: self.capacity, len: 0 };
        let back = std::mem::ManuallyDrop::new(back);
        let is_kept = KEPT.try_with(|kept| {
            let Ok(mut kept) = kept.try_borrow_mut() else { return false };
            if kept.bytes + self.capacity > IO_BUFFERS_KEPT {
                return false;
            }
            kept.bytes += self.capacity;
            kept.buffers.push(std::mem::ManuallyDrop::into_inner(back));
            true
        });
        if !is_kept.unwrap_or(false) {
            // SAFETY: allocated with the same layout, and this is the last owner.
            unsafe { dealloc(self.at.as_ptr(), layout(self.capacity)) };
        }
    }
}
