//! JoinGroup: how a member comes in, comes back, and is told its generation.
//!
//! The answer waits until the join phase is complete, except for errors, MEMBER_ID_REQUIRED, and members of a running
//! generation that say nothing new.

use crate::append::After;
use crate::config::{CoordinatorConfig, Now};
use crate::context::Context;
use crate::coordinator::GroupCoordinator;
use crate::group::{Group, GroupState};
use crate::limits;
use crate::member::{Member, Session, generate_member_id, to_keep};
use crate::records::group_metadata;
use crate::request::JoinRequest;
use crate::response::{AppendId, Response, Ticket};
use crate::timers::Timer;
use bytes::Bytes;
use model::ErrorCode;
use std::sync::Arc;

impl GroupCoordinator {
    pub fn join(&mut self, now: Now, ticket: Ticket, mut request: JoinRequest) {
        self.cx.now = now;
        if let Err(error) = self.prepare_join(&mut request) {
            return self.cx.reply_join_error(ticket, &request.member_id, error);
        }
        let is_new_group = !self.groups.contains_key(request.group_id.as_str());
        if is_new_group {
            if let Err(error) = self.check_new_group(&request) {
                return self.cx.reply_join_error(ticket, &request.member_id, error);
            }
            self.create_group(&request.group_id);
        }
        let Some(group) = self.groups.get_mut(request.group_id.as_str()) else { return };
        let append = group.join(&mut self.cx, ticket, request);
        if is_new_group && append.is_none() {
            // As Kafka does: a group exists in the log from its first join on.
            let record = group_metadata::empty_record(group);
            group.persisted = true;
            self.cx.append(vec![record], After::Created(group.reference()));
        }
    }

    fn prepare_join(&self, request: &mut JoinRequest) -> Result<(), ErrorCode> {
        if self.is_loading() {
            return Err(ErrorCode::CoordinatorLoadInProgress);
        }
        check_group_id(&request.group_id)?;
        let config = &self.cx.config;
        let allowed = config.group_min_session_timeout_ms..=config.group_max_session_timeout_ms;
        if !allowed.contains(&request.session_timeout_ms) {
            return Err(ErrorCode::InvalidSessionTimeout);
        }
        check_sizes(request)?;
        if request.rebalance_timeout_ms < 0 {
            request.rebalance_timeout_ms = request.session_timeout_ms;
        }
        request.protocols = to_keep(std::mem::take(&mut request.protocols));
        Ok(())
    }

    /// A group is made for a member without id only, and not for a request that could never be in it.
    fn check_new_group(&self, request: &JoinRequest) -> Result<(), ErrorCode> {
        if !request.member_id.is_empty() {
            Err(ErrorCode::UnknownMemberId)
        } else if request.protocol_type.is_empty() || request.protocols.is_empty() {
            Err(ErrorCode::InconsistentGroupProtocol)
        } else if self.groups.len() >= self.cx.config.max_groups {
            Err(ErrorCode::PolicyViolation)
        } else {
            Ok(())
        }
    }
}

/// Group ids are written with a 16-bit length.
pub(crate) fn check_group_id(group_id: &str) -> Result<(), ErrorCode> {
    if group_id.is_empty() || group_id.len() > limits::MAX_STRING_BYTES {
        return Err(ErrorCode::InvalidGroupId);
    }
    Ok(())
}

/// Everything that a record must be able to say, and that memory must be able to hold.
fn check_sizes(request: &JoinRequest) -> Result<(), ErrorCode> {
    let strings = [&request.member_id, &request.client_id, &request.client_host, &request.protocol_type];
    let names = request.protocols.iter().map(|p| &p.name);
    let longest = strings.into_iter().chain(&request.group_instance_id).chain(names).map(String::len).max();
    let metadata: usize = request.protocols.iter().map(|p| p.metadata.len()).sum();
    let fits = longest.unwrap_or(0) <= limits::MAX_STRING_BYTES
        && request.protocols.len() <= limits::MAX_PROTOCOLS_PER_MEMBER
        && metadata <= limits::MAX_PROTOCOL_METADATA_BYTES;
    if fits { Ok(()) } else { Err(ErrorCode::InvalidRequest) }
}

impl Group {
    fn join(&mut self, cx: &mut Context, ticket: Ticket, request: JoinRequest) -> Option<AppendId> {
        if self.state == GroupState::Dead {
            cx.reply_join_error(ticket, &request.member_id, ErrorCode::CoordinatorNotAvailable);
            return None;
        }
        if !self.accepts(&cx.config, &request.member_id) {
            self.remove_member(cx, &request.member_id);
            cx.reply_join_error(ticket, "", ErrorCode::GroupMaxSizeReached);
            return None;
        }
        if !self.supports(&request.protocol_type, &request.protocols) {
            cx.reply_join_error(ticket, &request.member_id, ErrorCode::InconsistentGroupProtocol);
            return None;
        }
        if request.member_id.is_empty() {
            self.join_new(cx, ticket, request)
        } else if self.pending_joins.contains_key(request.member_id.as_str()) {
            self.join_pending(cx, ticket, request)
        } else {
            self.join_existing(cx, ticket, request)
        }
    }

