//! From API key to handler. What is not here is neither advertised nor answered.

use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use runtime::net::Part;
use wire::{ApiKey, Chunk, Decode, Reader, RequestHeader};

use crate::connection::{Close, Reply};
use crate::handlers::{self, Context};
use crate::shard::Shard;

/// Every API this broker serves, in key order.
pub const SERVED: &[ApiKey] = &[
    ApiKey::Produce,
    ApiKey::Fetch,
    ApiKey::ListOffsets,
    ApiKey::Metadata,
    ApiKey::OffsetCommit,
    ApiKey::OffsetFetch,
    ApiKey::FindCoordinator,
    ApiKey::JoinGroup,
    ApiKey::Heartbeat,
    ApiKey::LeaveGroup,
    ApiKey::SyncGroup,
    ApiKey::DescribeGroups,
    ApiKey::ListGroups,
    ApiKey::ApiVersions,
    ApiKey::CreateTopics,
    ApiKey::DeleteTopics,
    ApiKey::DeleteRecords,
    ApiKey::InitProducerId,
    ApiKey::OffsetForLeaderEpoch,
    ApiKey::DescribeConfigs,
    ApiKey::AlterConfigs,
    ApiKey::DescribeLogDirs,
    ApiKey::CreatePartitions,
    ApiKey::DeleteGroups,
    ApiKey::ElectLeaders,
    ApiKey::IncrementalAlterConfigs,
    ApiKey::ListPartitionReassignments,
    ApiKey::OffsetDelete,
    ApiKey::DescribeQuorum,
    ApiKey::DescribeCluster,
    ApiKey::DescribeProducers,
    ApiKey::ListConfigResources,
    ApiKey::DescribeTopicPartitions,
];

/// Decodes, handles, encodes.
macro_rules! reply {
    ($context:expr, $header:expr, $reader:expr, $handler:path) => {{
        let request = Decode::decode(&mut $reader, $header.api_version)?;
        let response = $handler(&$context, request).await;
        let header_version = $header.response_header_version();
        wire::encode_response($header.correlation_id, header_version, $header.api_version, &response)?
    }};
}

/// Answers any request but Produce.
pub async fn answer(
    shard: &Rc<Shard>,
    (connection, peer): (u64, SocketAddr),
    header: &RequestHeader<'_>,
    mut reader: Reader<'_>,
    frame: &Bytes,
) -> Result<Reply, Close> {
    if shard.is_stopping() {
        return Err(Close::Stopping);
    }
    let context = Context { shard, peer, connection, version: header.api_version, client_id: header.client_id };
    let chunks = match header.api_key {
        ApiKey::Fetch => return handlers::fetch::handle(&context, header, frame).await.map(Some),
        ApiKey::ApiVersions => return handlers::api_versions::handle(&context, header, reader).map(memory_only),
        ApiKey::ListOffsets => reply!(context, header, reader, handlers::list_offsets::handle),
        ApiKey::Metadata => reply!(context, header, reader, handlers::metadata::handle),
        ApiKey::OffsetCommit => reply!(context, header, reader, handlers::offset_commit::handle),
        ApiKey::OffsetFetch => reply!(context, header, reader, handlers::offset_fetch::handle),
        ApiKey::FindCoordinator => reply!(context, header, reader, handlers::find_coordinator::handle),
        ApiKey::JoinGroup => reply!(context, header, reader, handlers::join_group::handle),
        ApiKey::Heartbeat => reply!(context, header, reader, handlers::heartbeat::handle),
        ApiKey::LeaveGroup => reply!(context, header, reader, handlers::leave_group::handle),
        ApiKey::SyncGroup => reply!(context, header, reader, handlers::sync_group::handle),
        ApiKey::DescribeGroups => reply!(context, header, reader, handlers::describe_groups::handle),
        ApiKey::ListGroups => reply!(context, header, reader, handlers::list_groups::handle),
        ApiKey::CreateTopics => reply!(context, header, reader, handlers::create_topics::handle),
        ApiKey::DeleteTopics => reply!(context, header, reader, handlers::delete_topics::handle),
        ApiKey::DeleteRecords => reply!(context, header, reader, handlers::delete_records::handle),
        ApiKey::InitProducerId => reply!(context, header, reader, handlers::init_producer_id::handle),
        ApiKey::OffsetForLeaderEpoch => reply!(context, header, reader, handlers::offset_for_leader_epoch::handle),
        ApiKey::DescribeConfigs => reply!(context, header, reader, handlers::describe_configs::handle),
        ApiKey::AlterConfigs => reply!(context, header, reader, handlers::alter_configs::handle),
        ApiKey::DescribeLogDirs => reply!(context, header, reader, handlers::describe_log_dirs::handle),
        ApiKey::CreatePartitions => reply!(context, header, reader, handlers::create_partitions::handle),
        ApiKey::DeleteGroups => reply!(context, header, reader, handlers::delete_groups::handle),
        ApiKey::ElectLeaders => reply!(context, header, reader, handlers::elect_leaders::handle),
        ApiKey::IncrementalAlterConfigs => reply!(context, header, reader, handlers::incremental_alter_configs::handle),
        ApiKey::ListPartitionReassignments => {
            reply!(context, header, reader, handlers::list_partition_reassignments::handle)
        }
        ApiKey::OffsetDelete => reply!(context, header, reader, handlers::offset_delete::handle),
        ApiKey::DescribeQuorum => reply!(context, header, reader, handlers::describe_quorum::handle),
        ApiKey::DescribeCluster => reply!(context, header, reader, handlers::describe_cluster::handle),
        ApiKey::DescribeProducers => reply!(context, header, reader, handlers::describe_producers::handle),
        ApiKey::ListConfigResources => reply!(context, header, reader, handlers::list_config_resources::handle),
        ApiKey::DescribeTopicPartitions => reply!(context, header, reader, handlers::describe_topic_partitions::handle),
        key => return Err(Close::Malformed(wire::WireError::UnknownApi { api_key: key as i16 })),
    };
    Ok(memory_only(chunks))
}

/// The parts of an answer that holds no file ranges.
pub fn memory_only(chunks: Vec<Chunk>) -> Reply {
    let part = |chunk| match chunk {
        Chunk::Bytes(bytes) => Part::Bytes(bytes),
        Chunk::External { .. } => unreachable!("only Fetch answers with file ranges"),
    };
    Some(chunks.into_iter().map(part).collect())
}
