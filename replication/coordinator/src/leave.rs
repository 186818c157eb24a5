//! LeaveGroup: members say goodbye, one or (v3 and later) several, by member id or by instance id.
//!
//! If the last one leaves, the answer waits until the log says that the group is empty.

use crate::config::Now;
use crate::context::Context;
use crate::coordinator::GroupCoordinator;
use crate::group::{Group, GroupState};
use crate::join::check_group_id;
use crate::request::{LeaveRequest, LeavingMember};
use crate::response::{LeaveResponse, LeftMember, Response, Ticket};
use model::ErrorCode;

/// Whom a leave took out.
enum Left {
    Member,
    PendingMember,
}

impl GroupCoordinator {
    pub fn leave(&mut self, now: Now, ticket: Ticket, request: LeaveRequest) {
        self.cx.now = now;
        let checked = if self.is_loading() {
            Err(ErrorCode::CoordinatorLoadInProgress)
        } else {
            check_group_id(&request.group_id)
        };
        let group = self.groups.get_mut(request.group_id.as_str());
        let error = match (checked, group) {
            (Err(error), _) => error,
            (Ok(()), Some(group)) if group.state != GroupState::Dead => {
                return group.leave(&mut self.cx, ticket, request.members);
            }
            (Ok(()), Some(_)) => ErrorCode::CoordinatorNotAvailable,
            (Ok(()), None) => {
                let answer = |m| left(m, ErrorCode::UnknownMemberId);
                let members = request.members.into_iter().map(answer).collect();
                let response = LeaveResponse { error: ErrorCode::None, members };
                return self.cx.reply(ticket, Response::Leave(response));
            }
        };
        self.cx.reply(ticket, Response::Leave(LeaveResponse { error, members: Vec::new() }));
    }
}

fn left(member: LeavingMember, error: ErrorCode) -> LeftMember {
    LeftMember { member_id: member.member_id, group_instance_id: member.group_instance_id, error }
}

impl Group {
    fn leave(&mut self, cx: &mut Context, ticket: Ticket, members: Vec<LeavingMember>) {
        let mut results = Vec::with_capacity(members.len());
        let (mut removed, mut forgotten) = (false, false);
        for member in members {
            let error = match self.leave_one(cx, &member) {
                Ok(Left::Member) => {
                    removed = true;
                    ErrorCode::None
                }
                Ok(Left::PendingMember) => {
                    forgotten = true;
                    ErrorCode::None
                }
                Err(error) => error,
            };
            results.push(left(member, error));
        }
        let append = match self.state {
            GroupState::Stable | GroupState::CompletingRebalance if removed => self.prepare_rebalance(cx),
            GroupState::PreparingRebalance if removed || forgotten => self.complete_if_all_joined(cx),
            _ => None,
        };
        let response = LeaveResponse { error: ErrorCode::None, members: results };
        cx.reply_after(append, ticket, Response::Leave(response));
    }

    fn leave_one(&mut self, cx: &mut Context, leaving: &LeavingMember) -> Result<Left, ErrorCode> {
        let instance_id = leaving.group_instance_id.as_deref();
        if leaving.member_id.is_empty() {
            let member_id = instance_id.and_then(|id| self.static_members.get(id)).cloned();
            self.remove_member(cx, &member_id.ok_or(ErrorCode::UnknownMemberId)?);
            return Ok(Left::Member);
        }
        if self.forget_pending_join(cx, &leaving.member_id) {
            return Ok(Left::PendingMember);
        }
        self.validate_member(&leaving.member_id, instance_id)?;
        self.remove_member(cx, &leaving.member_id);
        Ok(Left::Member)
    }
}

#[cfg(test)]
#[path = "leave_tests.rs"]
mod tests;
