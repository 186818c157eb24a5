//! The committed offsets of one group, and the commits on their way to the log. Owned by the group.
//!
//! A commit becomes visible when its record is durable; until then it is only counted here, so that expiry leaves the
//! partition alone and deletions reach it too.

use model::{LeaderEpoch, Offset, TopicId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A committed offset, as its record says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
    pub metadata: String,
    pub commit_timestamp_ms: i64,
    /// Only old clients ask for a moment of expiry of their own.
    pub expire_timestamp_ms: Option<i64>,
    /// [`TopicId::ZERO`] when the record does not say.
    pub topic_id: TopicId,
}

/// A change of one partition's offset that is in the log or on its way.
#[derive(Clone, Debug)]
pub(crate) struct OffsetChange {
    pub(crate) group: Arc<str>,
    pub(crate) topic: Arc<str>,
    pub(crate) partition: i32,
    /// `None` deletes.
    pub(crate) value: Option<CommittedOffset>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    count: u32,
    topic_id: TopicId,
}

#[derive(Debug, Default)]
pub(crate) struct GroupOffsets {
    committed: BTreeMap<Arc<str>, BTreeMap<i32, CommittedOffset>>,
    pending: BTreeMap<(Arc<str>, i32), Pending>,
}

impl GroupOffsets {
    pub(crate) fn get(&self, topic: &str, partition: i32) -> Option<&CommittedOffset> {
        self.committed.get(topic)?.get(&partition)
    }

    /// Topics by name, each with its partitions ascending.
    pub(crate) fn topics(&self) -> &BTreeMap<Arc<str>, BTreeMap<i32, CommittedOffset>> {
        &self.committed
    }

    /// The name as it is shared by what is stored, or a new one.
    pub(crate) fn intern(&self, topic: &str) -> Arc<str> {
        self.committed.get_key_value(topic).map_or_else(|| Arc::from(topic), |(name, _)| name.clone())
    }

    pub(crate) fn is_pending(&self, topic: &Arc<str>, partition: i32) -> bool {
        !self.pending.is_empty() && self.pending.contains_key(&(topic.clone(), partition))
    }

    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(crate) fn is_void(&self) -> bool {
        self.committed.is_empty() && self.pending.is_empty()
    }

    pub(crate) fn begin(&mut self, topic: &Arc<str>, partition: i32, topic_id: TopicId) {
        let pending =
            self.pending.entry((topic.clone(), partition)).or_insert(Pending { count: 0, topic_id: TopicId::ZERO });
        pending.count += 1;
        pending.topic_id = topic_id;
    }

    pub(crate) fn end(&mut self, topic: &Arc<str>, partition: i32) {
        let key = (topic.clone(), partition);
        if let Some(pending) = self.pending.get_mut(&key) {
            pending.count -= 1;
            if pending.count == 0 {
                self.pending.remove(&key);
            }
        }
    }

    /// Applies what the log says. Answers by how much the number of committed offsets changed.
    pub(crate) fn apply(&mut self, topic: &Arc<str>, partition: i32, value: Option<CommittedOffset>) -> isize {
        match value {
            Some(value) => {
                let partitions = self.committed.entry(topic.clone()).or_default();
                if partitions.insert(partition, value).is_none() { 1 } else { 0 }
            }
            None => {
                let Some(partitions) = self.committed.get_mut(topic) else { return 0 };
                let removed = partitions.remove(&partition).is_some();
                if partitions.is_empty() {
                    self.committed.remove(topic);
                }
                if removed { -1 } else { 0 }
            }
        }
    }

    /// Number of committed offsets.
    pub(crate) fn len(&self) -> usize {
        self.committed.values().map(BTreeMap::len).sum()
    }

    /// Every partition that is committed or on its way and whose topic `doomed` names.
    pub(crate) fn select(&self, mut doomed: impl FnMut(&str, TopicId) -> bool) -> Vec<(Arc<str>, i32)> {
        let mut selected = Vec::new();
        for (topic, partitions) in &self.committed {
            for (partition, committed) in partitions {
                if doomed(topic, committed.topic_id) {
                    selected.push((topic.clone(), *partition));
                }
            }
        }
        for ((topic, partition), pending) in &self.pending {
            if self.get(topic, *partition).is_none() && doomed(topic, pending.topic_id) {
                selected.push((topic.clone(), *partition));
            }
        }
        selected
    }
}
