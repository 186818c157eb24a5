//! DescribeGroups (key 15): state, protocol and members of groups. A read of the coordinators' memory.

use std::borrow::Cow;

use coordinator::{GroupDescription, GroupState, MemberDescription};
use model::ErrorCode;
use runtime::sync::all;
use wire::generated::describe_groups::{
    DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup, DescribedGroupMember,
};

use super::Context;
use crate::groups::Need;
use crate::groups::limits::GROUPS_AT_ONCE;

const FIRST_WITH_GROUP_ID_NOT_FOUND: i16 = 6;
/// Kafka's bits for what may be done with a group: read, delete, describe, describe and alter its configuration. Without
/// access control everybody may do all of it.
const ALL_OPERATIONS: i32 = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11;

pub async fn handle(context: &Context<'_>, request: DescribeGroupsRequest<'_>) -> DescribeGroupsResponse<'static> {
    let mut groups = Vec::with_capacity(request.groups.len());
    for some in request.groups.chunks(GROUPS_AT_ONCE) {
        groups.extend(all(some.iter().map(|group_id| describe(context, group_id)).collect()).await);
    }
    if request.include_authorized_operations {
        for group in groups.iter_mut().filter(|group| group.error_code == 0) {
            group.authorized_operations = ALL_OPERATIONS;
        }
    }
    DescribeGroupsResponse { throttle_time_ms: 0, groups }
}

async fn describe(context: &Context<'_>, group_id: &str) -> DescribedGroup<'static> {
    let id = group_id.to_owned();
    let call = context.shard.with_group(group_id, Need::Nothing, |driver| async move {
        driver.look(|coordinator, _| coordinator.describe(&id))?
    });
    let found = match call.await {
        Ok(found) => found,
        Err(unreached) => match unreached.code_or(ErrorCode::None) {
            ErrorCode::None => None,
            error => return nobody(group_id, error, None, ""),
        },
    };
    match found {
        Some(description) => known(group_id, description),
        None => unknown(context.version, group_id),
    }
}

fn nobody(group_id: &str, error: ErrorCode, message: Option<String>, state: &'static str) -> DescribedGroup<'static> {
    DescribedGroup {
        error_code: error.code(),
        error_message: message.map(Cow::Owned),
        group_id: Cow::Owned(group_id.to_owned()),
        group_state: Cow::Borrowed(state),
        ..DescribedGroup::default()
    }
}

fn unknown(version: i16, group_id: &str) -> DescribedGroup<'static> {
    let dead = GroupState::Dead.as_str();
    if version < FIRST_WITH_GROUP_ID_NOT_FOUND {
        return nobody(group_id, ErrorCode::None, None, dead);
    }
    nobody(group_id, ErrorCode::GroupIdNotFound, Some(format!("Group {group_id} not found.")), dead)
}

fn known(group_id: &str, description: GroupDescription) -> DescribedGroup<'static> {
    let member = |m: MemberDescription| DescribedGroupMember {
        member_id: Cow::Owned(m.member_id.to_string()),
        group_instance_id: m.group_instance_id.map(|id| Cow::Owned(id.to_string())),
        client_id: Cow::Owned(m.client_id),
        client_host: Cow::Owned(m.client_host),
        member_metadata: m.metadata,
        member_assignment: m.assignment,
    };
    DescribedGroup {
        protocol_type: Cow::Owned(description.protocol_type),
        protocol_data: Cow::Owned(description.protocol),
        members: description.members.into_iter().map(member).collect(),
        ..nobody(group_id, ErrorCode::None, None, description.state.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_group_is_dead_and_from_v6_an_error() {
        let old = unknown(5, "g");
        assert_eq!((old.error_code, &*old.group_state, old.error_message), (0, "Dead", None));
        let new = unknown(6, "g");
        assert_eq!((new.error_code, &*new.group_state), (69, "Dead"));
        assert_eq!(new.error_message.as_deref(), Some("Group g not found."));
        assert_eq!(new.authorized_operations, i32::MIN);
    }

    #[test]
    fn operations_are_kafkas_bits() {
        assert_eq!(ALL_OPERATIONS, 3_400);
    }
}
