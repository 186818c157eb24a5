//! Commits: which offsets, their requests and answers, and what waits to be sent. No I/O.
//!
//! One commit is under way at a time, so that a later one cannot be overtaken by an earlier one. Asynchronous ones that
//! come meanwhile are merged, the latest offset of a partition wins; so at most one waits, bounded by the partitions.

use std::collections::BTreeMap;
use std::rc::Rc;

use model::ErrorCode;
use wire::generated::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetCommitResponse,
};
use wire::generated::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics, OffsetFetchResponse,
};

use super::fetcher::Fetcher;
use super::positions::State;
use crate::{ClientError, TopicPartition};

/// Names topics by name; newer versions do by id.
pub const COMMIT_VERSIONS: std::ops::RangeInclusive<i16> = 2..=9;
pub const FETCH_VERSIONS: std::ops::RangeInclusive<i16> = 8..=9;
/// Brokers before Kafka 3.0.
pub const OLD_FETCH_VERSIONS: std::ops::RangeInclusive<i16> = 2..=7;

/// A committed offset: that of the next record to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetAndMetadata {
    pub offset: i64,
    /// Of the last record read; -1: not known.
    pub leader_epoch: i32,
    pub metadata: String,
}

impl OffsetAndMetadata {
    pub fn new(offset: i64) -> OffsetAndMetadata {
        OffsetAndMetadata { offset, leader_epoch: -1, metadata: String::new() }
    }
}

pub type Offsets = BTreeMap<TopicPartition, OffsetAndMetadata>;

/// As whom offsets are committed: generation and member id.
pub type Committer = (i32, String);

/// Offsets, and who had them to commit. They are sent as that one or not at all: under a later generation they might go
/// over the head of whoever has the partitions by then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub committer: Committer,
    pub offsets: Offsets,
}

/// What a commit fails with that outlived its generation.
pub fn outlived() -> ClientError {
    ClientError::Broker {
        code: ErrorCode::RebalanceInProgress,
        what: "committing: the group's partitions were spread anew meanwhile".to_string(),
        message: None,
    }
}

/// What is read so far, ready to commit.
pub fn consumed(fetcher: &Fetcher) -> Offsets {
    let mut offsets = Offsets::new();
    for (partition, assigned) in fetcher.positions.iter() {
        if assigned.state == State::Fetching && assigned.offset >= 0 {
            let offset = OffsetAndMetadata {
                offset: assigned.offset,
                leader_epoch: assigned.offset_epoch,
                metadata: String::new(),
            };
            offsets.insert(partition.clone(), offset);
        }
    }
    offsets
}

/// What waits, and when the next automatic commit is due.
#[derive(Debug)]
pub struct CommitState {
    interval_ms: i64,
    next_auto_ms: i64,
    last_auto: Offsets,
    waiting: Option<Commit>,
    is_under_way: bool,
    last_error: Option<ClientError>,
}

impl CommitState {
    pub fn new(interval_ms: i64, now_ms: i64) -> CommitState {
        CommitState {
            interval_ms,
            next_auto_ms: now_ms + interval_ms,
            last_auto: Offsets::new(),
            waiting: None,
            is_under_way: false,
            last_error: None,
        }
    }

    pub fn next_auto_ms(&self) -> i64 {
        self.next_auto_ms
    }

    /// Whether an automatic commit of `offsets` is due; counts as made.
    pub fn auto_due(&mut self, now_ms: i64) -> bool {
        let is_due = now_ms >= self.next_auto_ms;
        if is_due {
            self.next_auto_ms = now_ms + self.interval_ms;
        }
        is_due
    }

    /// False when that is what was committed automatically last.
    pub fn auto_changed(&mut self, offsets: &Offsets) -> bool {
        let is_new = !offsets.is_empty() && self.last_auto != *offsets;
        if is_new {
            self.last_auto = offsets.clone();
        }
        is_new
    }

    /// After a failed automatic commit, the next goes out whether something moved or not.
    pub fn auto_failed(&mut self) {
        self.last_auto.clear();
    }

