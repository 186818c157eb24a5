//! ListConfigResources (key 74, KIP-1142): what has, or may have, configurations.

use std::collections::BTreeSet;

use metadata::ConfigResource as Target;
use model::ErrorCode;
use wire::generated::list_config_resources::{ConfigResource, ListConfigResourcesRequest, ListConfigResourcesResponse};

use super::Context;
use super::admin::config_target::{BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC, is_known};
use crate::view::View;

/// Version 0 lists client metrics only.
const FIRST_WITH_TYPES: i16 = 1;

pub async fn handle(
    context: &Context<'_>,
    request: ListConfigResourcesRequest,
) -> ListConfigResourcesResponse<'static> {
    match types(context.version, &request.resource_types) {
        Ok(types) => ListConfigResourcesResponse {
            throttle_time_ms: 0,
            error_code: 0,
            config_resources: list(&context.shard.view(), &types),
        },
        Err(code) => {
            ListConfigResourcesResponse { throttle_time_ms: 0, error_code: code.code(), config_resources: Vec::new() }
        }
    }
}

fn types(version: i16, asked: &[i8]) -> Result<BTreeSet<i8>, ErrorCode> {
    if version < FIRST_WITH_TYPES {
        return Ok(BTreeSet::from([CLIENT_METRICS]));
    }
    if asked.is_empty() {
        return Ok(BTreeSet::from([TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP]));
    }
    if asked.iter().all(|asked| is_known(*asked)) {
        Ok(asked.iter().copied().collect())
    } else {
        Err(ErrorCode::UnsupportedVersion)
    }
}

/// Topics and brokers whether or not something was set on them, the others where something was. Loggers there are none.
fn list(view: &View, types: &BTreeSet<i8>) -> Vec<ConfigResource<'static>> {
    let entry = |resource_type, name: &str| ConfigResource { resource_name: name.to_string().into(), resource_type };
    let mut resources = Vec::new();
    if types.contains(&TOPIC) {
        resources.extend(view.image.topics_by_name().map(|topic| entry(TOPIC, &topic.name)));
    }
    if types.contains(&BROKER) {
        resources.extend(view.image.brokers().map(|broker| entry(BROKER, &broker.node.to_string())));
    }
    resources.extend(view.image.config_resources().filter_map(|(resource, _)| match resource {
        Target::ClientMetrics(name) if types.contains(&CLIENT_METRICS) => Some(entry(CLIENT_METRICS, name)),
        Target::Group(name) if types.contains(&GROUP) => Some(entry(GROUP, name)),
        _ => None,
    }));
    resources
}

#[cfg(test)]
#[path = "74_list_config_resources_tests.rs"]
mod tests;
