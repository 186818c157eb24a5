//! OffsetFetch: what a group has committed and the log has kept. A read: answered by return value.

use crate::coordinator::GroupCoordinator;
use crate::group::{Group, GroupState};
use crate::offsets::CommittedOffset;
use model::{ErrorCode, LeaderEpoch, Offset, TopicId};

/// A topic that is asked for.
#[derive(Clone, Debug)]
pub struct FetchTopic {
    pub name: String,
    /// The topic's id today, so that what was committed to a deleted one of the same name is not found.
    /// [`TopicId::ZERO`]: any.
    pub topic_id: TopicId,
    pub partitions: Vec<i32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedTopic {
    pub name: String,
    /// As asked for; for "all topics" as committed.
    pub topic_id: TopicId,
    pub partitions: Vec<FetchedOffset>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedOffset {
    pub partition: i32,
    /// -1 when nothing is committed.
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
    pub metadata: String,
}

impl FetchedOffset {
    fn new(partition: i32, committed: Option<&CommittedOffset>) -> FetchedOffset {
        match committed {
            Some(c) => FetchedOffset {
                partition,
                offset: c.offset,
                leader_epoch: c.leader_epoch,
                metadata: c.metadata.clone(),
            },
            None => FetchedOffset {
                partition,
                offset: Offset(-1),
                leader_epoch: LeaderEpoch::UNKNOWN,
                metadata: String::new(),
            },
        }
    }
}

impl GroupCoordinator {
    /// The offsets of these topics, or of all (`None`). An unknown group has committed nothing; that is no error.
    /// `require_stable` makes no difference while there are no transactions.
    pub fn fetch_offsets(&self, group_id: &str, topics: Option<&[FetchTopic]>) -> Result<Vec<FetchedTopic>, ErrorCode> {
        if self.is_loading() {
            return Err(ErrorCode::CoordinatorLoadInProgress);
        }
        let group = self.groups.get(group_id).filter(|g| g.state != GroupState::Dead);
        Ok(match topics {
            Some(topics) => topics.iter().map(|topic| fetch_topic(group, topic)).collect(),
            None => group.map(fetch_all).unwrap_or_default(),
        })
    }
}

fn fetch_topic(group: Option<&Group>, topic: &FetchTopic) -> FetchedTopic {
    let ours = |c: &&CommittedOffset| {
        topic.topic_id == TopicId::ZERO || c.topic_id == TopicId::ZERO || c.topic_id == topic.topic_id
    };
    let find = |partition: i32| group.and_then(|g| g.offsets.get(&topic.name, partition)).filter(ours);
    let partitions = topic.partitions.iter().map(|&p| FetchedOffset::new(p, find(p))).collect();
    FetchedTopic { name: topic.name.clone(), topic_id: topic.topic_id, partitions }
}

/// A topic whose partitions were committed under several ids (deleted and made again) gives one entry for each id.
fn fetch_all(group: &Group) -> Vec<FetchedTopic> {
    let mut fetched: Vec<FetchedTopic> = Vec::with_capacity(group.offsets.topics().len());
    for (name, partitions) in group.offsets.topics() {
        let start = fetched.len();
        for (&partition, committed) in partitions {
            let offset = FetchedOffset::new(partition, Some(committed));
            match fetched[start..].iter_mut().find(|t| t.topic_id == committed.topic_id) {
                Some(topic) => topic.partitions.push(offset),
                None => fetched.push(FetchedTopic {
                    name: name.to_string(),
                    topic_id: committed.topic_id,
                    partitions: vec![offset],
                }),
            }
        }
    }
    fetched
}
