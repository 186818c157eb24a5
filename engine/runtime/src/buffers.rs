//! Aligned, ref-counted memory that outlives a shard's turn: the tail of a partition's log and its batch cache.
//!
//! A [`Chunk`] is written by one owner, front to back; what was written may be handed out as `Bytes` slices while the
//! owner appends behind them. Chunks come from a pool that is shared by all shards, because the last reference to a
//! slice may fall on another shard. Connections receive into chunks of the same pool.
//!
//! Memory that comes back is kept: giving it to the system and taking it again costs a page fault for each block, which is
//! more than the copy into it. What nobody took for a while goes back bit by bit ([`ChunkPool::trim`]).

use std::alloc::{Layout, alloc, dealloc};
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use crate::limits::{BLOCK, MAPPED_CHUNK_BYTES};

/// The memory of a chunk. Owned by the chunk's writer and all slices together.
struct Memory {
    at: NonNull<u8>,
    capacity: usize,
    pool: Option<Arc<PoolState>>,
}

// SAFETY: `Memory` is plain memory without thread affinity.
unsafe impl Send for Memory {}
// SAFETY: shared access goes only to bytes below the published length, which no one writes any more (see `Chunk`).
unsafe impl Sync for Memory {}

fn layout(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, BLOCK).expect("chunk capacities are small multiples of a block")
}

/// Large chunks are mapped one by one, so that a freed one goes back to the system whatever lies around it in a heap.
fn is_mapped(capacity: usize) -> bool {
    capacity >= MAPPED_CHUNK_BYTES
}

fn allocate(capacity: usize) -> NonNull<u8> {
    let layout = layout(capacity);
    let at = if is_mapped(capacity) {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping at a place that the kernel chooses.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), capacity, access, kind, -1, 0) };
        if at == libc::MAP_FAILED { std::ptr::null_mut() } else { at.cast() }
    } else {
        // Not zeroed: only what was written is ever read, and zeroing would touch every page of a half-used chunk.
        // SAFETY: the layout has a size above zero.
        unsafe { alloc(layout) }
    };
    NonNull::new(at).unwrap_or_else(|| std::alloc::handle_alloc_error(layout))
}

/// # Safety
/// `at` came from [`allocate`] with this capacity, and nobody uses it any more.
unsafe fn release(at: NonNull<u8>, capacity: usize) {
    if is_mapped(capacity) {
        // SAFETY: the whole of a mapping of ours, by the caller's promise.
        unsafe { libc::munmap(at.as_ptr().cast(), capacity) };
    } else {
        // SAFETY: the same layout as when it was allocated, by the caller's promise.
        unsafe { dealloc(at.as_ptr(), layout(capacity)) };
    }
}

impl Memory {
    fn allocate(capacity: usize, pool: Option<Arc<PoolState>>) -> Memory {
        assert!(capacity > 0 && capacity.is_multiple_of(BLOCK), "chunk capacities are multiples of a block");
        Memory { at: allocate(capacity), capacity, pool }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take()
            && pool.take_back(self.at, self.capacity)
        {
            return;
        }
        // SAFETY: allocated with the same capacity, and this is the last owner.
        unsafe { release(self.at, self.capacity) };
    }
}

struct Slice {
    memory: Arc<Memory>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the range was below the published length when the slice was made; published bytes never change.
        unsafe { std::slice::from_raw_parts(self.memory.at.as_ptr().add(self.range.start), self.range.len()) }
    }
}

/// The writing end of a chunk. Bytes `..len` are published: immutable and shareable. Bytes behind belong to the writer.
pub struct Chunk {
    memory: Arc<Memory>,
    len: usize,
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk({} of {})", self.len, self.memory.capacity)
    }
}

