//! AlterConfigs (key 33): replaces all entries of a resource. Clients of today use IncrementalAlterConfigs.

use wire::generated::alter_configs::{
    AlterConfigsRequest, AlterConfigsResource, AlterConfigsResourceResponse, AlterConfigsResponse,
};

use super::Context;
use super::admin::config_change::{Asked, Resource, alter};

pub async fn handle<'a>(context: &Context<'_>, request: AlterConfigsRequest<'a>) -> AlterConfigsResponse<'a> {
    let resource = |resource: &AlterConfigsResource<'a>| Resource {
        resource_type: resource.resource_type,
        name: resource.resource_name,
        asked: Asked::Replace(resource.configs.iter().map(|config| (config.name, config.value)).collect()),
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
    AlterConfigsResponse { throttle_time_ms: 0, responses: responses.collect() }
}
