//! How the ring's files come free: the partitions with bytes in the oldest one write their segments as far as they have not yet (a few
//! at a time) and sync them, and once all of them have, the file may be written again. It begins early enough that rounds
//! seldom meet a full ring; when they do, their partitions wait for it ([`super::room`]).
//!
//! A poisoned partition cannot write its segment. What was acknowledged of it is carried forward into the newest lap, so
//! that a start finds it; a deleted one needs nothing.

use std::rc::Rc;

use super::{Journal, State};
use crate::partition::PartitionLog;

impl Journal {
    pub(super) async fn destage_loop(self: Rc<Self>) {
        loop {
            let seen = self.progress.version();
            let mut again = false;
            match self.state.get() {
                State::Ready => again = self.make_room(),
                State::Broken => self.leave_ring().await,
                State::Off | State::Preparing => {}
                State::Stopped => return,
            }
            if !again {
                self.progress.changed_since(seen).await;
            }
        }
    }

    /// Gives whether there is more to do at once.
    pub(super) fn make_room(self: &Rc<Self>) -> bool {
        let (retired, freed) = {
            let mut ring = self.ring.borrow_mut();
            (ring.retire(), ring.release(self.counted_from.get()))
        };
        if retired + freed > 0 {
            // A round may have to say that a file is over, or has a file again.
            self.ready.notify();
        }
        if freed > 0 {
            self.full_grown.set(false);
        }
        let (files, needed, free, rest) = {
            let ring = self.ring.borrow();
            (ring.file_count(), ring.needed_laps(), ring.has_free() || ring.comes_free(), ring.current_rest())
        };
        let whole = files == self.config.files_max || self.full_grown.get();
        if !free && !whole && rest < self.config.file_bytes / 2 && needed > 0 {
            self.grow();
        }
        let crowded = whole && needed > 1 && needed * 4 >= files * 3;
        let stuck = whole && !free && rest < self.config.tight_bytes();
        // The only file: even the one under way is emptied, as far as it is.
        let closes = needed == 1 && stuck && self.ring.borrow_mut().close_current();
        if crowded || stuck {
            self.empty_oldest();
        }
        let failed_only = || {
            let members = self.ring.borrow().members();
            !members.is_empty() && members.iter().all(|log| log.failure().is_some())
        };
        if stuck && !self.voids.borrow().is_empty() && freed == 0 && failed_only() {
            // What they hold has no room in newer laps: nobody can be told that older entries do not count.
            self.give_up_voids(false);
        }
        if !self.frees_soon() {
            // Whom they waited for is not coming any more, or there is room.
            self.look_again();
        }
        retired + freed > 0 || closes
    }

    fn empty_oldest(self: &Rc<Self>) {
        let members: Vec<Rc<PartitionLog>> = {
            let mut ring = self.ring.borrow_mut();
            match ring.oldest() {
                Some(lap) if !lap.emptying => {
                    lap.emptying = true;
                    lap.members.values().cloned().collect()
                }
                _ => return,
            }
        };
        self.request_all(&members);
    }

    fn request_all(&self, members: &[Rc<PartitionLog>]) {
        let mut stats = self.stats.get();
        stats.destages += members.len() as u64;
        self.stats.set(stats);
        for log in members {
            if log.failure().is_some() {
                self.carry(log.clone());
            } else {
                log.request_destage();
            }
        }
    }

    /// A poisoned partition's acknowledged bytes move to the newest lap.
    fn carry(&self, log: Rc<PartitionLog>) {
        self.carries.borrow_mut().push_back(log);
        self.ready.notify();
    }

    /// A poisoned partition has bytes in a file that is to come free.
    pub fn failed(&self, log: Rc<PartitionLog>, oldest_lap: u64) {
        let emptying = self.ring.borrow().lap(oldest_lap).is_some_and(|lap| lap.emptying);
        if emptying && self.state.get() == State::Ready {
            self.carry(log);
        }
        self.progress.notify();
    }

    /// A partition has nothing in this lap any more that its segments do not have.
    pub fn done_with(&self, log_id: u64, lap: u64) {
        let mut ring = self.ring.borrow_mut();
        if let Some(lap) = ring.lap_mut(lap) {
            lap.members.remove(&log_id);
            if lap.has_only_failed() {
                self.progress.notify();
            }
        }
    }

    /// Whether the file of this lap is to come free.
    pub fn is_emptying(&self, lap: u64) -> bool {
        self.state.get() == State::Broken || self.ring.borrow().lap(lap).is_some_and(|lap| lap.emptying)
    }

    /// After a failure: everyone goes to the segments, and when all are there the ring is given up.
    async fn leave_ring(self: &Rc<Self>) {
        let members = self.ring.borrow().members();
        if !members.is_empty() {
            let (failed, sound): (Vec<_>, Vec<_>) = members.into_iter().partition(|log| log.failure().is_some());
            sound.iter().for_each(|log| log.request_destage());
            if sound.is_empty() && !failed.is_empty() {
                // These stay in the ring for the next start; nobody can be told that it is not needed.
                self.give_up_voids(false);
            }
            return;
        }
        if self.growing.get() {
            // A file on its way writes down that the ring counts, which must not come after that it does not. Its end is
            // progress.
            return;
        }
        let retired = self.retire().await.is_ok();
        if retired {
            self.state.set(State::Stopped);
        }
        self.give_up_voids(retired);
        self.ready.notify();
    }
}
