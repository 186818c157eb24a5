//! Direct reads that leave for a client without a copy: the ring's registered memory is lent out as `Bytes`.
//!
//! What a read returns belongs to its shard (reference counts without atomics), while the last reference to its bytes may
//! fall on any shard. So the result itself stays here, in a slot of the shard's [`Lender`], and what goes out holds the
//! slot's number: dropping it anywhere sends the number back, and the shard frees the slot at its next loan. Memory on loan
//! is never written: the event loop gives it to nobody else while its result lives.
//!
//! A shard lends at most a part of its registered memory ([`may_lend`]), since writes need the rest; slow clients can hold
//! all of that, and then reads are copied into pooled memory as before. What is still out when the shard's thread ends is
//! never freed: somebody may be reading it.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

use bytes::Bytes;
use flume::{Receiver, Sender};
use glommio::io::ReadResult;

use crate::limits::LENT_READS;

thread_local! {
    static LENDER: Lender = Lender::new();
}

struct Slot {
    result: ReadResult,
    /// What it takes of the registered memory.
    bytes: usize,
}

struct Lender {
    limit: Cell<usize>,
    /// Bytes and number of loans, those included that reads under way may become.
    lent: Cell<usize>,
    loans: Cell<usize>,
    slots: RefCell<Vec<Option<Slot>>>,
    free: RefCell<Vec<usize>>,
    back: Sender<usize>,
    returned: Receiver<usize>,
}

impl Lender {
    fn new() -> Lender {
        let (back, returned) = flume::bounded(LENT_READS);
        Lender {
            limit: Cell::new(0),
            lent: Cell::new(0),
            loans: Cell::new(0),
            slots: RefCell::default(),
            free: RefCell::default(),
            back,
            returned,
        }
    }

    fn take_back(&self) {
        for slot in self.returned.drain() {
            if let Some(gone) = self.slots.borrow_mut()[slot].take() {
                self.give_up(gone.bytes);
            }
            self.free.borrow_mut().push(slot);
        }
    }

    /// Counts a loan of so many bytes, if there is room for it.
    fn reserve(&self, bytes: usize) -> bool {
        self.take_back();
        let has_room = self.loans.get() < LENT_READS && self.lent.get() + bytes <= self.limit.get();
        if has_room {
            self.lent.set(self.lent.get() + bytes);
            self.loans.set(self.loans.get() + 1);
        }
        has_room
    }

    fn give_up(&self, bytes: usize) {
        self.lent.set(self.lent.get() - bytes);
        self.loans.set(self.loans.get() - 1);
    }

    /// Of a loan that was counted.
    fn lend(&self, result: ReadResult, bytes: usize) -> Loan {
        let (at, len) = (result.as_ptr(), result.len());
        let filled = Some(Slot { result, bytes });
        let mut slots = self.slots.borrow_mut();
        let slot = match self.free.borrow_mut().pop() {
            Some(slot) => {
                slots[slot] = filled;
                slot
            }
            None => {
                slots.push(filled);
                slots.len() - 1
            }
        };
        Loan { at, len, slot, back: self.back.clone() }
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        self.take_back();
        self.slots.get_mut().drain(..).flatten().for_each(|slot| std::mem::forget(slot.result));
    }
}

/// The bytes of a read that stays in its slot until this is dropped.
struct Loan {
    at: *const u8,
    len: usize,
    slot: usize,
    back: Sender<usize>,
}

// SAFETY: the memory behind `at` is plain, is not written while its slot is filled, and the slot is emptied only by its own
// shard after this value's drop, or never. The sender may go anywhere.
unsafe impl Send for Loan {}

impl AsRef<[u8]> for Loan {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the read's result is alive in its slot, see above; its memory does not move.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        // There is a place for each slot. An error says that the shard has ended, and then nobody frees it.
        let _ = self.back.try_send(self.slot);
    }
}

/// How many bytes of its registered memory this thread's shard may have on loan.
pub(crate) fn may_lend(bytes: usize) {
    LENDER.with(|lender| lender.limit.set(bytes));
}

/// Room for a read that is about to be made, so that reads under way together stay within the limit too. Goes back when
/// dropped unused.
pub(crate) struct Reservation {
    bytes: usize,
    /// It is this thread's lender that counts it.
    _not_send: PhantomData<*const ()>,
}

/// Room for a read that takes so many bytes of registered memory, if there is any now.
pub(crate) fn reserve(bytes: usize) -> Option<Reservation> {
    // Made only where there is room: dropping one gives its room back.
    LENDER.with(|lender| lender.reserve(bytes)).then(|| Reservation { bytes, _not_send: PhantomData })
}

impl Reservation {
    /// Lends out what was read.
    pub fn lend(self, result: ReadResult) -> Bytes {
        if result.is_empty() {
            return Bytes::new();
        }
        let loan = LENDER.with(|lender| lender.lend(result, self.bytes));
        // The slot has it now.
        std::mem::forget(self);
        Bytes::from_owner(loan)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // A read that is given up as its thread ends finds no lender any more.
        let _ = LENDER.try_with(|lender| lender.give_up(self.bytes));
    }
}

#[cfg(test)]
#[path = "lent_tests.rs"]
mod tests;
