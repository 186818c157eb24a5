//! Changes of configurations (AlterConfigs, IncrementalAlterConfigs): judged here before they are proposed, so that only
//! what the property table accepts is ever agreed.
//!
//! The judge applies the very command to the newest image and resolves what would be in force; the quorum then applies
//! the same command to whatever is newest there. Two changes that only together contradict each other can slip through:
//! whoever reads the configuration keeps the last one that resolves.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use metadata::{Command, ConfigChange, ConfigOp, ConfigResource, Image};
use model::config::{self, BrokerConfig, ConfigError, Kind, Scope, TopicConfig};
use model::{ErrorCode, NodeId};

use super::{Refusal, config_target, in_chunks};
use crate::shard::Shard;
use crate::view::View;

/// One operation on one key. The numbers are the protocol's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op<'a> {
    pub name: &'a str,
    pub operation: i8,
    pub value: Option<&'a str>,
}

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// What one resource of a request asks for.
#[derive(Clone, Debug)]
pub enum Asked<'a> {
    /// These entries and no others.
    Replace(Vec<(&'a str, Option<&'a str>)>),
    Incremental(Vec<Op<'a>>),
}

/// A resource as named in a request, with what it asks for.
#[derive(Clone, Debug)]
pub struct Resource<'a> {
    pub resource_type: i8,
    pub name: &'a str,
    pub asked: Asked<'a>,
}

/// Judges and, unless only validation is asked for, makes the changes; results in the order of `resources`.
pub async fn alter(shard: &Rc<Shard>, resources: Vec<Resource<'_>>, validate_only: bool) -> Vec<Result<(), Refusal>> {
    let view = shard.view();
    let repeated = repeated(&resources);
    let judge = |resource: &Resource<'_>| {
        if repeated.contains(&(resource.resource_type, resource.name)) {
            return Err(Refusal::invalid_request("Each resource must appear at most once."));
        }
        judge(&shard.facts.base_config, shard.facts.node_id, &view, resource)
    };
    let judged: Vec<_> = resources.iter().map(judge).collect();
    drop(view);
    in_chunks(judged, |judged| async move {
        let command = judged?;
        if validate_only {
            return Ok(());
        }
        match shard.change(command).await {
            Ok(_) => Ok(()),
            Err(error) if error.code() == ErrorCode::UnknownTopicId => Err(ErrorCode::UnknownTopicOrPartition.into()),
            Err(error) => Err(Refusal::new(error.code(), error.message())),
        }
    })
    .await
}

fn repeated<'a>(resources: &[Resource<'a>]) -> BTreeSet<(i8, &'a str)> {
    let mut seen = BTreeSet::new();
    resources.iter().map(|r| (r.resource_type, r.name)).filter(|name| !seen.insert(*name)).collect()
}

/// The command that makes the change, if what would be in force after it resolves.
fn judge(base: &BrokerConfig, node: NodeId, view: &View, resource: &Resource<'_>) -> Result<Command, Refusal> {
    let target = config_target::of_change(view, node, resource.resource_type, resource.name)?;
    let change = change(view, &target, &resource.asked)?;
    let command = Command::AlterConfigs { resource: target.clone(), change };
    let (after, _) = metadata::apply(&view.image, view.image.version() + 1, &command)
        .map_err(|rejection| Refusal::new(rejection.error_code(), rejection.to_string()))?;
    match target {
        ConfigResource::Topic(_) => check_topic(view, &after, &target)?,
        _ => check_broker(base, view, &after, node)?,
    }
    Ok(command)
}

/// What the topic would have in force.
fn check_topic(view: &View, after: &Image, topic: &ConfigResource) -> Result<(), Refusal> {
    let configs = after.configs(topic).into_iter().flat_map(|configs| configs.iter());
    TopicConfig::resolve(&view.config, configs.map(|(k, v)| (k.as_ref(), v.as_ref())))
        .map(drop)
        .map_err(|error| Refusal::new(error.code(), error.to_string()))
}

