//! One fetch session with one node (KIP-227): what the broker remembers of us, so that a request names only what changed.
//!
//! Owned by the fetcher. There is one request in flight per node, so what was sent last is what the broker knows; after
//! any doubt about that the next request is a full one that begins again and closes the old session by naming it.

use std::collections::BTreeMap;
use std::rc::Rc;

use wire::generated::fetch::{FetchPartition, FetchRequest, FetchTopic, ForgottenTopic};

use super::config::ConsumerConfig;
use crate::TopicPartition;

/// Where topics begin to be named by id.
const FIRST_WITH_TOPIC_ID: i16 = 13;
const LAST: i16 = 18;
const FIRST: i16 = 4;
const FIRST_WITH_SESSION: i16 = 7;

/// What is to be fetched of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub topic_id: [u8; 16],
    pub fetch_offset: i64,
    pub leader_epoch: i32,
    /// The position's generation, by which the answer is known as current.
    pub generation: u64,
}

/// A topic of a request, and partitions of it.
type Named<T> = Vec<(Rc<str>, [u8; 16], Vec<T>)>;

/// A request, owned.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedFetch {
    pub node: i32,
    pub session_id: i32,
    pub session_epoch: i32,
    pub uses_ids: bool,
    /// Whether the broker may name a follower near us to fetch from.
    pub tells_rack: bool,
    topics: Named<FetchPartition>,
    forgotten: Named<i32>,
}

impl PlannedFetch {
    pub fn versions(&self) -> std::ops::RangeInclusive<i16> {
        if self.uses_ids { FIRST_WITH_TOPIC_ID..=LAST } else { FIRST..=FIRST_WITH_TOPIC_ID - 1 }
    }

    pub fn request<'a>(&'a self, config: &'a ConsumerConfig) -> FetchRequest<'a> {
        FetchRequest {
            max_wait_ms: config.fetch_max_wait_ms,
            min_bytes: config.fetch_min_bytes,
            max_bytes: config.fetch_max_bytes,
            isolation_level: config.isolation_level.number(),
            session_id: self.session_id,
            session_epoch: self.session_epoch,
            topics: self
                .topics
                .iter()
                .map(|(topic, id, partitions)| FetchTopic { topic, topic_id: *id, partitions: partitions.clone() })
                .collect(),
            forgotten_topics_data: self
                .forgotten
                .iter()
                .map(|(topic, id, partitions)| ForgottenTopic { topic, topic_id: *id, partitions: partitions.clone() })
                .collect(),
            rack_id: config.client_rack.as_deref().filter(|_| self.tells_rack).unwrap_or(""),
            ..FetchRequest::default()
        }
    }

    /// Partitions named, and partitions forgotten: for tests and figures.
    pub fn counts(&self) -> (usize, usize) {
        let named = self.topics.iter().map(|topic| topic.2.len()).sum();
        (named, self.forgotten.iter().map(|topic| topic.2.len()).sum())
    }
}

#[derive(Debug, Default)]
pub struct FetchSession {
    /// 0: none.
    id: i32,
    /// 0: the next request is full.
    epoch: i32,
    uses_ids: bool,
    /// What the broker was last told.
    sent: BTreeMap<TopicPartition, Wanted>,
    names: BTreeMap<[u8; 16], Rc<str>>,
}

impl FetchSession {
    /// The next request, in the order of `wanted` where partitions are named anew. `version` is the newest that the node
    /// and we speak.
    pub fn plan(
        &mut self,
        node: i32,
        version: i16,
        wanted: Vec<(TopicPartition, Wanted)>,
        max_bytes: i32,
    ) -> PlannedFetch {
        let uses_ids = version >= FIRST_WITH_TOPIC_ID && wanted.iter().all(|(_, one)| one.topic_id != [0; 16]);
        if uses_ids != self.uses_ids {
            self.epoch = 0;
            self.uses_ids = uses_ids;
        }
        let has_sessions = version >= FIRST_WITH_SESSION;
        let is_full = self.epoch == 0 || !has_sessions;
        if is_full {
            self.sent.clear();
            self.names.clear();
        }
        let mut planned = PlannedFetch {
            node,
            session_id: if has_sessions { self.id } else { 0 },
            session_epoch: if has_sessions { self.epoch } else { -1 },
            uses_ids,
            tells_rack: true,
            topics: Vec::new(),
            forgotten: self.forget(&wanted),
        };
        for (partition, one) in wanted {
            let before = self.sent.insert(partition.clone(), one.clone());
            let is_known = before.is_some_and(|before| {
                (before.fetch_offset, before.leader_epoch) == (one.fetch_offset, one.leader_epoch)
            });
            if !is_known {
                let fetch = FetchPartition {
                    partition: partition.partition,
                    current_leader_epoch: one.leader_epoch,
                    fetch_offset: one.fetch_offset,
                    partition_max_bytes: max_bytes,
                    ..FetchPartition::default()
                };
                push(&mut planned.topics, &partition.topic, one.topic_id, fetch);
            }
            self.names.entry(one.topic_id).or_insert_with(|| partition.topic.clone());
        }
        planned
    }

    /// Takes out what is no longer wanted, or wanted under another topic id (a topic made anew). Where topics go by name
    /// the latter is the same partition to the broker, which would forget what the very request names.
    fn forget(&mut self, wanted: &[(TopicPartition, Wanted)]) -> Named<i32> {
        let wanted: BTreeMap<&TopicPartition, &Wanted> = wanted.iter().map(|(key, value)| (key, value)).collect();
        let mut forgotten = Vec::new();
        let uses_ids = self.uses_ids;
        self.sent.retain(|partition, one| {
            let stays = wanted.get(partition).is_some_and(|now| !uses_ids || now.topic_id == one.topic_id);
            if !stays {
                push(&mut forgotten, &partition.topic, one.topic_id, partition.partition);
            }
            stays
        });
        forgotten
    }

    /// What was asked for of a partition that an answer names.
    pub fn asked(&self, topic: &str, topic_id: &[u8; 16], partition: i32) -> Option<(TopicPartition, &Wanted)> {
        let topic: Rc<str> = match self.uses_ids {
            true => self.names.get(topic_id)?.clone(),
            false => topic.into(),
        };
        let (key, wanted) = self.sent.get_key_value(&TopicPartition { topic, partition })?;
        Some((key.clone(), wanted))
    }

    /// The answer was whole: the session goes on as the broker says. False: the answer is of another session.
    pub fn answered(&mut self, session_id: i32) -> bool {
        if self.epoch > 0 && session_id != self.id {
            self.begin_again();
            return false;
        }
        self.id = session_id;
        self.epoch = match (session_id, self.epoch) {
            (0, _) => 0,
            (_, i32::MAX) => 1,
            (_, epoch) => epoch + 1,
        };
        true
    }

    /// What the broker knows is in doubt; the next request is full and closes the old session.
    pub fn begin_again(&mut self) {
        self.epoch = 0;
    }

    /// The broker does not know the session.
    pub fn forgotten_by_broker(&mut self) {
        (self.id, self.epoch) = (0, 0);
    }
}

fn push<T>(topics: &mut Named<T>, topic: &Rc<str>, id: [u8; 16], partition: T) {
    match topics.iter_mut().rev().find(|last| last.0 == *topic && last.1 == id) {
        Some(found) => found.2.push(partition),
        None => topics.push((topic.clone(), id, vec![partition])),
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
