//! Questions about partitions go to their leaders: one request for each node, whatever number of partitions it leads, and
//! the nodes at the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::ErrorCode;

use super::retry::each;
use super::topics::described;
use super::{Admin, Each, label};
use crate::cluster::Asked;
use crate::{ClientError, Cluster, TopicPartition};

pub(super) async fn at_leaders<T>(
    admin: &Admin,
    partitions: &[TopicPartition],
    ask: impl AsyncFn(i32, &[TopicPartition]) -> Result<Each<TopicPartition, T>, ClientError>,
) -> Result<Each<TopicPartition, T>, ClientError> {
    each(&admin.client, partitions, async |partitions: &[TopicPartition]| {
        let topics: BTreeSet<Rc<str>> = partitions.iter().map(|one| one.topic.clone()).collect();
        let cluster = admin.metadata(&Asked::These(topics)).await?;
        let mut results = Vec::new();
        let mut by_node: BTreeMap<i32, Vec<TopicPartition>> = BTreeMap::new();
        for partition in partitions {
            match leader(&cluster, partition) {
                Ok(node) => by_node.entry(node).or_default().push(partition.clone()),
                Err(error) => results.push((partition.clone(), Err(error))),
            }
        }
        let asks = by_node.iter().map(async |(node, partitions)| match ask(*node, partitions).await {
            Ok(answers) => answers,
            Err(error) => partitions.iter().map(|one| (one.clone(), Err(error.clone()))).collect(),
        });
        results.extend(runtime::sync::all(asks.collect()).await.into_iter().flatten());
        Ok(results)
    })
    .await
}

fn leader(cluster: &Cluster, partition: &TopicPartition) -> Result<i32, ClientError> {
    described(cluster, &partition.topic)?;
    let TopicPartition { topic, partition: index } = partition;
    if cluster.partition(topic, *index).is_none() {
        return Err(ClientError::Broker {
            code: ErrorCode::UnknownTopicOrPartition,
            what: label(partition),
            message: Some(format!("topic {topic} has no partition {index}")),
        });
    }
    cluster.leader(topic, *index).ok_or_else(|| ClientError::NoLeader { topic: topic.to_string(), partition: *index })
}
