//! Fetch sessions (KIP-227): what a client fetches, so that it need not say so each time.
//!
//! A session lives on the shard whose connection made it; its id says which, so that another connection may go on with
//! it. Ids are unique over all shards. Bounded by `max.incremental.fetch.session.cache.slots` for each shard: the session
//! that was silent longest makes room, and its client begins a new one.

use std::cell::RefCell;
use std::collections::BTreeMap;

use model::PartitionKey;

/// One partition of a session, with what the client was told last.
#[derive(Clone, Debug)]
pub struct SessionPartition {
    pub key: PartitionKey,
    pub fetch_offset: i64,
    pub current_leader_epoch: i32,
    pub last_fetched_epoch: i32,
    pub max_bytes: i32,
    pub high_watermark: i64,
    pub log_start_offset: i64,
}

/// A session's partitions in the order in which they are served: those that gave data move to the end, so that each
/// gets its turn however small the client's limit is.
#[derive(Debug, Default)]
pub struct Session {
    pub epoch: i32,
    order: BTreeMap<u64, SessionPartition>,
    place: BTreeMap<PartitionKey, u64>,
    next_place: u64,
    last_used_ms: i64,
}

impl Session {
    pub fn partitions(&self) -> impl Iterator<Item = &SessionPartition> {
        self.order.values()
    }

    pub fn put(&mut self, mut partition: SessionPartition) {
        match self.place.get(&partition.key) {
            Some(place) => {
                if let Some(known) = self.order.get_mut(place) {
                    partition.high_watermark = known.high_watermark;
                    partition.log_start_offset = known.log_start_offset;
                    *known = partition;
                }
            }
            None => {
                self.place.insert(partition.key, self.next_place);
                self.order.insert(self.next_place, partition);
                self.next_place += 1;
            }
        }
    }

    pub fn forget(&mut self, key: PartitionKey) {
        if let Some(place) = self.place.remove(&key) {
            self.order.remove(&place);
        }
    }

    /// Notes what was sent; gives whether the client has to hear of it at all.
    pub fn sent(
        &mut self,
        key: PartitionKey,
        high_watermark: i64,
        log_start_offset: i64,
        has_data: bool,
        is_error: bool,
    ) -> bool {
        let Some(&place) = self.place.get(&key) else { return true };
        let Some(known) = self.order.get_mut(&place) else { return true };
        let changed = known.high_watermark != high_watermark || known.log_start_offset != log_start_offset;
        known.high_watermark = if is_error { -1 } else { high_watermark };
        known.log_start_offset = if is_error { -1 } else { log_start_offset };
        if has_data && let Some(partition) = self.order.remove(&place) {
            self.place.insert(key, self.next_place);
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
}

/// A shard's sessions.
#[derive(Debug)]
pub struct Sessions {
    slots: usize,
    sessions: RefCell<BTreeMap<i32, Session>>,
}

impl Sessions {
    pub fn new(slots: usize) -> Sessions {
        Sessions { slots, sessions: RefCell::default() }
    }

    /// Keeps a new session under `id`. `false`: there is no room, and the client goes on without one.
    pub fn insert(&self, id: i32, mut session: Session, now_ms: i64) -> bool {
        if self.slots == 0 {
            return false;
        }
        let mut sessions = self.sessions.borrow_mut();
        if sessions.len() >= self.slots {
            let oldest = sessions.iter().min_by_key(|(_, s)| s.last_used_ms).map(|(&id, _)| id);
            oldest.map(|id| sessions.remove(&id));
        }
        session.last_used_ms = now_ms;
        session.epoch = 1;
        sessions.insert(id, session);
        true
    }

    pub fn remove(&self, id: i32) {
        self.sessions.borrow_mut().remove(&id);
    }

    /// Looks at a session if its epoch is the expected one, which then moves on.
    pub fn advance<T>(
        &self,
        id: i32,
        epoch: i32,
        now_ms: i64,
        work: impl FnOnce(&mut Session) -> T,
    ) -> Result<T, SessionError> {
        let mut sessions = self.sessions.borrow_mut();
        let session = sessions.get_mut(&id).ok_or(SessionError::NotFound)?;
        if session.epoch != epoch {
            return Err(SessionError::InvalidEpoch);
        }
        session.epoch = if epoch == i32::MAX { 1 } else { epoch + 1 };
        session.last_used_ms = now_ms;
        Ok(work(session))
    }

    /// Looks at a session whatever its epoch; `None` when it is gone.
    pub fn with<T>(&self, id: i32, work: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.sessions.borrow_mut().get_mut(&id).map(work)
    }
}
