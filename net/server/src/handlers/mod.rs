//! One file for each API, named by its key: the listing is the API table.
//!
//! A handler takes the request as it was decoded and gives the response to encode; errors are codes in the response.
//! Produce and Fetch work on frames directly, because no record byte may be copied.

use std::net::SocketAddr;
use std::rc::Rc;

use crate::shard::Shard;

pub mod admin;
#[path = "33_alter_configs.rs"]
pub mod alter_configs;
#[path = "18_api_versions.rs"]
pub mod api_versions;
#[path = "37_create_partitions.rs"]
pub mod create_partitions;
#[path = "19_create_topics.rs"]
pub mod create_topics;
#[path = "42_delete_groups.rs"]
pub mod delete_groups;
#[path = "21_delete_records.rs"]
pub mod delete_records;
#[path = "20_delete_topics.rs"]
pub mod delete_topics;
#[path = "60_describe_cluster.rs"]
pub mod describe_cluster;
#[path = "32_describe_configs.rs"]
pub mod describe_configs;
#[path = "15_describe_groups.rs"]
pub mod describe_groups;
#[path = "35_describe_log_dirs.rs"]
pub mod describe_log_dirs;
#[path = "61_describe_producers.rs"]
pub mod describe_producers;
#[path = "55_describe_quorum.rs"]
pub mod describe_quorum;
#[path = "75_describe_topic_partitions.rs"]
pub mod describe_topic_partitions;
#[path = "43_elect_leaders.rs"]
pub mod elect_leaders;
#[path = "01_fetch.rs"]
pub mod fetch;
#[path = "01_fetch_rounds.rs"]
mod fetch_rounds;
#[path = "01_fetch_session.rs"]
mod fetch_session;
#[path = "01_fetch_standing.rs"]
pub mod fetch_standing;
#[path = "10_find_coordinator.rs"]
pub mod find_coordinator;
#[path = "12_heartbeat.rs"]
pub mod heartbeat;
#[path = "44_incremental_alter_configs.rs"]
pub mod incremental_alter_configs;
#[path = "22_init_producer_id.rs"]
pub mod init_producer_id;
#[path = "11_join_group.rs"]
pub mod join_group;
#[path = "13_leave_group.rs"]
pub mod leave_group;
#[path = "74_list_config_resources.rs"]
pub mod list_config_resources;
#[path = "16_list_groups.rs"]
pub mod list_groups;
#[path = "02_list_offsets.rs"]
pub mod list_offsets;
#[path = "46_list_partition_reassignments.rs"]
pub mod list_partition_reassignments;
#[path = "03_metadata.rs"]
pub mod metadata;
#[path = "08_offset_commit.rs"]
pub mod offset_commit;
#[path = "47_offset_delete.rs"]
pub mod offset_delete;
#[path = "09_offset_fetch.rs"]
pub mod offset_fetch;
#[path = "23_offset_for_leader_epoch.rs"]
pub mod offset_for_leader_epoch;
#[path = "00_produce.rs"]
pub mod produce;
#[path = "14_sync_group.rs"]
pub mod sync_group;

/// Who asks, and where.
#[derive(Debug)]
pub struct Context<'a> {
    pub shard: &'a Rc<Shard>,
    pub peer: SocketAddr,
    /// The connection's number on its shard.
    pub connection: u64,
    pub version: i16,
    pub client_id: Option<&'a str>,
}
