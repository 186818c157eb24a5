//! CreateTopics (key 19): judged topic by topic, agreed by the quorum, answered once every shard holds the image.

use std::collections::{BTreeMap, BTreeSet};

use metadata::Rejection;
use model::config::{TopicConfig, describe_topic};
use model::{ErrorCode, NodeId, TopicId};
use runtime::random;
use wire::generated::create_topics::{
    CreatableTopic, CreatableTopicConfigs, CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse,
};

use super::Context;
use super::admin::{MAX_NEW_PARTITIONS, Refusal, assignment, in_chunks, names};
use crate::cluster::ChangeError;
use crate::topics::{self, NewTopic};
use crate::view::View;

/// First version that says what was made.
const FIRST_WITH_DETAILS: i16 = 5;

pub async fn handle<'a>(context: &Context<'_>, request: CreateTopicsRequest<'a>) -> CreateTopicsResponse<'a> {
    let view = context.shard.view();
    let named = once(&request.topics);
    let too_many = total_partitions(&view, &request.topics) > MAX_NEW_PARTITIONS;
    let mut accepted: Vec<&str> = Vec::new();
    let mut judged = Vec::with_capacity(named.len());
    for (topic, repeated) in named {
        let new = if too_many {
            Err(Refusal::new(ErrorCode::PolicyViolation, "The request would create too many partitions at once."))
        } else if repeated {
            Err(Refusal::invalid_request("Duplicate topic name."))
        } else {
            judge(&view, topic).and_then(|new| match request.validate_only {
                true => check_collisions(&view, &accepted, topic.name).map(|()| new),
                false => Ok(new),
            })
        };
        if new.is_ok() {
            accepted.push(topic.name);
        }
        judged.push((topic.name, new));
    }
    drop(view);
    let topics = in_chunks(judged, |(name, new)| async move {
        let made = match new {
            Ok(new) => make(context, new, request.validate_only).await,
            Err(refusal) => Err(refusal),
        };
        made.unwrap_or_else(|refusal| refused(name, refusal))
    })
    .await;
    CreateTopicsResponse { throttle_time_ms: 0, topics }
}

/// Topics at their first mention, and whether there is a second one.
fn once<'r, 'a>(topics: &'r [CreatableTopic<'a>]) -> Vec<(&'r CreatableTopic<'a>, bool)> {
    let mut mentions: BTreeMap<&str, usize> = BTreeMap::new();
    topics.iter().for_each(|topic| *mentions.entry(topic.name).or_default() += 1);
    let mut seen = BTreeSet::new();
    topics.iter().filter(|topic| seen.insert(topic.name)).map(|topic| (topic, mentions[topic.name] > 1)).collect()
}

/// What the request would add, as far as it says.
fn total_partitions(view: &View, topics: &[CreatableTopic<'_>]) -> usize {
    let of = |topic: &CreatableTopic<'_>| match (topic.assignments.len(), topic.num_partitions) {
        (0, -1) => usize::try_from(view.config.topics.num_partitions).unwrap_or(0),
        (0, count) => usize::try_from(count).unwrap_or(0),
        (assigned, _) => assigned,
    };
    topics.iter().map(of).fold(0, usize::saturating_add)
}

/// The quorum refuses collisions itself; where it is not asked, this does.
fn check_collisions(view: &View, accepted: &[&str], name: &str) -> Result<(), Refusal> {
    let earlier = accepted.iter().copied().find(|earlier| names::same_metric_name(earlier, name));
    match names::collision(view, name).or(earlier) {
        Some(existing) => Err(names::collides(name, existing)),
        None => Ok(()),
    }
}

fn judge(view: &View, topic: &CreatableTopic<'_>) -> Result<NewTopic, Refusal> {
    names::check_not_reserved(topic.name, "Creation of")?;
    names::check_new(view, topic.name)?;
    let configs = configs(view, topic)?;
    let assignments = assignments(view, topic)?;
    Ok(NewTopic { name: topic.name.to_string(), assignments, configs })
}

/// The last of a key wins, as in Kafka.
fn configs(view: &View, topic: &CreatableTopic<'_>) -> Result<Vec<(String, String)>, Refusal> {
    let nulls: Vec<&str> = topic.configs.iter().filter(|c| c.value.is_none()).map(|c| c.name).collect();
    if !nulls.is_empty() {
        let message = format!("Null value not supported for topic configs: {}", nulls.join(","));
        return Err(Refusal::new(ErrorCode::InvalidConfig, message));
    }
    let pairs: BTreeMap<&str, &str> =
        topic.configs.iter().filter_map(|config| Some((config.name, config.value?))).collect();
    TopicConfig::resolve(&view.config, pairs.iter().map(|(k, v)| (*k, *v)))
        .map_err(|error| Refusal::new(error.code(), error.to_string()))?;
    Ok(pairs.into_iter().map(|(k, v)| (k.to_string(), v.to_string())).collect())
}

