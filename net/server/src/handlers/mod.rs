//! One file for each API, named by its key: the listing is the API table.
//!
//! A handler takes the request as it was decoded and gives the response to encode; errors are codes in the response.
//! Produce and Fetch work on frames directly, because no record byte may be copied.

use std::net::SocketAddr;
use std::rc::Rc;

use model::ErrorCode;

use crate::shard::Shard;

#[path = "18_api_versions.rs"]
pub mod api_versions;
#[path = "01_fetch.rs"]
pub mod fetch;
#[path = "01_fetch_rounds.rs"]
mod fetch_rounds;
#[path = "01_fetch_session.rs"]
mod fetch_session;
#[path = "03_metadata.rs"]
pub mod metadata;
#[path = "00_produce.rs"]
pub mod produce;
#[path = "42_delete_groups.rs"]
pub mod delete_groups;
#[path = "15_describe_groups.rs"]
pub mod describe_groups;
#[path = "10_find_coordinator.rs"]
pub mod find_coordinator;
#[path = "12_heartbeat.rs"]
pub mod heartbeat;
#[path = "11_join_group.rs"]
pub mod join_group;
#[path = "13_leave_group.rs"]
pub mod leave_group;
#[path = "16_list_groups.rs"]
pub mod list_groups;
#[path = "08_offset_commit.rs"]
pub mod offset_commit;
#[path = "47_offset_delete.rs"]
pub mod offset_delete;
#[path = "09_offset_fetch.rs"]
pub mod offset_fetch;
#[path = "14_sync_group.rs"]
pub mod sync_group;

/// Who asks, and where.
#[derive(Debug)]
pub struct Context<'a> {
    pub shard: &'a Rc<Shard>,
    pub peer: SocketAddr,
    pub version: i16,
    pub client_id: Option<&'a str>,
}

/// The number on the wire.
pub fn code(error: ErrorCode) -> i16 {
    error.code()
}
