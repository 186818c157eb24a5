//! ListPartitionReassignments (key 46, KIP-455): partitions on their way to other brokers. None ever is: partitions stay
//! where they were made.

use wire::generated::list_partition_reassignments::{
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
};

use super::Context;

pub async fn handle(
    _context: &Context<'_>,
    _request: ListPartitionReassignmentsRequest<'_>,
) -> ListPartitionReassignmentsResponse<'static> {
    ListPartitionReassignmentsResponse { throttle_time_ms: 0, error_code: 0, error_message: None, topics: Vec::new() }
}