impl Chunk {
    /// A chunk outside any pool, for tests and rare sizes.
    pub fn with_capacity(capacity: usize) -> Chunk {
        Chunk { memory: Arc::new(Memory::allocate(capacity.next_multiple_of(BLOCK), None)), len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn capacity(&self) -> usize {
        self.memory.capacity
    }

    pub fn room(&self) -> usize {
        self.memory.capacity - self.len
    }

    /// Copies `bytes` behind what is there, lets `patch` change the copy, then publishes it. Panics when there is no
    /// room: the caller checked.
    pub fn append_with(&mut self, bytes: &[u8], patch: impl FnOnce(&mut [u8])) {
        assert!(bytes.len() <= self.room(), "the caller checks a chunk's room");
        // SAFETY: the range lies in the allocation, behind every published byte, so no slice aliases it, and `&mut self`
        // is the only writer. The bytes are initialised by the copy before a reference to them is made.
        let target = unsafe {
            let at = self.memory.at.as_ptr().add(self.len);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len());
            std::slice::from_raw_parts_mut(at, bytes.len())
        };
        patch(target);
        self.len += bytes.len();
    }

    pub fn append(&mut self, bytes: &[u8]) {
        self.append_with(bytes, |_| {});
    }

    /// The room behind what is there. For the kernel to write into: nobody refers to it, and it may not be initialised.
    #[cfg(not(feature = "sim"))]
    pub(crate) fn spare(&mut self) -> *mut u8 {
        // SAFETY: the published length is within the allocation.
        unsafe { self.memory.at.as_ptr().add(self.len) }
    }

    /// Publishes what the kernel wrote into [`Chunk::spare`].
    ///
    /// # Safety
    /// So many bytes were written there.
    #[cfg(not(feature = "sim"))]
    // SAFETY: promised by the caller, as said above.
    pub(crate) unsafe fn publish(&mut self, count: usize) {
        assert!(count <= self.room(), "no more is written than there is room");
        self.len += count;
    }

    /// Makes the chunk empty again if nobody holds a slice of it any more.
    pub fn reuse(&mut self) -> bool {
        let alone = Arc::get_mut(&mut self.memory).is_some();
        if alone {
            self.len = 0;
        }
        alone
    }

    /// Published bytes, borrowed.
    pub fn published(&self) -> &[u8] {
        // SAFETY: published bytes are initialised and never change.
        unsafe { std::slice::from_raw_parts(self.memory.at.as_ptr(), self.len) }
    }

    /// Published bytes, ref-counted: keeps the chunk's memory alive wherever it goes.
    pub fn slice(&self, range: Range<usize>) -> Bytes {
        assert!(range.start <= range.end && range.end <= self.len, "only published bytes are handed out");
        if range.is_empty() {
            return Bytes::new();
        }
        Bytes::from_owner(Slice { memory: self.memory.clone(), range })
    }
}

/// Memory of one size that nobody uses; the last that came back goes out first.
#[derive(Clone, Default)]
struct FreeList {
    places: Vec<usize>,
    /// The fewest there were since the last trim: so many were not needed.
    least: usize,
}

/// Memory that nobody uses.
struct Free {
    /// By size class: powers of two from `MIN_CLASS`.
    lists: Vec<FreeList>,
    bytes: usize,
}

impl Free {
    fn pop(&mut self, class: usize) -> Option<NonNull<u8>> {
        let list = &mut self.lists[class];
        let at = list.places.pop()?;
        list.least = list.least.min(list.places.len());
        self.bytes -= MIN_CLASS << class;
        NonNull::new(at as *mut u8)
    }

    fn push(&mut self, class: usize, at: NonNull<u8>) {
        self.lists[class].places.push(at.as_ptr() as usize);
        self.bytes += MIN_CLASS << class;
    }

    /// Takes out half of what was not needed since the last time, the oldest first, at least one of each size.
    fn unneeded(&mut self) -> Vec<(NonNull<u8>, usize)> {
        let mut given_up = Vec::new();
        for (class, list) in self.lists.iter_mut().enumerate() {
            let size = MIN_CLASS << class;
            let gone = list.places.drain(..list.least.div_ceil(2));
            given_up.extend(gone.filter_map(|at| NonNull::new(at as *mut u8)).map(|at| (at, size)));
            list.least = list.places.len();
        }
        self.bytes -= given_up.iter().map(|(_, size)| size).sum::<usize>();
        given_up
    }

