//! What a load generator asks before its load: which APIs there are, which topics, and a new topic.
//!
//! By the general codec: nothing here is part of what is measured.

use bytes::Bytes;
use wire::generated::api_versions::ApiVersion;
use wire::generated::create_topics::CreatableTopicResult;
use wire::generated::metadata::{MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic};
use wire::generated::{
    ApiVersionsResponse, CreateTopicsRequest, CreateTopicsResponse, MetadataRequest, MetadataResponse,
};
use wire::{ApiKey, Decode, Encode, Reader, Records, RequestHeader, WireError, encode_response};

use super::produce_answer::UNKNOWN_TOPIC_OR_PARTITION;
use super::topics::Topics;
use crate::answers::{FETCH_VERSION, PRODUCE_VERSION};

const NODE_ID: i32 = 1;
const TOPIC_ALREADY_EXISTS: i16 = 36;

/// The answer to a request that is neither Produce nor Fetch.
pub fn answer(frame: &Bytes, topics: &mut Topics, port: u16) -> Result<Vec<u8>, WireError> {
    let mut reader = Reader::new(frame);
    let header = RequestHeader::decode(&mut reader)?;
    let version = header.api_version;
    match header.api_key {
        ApiKey::ApiVersions => encoded(&header, &versions()),
        ApiKey::Metadata => {
            let request = MetadataRequest::decode(&mut reader, version)?;
            encoded(&header, &metadata(&request, topics, port))
        }
        ApiKey::CreateTopics => {
            let request = CreateTopicsRequest::decode(&mut reader, version)?;
            encoded(&header, &create(&request, topics))
        }
        other => Err(WireError::UnknownApi { api_key: other as i16 }),
    }
}

fn encoded(header: &RequestHeader<'_>, response: &impl Encode) -> Result<Vec<u8>, WireError> {
    let version = header.response_header_version();
    let chunks = encode_response(header.correlation_id, version, header.api_version, response)?;
    Ok(Records::Chunks(chunks).to_bytes().map(Vec::from).unwrap_or_default())
}

fn versions() -> ApiVersionsResponse<'static> {
    let range = |key: ApiKey, min_version, max_version| ApiVersion { api_key: key as i16, min_version, max_version };
    let whole = |key: ApiKey| range(key, *key.advertised_versions().start(), *key.advertised_versions().end());
    let api_keys = vec![
        range(ApiKey::Produce, PRODUCE_VERSION, PRODUCE_VERSION),
        range(ApiKey::Fetch, FETCH_VERSION, FETCH_VERSION),
        range(ApiKey::Metadata, 4, 4),
        whole(ApiKey::ApiVersions),
        whole(ApiKey::CreateTopics),
    ];
    ApiVersionsResponse { api_keys, ..ApiVersionsResponse::default() }
}

fn metadata<'a>(request: &MetadataRequest<'a>, topics: &'a Topics, port: u16) -> MetadataResponse<'a> {
    let broker =
        MetadataResponseBroker { node_id: NODE_ID, host: "127.0.0.1".into(), port: i32::from(port), rack: None };
    let described = |name: &'a str| match topics.find(name) {
        Some(number) => MetadataResponseTopic {
            name: Some(name.into()),
            partitions: partitions(topics.all()[number].partitions),
            ..MetadataResponseTopic::default()
        },
        None => MetadataResponseTopic {
            name: Some(name.into()),
            error_code: UNKNOWN_TOPIC_OR_PARTITION,
            ..MetadataResponseTopic::default()
        },
    };
    let topics = match &request.topics {
        Some(some) => some.iter().filter_map(|topic| topic.name).map(described).collect(),
        None => topics.all().iter().map(|topic| described(&topic.name)).collect(),
    };
    MetadataResponse { brokers: vec![broker], controller_id: NODE_ID, topics, ..MetadataResponse::default() }
}

fn partitions(count: usize) -> Vec<MetadataResponsePartition> {
    let one = |partition_index| MetadataResponsePartition {
        partition_index,
        leader_id: NODE_ID,
        replica_nodes: vec![NODE_ID],
        isr_nodes: vec![NODE_ID],
        ..MetadataResponsePartition::default()
    };
    (0..count as i32).map(one).collect()
}

fn create<'a>(request: &CreateTopicsRequest<'a>, topics: &mut Topics) -> CreateTopicsResponse<'a> {
    let made = request.topics.iter().map(|topic| {
        let partitions = usize::try_from(topic.num_partitions).unwrap_or(1);
        let error_code = if topics.create(topic.name, partitions) { 0 } else { TOPIC_ALREADY_EXISTS };
        let num_partitions = topic.num_partitions;
        CreatableTopicResult { name: topic.name.into(), error_code, num_partitions, ..Default::default() }
    });
    CreateTopicsResponse { topics: made.collect(), ..CreateTopicsResponse::default() }
}
