//! What a piece of work costs in memory: allocations, and record bytes that `memcpy` and `memmove` moved.
//!
//! The test's own `memcpy` takes the place of libc's for everything that is linked into the test program: our crates, the
//! standard library, glommio. Copies that a compiler does in place (a few registers' worth) pass by unseen, and so does what the
//! kernel copies. Records are made of [`CANARY`], and only rows of that value count: not headers, nor futures that are moved. Copies
//! are counted in the whole process, so that work of other threads counts as well, and tests take turns by [`in_turn`];
//! allocations are counted on the thread that asks, since the test runner makes some whenever it likes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What records of these tests are made of, and hardly anything else.
pub const CANARY: u8 = 0xc5;
/// Fewer in a row may be part of an address or of a checksum.
const ROW: usize = 16;

static COUNTING: AtomicBool = AtomicBool::new(false);
static COPIED: AtomicUsize = AtomicUsize::new(0);
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
thread_local! {
    /// Needs no memory and is never dropped, so that an allocator may ask.
    static ASKS: Cell<bool> = const { Cell::new(false) };
}
static TURN: Mutex<()> = Mutex::new(());

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is passed on to the system's allocator unchanged. `realloc` is the trait's own, which comes back to these two.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if ASKS.with(Cell::get) {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Canaries of one copy, those in rows that no address or checksum makes by chance.
#[derive(Default)]
struct Rows {
    row: usize,
    sum: usize,
}

impl Rows {
    #[inline]
    fn see(&mut self, byte: u8) {
        if byte == CANARY {
            self.row += 1;
        } else {
            self.end();
        }
    }

    #[inline]
    fn end(&mut self) {
        if self.row >= ROW {
            self.sum += self.row;
        }
        self.row = 0;
    }

    fn note(mut self) {
        self.end();
        if self.sum > 0 && COUNTING.load(Ordering::Relaxed) {
            COPIED.fetch_add(self.sum, Ordering::Relaxed);
        }
    }
}

/// Byte by byte and volatile: the compiler would make a call of `memcpy` of anything nicer.
///
/// # Safety
/// As of `memcpy`.
// SAFETY: the name is libc's on purpose, and what it does is the same.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    let (mut at, mut rows) = (0, Rows::default());
    while at < len {
        // SAFETY: the range is valid for `len` bytes, says the caller.
        let byte = unsafe { from.add(at).read_volatile() };
        // SAFETY: so is this one.
        unsafe { to.add(at).write_volatile(byte) };
        rows.see(byte);
        at += 1;
    }
    rows.note();
    to
}

/// # Safety
/// As of `memmove`.
// SAFETY: the name is libc's on purpose, and what it does is the same.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    if (to as usize) <= from as usize || to as usize >= from as usize + len {
        // SAFETY: reading is ahead of writing all the way, so that overlapping does not matter.
        return unsafe { memcpy(to, from, len) };
    }
    let (mut at, mut rows) = (len, Rows::default());
    while at > 0 {
        at -= 1;
        // SAFETY: the range is valid for `len` bytes, says the caller; from behind, reading is ahead of writing.
        let byte = unsafe { from.add(at).read_volatile() };
        // SAFETY: the other range is valid as well.
        unsafe { to.add(at).write_volatile(byte) };
        rows.see(byte);
    }
    rows.note();
    to
}

/// What a piece of work cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Record bytes; a byte that was copied twice counts twice.
    pub copied: usize,
    pub allocations: usize,
}

/// Between these two, one at a time in a process.
pub fn begin() {
    COPIED.store(0, Ordering::Relaxed);
    ALLOCATIONS.store(0, Ordering::Relaxed);
    COUNTING.store(true, Ordering::Relaxed);
    ASKS.set(true);
}

pub fn end() -> Cost {
    ASKS.set(false);
    COUNTING.store(false, Ordering::Relaxed);
    Cost { copied: COPIED.load(Ordering::Relaxed), allocations: ALLOCATIONS.load(Ordering::Relaxed) }
}

pub fn cost_of<T>(work: impl FnOnce() -> T) -> (Cost, T) {
    begin();
    let value = work();
    (end(), value)
}

/// Runs a test that counts while no other does.
pub fn in_turn<T>(test: impl FnOnce() -> T) -> T {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    test()
}
