//! DeleteGroups (key 42): groups without members go, with their offsets; answered when that is durable.

use std::borrow::Cow;
use std::collections::BTreeSet;

use coordinator::Response;
use model::ErrorCode;
use runtime::sync::all;
use wire::generated::delete_groups::{DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse};

use super::Context;
use crate::groups::Need;
use crate::groups::limits::GROUPS_AT_ONCE;

pub async fn handle(context: &Context<'_>, request: DeleteGroupsRequest<'_>) -> DeleteGroupsResponse<'static> {
    // A group named twice is deleted and answered once.
    let mut seen = BTreeSet::new();
    let group_ids: Vec<&str> = request.groups_names.into_iter().filter(|id| seen.insert(*id)).collect();
    let mut results = Vec::with_capacity(group_ids.len());
    for some in group_ids.chunks(GROUPS_AT_ONCE) {
        results.extend(all(some.iter().map(|group_id| delete(context, group_id)).collect()).await);
    }
    DeleteGroupsResponse { throttle_time_ms: 0, results }
}

async fn delete(context: &Context<'_>, group_id: &str) -> DeletableGroupResult<'static> {
    let ids = vec![group_id.to_owned()];
    let call = context.shard.with_group(group_id, Need::Nothing, |driver| async move {
        driver.ask(|coordinator, now, ticket| coordinator.delete_groups(now, ticket, ids)).await
    });
    let error = match call.await {
        Ok(Response::DeleteGroups(results)) => results.first().map_or(ErrorCode::UnknownServerError, |r| r.1),
        Ok(_) => ErrorCode::UnknownServerError,
        Err(unreached) => unreached.code_or(ErrorCode::GroupIdNotFound),
    };
    DeletableGroupResult {
        group_id: Cow::Owned(group_id.to_owned()),
        error_code: error.code(),
        ..DeletableGroupResult::default()
    }
}