    /// Queues an asynchronous commit. `committer` is who we are now.
    pub fn push(&mut self, committer: Committer, offsets: Offsets) {
        let mut waiting = self.take_waiting(&committer);
        waiting.extend(offsets);
        self.waiting = Some(Commit { committer, offsets: waiting });
    }

    /// What waits to be sent as `committer`; what was to be sent as somebody that we were before has failed.
    fn take_waiting(&mut self, committer: &Committer) -> Offsets {
        match self.waiting.take() {
            Some(waiting) if waiting.committer == *committer => waiting.offsets,
            Some(_) => {
                self.auto_failed();
                self.note_error(outlived());
                Offsets::new()
            }
            None => Offsets::new(),
        }
    }

    /// Takes the right to send, and what waits. `None`: nothing does, or one is under way.
    pub fn begin_waiting(&mut self) -> Option<Commit> {
        if self.is_under_way {
            return None;
        }
        let waiting = self.waiting.take()?;
        self.is_under_way = true;
        Some(waiting)
    }

    /// Takes the right to send for a synchronous commit. What waits goes first, so it is merged in below.
    /// `committer` is who we are now.
    pub fn begin(&mut self, committer: &Committer, offsets: &Offsets) -> Option<Commit> {
        if self.is_under_way {
            return None;
        }
        self.is_under_way = true;
        let mut merged = self.take_waiting(committer);
        merged.extend(offsets.iter().map(|(partition, offset)| (partition.clone(), offset.clone())));
        Some(Commit { committer: committer.clone(), offsets: merged })
    }

    pub fn end(&mut self, outcome: Result<(), ClientError>) {
        self.is_under_way = false;
        if let Err(error) = outcome {
            self.last_error = Some(error);
        }
    }

    pub fn note_error(&mut self, error: ClientError) {
        self.last_error = Some(error);
    }

    pub fn is_idle(&self) -> bool {
        !self.is_under_way && self.waiting.is_none()
    }

    /// What the last asynchronous or automatic commit failed with, once.
    pub fn take_error(&mut self) -> Option<ClientError> {
        self.last_error.take()
    }
}

fn by_topic<T>(of: &BTreeMap<TopicPartition, T>) -> BTreeMap<&Rc<str>, Vec<(i32, &T)>> {
    let mut topics: BTreeMap<&Rc<str>, Vec<(i32, &T)>> = BTreeMap::new();
    for (partition, value) in of {
        topics.entry(&partition.topic).or_default().push((partition.partition, value));
    }
    topics
}

pub fn commit_request<'a>(
    group_id: &'a str,
    instance_id: Option<&'a str>,
    commit: &'a Commit,
) -> OffsetCommitRequest<'a> {
    let Commit { committer, offsets } = commit;
    let partition = |(index, offset): (i32, &'a OffsetAndMetadata)| OffsetCommitRequestPartition {
        partition_index: index,
        committed_offset: offset.offset,
        committed_leader_epoch: offset.leader_epoch,
        committed_metadata: Some(&offset.metadata),
    };
    OffsetCommitRequest {
        group_id,
        generation_id_or_member_epoch: committer.0,
        member_id: &committer.1,
        group_instance_id: instance_id,
        topics: by_topic(offsets)
            .into_iter()
            .map(|(name, partitions)| OffsetCommitRequestTopic {
                name,
                partitions: partitions.into_iter().map(partition).collect(),
                ..OffsetCommitRequestTopic::default()
            })
            .collect(),
        ..OffsetCommitRequest::default()
    }
}