/// What this broker would have in force, and with it every topic.
fn check_broker(base: &BrokerConfig, view: &View, after: &Image, node: NodeId) -> Result<(), Refusal> {
    let refuse = |error: ConfigError| {
        // A bad value is an invalid configuration for a topic and an invalid request for a broker: so it is in Kafka.
        let code = if matches!(error, ConfigError::Unknown { .. }) { error.code() } else { ErrorCode::InvalidRequest };
        Refusal::new(code, error.to_string())
    };
    let config = View::effective_config(base, after, node).map_err(refuse)?;
    if let Some(other) = config.node.unknown_cordoned().filter(|_| config.node != view.config.node) {
        return Err(Refusal::invalid_request(format!("cordoned.log.dirs names {other}, which is not among log.dirs.")));
    }
    if config.topic_defaults == view.config.topic_defaults {
        return Ok(());
    }
    for topic in after.topics().filter(|topic| !topic.configs.is_empty()) {
        let own = topic.configs.iter().map(|(k, v)| (k.as_ref(), v.as_ref()));
        if let Err(error) = TopicConfig::resolve(&config, own) {
            return Err(Refusal::invalid_request(format!("Topic {} contradicts it. {error}", topic.name)));
        }
    }
    Ok(())
}

/// The change as the quorum takes it.
fn change(view: &View, target: &ConfigResource, asked: &Asked<'_>) -> Result<ConfigChange, Refusal> {
    let (names, nulls): (Vec<&str>, Vec<&str>) = match asked {
        Asked::Replace(entries) => (
            entries.iter().map(|(name, _)| *name).collect(),
            entries.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| *name).collect(),
        ),
        Asked::Incremental(ops) => (
            ops.iter().map(|op| op.name).collect(),
            ops.iter().filter(|op| op.operation != DELETE && op.value.is_none()).map(|op| op.name).collect(),
        ),
    };
    let mut seen = BTreeSet::new();
    if !names.into_iter().all(|name| seen.insert(name)) {
        return Err(Refusal::invalid_request("Error due to duplicate config keys"));
    }
    if !nulls.is_empty() {
        return Err(Refusal::invalid_request(format!("Null value not supported for : {}", nulls.join(", "))));
    }
    match asked {
        Asked::Replace(entries) => {
            let pair = |(name, value): &(&str, Option<&str>)| (Arc::from(*name), Arc::from(value.unwrap_or_default()));
            Ok(ConfigChange::Replace(entries.iter().map(pair).collect()))
        }
        Asked::Incremental(ops) => {
            let one = |op: &Op<'_>| Ok((Arc::from(op.name), operation(view, target, op)?));
            Ok(ConfigChange::Incremental(ops.iter().map(one).collect::<Result<_, Refusal>>()?))
        }
    }
}

fn operation(view: &View, target: &ConfigResource, op: &Op<'_>) -> Result<ConfigOp, Refusal> {
    let value = || Arc::from(op.value.unwrap_or_default());
    match op.operation {
        SET => Ok(ConfigOp::Set(value())),
        DELETE => Ok(ConfigOp::Delete),
        APPEND => Ok(ConfigOp::Append { items: value(), default: list_default(view, target, op.name, "APPEND")? }),
        SUBTRACT => {
            Ok(ConfigOp::Subtract { items: value(), default: list_default(view, target, op.name, "SUBTRACT")? })
        }
        other => Err(Refusal::invalid_request(format!("Unknown operation {other} for {}", op.name))),
    }
}

/// What a list holds while it is not set.
fn list_default(view: &View, target: &ConfigResource, name: &str, what: &str) -> Result<Arc<str>, Refusal> {
    let scope = if matches!(target, ConfigResource::Topic(_)) { Scope::Topic } else { Scope::Broker };
    let property = config::find(scope, name).filter(|property| property.kind == Kind::List).ok_or_else(|| {
        let message = format!("Can't {what} to key {name} because its type is not LIST.");
        Refusal::new(ErrorCode::InvalidConfig, message)
    })?;
    let from_broker = match scope {
        Scope::Topic => property.synonyms.first().and_then(|synonym| view.config.value(synonym)),
        Scope::Broker => view.config.value(name),
    };
    Ok(from_broker.as_deref().or(property.default).unwrap_or_default().into())
}

#[cfg(test)]
#[path = "config_change_tests.rs"]
mod tests;
