//! Offsets: what groups committed, where partitions begin and end, and moving a partition's beginning.

use std::collections::BTreeMap;
use std::rc::Rc;

use wire::generated::delete_records::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic};
use wire::generated::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsTopic,
};
use wire::generated::offset_commit::{OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use wire::generated::offset_delete::{OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use wire::generated::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};

use super::coordinator::at_coordinator;
use super::leaders::at_leaders;
use super::{Admin, Each, by_topic, label, owned};
use crate::{ClientError, Destination, TopicPartition};

/// Of a consumer, not of a replica.
const CONSUMER: i32 = -1;
/// Of a commit by nobody in particular.
const NO_GENERATION: i32 = -1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    pub offset: i64,
    /// -1 when it was not said.
    pub leader_epoch: i32,
    pub metadata: Option<String>,
}

/// An offset to be committed in a group's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOffset {
    pub partition: TopicPartition,
    pub offset: i64,
    pub metadata: Option<String>,
}

/// Which offset of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetSpec {
    Earliest,
    Latest,
    /// The first record at or after this time, milliseconds since 1970.
    Timestamp(i64),
    /// The record with the highest timestamp.
    MaxTimestamp,
}

impl OffsetSpec {
    fn number(self) -> i64 {
        match self {
            OffsetSpec::Latest => -1,
            OffsetSpec::Earliest => -2,
            OffsetSpec::MaxTimestamp => -3,
            OffsetSpec::Timestamp(ms) => ms.max(0),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedOffset {
    /// -1: no record fits.
    pub offset: i64,
    /// Of the record, for specs by time; -1 otherwise.
    pub timestamp_ms: i64,
    /// -1 when the broker does not say.
    pub leader_epoch: i32,
}

impl Admin {
    /// What `group` committed, for `partitions` or for all; partitions without a commit are left out. A group that does
    /// not exist has none.
    pub async fn committed_offsets(
        &self,
        group: &str,
        partitions: Option<&[TopicPartition]>,
    ) -> Result<Vec<(TopicPartition, CommittedOffset)>, ClientError> {
        at_coordinator(&self.client, group, async |node| {
            let topics = partitions.map(|all| {
                let topic = |(name, partition_indexes)| OffsetFetchRequestTopics {
                    name,
                    partition_indexes,
                    ..OffsetFetchRequestTopics::default()
                };
                by_topic(all).into_iter().map(topic).collect()
            });
            let groups =
                vec![OffsetFetchRequestGroup { group_id: group, topics, ..OffsetFetchRequestGroup::default() }];
            let request = OffsetFetchRequest { topics: Some(Vec::new()), groups, ..OffsetFetchRequest::default() };
            let answer = match self.client.ask(Destination::Node(node), Some(8..=9), &request).await {
                Err(ClientError::UnsupportedApi { .. }) => return self.committed_singly(node, group, partitions).await,
                other => other?,
            };
            let answer = answer.decode()?;
            let mut committed = Committed::new(group);
            for group in answer.groups.iter().filter(|one| one.group_id == group) {
                committed.check(group.error_code)?;
                for topic in &group.topics {
                    for one in &topic.partitions {
                        let (offset, epoch) = (one.committed_offset, one.committed_leader_epoch);
                        committed.take(
                            &topic.name,
                            one.partition_index,
                            one.error_code,
                            offset,
                            epoch,
                            &one.metadata,
                        )?;
                    }
                }
            }
            Ok(committed.all)
        })
        .await
    }

    /// For brokers that answer one group a request.
    async fn committed_singly(
        &self,
        node: i32,
        group: &str,
        partitions: Option<&[TopicPartition]>,
    ) -> Result<Vec<(TopicPartition, CommittedOffset)>, ClientError> {
        let topic = |(name, partition_indexes)| OffsetFetchRequestTopic { name, partition_indexes };
        let topics = partitions.map(|all| by_topic(all).into_iter().map(topic).collect());
        let request = OffsetFetchRequest { group_id: group, topics, ..OffsetFetchRequest::default() };
        let answer = self.client.ask(Destination::Node(node), Some(2..=7), &request).await?;
        let answer = answer.decode()?;
        let mut committed = Committed::new(group);
        committed.check(answer.error_code)?;
        for topic in &answer.topics {
            for one in &topic.partitions {
                let (offset, epoch) = (one.committed_offset, one.committed_leader_epoch);
                committed.take(&topic.name, one.partition_index, one.error_code, offset, epoch, &one.metadata)?;
            }
        }
        Ok(committed.all)
    }

    /// Commits in the name of a group that has no members at the moment.
    pub async fn alter_group_offsets(
        &self,
        group: &str,
        offsets: &[NewOffset],
    ) -> Result<Each<TopicPartition, ()>, ClientError> {
        at_coordinator(&self.client, group, async |node| {
            let mut topics: BTreeMap<&str, Vec<OffsetCommitRequestPartition<'_>>> = BTreeMap::new();
            for one in offsets {
                topics.entry(&one.partition.topic).or_default().push(OffsetCommitRequestPartition {
                    partition_index: one.partition.partition,
                    committed_offset: one.offset,
                    committed_metadata: Some(one.metadata.as_deref().unwrap_or_default()),
                    ..OffsetCommitRequestPartition::default()
                });
            }
            let topic = |(name, partitions)| OffsetCommitRequestTopic { name, partitions, ..Default::default() };
            let request = OffsetCommitRequest {
                group_id: group,
                generation_id_or_member_epoch: NO_GENERATION,
                topics: topics.into_iter().map(topic).collect(),
                ..OffsetCommitRequest::default()
            };
            let answer = self.client.ask(Destination::Node(node), Some(2..=9), &request).await?;
            let answer = answer.decode()?;
            let partitions = answer.topics.iter().flat_map(|topic| {
                topic.partitions.iter().map(|one| (&*topic.name, one.partition_index, one.error_code))
            });
            partition_results(group, "committing", partitions)
        })
        .await
    }

    /// Forgets what a group committed.
    pub async fn delete_group_offsets(
        &self,
        group: &str,
        partitions: &[TopicPartition],
    ) -> Result<Each<TopicPartition, ()>, ClientError> {
        at_coordinator(&self.client, group, async |node| {
            let topic = |(name, indexes): (_, Vec<i32>)| OffsetDeleteRequestTopic {
                name,
                partitions: indexes
                    .into_iter()
                    .map(|index| OffsetDeleteRequestPartition { partition_index: index })
                    .collect(),
            };
            let topics = by_topic(partitions).into_iter().map(topic).collect();
            let request = OffsetDeleteRequest { group_id: group, topics };
            let answer = self.client.ask(Destination::Node(node), None, &request).await?;
            let answer = answer.decode()?;
            ClientError::check(answer.error_code, format!("deleting offsets of group {group}"))?;
            let partitions = answer.topics.iter().flat_map(|topic| {
                topic.partitions.iter().map(|one| (&*topic.name, one.partition_index, one.error_code))
            });
            partition_results(group, "deleting the commit of", partitions)
        })
        .await
    }

    /// One offset of each partition; `read_committed` ends at the first open transaction.
    pub async fn list_offsets(
        &self,
        wanted: &[(TopicPartition, OffsetSpec)],
        read_committed: bool,
    ) -> Result<Each<TopicPartition, ListedOffset>, ClientError> {
        let partitions: Vec<TopicPartition> = wanted.iter().map(|(partition, _)| partition.clone()).collect();
        let specs: BTreeMap<&TopicPartition, i64> = wanted.iter().map(|(one, spec)| (one, spec.number())).collect();
        let has_max = wanted.iter().any(|(_, spec)| *spec == OffsetSpec::MaxTimestamp);
        let versions = if has_max {
            7..=11
        } else if read_committed {
            2..=11
        } else {
            1..=11
        };
        at_leaders(self, &partitions, async |node, partitions: &[TopicPartition]| {
            let mut topics: BTreeMap<&str, Vec<ListOffsetsPartition>> = BTreeMap::new();
            for one in partitions {
                topics.entry(&one.topic).or_default().push(ListOffsetsPartition {
                    partition_index: one.partition,
                    timestamp: specs.get(one).copied().unwrap_or(OffsetSpec::Latest.number()),
                    ..ListOffsetsPartition::default()
                });
            }
            let request = ListOffsetsRequest {
                replica_id: CONSUMER,
                isolation_level: i8::from(read_committed),
                topics: topics.into_iter().map(|(name, partitions)| ListOffsetsTopic { name, partitions }).collect(),
                timeout_ms: self.timeout_ms(),
            };
            let answer = self.client.ask(Destination::Node(node), Some(versions.clone()), &request).await?;
            let answer = answer.decode()?;
            Ok(flat(answer.topics.iter().map(|topic| (&*topic.name, &topic.partitions[..])), listed))
        })
        .await
    }

    /// Deletes the records before each offset (-1: all); gives where each partition begins then.
    pub async fn delete_records(
        &self,
        before: &[(TopicPartition, i64)],
    ) -> Result<Each<TopicPartition, i64>, ClientError> {
        let partitions: Vec<TopicPartition> = before.iter().map(|(partition, _)| partition.clone()).collect();
        let before: BTreeMap<&TopicPartition, i64> = before.iter().map(|(one, offset)| (one, *offset)).collect();
        at_leaders(self, &partitions, async |node, partitions: &[TopicPartition]| {
            let mut topics: BTreeMap<&str, Vec<DeleteRecordsPartition>> = BTreeMap::new();
            for one in partitions {
                let Some(offset) = before.get(one).copied() else { continue };
                let partition = DeleteRecordsPartition { partition_index: one.partition, offset };
                topics.entry(&one.topic).or_default().push(partition);
            }
            let topics = topics.into_iter().map(|(name, partitions)| DeleteRecordsTopic { name, partitions });
            let request = DeleteRecordsRequest { topics: topics.collect(), timeout_ms: self.timeout_ms() };
            let answer = self.client.ask(Destination::Node(node), None, &request).await?;
            let answer = answer.decode()?;
            Ok(flat(answer.topics.iter().map(|topic| (&*topic.name, &topic.partitions[..])), |topic, one| {
                let partition = TopicPartition { topic: topic.clone(), partition: one.partition_index };
                let what = format!("deleting records of {}", label(&partition));
                (partition, ClientError::check(one.error_code, what).map(|()| one.low_watermark))
            }))
        })
        .await
    }
}

fn listed(topic: &Rc<str>, one: &ListOffsetsPartitionResponse) -> (TopicPartition, Result<ListedOffset, ClientError>) {
    let partition = TopicPartition { topic: topic.clone(), partition: one.partition_index };
    let what = format!("asking for an offset of {}", label(&partition));
    let listed = ListedOffset { offset: one.offset, timestamp_ms: one.timestamp, leader_epoch: one.leader_epoch };
    (partition, ClientError::check(one.error_code, what).map(|()| listed))
}

/// Partitions of topics, as answers list them, each made into a result.
pub(super) fn flat<'a, P: 'a, T>(
    topics: impl Iterator<Item = (&'a str, &'a [P])>,
    one: impl Fn(&Rc<str>, &P) -> (TopicPartition, Result<T, ClientError>),
) -> Each<TopicPartition, T> {
    let mut results = Vec::new();
    for (topic, partitions) in topics {
        let topic: Rc<str> = topic.into();
        results.extend(partitions.iter().map(|partition| one(&topic, partition)));
    }
    results
}

/// A coordinator that moved says so for every partition: then the whole call is to be repeated, not a part of it.
fn partition_results<'a>(
    group: &str,
    doing: &str,
    partitions: impl Iterator<Item = (&'a str, i32, i16)>,
) -> Result<Each<TopicPartition, ()>, ClientError> {
    let mut results = Vec::new();
    for (topic, index, code) in partitions {
        let partition = TopicPartition::new(topic, index);
        let what = format!("{doing} {} of group {group}", label(&partition));
        let result = ClientError::check(code, what);
        if let Err(error) = &result
            && error.code().is_some_and(super::retry::is_about_coordinators)
        {
            return Err(error.clone());
        }
        results.push((partition, result));
    }
    Ok(results)
}

/// Gathers an OffsetFetch answer of either form.
struct Committed<'a> {
    group: &'a str,
    all: Vec<(TopicPartition, CommittedOffset)>,
}

impl<'a> Committed<'a> {
    fn new(group: &'a str) -> Committed<'a> {
        Committed { group, all: Vec::new() }
    }

    fn check(&self, code: i16) -> Result<(), ClientError> {
        ClientError::check(code, format!("asking for the offsets of group {}", self.group))
    }

    fn take(
        &mut self,
        topic: &str,
        index: i32,
        code: i16,
        offset: i64,
        leader_epoch: i32,
        metadata: &Option<std::borrow::Cow<'_, str>>,
    ) -> Result<(), ClientError> {
        self.check(code)?;
        if offset >= 0 {
            let committed = CommittedOffset { offset, leader_epoch, metadata: owned(metadata) };
            self.all.push((TopicPartition::new(topic, index), committed));
        }
        Ok(())
    }
}
