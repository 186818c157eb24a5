//! Memory for direct writes: aligned, and used again by its shard.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::fmt;
use std::ptr::NonNull;

use bytes::Bytes;

use crate::limits::{BLOCK, IO_BUFFERS_KEPT, LEAST_UNCOPIED, MAX_IOVEC};

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept { classes: [const { Vec::new() }; CLASSES], bytes: 0 }) };
}

/// Sizes of buffers: powers of two from a block on.
const CLASSES: usize = 24;

/// Free buffers of this thread by size.
struct Kept {
    classes: [Vec<IoBuffer>; CLASSES],
    bytes: usize,
}

fn class_of(capacity: usize) -> usize {
    (capacity / BLOCK).ilog2() as usize
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
            let found = kept.classes[class_of(capacity)].pop()?;
            kept.bytes -= capacity;
            Some(found)
        });
        kept.unwrap_or_else(|| {
            // SAFETY: the layout has a size above zero.
            let at = unsafe { alloc(layout(capacity)) };
            let at = NonNull::new(at).unwrap_or_else(|| handle_alloc_error(layout(capacity)));
            IoBuffer { at, capacity, len: 0 }
        })
    }

    /// Writes `bytes` at a place within the buffer; gives the address of that place.
    fn put(&mut self, at: usize, bytes: &[u8]) -> *mut u8 {
        assert!(at + bytes.len() <= self.capacity, "a buffer has room for what is put into it");
        // SAFETY: within the allocation, which nobody else refers to.
        unsafe {
            let target = self.at.as_ptr().add(at);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len());
            target
        }
    }

    pub fn address(&self) -> *const u8 {
        self.at.as_ptr()
    }

    pub fn len(&self) -> usize {
        self.len
    }
}

/// What a write of several parts consists of: whole blocks where they lie, and the blocks between them put together here.
#[derive(Debug)]
pub(crate) struct Pieces {
    pub vectors: Vec<libc::iovec>,
    /// With the zeros that fill the last block.
    pub bytes: usize,
    _stitched: IoBuffer,
}

impl Pieces {
    /// `None` where copying is cheaper or the only way: little, or whole blocks that lie askew in memory.
    pub fn of(parts: &[Bytes]) -> Option<Pieces> {
        let len: usize = parts.iter().map(Bytes::len).sum();
        if len < LEAST_UNCOPIED {
            return None;
        }
        // A part ends one block at most that it does not fill.
        let mut stitched = IoBuffer::take((parts.len() + 1) * BLOCK);
        let mut vectors: Vec<libc::iovec> = Vec::with_capacity(2 * parts.len() + 1);
        let (mut at, mut used) = (0, 0);
        for part in parts {
            let mut rest = &part[..];
            while !rest.is_empty() {
                let whole = rest.len() / BLOCK * BLOCK;
                if at % BLOCK == 0 && whole > 0 {
                    if !rest.as_ptr().addr().is_multiple_of(BLOCK) {
                        return None;
                    }
                    vectors.push(libc::iovec { iov_base: rest.as_ptr().cast_mut().cast(), iov_len: whole });
                    (at, rest) = (at + whole, &rest[whole..]);
                    continue;
                }
                let count = rest.len().min(BLOCK - at % BLOCK);
                let target = stitched.put(used + at % BLOCK, &rest[..count]);
                if at % BLOCK == 0 {
                    vectors.push(libc::iovec { iov_base: target.cast(), iov_len: BLOCK });
                }
                (at, rest) = (at + count, &rest[count..]);
                if at % BLOCK == 0 {
                    used += BLOCK;
                }
            }
        }
        if at % BLOCK > 0 {
            stitched.put(used + at % BLOCK, &[0; BLOCK][at % BLOCK..]);
        }
        if vectors.len() > MAX_IOVEC {
            return None;
        }
        Some(Pieces { vectors, bytes: len.next_multiple_of(BLOCK), _stitched: stitched })
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
            kept.classes[class_of(self.capacity)].push(std::mem::ManuallyDrop::into_inner(back));
            true
        });
        if !is_kept.unwrap_or(false) {
            // SAFETY: allocated with the same layout, and this is the last owner.
            unsafe { dealloc(self.at.as_ptr(), layout(self.capacity)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::Chunk;

    /// What the kernel would be given.
    fn gathered(pieces: &Pieces) -> Vec<u8> {
        let slice = |v: &libc::iovec| {
            assert!(v.iov_base.addr().is_multiple_of(BLOCK) && v.iov_len.is_multiple_of(BLOCK));
            // SAFETY: the vectors point into memory that lives.
            unsafe { std::slice::from_raw_parts(v.iov_base.cast::<u8>(), v.iov_len) }.to_vec()
        };
        pieces.vectors.iter().flat_map(slice).collect()
    }

    /// Parts as a partition's tail has them: each in a chunk of its own, at its position modulo a block.
    fn parts(lens: &[usize]) -> Vec<Bytes> {
        let mut at = 0;
        let part = |&len: &usize| {
            let mut chunk = Chunk::with_capacity(len + 2 * BLOCK);
            let pad = at % BLOCK;
            chunk.append(&vec![0; pad]);
            chunk.append(&(at..at + len).map(|i| (i * 7 + i / 251) as u8).collect::<Vec<_>>());
            at += len;
            chunk.slice(pad..pad + len)
        };
        lens.iter().map(part).collect()
    }

    #[test]
    fn pieces_are_the_parts_padded_with_zeros_and_whole_blocks_stay_where_they_are() {
        let cases: [&[usize]; 6] = [
            &[65_536],
            &[65_537],
            &[40_000, 30_000, 20_000],
            &[100, 50, 60_000, 1, 4096, 5000],
            &[32_768, 32_768, 10],
            &[3, 4093, 70_000],
        ];
        for lens in cases {
            let parts = parts(lens);
            let mut expected: Vec<u8> = parts.iter().flatten().copied().collect();
            expected.resize(expected.len().next_multiple_of(BLOCK), 0);
            let pieces = Pieces::of(&parts).unwrap_or_else(|| panic!("{lens:?} lies straight"));
            assert_eq!(pieces.bytes, expected.len());
            assert!(gathered(&pieces) == expected, "{lens:?}");
            let largest = parts
                .iter()
                .max_by_key(|part| part.len())
                .map(|part| part.as_ptr().addr()..part.as_ptr().addr() + part.len());
            let stays = |v: &libc::iovec| largest.as_ref().is_some_and(|range| range.contains(&v.iov_base.addr()));
            assert!(pieces.vectors.iter().any(stays), "{lens:?}");
        }
    }

    #[test]
    fn what_lies_askew_or_is_little_is_copied() {
        let askew = parts(&[70_000])[0].slice(1..);
        assert!(Pieces::of(&[askew]).is_none());
        assert!(Pieces::of(&parts(&[100])).is_none());
    }

    #[test]
    fn buffers_are_padded_and_used_again() {
        let first = IoBuffer::gather(&[&[1; 5000], &[2; 100]]);
        assert_eq!(first.len(), 2 * BLOCK);
        let at = first.address();
        drop(first);
        let second = IoBuffer::gather(&[&[3; 4097]]);
        assert_eq!(second.address(), at);
        // SAFETY: the buffer has so many bytes, all of them written.
        let bytes = unsafe { std::slice::from_raw_parts(at, second.len()) };
        assert!(bytes[..4097].iter().all(|&b| b == 3) && bytes[4097..].iter().all(|&b| b == 0));
    }
}