    /// The class that holds the most bytes, but for one.
    fn fullest_but(&self, class: usize) -> Option<usize> {
        let others = (0..CLASSES).filter(|&other| other != class && !self.lists[other].places.is_empty());
        others.max_by_key(|&other| self.lists[other].places.len() << other)
    }
}

struct PoolState {
    free: Mutex<Free>,
    keep_bytes: usize,
    out_bytes: AtomicUsize,
}

const MIN_CLASS: usize = 4 * BLOCK;
const CLASSES: usize = 16;

fn class_of(capacity: usize) -> Option<usize> {
    let size = capacity.next_power_of_two().max(MIN_CLASS);
    let class = (size / MIN_CLASS).trailing_zeros() as usize;
    (class < CLASSES && size == capacity).then_some(class)
}

impl PoolState {
    fn free(&self) -> std::sync::MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Keeps the memory for the next taker. When enough is kept already, free memory of the size that has most of it
    /// goes instead: what just came back is what is in use now.
    fn take_back(&self, at: NonNull<u8>, capacity: usize) -> bool {
        self.out_bytes.fetch_sub(capacity, Ordering::Relaxed);
        let Some(class) = class_of(capacity).filter(|_| capacity <= self.keep_bytes) else { return false };
        let mut given_up = Vec::new();
        let kept = {
            let mut free = self.free();
            while free.bytes + capacity > self.keep_bytes
                && let Some(other) = free.fullest_but(class)
            {
                given_up.extend(free.pop(other).map(|at| (at, MIN_CLASS << other)));
            }
            let kept = free.bytes + capacity <= self.keep_bytes;
            if kept {
                free.push(class, at);
            }
            kept
        };
        for (at, capacity) in given_up {
            // SAFETY: it just left the pool, where memory has no other owner, and has its class's capacity.
            unsafe { release(at, capacity) };
        }
        kept
    }
}

impl Drop for PoolState {
    fn drop(&mut self) {
        let mut free = self.free();
        for class in 0..CLASSES {
            while let Some(at) = free.pop(class) {
                // SAFETY: memory in the pool has no other owner and was allocated with its class's capacity.
                unsafe { release(at, MIN_CLASS << class) };
            }
        }
    }
}

/// A pool of chunk memory, shared by all shards.
#[derive(Clone)]
pub struct ChunkPool {
    state: Arc<PoolState>,
}

impl fmt::Debug for ChunkPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkPool({} bytes out)", self.bytes_out())
    }
}

impl ChunkPool {
    /// `keep_bytes`: how much free memory is kept for reuse; what comes back beyond it goes to the allocator.
    pub fn new(keep_bytes: usize) -> ChunkPool {
        ChunkPool {
            state: Arc::new(PoolState {
                free: Mutex::new(Free { lists: vec![FreeList::default(); CLASSES], bytes: 0 }),
                keep_bytes,
                out_bytes: AtomicUsize::new(0),
            }),
        }
    }

    /// A chunk of at least `capacity` bytes: the next power of two from 16 KiB, or the next block multiple beyond the
    /// largest class.
    pub fn take(&self, capacity: usize) -> Chunk {
        let rounded = capacity.next_power_of_two().max(MIN_CLASS);
        let size = if class_of(rounded).is_some() { rounded } else { capacity.next_multiple_of(BLOCK) };
        self.state.out_bytes.fetch_add(size, Ordering::Relaxed);
        let reused = class_of(size).and_then(|class| self.state.free().pop(class));
        let pool = Some(self.state.clone());
        let memory = match reused {
            Some(at) => Memory { at, capacity: size, pool },
            None => Memory::allocate(size, pool),
        };
        Chunk { memory: Arc::new(memory), len: 0 }
    }

    /// Gives half of the free memory that nobody took since the last call back to the system. To be called now and then,
    /// away from shards: unmapping takes a while.
    pub fn trim(&self) {
        let given_up = self.state.free().unneeded();
        for (at, capacity) in given_up {
            // SAFETY: it just left the pool, where memory has no other owner, and has its class's capacity.
            unsafe { release(at, capacity) };
        }
    }

    /// Free bytes kept.
    pub fn bytes_free(&self) -> usize {
        self.state.free().bytes
    }