fn assignments(view: &View, topic: &CreatableTopic<'_>) -> Result<Vec<Vec<NodeId>>, Refusal> {
    if !topic.assignments.is_empty() {
        return by_hand(view, topic);
    }
    let defaults = &view.config.topics;
    let replicas = match topic.replication_factor {
        -1 => defaults.default_replication_factor,
        count if count > 0 => count,
        _ => {
            let message = "Replication factor must be larger than 0, or -1 to use the default value.";
            return Err(Refusal::new(ErrorCode::InvalidReplicationFactor, message));
        }
    };
    let partitions = match topic.num_partitions {
        -1 => defaults.num_partitions,
        count if count > 0 => count,
        _ => {
            let message = "The number of partitions must be larger than 0, or -1 to use the default value.";
            return Err(Refusal::new(ErrorCode::InvalidPartitions, message));
        }
    };
    let (partitions, replicas) = (partitions.max(1) as usize, replicas.max(1) as usize);
    topics::assign(view, 0, partitions, replicas).map_err(|code| {
        let brokers = view.image.broker_count();
        Refusal::new(code, format!("Replication factor {replicas} is larger than the {brokers} registered broker(s)."))
    })
}

fn by_hand(view: &View, topic: &CreatableTopic<'_>) -> Result<Vec<Vec<NodeId>>, Refusal> {
    if topic.replication_factor != -1 {
        return Err(Refusal::invalid_request("With a replica assignment, the replication factor must be left at -1."));
    }
    if topic.num_partitions != -1 {
        return Err(Refusal::invalid_request(
            "With a replica assignment, the number of partitions must be left at -1.",
        ));
    }
    let given: Vec<(i32, &[i32])> =
        topic.assignments.iter().map(|a| (a.partition_index, a.broker_ids.as_slice())).collect();
    assignment::of_new_topic(&view.image, &given)
}

async fn make<'a>(
    context: &Context<'_>,
    new: NewTopic,
    validate_only: bool,
) -> Result<CreatableTopicResult<'a>, Refusal> {
    let mut result = details(context, &new)?;
    let name = new.name.clone();
    result.topic_id = if validate_only {
        TopicId::from_random(random::bytes()).0
    } else {
        topics::create(context.shard, new).await.map_err(|error| refusal_of(&name, &error))?.0
    };
    Ok(result)
}

fn refusal_of(name: &str, error: &ChangeError) -> Refusal {
    match error {
        ChangeError::Rejected(Rejection::TopicExists { .. }) => names::already_exists(name),
        ChangeError::Rejected(Rejection::NameCollision { existing }) => names::collides(name, existing),
        error => Refusal::new(error.code(), error.message()),
    }
}

fn details<'a>(context: &Context<'_>, new: &NewTopic) -> Result<CreatableTopicResult<'a>, Refusal> {
    let mut result =
        CreatableTopicResult { name: new.name.clone().into(), error_message: None, ..CreatableTopicResult::default() };
    if context.version < FIRST_WITH_DETAILS {
        return Ok(result);
    }
    let own = new.configs.iter().map(|(k, v)| (k.as_str(), v.as_str()));
    let described =
        describe_topic(&context.shard.config(), own).map_err(|error| Refusal::new(error.code(), error.to_string()))?;
    let config = |config: model::config::Described| CreatableTopicConfigs {
        name: config.name.into(),
        value: config.value.map(Into::into),
        read_only: config.read_only,
        config_source: config.source.number(),
        is_sensitive: config.sensitive,
    };
    result.num_partitions = i32::try_from(new.assignments.len()).unwrap_or(i32::MAX);
    let replicas = new.assignments.first().map_or(0, Vec::len);
    result.replication_factor = i16::try_from(replicas).unwrap_or(i16::MAX);
    result.configs = Some(described.into_iter().map(config).collect());
    Ok(result)
}

fn refused<'a>(name: &'a str, refusal: Refusal) -> CreatableTopicResult<'a> {
    CreatableTopicResult {
        name: name.into(),
        error_code: refusal.code.code(),
        error_message: Some(refusal.message.into()),
        ..CreatableTopicResult::default()
    }
}

#[cfg(test)]
#[path = "19_create_topics_tests.rs"]
mod tests;
