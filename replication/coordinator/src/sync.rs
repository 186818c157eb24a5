//! SyncGroup: the leader hands in the assignment, everybody else waits for theirs. The answers leave when the assignment
//! is durable: after a crash a member must find what it was told.

use crate::append::After;
use crate::config::Now;
use crate::context::Context;
use crate::coordinator::GroupCoordinator;
use crate::group::{Group, GroupRef, GroupState};
use crate::join::check_group_id;
use crate::records::group_metadata;
use crate::request::SyncRequest;
use crate::response::{AppendId, Response, SyncResponse, Ticket};
use bytes::Bytes;
use model::ErrorCode;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An assignment on its way to the log.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) group: GroupRef,
    generation_id: i32,
    by_member: BTreeMap<Arc<str>, Bytes>,
}

impl GroupCoordinator {
    pub fn sync(&mut self, now: Now, ticket: Ticket, request: SyncRequest) {
        self.cx.now = now;
        if self.is_loading() {
            return self.cx.reply_sync_error(ticket, ErrorCode::CoordinatorLoadInProgress);
        }
        if let Err(error) = check_group_id(&request.group_id) {
            return self.cx.reply_sync_error(ticket, error);
        }
        match self.groups.get_mut(request.group_id.as_str()) {
            Some(group) => {
                group.sync(&mut self.cx, ticket, request);
            }
            None => self.cx.reply_sync_error(ticket, ErrorCode::UnknownMemberId),
        }
    }
}

impl Group {
    fn sync(&mut self, cx: &mut Context, ticket: Ticket, request: SyncRequest) -> Option<AppendId> {
        if let Err(error) = self.validate_sync(&request) {
            cx.reply_sync_error(ticket, error);
            return None;
        }
        match self.state {
            GroupState::PreparingRebalance => {
                cx.reply_sync_error(ticket, ErrorCode::RebalanceInProgress);
                None
            }
            GroupState::CompletingRebalance => self.sync_completing(cx, ticket, request),
            GroupState::Stable => {
                self.synced(cx, &request.member_id);
                let response = self.sync_response(&request.member_id);
                cx.reply(ticket, Response::Sync(response));
                None
            }
            GroupState::Empty | GroupState::Dead => unreachable!("validate_sync has answered"),
        }
    }

    fn validate_sync(&self, request: &SyncRequest) -> Result<(), ErrorCode> {
        match self.state {
            GroupState::Empty => return Err(ErrorCode::UnknownMemberId),
            GroupState::Dead => return Err(ErrorCode::CoordinatorNotAvailable),
            _ => self.validate_member(&request.member_id, request.group_instance_id.as_deref())?,
        }
        let differs = |asked: &Option<String>, ours: &Option<String>| matches!((asked, ours), (Some(asked), Some(ours)) if asked != ours);
        if request.generation_id != self.generation_id {
            Err(ErrorCode::IllegalGeneration)
        } else if differs(&request.protocol_type, &self.protocol_type)
            || differs(&request.protocol_name, &self.protocol_name)
        {
            Err(ErrorCode::InconsistentGroupProtocol)
        } else {
            Ok(())
        }
    }

    fn sync_completing(&mut self, cx: &mut Context, ticket: Ticket, request: SyncRequest) -> Option<AppendId> {
        // A second sync of the same member takes the place of the first, which Kafka would leave hanging.
        self.answer_sync(cx, &request.member_id, SyncResponse::error(ErrorCode::RebalanceInProgress));
        if let Some(member) = self.members.get_mut(request.member_id.as_str()) {
            member.awaiting_sync = Some(ticket);
        }
        self.synced(cx, &request.member_id);
        if !self.is_leader(&request.member_id) {
            return None;
        }
        // Later mentions of a member win, as in Kafka; strangers are left out; who is not mentioned has nothing.
        // Copied, because it outlives the buffer of the request.
        let mut given: BTreeMap<String, Bytes> =
            request.assignments.iter().map(|(id, a)| (id.clone(), Bytes::copy_from_slice(a))).collect();
        let by_member: BTreeMap<Arc<str>, Bytes> =
            self.members.keys().map(|id| (id.clone(), given.remove(&**id).unwrap_or_default())).collect();
        let record = group_metadata::record(self, |m| by_member.get(&m.id).cloned().unwrap_or_default());
        self.persisted = true;
        let assignment = Assignment { group: self.reference(), generation_id: self.generation_id, by_member };
        Some(cx.append(vec![record], After::Assigned(assignment)))
    }

    /// The assignment is durable, or could not be written. Too late if the group has moved on.
    pub(crate) fn finish_assignment(
        &mut self,
        cx: &mut Context,
        mut assignment: Assignment,
        result: Result<(), ErrorCode>,
    ) {
        if self.state != GroupState::CompletingRebalance || self.generation_id != assignment.generation_id {
            return;
        }
        if let Err(error) = result {
            self.reset_assignments(cx, error);
            self.rebalance_or_complete(cx);
            return;
        }
        self.transition(cx, GroupState::Stable);
        for member_id in self.members.keys().cloned().collect::<Vec<_>>() {
            if let Some(member) = self.members.get_mut(&member_id) {
                member.assignment = assignment.by_member.remove(&member_id).unwrap_or_default();
            }
            let response = self.sync_response(&member_id);
            if self.answer_sync(cx, &member_id, response) {
                self.renew_session(cx, &member_id);
            }
        }
    }

    fn sync_response(&self, member_id: &str) -> SyncResponse {
        SyncResponse {
            error: ErrorCode::None,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            assignment: self.members.get(member_id).map(|m| m.assignment.clone()).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
#[path = "sync_tests.rs"]
mod tests;