    /// Bytes of chunks in use anywhere.
    pub fn bytes_out(&self) -> usize {
        self.state.out_bytes.load(Ordering::Relaxed)
    }
}

/// Hands freed heap memory back to the operating system. Takes milliseconds: for rare moments when much was freed.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim takes no pointer and may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_outlive_the_writer_and_stay_as_they_were() {
        let pool = ChunkPool::new(1 << 20);
        let mut chunk = pool.take(1);
        assert_eq!(chunk.capacity(), 16 << 10);
        chunk.append(b"hello ");
        let first = chunk.slice(0..6);
        chunk.append_with(b"WORLD", |copy| copy.make_ascii_lowercase());
        let both = chunk.slice(0..11);
        drop(chunk);
        assert_eq!(&first[..], b"hello ");
        assert_eq!(std::thread::spawn(move || both.to_vec()).join().ok(), Some(b"hello world".to_vec()));
        assert_eq!(pool.bytes_out(), 16 << 10);
        drop(first);
        assert_eq!(pool.bytes_out(), 0);
    }

    #[test]
    fn memory_is_reused_up_to_the_bound() {
        let pool = ChunkPool::new(64 << 10);
        let first = pool.take(64 << 10);
        let at = first.published().as_ptr();
        drop(first);
        let second = pool.take(60_000);
        assert_eq!(second.published().as_ptr(), at);
        let third = pool.take(64 << 10);
        drop(second);
        drop(third);
        assert_eq!(pool.state.free().bytes, 64 << 10);
    }

    #[test]
    fn what_just_came_back_stays_and_idle_sizes_go() {
        let pool = ChunkPool::new(1 << 20);
        let small: Vec<Chunk> = (0..32).map(|_| pool.take(32 << 10)).collect();
        drop(small);
        assert_eq!(pool.state.free().bytes, 1 << 20);
        let large = pool.take(512 << 10);
        let at = large.published().as_ptr();
        drop(large);
        assert_eq!(pool.state.free().bytes, 1 << 20);
        assert_eq!(pool.take(512 << 10).published().as_ptr(), at);
        // Larger than all that may be kept: given back, and nothing makes room for it.
        drop(pool.take(2 << 20));
        assert_eq!(pool.state.free().bytes, 1 << 20);
    }

    #[test]
    fn what_nobody_takes_goes_back_bit_by_bit() {
        let pool = ChunkPool::new(64 << 20);
        let all: Vec<Chunk> = (0..8).map(|_| pool.take(1 << 20)).collect();
        drop(all);
        // All of it was in use until now.
        pool.trim();
        assert_eq!(pool.bytes_free(), 8 << 20);
        let two = [pool.take(1 << 20), pool.take(1 << 20)];
        drop(two);
        // Six were never taken meanwhile.
        pool.trim();
        assert_eq!(pool.bytes_free(), 5 << 20);
        (0..4).for_each(|_| pool.trim());
        assert_eq!(pool.bytes_free(), 0);
        pool.trim();
    }

    #[test]
    fn what_is_in_use_in_turns_stays() {
        let pool = ChunkPool::new(64 << 20);
        for _ in 0..10 {
            let all: Vec<Chunk> = (0..8).map(|_| pool.take(1 << 20)).collect();
            drop(all);
            pool.trim();
            assert_eq!(pool.bytes_free(), 8 << 20);
        }
    }

    #[test]
    fn a_chunk_is_used_again_once_its_slices_are_gone() {
        let mut chunk = Chunk::with_capacity(1);
        chunk.append(b"one");
        let slice = chunk.slice(0..3);
        assert!(!chunk.reuse());
        assert_eq!(chunk.len(), 3);
        drop(slice);
        assert!(chunk.reuse());
        assert_eq!((chunk.len(), chunk.room()), (0, BLOCK));
    }

    #[test]
    fn huge_chunks_are_not_pooled() {
        let pool = ChunkPool::new(usize::MAX / 2);
        let chunk = pool.take((MIN_CLASS << (CLASSES - 1)) + 1);
        assert_eq!(chunk.capacity() % BLOCK, 0);
        drop(chunk);
        assert_eq!(pool.state.free().bytes, 0);
    }
}
