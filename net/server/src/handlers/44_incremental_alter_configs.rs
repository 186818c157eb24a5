//! IncrementalAlterConfigs (key 44, KIP-339): sets, deletes, appends to and subtracts from single entries.

use wire::generated::incremental_alter_configs::{
    AlterConfigsResource, AlterConfigsResourceResponse, AlterableConfig, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
};

use super::Context;
use super::admin::config_change::{Asked, Op, Resource, alter};

pub async fn handle<'a>(
    context: &Context<'_>,
    request: IncrementalAlterConfigsRequest<'a>,
) -> IncrementalAlterConfigsResponse<'a> {
    let op = |config: &AlterableConfig<'a>| Op {
        name: config.name,
        operation: config.config_operation,
        value: config.value,
    };
    let resource = |resource: &AlterConfigsResource<'a>| Resource {
        resource_type: resource.resource_type,
        name: resource.resource_name,
        asked: Asked::Incremental(resource.configs.iter().map(op).collect()),
    };
    let resources = request.resources.iter().map(resource).collect();
    let results = alter(context.shard, resources, request.validate_only).await;
    let responses = request.resources.iter().zip(results).map(|(resource, result)| {
        let refusal = result.err();
        AlterConfigsResourceResponse {
            error_code: refusal.as_ref().map_or(0, |refusal| refusal.code.code()),
            error_message: refusal.map(|refusal| refusal.message.into()),
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.into(),
        }
    });
    IncrementalAlterConfigsResponse { throttle_time_ms: 0, responses: responses.collect() }
}
