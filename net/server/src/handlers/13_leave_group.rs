//! LeaveGroup (key 13): members say goodbye; one below v3, several from then on.

use std::borrow::Cow;

use coordinator::{LeaveRequest, LeaveResponse, LeavingMember, LeftMember, Response};
use model::ErrorCode;
use wire::generated::leave_group::{LeaveGroupRequest, LeaveGroupResponse, MemberResponse};

use super::Context;
use crate::groups::Need;

const FIRST_WITH_MEMBERS: i16 = 3;

pub async fn handle(context: &Context<'_>, request: LeaveGroupRequest<'_>) -> LeaveGroupResponse<'static> {
    let leave = LeaveRequest { group_id: request.group_id.to_owned(), members: leaving(context.version, &request) };
    let call = context.shard.with_group(request.group_id, Need::Nothing, |driver| async move {
        driver.ask(|coordinator, now, ticket| coordinator.leave(now, ticket, leave)).await
    });
    let left = match call.await {
        Ok(Response::Leave(left)) => left,
        Ok(_) => LeaveResponse { error: ErrorCode::UnknownServerError, members: Vec::new() },
        Err(unreached) => LeaveResponse { error: unreached.code(), members: Vec::new() },
    };
    to_wire(context.version, left)
}

fn leaving(version: i16, request: &LeaveGroupRequest<'_>) -> Vec<LeavingMember> {
    if version < FIRST_WITH_MEMBERS {
        return vec![LeavingMember { member_id: request.member_id.to_owned(), group_instance_id: None }];
    }
    let member = |m: &wire::generated::leave_group::MemberIdentity<'_>| LeavingMember {
        member_id: m.member_id.to_owned(),
        group_instance_id: m.group_instance_id.map(str::to_owned),
    };
    request.members.iter().map(member).collect()
}

/// Below v3 the one member's error is the answer's.
fn to_wire(version: i16, left: LeaveResponse) -> LeaveGroupResponse<'static> {
    let mut response = LeaveGroupResponse { error_code: left.error.code(), ..LeaveGroupResponse::default() };
    if version >= FIRST_WITH_MEMBERS {
        let member = |m: LeftMember| MemberResponse {
            member_id: Cow::Owned(m.member_id),
            group_instance_id: m.group_instance_id.map(Cow::Owned),
            error_code: m.error.code(),
        };
        response.members = left.members.into_iter().map(member).collect();
    } else if left.error == ErrorCode::None {
        response.error_code = left.members.first().map_or(ErrorCode::None, |m| m.error).code();
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_v3_the_members_error_is_at_the_top() {
        let left = LeaveResponse {
            error: ErrorCode::None,
            members: vec![LeftMember {
                member_id: "m".into(),
                group_instance_id: None,
                error: ErrorCode::UnknownMemberId,
            }],
        };
        let old = to_wire(2, left.clone());
        assert_eq!((old.error_code, old.members.len()), (25, 0));
        let new = to_wire(3, left);
        assert_eq!((new.error_code, new.members[0].error_code), (0, 25));
    }
}
