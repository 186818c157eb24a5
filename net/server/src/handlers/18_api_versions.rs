//! ApiVersions (key 18, KIP-511, KIP-1242): what this broker serves. Any version is answered, unknown ones in version 0
//! with error 35, so that a newer client can step down.

use model::ErrorCode;
use wire::generated::api_versions::{ApiVersion, ApiVersionsRequest, ApiVersionsResponse};
use wire::{ApiKey, Chunk, Decode, Reader, RequestHeader};

use super::Context;
use crate::connection::Close;
use crate::dispatch::SERVED;

const FIRST_WITH_SOFTWARE_NAME: i16 = 3;
const FIRST_WITH_CLUSTER_ID: i16 = 5;

pub fn handle(context: &Context<'_>, header: &RequestHeader<'_>, mut reader: Reader<'_>) -> Result<Vec<Chunk>, Close> {
    if !header.is_served() {
        let response = ApiVersionsResponse {
            error_code: ErrorCode::UnsupportedVersion.code(),
            api_keys: vec![entry(ApiKey::ApiVersions)],
            ..ApiVersionsResponse::default()
        };
        return Ok(wire::encode_response(header.correlation_id, 0, 0, &response)?);
    }
    let request = ApiVersionsRequest::decode(&mut reader, header.api_version)?;
    let error = judge(context, header.api_version, &request);
    let api_keys = if error == ErrorCode::None { SERVED.iter().copied().map(entry).collect() } else { Vec::new() };
    let response = ApiVersionsResponse { error_code: error.code(), api_keys, ..ApiVersionsResponse::default() };
    Ok(wire::encode_response(header.correlation_id, 0, header.api_version, &response)?)
}

fn entry(key: ApiKey) -> ApiVersion {
    let versions = key.advertised_versions();
    ApiVersion { api_key: key as i16, min_version: *versions.start(), max_version: *versions.end() }
}

fn judge(context: &Context<'_>, version: i16, request: &ApiVersionsRequest<'_>) -> ErrorCode {
    let well_formed = |text: &str| {
        let edge = |c: char| c.is_ascii_alphanumeric();
        !text.is_empty()
            && text.starts_with(edge)
            && text.ends_with(edge)
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.')
    };
    if version >= FIRST_WITH_SOFTWARE_NAME
        && !(well_formed(request.client_software_name) && well_formed(request.client_software_version))
    {
        return ErrorCode::InvalidRequest;
    }
    if version < FIRST_WITH_CLUSTER_ID {
        return ErrorCode::None;
    }
    let facts = &context.shard.facts;
    match (request.cluster_id, request.node_id) {
        (None, -1) => ErrorCode::None,
        (None, _) => ErrorCode::InvalidRequest,
        (Some(cluster), _) if cluster != facts.cluster_id => ErrorCode::RebootstrapRequired,
        (Some(_), node) if node != -1 && node != facts.node_id.0 => ErrorCode::RebootstrapRequired,
        _ => ErrorCode::None,
    }
}
