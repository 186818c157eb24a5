//! Brokers, their log directories, producers of partitions, the quorum of the metadata.

use wire::generated::describe_cluster::DescribeClusterRequest;
use wire::generated::describe_log_dirs::{DescribeLogDirsRequest, DescribeLogDirsResult};
use wire::generated::describe_producers::{DescribeProducersRequest, PartitionResponse, ProducerState, TopicRequest};
use wire::generated::describe_quorum::{
    DescribeQuorumRequest, ReplicaState, RequestPartitionData, RequestTopicData, ResponsePartitionData,
};

use super::leaders::at_leaders;
use super::offsets::flat;
use super::retry::{each, whole};
use super::{Admin, Each, by_topic, label, owned};
use crate::cluster::Asked;
use crate::{Broker, ClientError, Destination, TopicPartition};

const METADATA_TOPIC: &str = "__cluster_metadata";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterDescription {
    pub cluster_id: String,
    /// -1: there is none now.
    pub controller: i32,
    /// By node id.
    pub brokers: Vec<DescribedBroker>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedBroker {
    pub broker: Broker,
    /// Registered, but not serving.
    pub is_fenced: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDir {
    pub path: String,
    /// Whether the directory can be used at all.
    pub error: Option<ClientError>,
    /// Of the file system; -1 where an old broker does not say.
    pub total_bytes: i64,
    pub usable_bytes: i64,
    pub replicas: Vec<LogDirReplica>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDirReplica {
    pub partition: TopicPartition,
    pub size_bytes: i64,
    /// How far behind the leader (or, of a future replica, the present one).
    pub offset_lag: i64,
    /// Whether it is being moved to here.
    pub is_future: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveProducer {
    pub producer_id: i64,
    pub producer_epoch: i32,
    /// -1: none.
    pub last_sequence: i32,
    /// -1: none.
    pub last_timestamp_ms: i64,
    /// -1: no transaction is open.
    pub current_txn_start_offset: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumDescription {
    pub leader_id: i32,
    pub leader_epoch: i32,
    pub high_watermark: i64,
    pub voters: Vec<QuorumReplica>,
    pub observers: Vec<QuorumReplica>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuorumReplica {
    pub replica_id: i32,
    pub log_end_offset: i64,
    /// -1 when it is not known.
    pub last_fetch_timestamp_ms: i64,
    /// -1 when it is not known.
    pub last_caught_up_timestamp_ms: i64,
}

impl Admin {
    pub async fn describe_cluster(&self) -> Result<ClusterDescription, ClientError> {
        whole(&self.client, async || {
            let request = DescribeClusterRequest::default();
            let answer = match self.client.ask(Destination::Any, None, &request).await {
                Err(ClientError::UnsupportedApi { .. }) => return self.described_by_metadata().await,
                other => other?,
            };
            let answer = answer.decode()?;
            let message = owned(&answer.error_message);
            ClientError::check_with(answer.error_code, "describing the cluster", message.as_deref())?;
            let mut brokers = Vec::new();
            for one in &answer.brokers {
                let port = u16::try_from(one.port).map_err(|_| ClientError::BadAnswer {
                    reason: format!("broker {} with port {}", one.broker_id, one.port),
                })?;
                let (host, rack) = (one.host.to_string(), owned(&one.rack));
                let broker = Broker { id: one.broker_id, host, port, rack };
                brokers.push(DescribedBroker { broker, is_fenced: one.is_fenced });
            }
            brokers.sort_by_key(|one| one.broker.id);
            let cluster_id = answer.cluster_id.to_string();
            Ok(ClusterDescription { cluster_id, controller: answer.controller_id, brokers })
        })
        .await
    }

    async fn described_by_metadata(&self) -> Result<ClusterDescription, ClientError> {
        let cluster = self.metadata(&Asked::These(std::collections::BTreeSet::new())).await?;
        let brokers = cluster.brokers.into_values().map(|broker| DescribedBroker { broker, is_fenced: false });
        Ok(ClusterDescription {
            cluster_id: cluster.cluster_id.unwrap_or_default(),
            controller: cluster.controller,
            brokers: brokers.collect(),
        })
    }

    /// The log directories of `brokers`, or of all.
    pub async fn describe_log_dirs(&self, brokers: Option<&[i32]>) -> Result<Each<i32, Vec<LogDir>>, ClientError> {
        let nodes = match brokers {
            Some(nodes) => nodes.to_vec(),
            None => whole(&self.client, async || self.client.refresh().await).await?.brokers.keys().copied().collect(),
        };
        each(&self.client, &nodes, async |nodes: &[i32]| {
            let all = nodes.iter().map(async |node| (*node, self.log_dirs_of(*node).await)).collect();
            Ok(runtime::sync::all(all).await)
        })
        .await
    }

    async fn log_dirs_of(&self, node: i32) -> Result<Vec<LogDir>, ClientError> {
        let request = DescribeLogDirsRequest { topics: None };
        let answer = self.client.ask(Destination::Node(node), None, &request).await?;
        let answer = answer.decode()?;
        ClientError::check(answer.error_code, format!("describing the log directories of node {node}"))?;
        Ok(answer.results.iter().map(log_dir).collect())
    }

    /// Producers whose state the leaders hold.
    pub async fn describe_producers(
        &self,
        partitions: &[TopicPartition],
    ) -> Result<Each<TopicPartition, Vec<ActiveProducer>>, ClientError> {
        at_leaders(self, partitions, async |node, partitions: &[TopicPartition]| {
            let topic = |(name, partition_indexes)| TopicRequest { name, partition_indexes };
            let request = DescribeProducersRequest { topics: by_topic(partitions).into_iter().map(topic).collect() };
            let answer = self.client.ask(Destination::Node(node), None, &request).await?;
            let answer = answer.decode()?;
            let topics = answer.topics.iter().map(|topic| (&*topic.name, &topic.partitions[..]));
            Ok(flat(topics, |topic, one: &PartitionResponse<'_>| {
                let partition = TopicPartition { topic: topic.clone(), partition: one.partition_index };
                let message = owned(&one.error_message);
                let what = format!("describing the producers of {}", label(&partition));
                let result = ClientError::check_with(one.error_code, what, message.as_deref());
                (partition, result.map(|()| one.active_producers.iter().map(producer).collect()))
            }))
        })
        .await
    }

    /// The quorum that keeps the cluster's metadata.
    pub async fn describe_quorum(&self) -> Result<QuorumDescription, ClientError> {
        whole(&self.client, async || {
            let partitions = vec![RequestPartitionData { partition_index: 0 }];
            let request =
                DescribeQuorumRequest { topics: vec![RequestTopicData { topic_name: METADATA_TOPIC, partitions }] };
            let answer = self.client.ask(Destination::Controller, None, &request).await?;
            let answer = answer.decode()?;
            let message = owned(&answer.error_message);
            ClientError::check_with(answer.error_code, "describing the quorum", message.as_deref())?;
            let partition = answer.topics.iter().flat_map(|topic| &topic.partitions).next();
            let partition = partition
                .ok_or_else(|| ClientError::BadAnswer { reason: "a quorum without a partition".to_string() })?;
            quorum(partition)
        })
        .await
    }
}

fn quorum(answer: &ResponsePartitionData<'_>) -> Result<QuorumDescription, ClientError> {
    let message = owned(&answer.error_message);
    ClientError::check_with(answer.error_code, "describing the quorum", message.as_deref())?;
    let replica = |one: &ReplicaState| QuorumReplica {
        replica_id: one.replica_id,
        log_end_offset: one.log_end_offset,
        last_fetch_timestamp_ms: one.last_fetch_timestamp,
        last_caught_up_timestamp_ms: one.last_caught_up_timestamp,
    };
    Ok(QuorumDescription {
        leader_id: answer.leader_id,
        leader_epoch: answer.leader_epoch,
        high_watermark: answer.high_watermark,
        voters: answer.current_voters.iter().map(replica).collect(),
        observers: answer.observers.iter().map(replica).collect(),
    })
}

fn log_dir(answer: &DescribeLogDirsResult<'_>) -> LogDir {
    let mut replicas = Vec::new();
    for topic in &answer.topics {
        replicas.extend(topic.partitions.iter().map(|one| LogDirReplica {
            partition: TopicPartition::new(&topic.name, one.partition_index),
            size_bytes: one.partition_size,
            offset_lag: one.offset_lag,
            is_future: one.is_future_key,
        }));
    }
    LogDir {
        path: answer.log_dir.to_string(),
        error: ClientError::check(answer.error_code, format!("log directory {}", answer.log_dir)).err(),
        total_bytes: answer.total_bytes,
        usable_bytes: answer.usable_bytes,
        replicas,
    }
}

fn producer(state: &ProducerState) -> ActiveProducer {
    ActiveProducer {
        producer_id: state.producer_id,
        producer_epoch: state.producer_epoch,
        last_sequence: state.last_sequence,
        last_timestamp_ms: state.last_timestamp,
        current_txn_start_offset: state.current_txn_start_offset,
    }
}
