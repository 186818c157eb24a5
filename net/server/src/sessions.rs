//! Fetch sessions (KIP-227): what a client fetches, so that it need not say so each time.
//!
//! A session lives on the shard whose connection made it; its id says which, so that another connection may go on with
//! it. Ids are unique over all shards. Bounded by the shard's part of `max.incremental.fetch.session.cache.slots`, and by
//! [`SESSION_PARTITIONS_PER_SHARD`] over all sessions. A session that was silent for [`SESSION_EVICTION_MS`] makes room,
//! and its client begins a new one; while none was, new clients go on without a session.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use model::{PartitionIndex, PartitionKey, TopicId};

use crate::limits::{SESSION_EVICTION_MS, SESSION_PARTITIONS_PER_SHARD};

/// What a client calls a partition. A topic that is gone or was made again keeps its name, so that the client can still
/// have it forgotten.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionTopic {
    Id(TopicId),
    Name(Arc<str>),
}

/// One partition of a session, with what the client was told last.
#[derive(Clone, Debug)]
pub struct SessionPartition {
    pub key: PartitionKey,
    /// The client's name for the topic; `None`: it says the id.
    pub topic_name: Option<Arc<str>>,
    pub fetch_offset: i64,
    pub current_leader_epoch: i32,
    pub last_fetched_epoch: i32,
    pub max_bytes: i32,
    pub high_watermark: i64,
    pub log_start_offset: i64,
}

impl SessionPartition {
    fn place(&self) -> Place {
        let topic = self.topic_name.clone().map_or(SessionTopic::Id(self.key.topic_id), SessionTopic::Name);
        (topic, self.key.partition)
    }
}

type Place = (SessionTopic, PartitionIndex);

/// A session's partitions in the order in which they are served: those that gave data move to the end, so that each
/// gets its turn however small the client's limit is.
#[derive(Debug, Default)]
pub struct Session {
    pub epoch: i32,
    /// Whether its client names topics by id; it may not change that within a session.
    pub by_topic_id: bool,
    order: BTreeMap<u64, SessionPartition>,
    place: BTreeMap<Place, u64>,
    next_place: u64,
    last_used_ms: i64,
    /// Waits that the partitions' owners keep, if its last request ended without news: shard and ticket.
    pub quiet: Option<Vec<(usize, u64)>>,
}

impl Session {
    pub fn partitions(&self) -> impl Iterator<Item = &SessionPartition> {
        self.order.values()
    }

    pub fn len(&self) -> usize {
        self.order.len()
    }

    pub fn put(&mut self, mut partition: SessionPartition) {
        let place = partition.place();
        match self.place.get(&place) {
            Some(place) => {
                if let Some(known) = self.order.get_mut(place) {
                    // Of a topic that was made again the client was told nothing yet.
                    if known.key == partition.key {
                        partition.high_watermark = known.high_watermark;
                        partition.log_start_offset = known.log_start_offset;
                    }
                    *known = partition;
                }
            }
            None => {
                self.place.insert(place, self.next_place);
                self.order.insert(self.next_place, partition);
                self.next_place += 1;
            }
        }
    }

    pub fn forget(&mut self, topic: SessionTopic, partition: PartitionIndex) {
        if let Some(place) = self.place.remove(&(topic, partition)) {
            self.order.remove(&place);
        }
    }

    /// Notes what was sent; gives whether the client has to hear of it at all.
    pub fn sent(
        &mut self,
        partition: &SessionPartition,
        high_watermark: i64,
        log_start_offset: i64,
        has_data: bool,
        is_error: bool,
    ) -> bool {
        let name = partition.place();
        let Some(&place) = self.place.get(&name) else { return true };
        let Some(known) = self.order.get_mut(&place) else { return true };
        let changed = known.high_watermark != high_watermark || known.log_start_offset != log_start_offset;
        known.high_watermark = if is_error { -1 } else { high_watermark };
        known.log_start_offset = if is_error { -1 } else { log_start_offset };
        if has_data && let Some(partition) = self.order.remove(&place) {
            self.place.insert(name, self.next_place);
            self.order.insert(self.next_place, partition);
            self.next_place += 1;
        }
        changed || has_data || is_error
    }
}

