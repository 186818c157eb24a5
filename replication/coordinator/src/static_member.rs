//! Static members (KIP-345): a member that comes back under its instance id without a member id takes its own place.
//!
//! It gets a new member id, and whoever still uses the old one is fenced (82). In a stable group whose protocol stays the
//! same there is no rebalance: the change is written, and the join is answered when it is durable (KIP-814 for leaders).

use crate::append::After;
use crate::context::Context;
use crate::group::{Group, GroupRef, GroupState};
use crate::member::Protocol;
use crate::records::group_metadata;
use crate::request::JoinRequest;
use crate::response::{AppendId, JoinResponse, SyncResponse, Ticket};
use model::ErrorCode;
use std::sync::Arc;

/// A replacement on its way to the log: how to finish it, and how to take it back.
#[derive(Debug)]
pub(crate) struct Replacement {
    pub(crate) group: GroupRef,
    old_member_id: Arc<str>,
    new_member_id: Arc<str>,
    old_protocols: Vec<Protocol>,
    /// Rebalance and session timeout.
    old_timeouts: (i32, i32),
    old_leader: Option<Arc<str>>,
    ticket: Ticket,
    supports_skip_assignment: bool,
}

impl Group {
    pub(crate) fn replace_static(
        &mut self,
        cx: &mut Context,
        ticket: Ticket,
        request: JoinRequest,
        old_member_id: &Arc<str>,
        new_member_id: Arc<str>,
    ) -> Option<AppendId> {
        let old_leader = self.leader.clone();
        self.rename_member(cx, old_member_id, &new_member_id);
        let member = self.members.get(&new_member_id)?;
        let old_protocols = member.protocols.clone();
        let old_timeouts = (member.rebalance_timeout_ms, member.session_timeout_ms);
        let timeouts = (request.rebalance_timeout_ms, request.session_timeout_ms);
        self.update_member(cx, &new_member_id, request.protocols, timeouts, ticket);
        self.renew_session(cx, &new_member_id);
        match self.state {
            GroupState::Stable if self.protocol_name == self.select_protocol() => {
                let replacement = Replacement {
                    group: self.reference(),
                    old_member_id: old_member_id.clone(),
                    new_member_id,
                    old_protocols,
                    old_timeouts,
                    old_leader,
                    ticket,
                    supports_skip_assignment: request.supports_skip_assignment,
                };
                let record = group_metadata::record(self, |m| m.assignment.clone());
                Some(cx.append(vec![record], After::Replaced(replacement)))
            }
            GroupState::Stable | GroupState::CompletingRebalance => self.prepare_rebalance(cx),
            GroupState::PreparingRebalance => self.complete_if_all_joined(cx),
            GroupState::Empty | GroupState::Dead => unreachable!("such a group has no static member"),
        }
    }

    /// Gives a member a new id. Requests that wait under the old one are fenced.
    fn rename_member(&mut self, cx: &mut Context, old: &Arc<str>, new: &Arc<str>) {
        self.answer_join(cx, old, |id| JoinResponse::error(id, ErrorCode::FencedInstanceId));
        self.answer_sync(cx, old, SyncResponse::error(ErrorCode::FencedInstanceId));
        let Some(mut member) = self.members.remove(old) else { return };
        if let Some(timer) = member.session.armed.take() {
            cx.timers.cancel(timer);
        }
        if let Some(instance_id) = &member.instance_id {
            self.static_members.insert(instance_id.clone(), new.clone());
        }
        if self.pending_syncs.remove(old) {
            self.pending_syncs.insert(new.clone());
        }
        if self.is_leader(old) {
            self.leader = Some(new.clone());
        }
        member.id = new.clone();
        member.is_new = false;
        self.members.insert(new.clone(), member);
    }

    /// The replacement is durable, or could not be written. Does nothing if a rebalance has answered the join meanwhile.
    pub(crate) fn finish_replacement(
        &mut self,
        cx: &mut Context,
        replacement: Replacement,
        result: Result<(), ErrorCode>,
    ) {
        let new_id = &replacement.new_member_id;
        let waits = self.members.get(new_id).is_some_and(|m| m.awaiting_join == Some(replacement.ticket));
        if self.state != GroupState::Stable || !waits {
            return;
        }
        let mut response = match result {
            Ok(()) => self.join_response(new_id, replacement.supports_skip_assignment && self.is_leader(new_id)),
            Err(error) => JoinResponse::error(Arc::from(""), error),
        };
        if result.is_ok() && !replacement.supports_skip_assignment {
            // A client that cannot be told to skip must not think that it leads: it would assign, and the group not hear.
            response.leader = replacement.old_leader.unwrap_or_else(|| Arc::from(""));
            response.members = Vec::new();
        }
        self.answer_join(cx, new_id, |_| response);
        self.renew_session(cx, new_id);
        if result.is_err() {
            self.replace_protocols(new_id, replacement.old_protocols, replacement.old_timeouts);
            self.rename_member(cx, new_id, &replacement.old_member_id);
            self.renew_session(cx, &replacement.old_member_id);
        }
    }
}

#[cfg(test)]
#[path = "static_member_tests.rs"]
mod tests;
