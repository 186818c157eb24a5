//! Metadata (key 3): brokers, topics, leaders. Creates unknown topics in the background where that is allowed, and
//! answers error 3 for them this time, as Kafka does.

use metadata::Topic;
use model::{ErrorCode, TopicId};
use wire::generated::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseBroker, MetadataResponsePartition,
    MetadataResponseTopic,
};

use super::Context;
use super::admin::{CLUSTER_OPERATIONS, OPERATIONS_NOT_ASKED, TOPIC_OPERATIONS};
use crate::limits::AUTO_CREATE_PER_REQUEST;
use crate::topics;
use crate::view::{View, is_internal};

pub async fn handle(context: &Context<'_>, request: MetadataRequest<'_>) -> MetadataResponse<'static> {
    let view = context.shard.view();
    let facts = &context.shard.facts;
    let operations = if request.include_topic_authorized_operations { TOPIC_OPERATIONS } else { OPERATIONS_NOT_ASKED };
    let all = match &request.topics {
        None => true,
        Some(topics) => topics.is_empty() && context.version == 0,
    };
    let topics = if all {
        view.image.topics_by_name().map(|topic| describe(topic, operations)).collect()
    } else {
        let named = request.topics.unwrap_or_default();
        let may_create = view.config.topics.auto_create && request.allow_auto_topic_creation;
        name_topics(context, &view, &named, may_create, operations)
    };
    MetadataResponse {
        brokers: brokers(&view),
        cluster_id: Some(facts.cluster_id.clone().into()),
        controller_id: facts.node_id.0,
        topics,
        cluster_authorized_operations: if request.include_cluster_authorized_operations {
            CLUSTER_OPERATIONS
        } else {
            OPERATIONS_NOT_ASKED
        },
        ..MetadataResponse::default()
    }
}

fn brokers(view: &View) -> Vec<MetadataResponseBroker<'static>> {
    let describe = |broker: &std::sync::Arc<metadata::BrokerRegistration>| MetadataResponseBroker {
        node_id: broker.node.0,
        host: broker.host.to_string().into(),
        port: i32::from(broker.port),
        rack: broker.rack.as_ref().map(|rack| rack.to_string().into()),
    };
    view.image.brokers().map(describe).collect()
}

fn name_topics(
    context: &Context<'_>,
    view: &View,
    named: &[MetadataRequestTopic<'_>],
    may_create: bool,
    operations: i32,
) -> Vec<MetadataResponseTopic<'static>> {
    let mut to_create = AUTO_CREATE_PER_REQUEST;
    let answer = |topic: &MetadataRequestTopic<'_>| match topic.name {
        Some(name) => match view.image.topic_by_name(name) {
            Some(topic) => describe(topic, operations),
            None => {
                let error = unknown(name);
                if may_create && error == ErrorCode::UnknownTopicOrPartition && to_create > 0 {
                    to_create -= 1;
                    topics::auto_create(context.shard, name.to_string());
                }
                missing(Some(name), TopicId::ZERO, error)
            }
        },
        None => match view.image.topic(TopicId(topic.topic_id)) {
            Some(topic) => describe(topic, operations),
            None => missing(None, TopicId(topic.topic_id), ErrorCode::UnknownTopicId),
        },
    };
    named.iter().map(answer).collect()
}

fn unknown(name: &str) -> ErrorCode {
    match metadata::topic_name::check_topic_name(name) {
        Ok(()) => ErrorCode::UnknownTopicOrPartition,
        Err(_) => ErrorCode::InvalidTopicException,
    }
}

fn missing(name: Option<&str>, id: TopicId, error: ErrorCode) -> MetadataResponseTopic<'static> {
    MetadataResponseTopic {
        error_code: error.code(),
        name: name.map(|name| name.to_string().into()),
        topic_id: id.0,
        is_internal: name.is_some_and(is_internal),
        topic_authorized_operations: OPERATIONS_NOT_ASKED,
        ..MetadataResponseTopic::default()
    }
}

fn describe(topic: &Topic, operations: i32) -> MetadataResponseTopic<'static> {
    let partition = |(index, state): (usize, &metadata::PartitionState)| MetadataResponsePartition {
        error_code: if state.leader.0 < 0 { ErrorCode::LeaderNotAvailable.code() } else { 0 },
        partition_index: index as i32,
        leader_id: state.leader.0,
        leader_epoch: state.leader_epoch.0,
        replica_nodes: state.replicas.iter().map(|node| node.0).collect(),
        isr_nodes: state.isr.iter().map(|node| node.0).collect(),
        offline_replicas: Vec::new(),
    };
    MetadataResponseTopic {
        error_code: 0,
        name: Some(topic.name.to_string().into()),
        topic_id: topic.id.0,
        is_internal: is_internal(&topic.name),
        partitions: topic.partitions.iter().enumerate().map(partition).collect(),
        topic_authorized_operations: operations,
    }
}
