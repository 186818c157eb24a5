//! Timers of one coordinator: a map ordered by deadline, owned by it.
//!
//! Bound: one entry for each member and pending member, two for each group, one for expiry. A cancelled entry is taken out
//! at once; a heartbeat touches nothing here (the member's deadline moves, and the entry looks at it when it fires).

use std::collections::BTreeMap;
use std::sync::Arc;

/// What to do at a deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// A member's session may be over.
    Session { group: Arc<str>, member: Arc<str> },
    /// A member that was given an id did not come back with it.
    PendingMember { group: Arc<str>, member: Arc<str> },
    /// The delay of a first rebalance is over; it may be extended by what remains.
    InitialRebalance { group: Arc<str>, delay_ms: i64, remaining_ms: i64 },
    /// The rebalance timeout of the join phase.
    Join { group: Arc<str> },
    /// The rebalance timeout of the sync phase.
    Sync { group: Arc<str>, generation_id: i32 },
    /// Time to look for expired offsets.
    Expiry,
}

/// Names an armed timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimerId {
    pub(crate) deadline_ms: i64,
    sequence: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Timers {
    entries: BTreeMap<TimerId, Timer>,
    sequence: u64,
}

impl Timers {
    pub(crate) fn arm(&mut self, deadline_ms: i64, timer: Timer) -> TimerId {
        let id = TimerId { deadline_ms, sequence: self.sequence };
        self.sequence += 1;
        self.entries.insert(id, timer);
        id
    }

    pub(crate) fn cancel(&mut self, id: TimerId) {
        let removed = self.entries.remove(&id);
        debug_assert!(removed.is_some(), "the owner of a timer id forgets it when the timer fires");
    }

    /// Takes out the first timer that is due.
    pub(crate) fn pop_due(&mut self, now_ms: i64) -> Option<Timer> {
        let first = self.entries.first_entry()?;
        (first.key().deadline_ms <= now_ms).then(|| first.remove())
    }

    pub(crate) fn next_deadline_ms(&self) -> Option<i64> {
        self.entries.first_key_value().map(|(id, _)| id.deadline_ms)
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_in_order_of_deadline_then_of_arming() {
        let mut timers = Timers::default();
        let group: Arc<str> = Arc::from("g");
        timers.arm(20, Timer::Expiry);
        timers.arm(10, Timer::Join { group: group.clone() });
        timers.arm(10, Timer::Sync { group: group.clone(), generation_id: 1 });
        assert_eq!(timers.next_deadline_ms(), Some(10));
        assert_eq!(timers.pop_due(9), None);
        assert_eq!(timers.pop_due(10), Some(Timer::Join { group: group.clone() }));
        assert_eq!(timers.pop_due(10), Some(Timer::Sync { group, generation_id: 1 }));
        assert_eq!(timers.pop_due(10), None);
        assert_eq!(timers.pop_due(1000), Some(Timer::Expiry));
        assert_eq!(timers.next_deadline_ms(), None);
    }

    #[test]
    fn cancelled_ones_leave_nothing_behind() {
        let mut timers = Timers::default();
        for round in 0..1000 {
            let id = timers.arm(round, Timer::Expiry);
            timers.cancel(id);
        }
        assert_eq!(timers.len(), 0);
    }
}
