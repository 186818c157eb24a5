//! DescribeConfigs (key 32): properties with their values, sources, synonyms and sentences, all read off the one table.

use metadata::{ConfigResource, Configs};
use model::ErrorCode;
use model::config::{Described, Source, describe_broker, describe_topic};
use wire::generated::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResponse,
    DescribeConfigsResult, DescribeConfigsSynonym,
};

use super::Context;
use super::admin::{Refusal, config_target, names};
use crate::shard::Shard;
use crate::view::View;

pub async fn handle<'a>(context: &Context<'_>, request: DescribeConfigsRequest<'a>) -> DescribeConfigsResponse<'a> {
    let known = request.resources.iter().all(|resource| config_target::is_known(resource.resource_type));
    let view = context.shard.view();
    let answer = |resource: &DescribeConfigsResource<'a>| {
        // One unknown number spoils the whole request, as in Kafka.
        let described = if known {
            describe(context.shard, &view, resource)
        } else {
            Err(Refusal::from(ErrorCode::InvalidRequest))
        };
        result(&request, resource, described)
    };
    let results = request.resources.iter().map(answer).collect();
    DescribeConfigsResponse { throttle_time_ms: 0, results }
}

fn describe(shard: &Shard, view: &View, resource: &DescribeConfigsResource<'_>) -> Result<Vec<Described>, Refusal> {
    let node = shard.facts.node_id;
    let name = resource.resource_name;
    let not_empty = |what: &str| match name {
        "" => Err(Refusal::invalid_request(format!("{what} name must not be empty"))),
        _ => Ok(Vec::new()),
    };
    match resource.resource_type {
        config_target::TOPIC => topic(view, name),
        config_target::BROKER if name.is_empty() => Ok(broker_default(view)),
        config_target::BROKER => config_target::broker(node, name).map(|_| describe_broker(&view.config)),
        config_target::BROKER_LOGGER => config_target::broker(node, name).and(Err(config_target::no_loggers())),
        // Both may be named freely, and neither has properties here yet.
        config_target::CLIENT_METRICS => not_empty("Client metrics subscription"),
        _ => not_empty("Group"),
    }
}

fn topic(view: &View, name: &str) -> Result<Vec<Described>, Refusal> {
    names::check(name)?;
    let unknown = || Refusal::new(ErrorCode::UnknownTopicOrPartition, "");
    let topic = view.image.topic_by_name(name).ok_or_else(unknown)?;
    let own = topic.configs.iter().map(|(k, v)| (k.as_ref(), v.as_ref()));
    describe_topic(&view.config, own).map_err(|error| Refusal::new(error.code(), error.to_string()))
}

/// Only what was set for all brokers while running.
fn broker_default(view: &View) -> Vec<Described> {
    let Some(set) = view.image.configs(&ConfigResource::BrokerDefault) else { return Vec::new() };
    describe_broker(&view.config).into_iter().filter_map(|described| as_default(set, described)).collect()
}

fn as_default(set: &Configs, mut described: Described) -> Option<Described> {
    set.get(described.name)?;
    described.synonyms.retain(|link| link.source == Source::DynamicDefaultBroker && link.name == described.name);
    let link = described.synonyms.first()?;
    (described.value, described.source) = (link.value.clone(), link.source);
    Some(described)
}

fn result<'a>(
    request: &DescribeConfigsRequest<'_>,
    resource: &DescribeConfigsResource<'a>,
    described: Result<Vec<Described>, Refusal>,
) -> DescribeConfigsResult<'a> {
    let mut result = DescribeConfigsResult {
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.into(),
        ..DescribeConfigsResult::default()
    };
    match described {
        Ok(described) => {
            let asked = |described: &Described| match &resource.configuration_keys {
                Some(keys) if !keys.is_empty() => keys.contains(&described.name),
                _ => true,
            };
            let entry = |described| entry(request, described);
            result.configs = described.into_iter().filter(asked).map(entry).collect();
        }
        Err(refusal) => {
            result.error_code = refusal.code.code();
            result.error_message = Some(refusal.message.into());
        }
    }
    result
}

fn entry<'a>(request: &DescribeConfigsRequest<'_>, described: Described) -> DescribeConfigsResourceResult<'a> {
    let synonym = |link: model::config::SynonymValue| DescribeConfigsSynonym {
        name: link.name.into(),
        value: link.value.map(Into::into),
        source: link.source.number(),
    };
    let synonyms = if request.include_synonyms { described.synonyms } else { Vec::new() };
    DescribeConfigsResourceResult {
        name: described.name.into(),
        value: described.value.map(Into::into),
        read_only: described.read_only,
        config_source: described.source.number(),
        is_sensitive: described.sensitive,
        synonyms: synonyms.into_iter().map(synonym).collect(),
        config_type: described.kind,
        documentation: request.include_documentation.then(|| described.documentation.into()),
    }
}

#[cfg(test)]
#[path = "32_describe_configs_tests.rs"]
mod tests;
