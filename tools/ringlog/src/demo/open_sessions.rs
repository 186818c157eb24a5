//! # Visits that may still go on
//!
//! A map from session to what it has done so far, threaded into a list from the one idle for longest to the one seen
//! last. Visits idle for over [`SESSION_IDLE_MS`] of event time are closed; beyond `capacity` the longest idle is closed
//! early. Closing forgets: what a visit adds to the totals was added when it happened.
//!
//! Owned by one [`super::insights`]. Memory: about 70 bytes a visit.

use std::collections::HashMap;

use super::limits::SESSION_IDLE_MS;

/// No slot.
const NONE: u32 = u32::MAX;

/// What a visit has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deeds {
    pub cart: bool,
    pub order: bool,
}

impl Deeds {
    #[must_use]
    pub fn and(self, other: Deeds) -> Deeds {
        Deeds { cart: self.cart || other.cart, order: self.order || other.order }
    }
}

/// A visit as it is kept.
#[derive(Debug, Clone, Copy)]
pub struct OpenSession {
    pub key: u64,
    pub last_ms: i64,
    pub deeds: Deeds,
    older: u32,
    newer: u32,
}

impl OpenSession {
    /// Whether an event at `at_ms` still belongs to this visit.
    #[must_use]
    pub fn reaches(&self, at_ms: i64) -> bool {
        at_ms.saturating_sub(self.last_ms) <= SESSION_IDLE_MS
    }
}

/// The open visits. See the module.
#[derive(Debug, Clone)]
pub struct OpenSessions {
    slots: Vec<OpenSession>,
    free: Vec<u32>,
    by_key: HashMap<u64, u32>,
    oldest: u32,
    newest: u32,
    capacity: usize,
    evicted: u64,
}

impl OpenSessions {
    #[must_use]
    pub fn new(capacity: usize) -> OpenSessions {
        assert!(capacity > 0 && capacity < NONE as usize, "some visits, and slot numbers for all of them");
        OpenSessions {
            slots: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::new(),
            oldest: NONE,
            newest: NONE,
            capacity,
            evicted: 0,
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Visits closed early because there were too many.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Records that visit `key` did `deeds` at `at_ms`. Returns what it had done before, `None` if it is a new visit.
    pub fn touch(&mut self, key: u64, at_ms: i64, deeds: Deeds) -> Option<Deeds> {
        let Some(&slot) = self.by_key.get(&key) else {
            self.open(key, at_ms, deeds);
            return None;
        };
        let session = &mut self.slots[slot as usize];
        let before = session.reaches(at_ms).then_some(session.deeds);
        session.deeds = before.unwrap_or_default().and(deeds);
        session.last_ms = if before.is_some() { session.last_ms.max(at_ms) } else { at_ms };
        if slot != self.newest {
            self.unlink(slot);
            self.link_newest(slot);
        }
        before
    }

    /// Closes what has been idle too long at `now_ms` of event time.
    pub fn close_idle(&mut self, now_ms: i64) {
        while self.oldest != NONE && !self.slots[self.oldest as usize].reaches(now_ms) {
            self.close(self.oldest);
        }
    }

    /// Takes the visits of both, by the time they were last seen, and keeps the latest. Calls `joined` with the deeds
    /// of both sides for each visit that is open on both. Those beyond the
    /// bound are forgotten here without counting as closed early: both sides still know them.
    pub fn merge(&mut self, other: &OpenSessions, mut joined: impl FnMut(Deeds, Deeds)) {
        let mut all: Vec<OpenSession> = Vec::with_capacity(self.len() + other.len());
        for key in self.by_key.keys().chain(other.by_key.keys().filter(|key| self.get(**key).is_none())) {
            match (self.get(*key), other.get(*key)) {
                (Some(ours), Some(theirs)) => all.push(join(ours, theirs, &mut joined)),
                (Some(one), None) | (None, Some(one)) => all.push(*one),
                (None, None) => {}
            }
        }
        all.sort_unstable_by_key(|session| (session.last_ms, session.key));
        let evicted = self.evicted + other.evicted;
        *self = OpenSessions { evicted, ..OpenSessions::new(self.capacity) };
        let forgotten = all.len().saturating_sub(self.capacity);
        for session in &all[forgotten..] {
            self.open(session.key, session.last_ms, session.deeds);
        }
    }

    fn get(&self, key: u64) -> Option<&OpenSession> {
        self.by_key.get(&key).map(|&slot| &self.slots[slot as usize])
    }

    fn open(&mut self, key: u64, at_ms: i64, deeds: Deeds) {
        if self.len() == self.capacity {
            self.close(self.oldest);
            self.evicted += 1;
        }
        let session = OpenSession { key, last_ms: at_ms, deeds, older: NONE, newer: NONE };
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = session;
            slot
        } else {
            self.slots.push(session);
            (self.slots.len() - 1) as u32
        };
        self.by_key.insert(key, slot);
        self.link_newest(slot);
    }

    fn close(&mut self, slot: u32) {
        self.unlink(slot);
        self.by_key.remove(&self.slots[slot as usize].key);
        self.free.push(slot);
    }

    fn link_newest(&mut self, slot: u32) {
        self.slots[slot as usize].older = self.newest;
        self.slots[slot as usize].newer = NONE;
        match self.newest {
            NONE => self.oldest = slot,
            newest => self.slots[newest as usize].newer = slot,
        }
        self.newest = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let OpenSession { older, newer, .. } = self.slots[slot as usize];
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
    }
}

/// One visit seen from two sides; if they are too far apart to be one, the later.
fn join(ours: &OpenSession, theirs: &OpenSession, joined: &mut impl FnMut(Deeds, Deeds)) -> OpenSession {
    let (earlier, later) = if ours.last_ms <= theirs.last_ms { (ours, theirs) } else { (theirs, ours) };
    if !earlier.reaches(later.last_ms) {
        return *later;
    }
    joined(ours.deeds, theirs.deeds);
    OpenSession { deeds: ours.deeds.and(theirs.deeds), ..*later }
}

#[cfg(test)]
#[path = "open_sessions_tests.rs"]
mod tests;