/// The first error of a commit's answer: what is worst comes first, as retrying does not mend it.
pub fn commit_outcome(answer: &OffsetCommitResponse<'_>) -> Result<(), ClientError> {
    let mut retriable = Ok(());
    for topic in &answer.topics {
        for partition in &topic.partitions {
            let what = format!("committing partition {} of {}", partition.partition_index, topic.name);
            if let Err(error) = ClientError::check(partition.error_code, what) {
                if matches!(commit_fate(&error), CommitFate::Failed) {
                    return Err(error);
                }
                retriable = Err(error);
            }
        }
    }
    retriable
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitFate {
    Retry,
    /// The coordinator has to be found again first.
    RetryElsewhere,
    Failed,
}

pub fn commit_fate(error: &ClientError) -> CommitFate {
    if super::is_broken(error) {
        return CommitFate::RetryElsewhere;
    }
    match error.code() {
        Some(ErrorCode::CoordinatorNotAvailable | ErrorCode::NotCoordinator) => CommitFate::RetryElsewhere,
        Some(
            ErrorCode::CoordinatorLoadInProgress
            | ErrorCode::RequestTimedOut
            | ErrorCode::UnknownTopicOrPartition
            | ErrorCode::UnstableOffsetCommit,
        ) => CommitFate::Retry,
        _ => CommitFate::Failed,
    }
}

/// `is_old`: for versions below 8.
pub fn fetch_request<'a>(
    group_id: &'a str,
    partitions: &'a [TopicPartition],
    is_old: bool,
    require_stable: bool,
) -> OffsetFetchRequest<'a> {
    let mut topics: BTreeMap<&Rc<str>, Vec<i32>> = BTreeMap::new();
    for one in partitions {
        topics.entry(&one.topic).or_default().push(one.partition);
    }
    let topics = topics.into_iter();
    if is_old {
        let topics = topics.map(|(name, partition_indexes)| OffsetFetchRequestTopic { name, partition_indexes });
        // Version 7 alone could say `require_stable`, and an encoder of a lower one refuses it.
        return OffsetFetchRequest { group_id, topics: Some(topics.collect()), ..OffsetFetchRequest::default() };
    }
    let group = OffsetFetchRequestGroup {
        group_id,
        topics: Some(
            topics
                .map(|(name, partition_indexes)| OffsetFetchRequestTopics {
                    name,
                    partition_indexes,
                    ..OffsetFetchRequestTopics::default()
                })
                .collect(),
        ),
        ..OffsetFetchRequestGroup::default()
    };
    OffsetFetchRequest {
        topics: Some(Vec::new()),
        groups: vec![group],
        require_stable,
        ..OffsetFetchRequest::default()
    }
}

/// Committed offsets, or why there are none, by partition; `Ok(None)`: nothing was committed.
pub type Fetched = BTreeMap<TopicPartition, Result<Option<OffsetAndMetadata>, ClientError>>;

pub fn fetch_outcome(answer: &OffsetFetchResponse<'_>) -> Result<Fetched, ClientError> {
    let what = "fetching committed offsets";
    ClientError::check(answer.error_code, what)?;
    let mut fetched = Fetched::new();
    let mut take = |topic: &str, index: i32, code: i16, offset: i64, leader_epoch: i32, metadata: Option<&str>| {
        let what = format!("the committed offset of partition {index} of {topic}");
        let found = ClientError::check(code, what).map(|()| {
            let metadata = metadata.unwrap_or("").to_string();
            (offset >= 0).then_some(OffsetAndMetadata { offset, leader_epoch, metadata })
        });
        fetched.insert(TopicPartition::new(topic, index), found);
    };
    for topic in &answer.topics {
        for one in &topic.partitions {
            let metadata = one.metadata.as_deref();
            take(
                &topic.name,
                one.partition_index,
                one.error_code,
                one.committed_offset,
                one.committed_leader_epoch,
                metadata,
            );
        }
    }
    for group in &answer.groups {
        ClientError::check(group.error_code, what)?;
        for topic in &group.topics {
            for one in &topic.partitions {
                let metadata = one.metadata.as_deref();
                take(
                    &topic.name,
                    one.partition_index,
                    one.error_code,
                    one.committed_offset,
                    one.committed_leader_epoch,
                    metadata,
                );
            }
        }
    }
    Ok(fetched)
}

/// The offsets among `fetched`. `Ok(None)`: the answer left out some partition of `asked`, which says nothing about it.
pub fn offsets_of(fetched: Fetched, asked: &[TopicPartition]) -> Result<Option<Offsets>, ClientError> {
    let is_whole = asked.iter().all(|partition| fetched.contains_key(partition));
    let mut offsets = Offsets::new();
    for (partition, found) in fetched {
        if let Some(found) = found? {
            offsets.insert(partition, found);
        }
    }
    Ok(is_whole.then_some(offsets))
}

#[cfg(test)]
#[path = "commit_tests.rs"]
mod tests;
