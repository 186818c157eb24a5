//! Making topics: for CreateTopics, for Metadata's auto-creation and for the broker's own.

use std::rc::Rc;
use std::sync::Arc;

use metadata::{Command, Outcome, Rejection};
use model::{ErrorCode, NodeId, TopicId};
use runtime::random;

use crate::cluster::ChangeError;
use crate::shard::Shard;
use crate::view::{OFFSETS_TOPIC, View, is_internal};

/// A topic to be made.
#[derive(Clone, Debug)]
pub struct NewTopic {
    pub name: String,
    /// Replicas by partition; the first of each leads.
    pub assignments: Vec<Vec<NodeId>>,
    pub configs: Vec<(String, String)>,
}

/// Spreads `partitions` with `replicas` copies each over the registered brokers, as Kafka does without racks: leaders
/// go round, followers stand behind them.
pub fn assign(view: &View, first: usize, partitions: usize, replicas: usize) -> Result<Vec<Vec<NodeId>>, ErrorCode> {
    let nodes: Vec<NodeId> = view.image.brokers().map(|broker| broker.node).collect();
    if replicas == 0 || replicas > nodes.len() {
        return Err(ErrorCode::InvalidReplicationFactor);
    }
    let node = |at: usize| nodes[at % nodes.len()];
    Ok((first..first + partitions).map(|p| (p..p + replicas).map(node).collect()).collect())
}

/// Agrees on a new topic; resolves once every shard holds the image with it.
pub async fn create(shard: &Rc<Shard>, topic: NewTopic) -> Result<TopicId, ChangeError> {
    let id = TopicId::from_random(random::bytes());
    let text = |pair: (String, String)| (Arc::from(pair.0), Arc::from(pair.1));
    let command = Command::CreateTopic {
        name: topic.name.into(),
        id,
        assignments: topic.assignments,
        configs: topic.configs.into_iter().map(text).collect(),
    };
    match shard.change(command).await? {
        Outcome::TopicCreated { id } => Ok(id),
        _ => Ok(id),
    }
}

/// The topic that a client named in Metadata and that does not exist: made in the background with the broker's defaults.
pub fn auto_create(shard: &Rc<Shard>, name: String) {
    if is_internal(&name) {
        return;
    }
    let shard = shard.clone();
    runtime::spawn("auto-create topic", async move {
        let view = shard.view();
        let topics = &view.config.topics;
        let replicas = topics.default_replication_factor.max(1) as usize;
        let Ok(assignments) = assign(&view, 0, topics.num_partitions.max(1) as usize, replicas) else { return };
        let topic = NewTopic { name: name.clone(), assignments, configs: Vec::new() };
        match create(&shard, topic).await {
            Ok(_) | Err(ChangeError::Rejected(Rejection::TopicExists { .. })) => {}
            Err(error) => eprintln!("ringlog: topic {name} was not created: {}", error.message()),
        }
    });
}

/// Makes the topic of committed offsets when it is first needed. Its number of partitions is fixed from then on.
pub async fn ensure_offsets_topic(shard: &Rc<Shard>) -> Result<(), ErrorCode> {
    let view = shard.view();
    if view.image.topic_by_name(OFFSETS_TOPIC).is_some() {
        return Ok(());
    }
    let groups = &view.config.groups;
    let replicas = usize::try_from(groups.offsets_topic_replication_factor)
        .unwrap_or(1)
        .clamp(1, view.image.broker_count().max(1));
    let assignments = assign(&view, 0, groups.offsets_topic_num_partitions.max(1) as usize, replicas)?;
    let configs = vec![
        ("cleanup.policy".to_string(), "compact".to_string()),
        ("compression.type".to_string(), "producer".to_string()),
        ("segment.bytes".to_string(), groups.offsets_topic_segment_bytes.to_string()),
    ];
    match create(shard, NewTopic { name: OFFSETS_TOPIC.to_string(), assignments, configs }).await {
        Ok(_) | Err(ChangeError::Rejected(Rejection::TopicExists { .. })) => Ok(()),
        Err(error) => {
            eprintln!("ringlog: {OFFSETS_TOPIC} was not created: {}", error.message());
            Err(ErrorCode::CoordinatorNotAvailable)
        }
    }
}
