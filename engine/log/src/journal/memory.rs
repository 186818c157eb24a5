//! How much the journal keeps in memory: what is in rounds and not in the segments' files. From half of its bound on, those
//! partitions that have most of it write it out, at the bound rounds wait for them. Their files are not synced for that, but
//! when the ring's file with the same bytes is to come free ([`super::destage`]): one sync covers many such writes.
//!
//! Nobody waits for himself: what is written out asks nothing of the rounds, and where nobody writes (no space, a failed
//! drive) those who wait go the direct way.

use std::cell::Cell;
use std::rc::Rc;

use runtime::clock;

use super::{Journal, State};

/// How many of the journal's partitions are where. In the destager, which other folders' journals use too: those that were
/// asked and not taken up yet, and those with a step under way.
#[derive(Debug, Default)]
pub(crate) struct Whereabouts {
    asked: Cell<u32>,
    under_way: Cell<u32>,
    /// In the ring: those with bytes that their segments do not have durably.
    holders: Cell<u32>,
}

impl Whereabouts {
    pub fn asked(&self, change: i32) {
        count(&self.asked, change);
    }

    pub fn under_way(&self, change: i32) {
        count(&self.under_way, change);
    }

    pub fn hold(&self, change: i32) {
        count(&self.holders, change);
    }

    fn is_any_moving(&self) -> bool {
        self.asked.get() + self.under_way.get() > 0
    }
}

fn count(of: &Cell<u32>, change: i32) {
    let Some(count) = of.get().checked_add_signed(change) else { unreachable!("what ends has begun") };
    of.set(count);
}

impl Journal {
    /// A partition pins other bytes than before.
    pub fn count_pinned(&self, before: u64, now: u64) {
        assert!(self.pinned.get() >= before, "no more is let go than was pinned");
        self.pinned.set(self.pinned.get() - before + now);
    }

    pub fn whereabouts(&self) -> &Whereabouts {
        &self.whereabouts
    }

    /// Most pending bytes of a partition that a round takes. A partition that comes with half of its share of the ring would have
    /// its segment synced once for it anyway: it goes there at once, and its bytes are written once.
    pub(super) fn most_bytes(&self) -> u64 {
        let ring = self.config.file_bytes * self.config.files_max as u64;
        self.config.most_bytes().min(ring / 2 / u64::from(self.whereabouts.holders.get()).max(1))
    }

    pub(super) fn is_short_of_memory(&self) -> bool {
        self.pinned.get() > self.config.memory_bytes
    }

    /// Whether what is written out is waited for, or soon will be.
    pub fn hurries(&self) -> bool {
        let waited_for = self.waits_for_memory.get() || !self.waiting.borrow().is_empty();
        waited_for || self.pinned.get() > self.config.memory_bytes / 4 * 3 || self.state.get() != State::Ready
    }

    pub(super) fn write_out_early(&self) {
        if self.pinned.get() > self.config.memory_bytes / 2 {
            self.write_out();
        }
    }

    /// The batch cache cannot let go of what is only here.
    pub fn relieve(&self) {
        if self.state.get() == State::Ready {
            self.write_out();
        }
    }

    /// Asks those partitions that pin no less than others do on average, unless some that were asked did not begin yet.
    pub(super) fn write_out(&self) {
        if self.whereabouts.asked.get() > 0 {
            return;
        }
        let mut members = self.ring.borrow().members();
        members.retain(|log| log.can_write_out());
        let pinned: u64 = members.iter().map(|log| log.pinned()).sum();
        let share = pinned / members.len().max(1) as u64;
        members.iter().filter(|log| log.pinned() >= share).for_each(|log| log.queue_destage());
    }

    /// Rounds take nothing of partitions until less is pinned; without anybody who writes it would never be.
    pub(super) fn no_memory(self: &Rc<Self>) {
        self.write_out();
        if !self.is_writing_out() {
            return self.hand_over_queue();
        }
        if self.is_asked() {
            self.fullness.begins(clock::now_ns);
        }
        self.let_wait();
        self.waits_for_memory.set(true);
    }

    /// Something is under way whose end is told to [`Self::step_ended`]: a partition writes, or a round is not durable yet, with what
    /// can be written only then.
    fn is_writing_out(&self) -> bool {
        let round_under_way = self.synced_through.get() + 1 < self.sequence.get();
        round_under_way || self.whereabouts.is_any_moving()
    }

    /// A step of a partition's commit ended: there may be memory for those who wait, or nobody left who makes any.
    pub fn step_ended(&self) {
        if self.waits_for_memory.get() && !(self.is_short_of_memory() && self.is_writing_out()) {
            self.waits_for_memory.set(false);
            self.look_again();
        }
    }
}
