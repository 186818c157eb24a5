//! Who comes when the ring has no room. Where a file is about to come free the partitions wait for it: what they have by then
//! goes into one round, and is written once with what the ring has of them. Those that no round would take go straight to
//! their segments meanwhile, among them who has gathered too much or is waited for ([`Journal::look_again`]); where no file
//! comes free, all do.
//!
//! Nobody waits for himself: a file comes free by what the destager writes, which asks nothing of the queue, but for
//! partitions that have to go the direct way, and those do not wait. What is waited for is bounded by the brake on unwritten
//! bytes. Nothing here is on disk.

use std::rc::Rc;

use runtime::clock;

use super::Journal;
use super::format::ENTRY_LEN;
use crate::limits::BLOCK;
use crate::partition::journaled::Taken;

impl Journal {
    /// What the rounds do not take goes the direct way.
    pub(super) fn hand_over_queue(&self) {
        self.wake_waiting();
        loop {
            let Some(log) = self.queue.borrow_mut().pop_front() else { return };
            log.go_direct(&self.direct);
        }
    }

    /// Those who wait come before those who came since.
    pub(super) fn wake_waiting(&self) {
        let mut waiting = self.waiting.borrow_mut();
        let mut queue = self.queue.borrow_mut();
        while let Some(log) = waiting.pop_back() {
            queue.push_front(log);
        }
        self.waits_for.set(0);
        self.waits_for_memory.set(false);
    }

    /// One of those who wait may have to go direct now: somebody waits for it.
    pub fn look_again(&self) {
        if !self.waiting.borrow().is_empty() {
            self.wake_waiting();
            self.ready.notify();
        }
    }

    /// Somebody waits for a round.
    pub(super) fn is_asked(&self) -> bool {
        let served = self.queue.borrow().is_empty() && self.waiting.borrow().is_empty();
        !(served && self.voids.borrow().is_empty() && self.carries.borrow().is_empty())
    }

    /// Somebody waits for a round, and one of nothing makes room for it.
    pub(super) fn wants_mark(&self) -> bool {
        let over = self.ring.borrow().waits_for_mark(self.round_needed());
        self.is_asked() && over.is_some_and(|lap| self.written_from.get() <= lap)
    }

    /// Length of a round with what the first of those who wait has; 0 where nobody does.
    pub(super) fn round_needed(&self) -> u64 {
        match self.waits_for.get() as u64 {
            0 => 0,
            needs => needs + self.kept_back() + BLOCK,
        }
    }

    /// The last of the room is for what a file cannot come free without: voids and what is carried.
    pub(super) fn kept_back(&self) -> u64 {
        if self.ring.borrow().has_free() { 0 } else { self.config.tight_bytes() / 2 }
    }

    /// The first in the queue does not fit into any round now.
    pub(super) fn no_room(self: &Rc<Self>) {
        if self.is_asked() {
            self.fullness.begins(clock::now_ns);
        }
        if self.make_room() {
            self.progress.notify();
        }
        if !self.frees_soon() {
            return self.hand_over_queue();
        }
        self.let_wait();
        if self.goes_on() {
            self.ready.notify();
        }
    }

    pub(super) fn let_wait(&self) {
        loop {
            let Some(log) = self.queue.borrow_mut().pop_front() else { return };
            match log.take_for_journal(0, self.most_bytes()) {
                Taken::Nothing => {}
                Taken::Direct => log.go_direct(&self.direct),
                Taken::NoRoom { bytes } => {
                    if self.waiting.borrow().is_empty() {
                        self.waits_for.set(bytes + ENTRY_LEN);
                    }
                    self.waiting.borrow_mut().push_back(log);
                }
                Taken::Piece(_) => unreachable!("nothing fits into no room"),
            }
        }
    }

    /// After [`Self::no_room`]: those who wait have a whole file, or need a mark to be made.
    fn goes_on(&self) -> bool {
        !self.waiting.borrow().is_empty() && (self.ring.borrow().has_free() || self.wants_mark())
    }

    /// A file is on its way to be free: nobody has to do more for it than is asked of him already.
    pub(super) fn frees_soon(&self) -> bool {
        let ring = self.ring.borrow();
        self.growing.get() || ring.has_free() || ring.comes_free() || ring.oldest_empties()
    }
}