    /// `group.max.size`: in the join phase it counts those who joined, so that the first to come back stay.
    fn accepts(&self, config: &CoordinatorConfig, member_id: &str) -> bool {
        let member = self.members.get(member_id);
        match self.state {
            GroupState::Empty | GroupState::Dead => true,
            GroupState::PreparingRebalance => {
                member.is_some_and(|m| m.awaiting_join.is_some()) || self.awaiting_join_count < config.max_members()
            }
            GroupState::CompletingRebalance | GroupState::Stable => {
                member.is_some() || self.members.len() < config.max_members()
            }
        }
    }

    fn join_new(&mut self, cx: &mut Context, ticket: Ticket, request: JoinRequest) -> Option<AppendId> {
        let prefix = request.group_instance_id.as_deref().unwrap_or(&request.client_id);
        let member_id = generate_member_id(prefix, request.random);
        match request.group_instance_id.as_deref().and_then(|id| self.static_members.get(id)).cloned() {
            Some(old_member_id) => self.replace_static(cx, ticket, request, &old_member_id, member_id),
            None if request.group_instance_id.is_some() || !request.requires_known_member_id => {
                self.admit(cx, ticket, request, member_id)
            }
            None => {
                self.require_member_id(cx, ticket, &request, member_id);
                None
            }
        }
    }

    /// Gives out an id and waits for the member to come back with it, so that a client that retries leaves no ghosts.
    fn require_member_id(&mut self, cx: &mut Context, ticket: Ticket, request: &JoinRequest, member_id: Arc<str>) {
        if self.pending_joins.len() >= limits::MAX_PENDING_MEMBERS_PER_GROUP {
            return cx.reply_join_error(ticket, "", ErrorCode::GroupMaxSizeReached);
        }
        let deadline_ms = cx.deadline_ms(i64::from(request.session_timeout_ms));
        let timer = Timer::PendingMember { group: self.id.clone(), member: member_id.clone() };
        let timer = cx.timers.arm(deadline_ms, timer);
        cx.reply_join_error(ticket, &member_id, ErrorCode::MemberIdRequired);
        if let Some(replaced) = self.pending_joins.insert(member_id, timer) {
            cx.timers.cancel(replaced);
        }
    }

    fn join_pending(&mut self, cx: &mut Context, ticket: Ticket, request: JoinRequest) -> Option<AppendId> {
        if request.group_instance_id.is_some() {
            // The id was given to a dynamic member; with an instance id it is somebody else's.
            cx.reply_join_error(ticket, &request.member_id, ErrorCode::UnknownMemberId);
            return None;
        }
        self.forget_pending_join(cx, &request.member_id);
        let member_id = Arc::from(request.member_id.as_str());
        self.admit(cx, ticket, request, member_id)
    }

    fn admit(
        &mut self,
        cx: &mut Context,
        ticket: Ticket,
        request: JoinRequest,
        member_id: Arc<str>,
    ) -> Option<AppendId> {
        if self.state == GroupState::PreparingRebalance && self.previous_state == GroupState::Empty {
            self.new_member_added = true;
        }
        let member = Member {
            id: member_id.clone(),
            instance_id: request.group_instance_id.map(Arc::from),
            client_id: request.client_id,
            client_host: request.client_host,
            rebalance_timeout_ms: request.rebalance_timeout_ms,
            session_timeout_ms: request.session_timeout_ms,
            protocols: request.protocols,
            assignment: Bytes::new(),
            awaiting_join: Some(ticket),
            awaiting_sync: None,
            is_new: true,
            session: Session::default(),
        };
        self.add_member(member, &request.protocol_type);
        self.extend_session(cx, &member_id, limits::NEW_MEMBER_JOIN_TIMEOUT_MS);
        self.rebalance_or_complete(cx)
    }

    fn join_existing(&mut self, cx: &mut Context, ticket: Ticket, request: JoinRequest) -> Option<AppendId> {
        if let Err(error) = self.validate_member(&request.member_id, request.group_instance_id.as_deref()) {
            cx.reply_join_error(ticket, &request.member_id, error);
            return None;
        }
        let member = self.members.get(request.member_id.as_str())?;
        let says_nothing_new = member.protocols == request.protocols;
        let repeat_answer = match self.state {
            GroupState::CompletingRebalance => says_nothing_new,
            // A leader that joins again asks for a rebalance: its topics may have changed.
            GroupState::Stable => says_nothing_new && !self.is_leader(&request.member_id),
            _ => false,
        };
        if repeat_answer {
            let member_id = member.id.clone();
            cx.reply(ticket, Response::Join(self.join_response(&member_id, false)));
            return None;
        }
        let timeouts = (request.rebalance_timeout_ms, request.session_timeout_ms);
        self.update_member(cx, &request.member_id, request.protocols, timeouts, ticket);
        self.rebalance_or_complete(cx)
    }
}

#[cfg(test)]
#[path = "join_tests.rs"]
mod tests;
