//! SyncGroup (key 14): the leader hands in the assignment, everybody gets theirs when it is durable.

use std::borrow::Cow;

use bytes::Bytes;
use coordinator::{Response, SyncRequest};
use model::ErrorCode;
use wire::generated::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse};

use super::Context;
use crate::groups::Need;

const FIRST_WITH_PROTOCOL: i16 = 5;

pub async fn handle(context: &Context<'_>, request: SyncGroupRequest<'_>) -> SyncGroupResponse<'static> {
    let names_protocol = request.protocol_type.is_some() && request.protocol_name.is_some();
    if context.version >= FIRST_WITH_PROTOCOL && !names_protocol {
        return refusal(ErrorCode::InconsistentGroupProtocol);
    }
    let sync = to_sync(&request);
    let call = context.shard.with_group(request.group_id, Need::Nothing, |driver| async move {
        driver.ask(|coordinator, now, ticket| coordinator.sync(now, ticket, sync)).await
    });
    match call.await {
        Ok(Response::Sync(synced)) => SyncGroupResponse {
            throttle_time_ms: 0,
            error_code: synced.error.code(),
            protocol_type: synced.protocol_type.map(Cow::Owned),
            protocol_name: synced.protocol_name.map(Cow::Owned),
            assignment: synced.assignment,
        },
        Ok(_) => refusal(ErrorCode::UnknownServerError),
        Err(unreached) => refusal(unreached.code()),
    }
}

fn to_sync(request: &SyncGroupRequest<'_>) -> SyncRequest {
    // Copied: the group keeps its assignments, and they must not pin the connection's buffer.
    let assignment =
        |a: &SyncGroupRequestAssignment<'_>| (a.member_id.to_owned(), Bytes::copy_from_slice(&a.assignment));
    SyncRequest {
        group_id: request.group_id.to_owned(),
        generation_id: request.generation_id,
        member_id: request.member_id.to_owned(),
        group_instance_id: request.group_instance_id.map(str::to_owned),
        protocol_type: request.protocol_type.map(str::to_owned),
        protocol_name: request.protocol_name.map(str::to_owned),
        assignments: request.assignments.iter().map(assignment).collect(),
    }
}

fn refusal(error: ErrorCode) -> SyncGroupResponse<'static> {
    SyncGroupResponse { error_code: error.code(), ..SyncGroupResponse::default() }
}
