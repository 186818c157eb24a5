//! OffsetCommit: where a consumer is, for its successor. On the way of every consumer, every few seconds.
//!
//! One record a partition; visible and answered when durable. Commits of members keep their session alive.

use crate::append::After;
use crate::config::Now;
use crate::coordinator::GroupCoordinator;
use crate::group::{Group, GroupState};
use crate::limits;
use crate::offsets::{CommittedOffset, OffsetChange};
use crate::records::offset_commit;
use crate::request::{CommitPartition, CommitRequest, CommitTopic};
use crate::response::{CommitTopicResult, RecordBytes, Response, Ticket};
use model::ErrorCode;
use std::sync::Arc;

impl GroupCoordinator {
    /// Topics that do not exist are the caller's to answer. GROUP_ID_NOT_FOUND comes back for a generation of an unknown
    /// group: below v9 the caller says ILLEGAL_GENERATION instead.
    pub fn commit(&mut self, now: Now, ticket: Ticket, request: CommitRequest) {
        self.cx.now = now;
        if let Err(error) = self.check_commit(&request) {
            let topics = request.topics.iter().map(|t| unanswered(t, error)).collect();
            return self.cx.reply(ticket, Response::Commit(topics));
        }
        let group_id = request.group_id.clone();
        let (changes, results) = self.make_changes(request);
        if changes.is_empty() {
            self.drop_if_void(&group_id);
            return self.cx.reply(ticket, Response::Commit(results));
        }
        let records: Vec<RecordBytes> = changes.iter().map(offset_commit::record).collect();
        let append = self.cx.append_offsets(records, changes, After::Nothing);
        self.cx.reply_after(Some(append), ticket, Response::Commit(results));
    }

    fn check_commit(&mut self, request: &CommitRequest) -> Result<(), ErrorCode> {
        if self.is_loading() {
            return Err(ErrorCode::CoordinatorLoadInProgress);
        }
        // Kafka lets the empty group id commit, for old clients.
        if request.group_id.len() > limits::MAX_STRING_BYTES {
            return Err(ErrorCode::InvalidGroupId);
        }
        if self.cx.appends.len() >= limits::MAX_APPENDS_IN_FLIGHT {
            return Err(ErrorCode::CoordinatorNotAvailable);
        }
        if !self.groups.contains_key(request.group_id.as_str()) {
            if request.generation_id >= 0 {
                return Err(ErrorCode::GroupIdNotFound);
            }
            if self.groups.len() >= self.cx.config.max_groups {
                return Err(ErrorCode::PolicyViolation);
            }
            self.create_group(&request.group_id);
        }
        let Some(group) = self.groups.get_mut(request.group_id.as_str()) else {
            return Err(ErrorCode::GroupIdNotFound);
        };
        group.check_commit(request)?;
        if matches!(group.state, GroupState::Stable | GroupState::PreparingRebalance) {
            group.renew_session(&mut self.cx, &request.member_id);
        }
        Ok(())
    }

    /// Splits a request into what to write and what to answer.
    fn make_changes(&mut self, request: CommitRequest) -> (Vec<OffsetChange>, Vec<CommitTopicResult>) {
        let (mut changes, mut results) = (Vec::new(), Vec::with_capacity(request.topics.len()));
        let Some(group) = self.groups.get_mut(request.group_id.as_str()) else { return (changes, results) };
        let wall_ms = self.cx.now.wall_ms;
        let expire_timestamp_ms =
            (request.retention_time_ms >= 0).then(|| wall_ms.saturating_add(request.retention_time_ms));
        for topic in request.topics {
            let mut result = unanswered(&topic, ErrorCode::None);
            let name = group.offsets.intern(&topic.name);
            for (i, partition) in topic.partitions.into_iter().enumerate() {
                let room = self.cx.config.max_offsets.saturating_sub(self.cx.offset_count + changes.len());
                let stored = group.offsets.get(&name, partition.partition).is_some();
                if metadata_too_large(&partition, self.cx.config.offset_metadata_max_bytes) {
                    result.partitions[i].1 = ErrorCode::OffsetMetadataTooLarge;
                } else if (room == 0 && !stored) || name.len() > limits::MAX_STRING_BYTES {
                    result.partitions[i].1 = ErrorCode::PolicyViolation;
                } else {
                    group.offsets.begin(&name, partition.partition, topic.topic_id);
                    let index = partition.partition;
                    let value = CommittedOffset {
                        offset: partition.offset,
                        leader_epoch: partition.leader_epoch,
                        metadata: partition.metadata.unwrap_or_default(),
                        commit_timestamp_ms: wall_ms,
                        expire_timestamp_ms,
                        topic_id: topic.topic_id,
                    };
                    let topic = Arc::clone(&name);
                    let value = Some(value);
                    changes.push(OffsetChange { group: group.id.clone(), topic, partition: index, value });
                }
            }
            results.push(result);
        }
        (changes, results)
    }
}

fn unanswered(topic: &CommitTopic, error: ErrorCode) -> CommitTopicResult {
    let partitions = topic.partitions.iter().map(|p| (p.partition, error)).collect();
    CommitTopicResult { name: topic.name.clone(), topic_id: topic.topic_id, partitions }
}

/// Kafka counts UTF-16 units, which are never more than the bytes. What a record's length field cannot say is too large
/// whatever the setting.
fn metadata_too_large(partition: &CommitPartition, max: usize) -> bool {
    let Some(metadata) = &partition.metadata else { return false };
    metadata.len() > limits::MAX_STRING_BYTES || (metadata.len() > max && metadata.encode_utf16().count() > max)
}

impl Group {
    /// Whether the sender may commit: a member of this generation, or anybody while the group is empty.
    fn check_commit(&self, request: &CommitRequest) -> Result<(), ErrorCode> {
        if self.state == GroupState::Dead {
            return Err(ErrorCode::CoordinatorNotAvailable);
        }
        if request.generation_id < 0 && self.state == GroupState::Empty {
            return Ok(());
        }
        let names_itself =
            request.generation_id >= 0 || !request.member_id.is_empty() || request.group_instance_id.is_some();
        if names_itself {
            self.validate_member(&request.member_id, request.group_instance_id.as_deref())?;
            if request.generation_id != self.generation_id {
                return Err(ErrorCode::IllegalGeneration);
            }
        } else if self.state != GroupState::Empty {
            return Err(ErrorCode::UnknownMemberId);
        }
        if self.state == GroupState::CompletingRebalance {
            // The member knows the generation but not yet its partitions: it is to wait and see.
            return Err(ErrorCode::RebalanceInProgress);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "commit_tests.rs"]
mod tests;
