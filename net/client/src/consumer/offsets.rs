//! Questions to leaders about offsets: ListOffsets (by time, or the log's ends) and OffsetForLeaderEpoch (what became of
//! what was read under an older leader). Requests and answers; no I/O.

use std::collections::BTreeMap;
use std::rc::Rc;

use wire::generated::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic};
use wire::generated::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, OffsetForLeaderPartition, OffsetForLeaderTopic,
};

use super::positions::{Lookup, LookupKind};
use crate::{ClientError, TopicPartition};

/// Since 1 an answer is one offset, since 2 there is an isolation level.
pub const LIST_VERSIONS: std::ops::RangeInclusive<i16> = 2..=11;
/// Below 3 only brokers may ask.
pub const EPOCH_VERSIONS: std::ops::RangeInclusive<i16> = 3..=4;

pub const EARLIEST: i64 = -2;
pub const LATEST: i64 = -1;

/// What to ask of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub partition: TopicPartition,
    pub leader_epoch: i32,
    /// Milliseconds since 1970, [`EARLIEST`] or [`LATEST`].
    pub timestamp_ms: i64,
}

/// An offset that ListOffsets found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetAndTimestamp {
    pub offset: i64,
    /// -1 for the log's ends.
    pub timestamp_ms: i64,
    pub leader_epoch: i32,
}

pub fn list_request(questions: &[Question], isolation_level: i8, timeout_ms: i32) -> ListOffsetsRequest<'_> {
    let mut topics: BTreeMap<&Rc<str>, Vec<ListOffsetsPartition>> = BTreeMap::new();
    for one in questions {
        topics.entry(&one.partition.topic).or_default().push(ListOffsetsPartition {
            partition_index: one.partition.partition,
            current_leader_epoch: one.leader_epoch,
            timestamp: one.timestamp_ms,
        });
    }
    ListOffsetsRequest {
        replica_id: -1,
        isolation_level,
        topics: topics.into_iter().map(|(name, partitions)| ListOffsetsTopic { name, partitions }).collect(),
        timeout_ms,
    }
}

/// `Ok(None)`: no record is that new.
pub type Listed = BTreeMap<TopicPartition, Result<Option<OffsetAndTimestamp>, ClientError>>;

pub fn list_outcome(answer: &ListOffsetsResponse<'_>) -> Listed {
    let mut listed = Listed::new();
    for topic in &answer.topics {
        for one in &topic.partitions {
            let what = format!("an offset of partition {} of {}", one.partition_index, topic.name);
            let found = ClientError::check(one.error_code, what).map(|()| {
                (one.offset >= 0).then_some(OffsetAndTimestamp {
                    offset: one.offset,
                    timestamp_ms: one.timestamp,
                    leader_epoch: one.leader_epoch,
                })
            });
            listed.insert(TopicPartition::new(&topic.name, one.partition_index), found);
        }
    }
    listed
}

pub fn epoch_request(lookups: &[Lookup]) -> OffsetForLeaderEpochRequest<'_> {
    let mut topics: BTreeMap<&Rc<str>, Vec<OffsetForLeaderPartition>> = BTreeMap::new();
    for one in lookups {
        let LookupKind::Validation { offset_epoch } = one.kind else { continue };
        topics.entry(&one.partition.topic).or_default().push(OffsetForLeaderPartition {
            partition: one.partition.partition,
            current_leader_epoch: one.leader_epoch,
            leader_epoch: offset_epoch,
        });
    }
    OffsetForLeaderEpochRequest {
        replica_id: -1,
        topics: topics.into_iter().map(|(topic, partitions)| OffsetForLeaderTopic { topic, partitions }).collect(),
    }
}

/// Leader epoch and end offset, by partition.
pub type EpochEnds = BTreeMap<TopicPartition, Result<(i32, i64), ClientError>>;

pub fn epoch_outcome(answer: &OffsetForLeaderEpochResponse<'_>) -> EpochEnds {
    let mut ends = EpochEnds::new();
    for topic in &answer.topics {
        for one in &topic.partitions {
            let what = format!("the leader epochs of partition {} of {}", one.partition, topic.topic);
            let end = ClientError::check(one.error_code, what).map(|()| (one.leader_epoch, one.end_offset));
            ends.insert(TopicPartition::new(&topic.topic, one.partition), end);
        }
    }
    ends
}

#[cfg(test)]
#[path = "offsets_tests.rs"]
mod tests;