/// What a request's session id and epoch ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionError {
    NotFound,
    InvalidEpoch,
    /// Topics by id in a session that was begun by name, or the other way.
    TopicId,
}

/// A shard's sessions.
#[derive(Debug)]
pub struct Sessions {
    /// For the whole process.
    slots: usize,
    sessions: RefCell<BTreeMap<i32, Session>>,
    /// Partitions in all of them.
    partitions: Cell<usize>,
}

impl Sessions {
    pub fn new(slots: usize) -> Sessions {
        Sessions { slots, sessions: RefCell::default(), partitions: Cell::new(0) }
    }

    /// Sessions that are kept.
    pub fn count(&self) -> usize {
        self.sessions.borrow().len()
    }

    /// Keeps a new session under `id` if this shard, one of `shards`, has room. `false`: the client goes on without one.
    pub fn insert(&self, id: i32, mut session: Session, shards: usize, now_ms: i64) -> bool {
        if self.slots == 0 || !self.make_room(session.len(), (self.slots / shards).max(1), now_ms) {
            return false;
        }
        session.last_used_ms = now_ms;
        session.epoch = 1;
        self.partitions.set(self.partitions.get() + session.len());
        let replaced = self.sessions.borrow_mut().insert(id, session);
        self.partitions.set(self.partitions.get() - replaced.map_or(0, |s| s.len()));
        true
    }

    /// Drops sessions that were silent for long until one with `partitions` fits. `false`: those left are all in use.
    fn make_room(&self, partitions: usize, slots: usize, now_ms: i64) -> bool {
        if partitions > SESSION_PARTITIONS_PER_SHARD {
            return false;
        }
        while self.sessions.borrow().len() >= slots || self.partitions.get() + partitions > SESSION_PARTITIONS_PER_SHARD
        {
            let oldest = self.sessions.borrow().iter().map(|(&id, s)| (s.last_used_ms, id)).min();
            match oldest {
                Some((last_used_ms, id)) if now_ms - last_used_ms > SESSION_EVICTION_MS => self.remove(id),
                _ => return false,
            }
        }
        true
    }

    pub fn remove(&self, id: i32) {
        let removed = self.sessions.borrow_mut().remove(&id);
        self.partitions.set(self.partitions.get() - removed.map_or(0, |s| s.len()));
    }

    /// Looks at a session if its epoch is the expected one, which then moves on. A session that grows beyond what the shard
    /// may hold is given up: its client begins anew and is told that there is no room.
    pub fn advance<T>(
        &self,
        id: i32,
        epoch: i32,
        by_topic_id: bool,
        now_ms: i64,
        work: impl FnOnce(&mut Session) -> T,
    ) -> Result<T, SessionError> {
        let mut sessions = self.sessions.borrow_mut();
        let session = sessions.get_mut(&id).ok_or(SessionError::NotFound)?;
        if session.epoch != epoch {
            return Err(SessionError::InvalidEpoch);
        }
        if session.by_topic_id != by_topic_id {
            return Err(SessionError::TopicId);
        }
        session.epoch = if epoch == i32::MAX { 1 } else { epoch + 1 };
        session.last_used_ms = now_ms;
        let before = session.len();
        let result = work(session);
        let partitions = self.partitions.get() - before + session.len();
        let grown = session.len() > before;
        drop(sessions);
        self.partitions.set(partitions);
        if grown && partitions > SESSION_PARTITIONS_PER_SHARD {
            self.remove(id);
            return Err(SessionError::NotFound);
        }
        Ok(result)
    }

    /// Looks at a session whatever its epoch, without adding to it; `None` when it is gone.
    pub fn with<T>(&self, id: i32, work: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.sessions.borrow_mut().get_mut(&id).map(work)
    }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
