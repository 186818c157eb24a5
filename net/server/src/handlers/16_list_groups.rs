//! ListGroups (key 16): all groups of this node, over all shards, filtered by state (v4) and type (v5).

use std::borrow::Cow;

use wire::generated::list_groups::{ListGroupsRequest, ListGroupsResponse, ListedGroup};

use super::Context;
use crate::groups;

pub async fn handle(context: &Context<'_>, request: ListGroupsRequest<'_>) -> ListGroupsResponse<'static> {
    let states = request.states_filter.iter().map(|state| state.trim().to_owned()).collect();
    let types = request.types_filter.iter().map(|kind| (*kind).to_owned()).collect();
    let mut response = ListGroupsResponse::default();
    match groups::list(context.shard, states, types).await {
        Ok(groups) => response.groups = groups.into_iter().map(to_wire).collect(),
        Err(error) => response.error_code = error.code(),
    }
    response
}

fn to_wire(group: coordinator::ListedGroup) -> ListedGroup<'static> {
    ListedGroup {
        group_id: Cow::Owned(group.group_id.to_string()),
        protocol_type: Cow::Owned(group.protocol_type),
        group_state: Cow::Borrowed(group.state.as_str()),
        group_type: Cow::Borrowed("classic"),
    }
}
