//! A classic group: its members, its generation, and where it stands in the protocol. Owned by the coordinator.
//!
//! ```text
//!              join                all joined                 leader's sync is durable
//! Empty ------------> Preparing -------------> Completing ------------------------------> Stable
//!   ^                 Rebalance  <------------- Rebalance                                    |
//!   | nobody joined      |   ^     join, leave, expiry, sync timeout, failed append          |
//!   +--------------------+   +------------------------------- join, leave, expiry -----------+
//! ```
//! Dead is a group whose deletion is on its way to the log. Membership is changed only here, because the group counts
//! what its members wait for and support; `rebalance` moves the state.

use crate::context::Context;
use crate::member::{Member, Protocol};
use crate::offsets::GroupOffsets;
use crate::response::{JoinResponse, Response, SyncResponse, Ticket};
use crate::subscription;
use crate::timers::{Timer, TimerId};
use model::ErrorCode;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupState {
    Empty,
    PreparingRebalance,
    CompletingRebalance,
    Stable,
    Dead,
}

impl GroupState {
    /// As DescribeGroups and ListGroups spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            GroupState::Empty => "Empty",
            GroupState::PreparingRebalance => "PreparingRebalance",
            GroupState::CompletingRebalance => "CompletingRebalance",
            GroupState::Stable => "Stable",
            GroupState::Dead => "Dead",
        }
    }
}

impl fmt::Display for GroupState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A group's name and which of the groups of that name: work that comes back later must not hit a successor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupRef {
    pub(crate) id: Arc<str>,
    pub(crate) incarnation: u64,
}

/// The protocol type of Kafka's consumers, whose metadata is understood here.
pub(crate) const CONSUMER_PROTOCOL_TYPE: &str = "consumer";

#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) id: Arc<str>,
    pub(crate) incarnation: u64,
    /// The log has something that makes the group exist, its own record or a commit, or its own record is on its way.
    pub(crate) persisted: bool,
    pub(crate) state: GroupState,
    pub(crate) previous_state: GroupState,
    /// Wall clock of the last change of state; unknown for groups loaded from old records.
    pub(crate) state_timestamp_ms: Option<i64>,
    pub(crate) generation_id: i32,
    /// `None` until a member joined: then it is a simple group, made by commits alone.
    pub(crate) protocol_type: Option<String>,
    pub(crate) protocol_name: Option<String>,
    pub(crate) leader: Option<Arc<str>>,
    pub(crate) members: BTreeMap<Arc<str>, Member>,
    /// Instance id to member id.
    pub(crate) static_members: BTreeMap<Arc<str>, Arc<str>>,
    /// Members that were given an id and must come back with it.
    pub(crate) pending_joins: BTreeMap<Arc<str>, TimerId>,
    /// Members of this generation that have not synced.
    pub(crate) pending_syncs: BTreeSet<Arc<str>>,
    pub(crate) awaiting_join_count: usize,
    /// By how many members each protocol is supported.
    supported: BTreeMap<String, usize>,
    /// `None` when unknown: no consumers, or metadata that cannot be read.
    pub(crate) subscribed_topics: Option<BTreeSet<String>>,
    /// Somebody joined while the initial delay ran.
    pub(crate) new_member_added: bool,
    pub(crate) join_timer: Option<TimerId>,
    pub(crate) sync_timer: Option<TimerId>,
    pub(crate) offsets: GroupOffsets,
}

impl Group {
    pub(crate) fn new(id: Arc<str>, cx: &mut Context) -> Group {
        Group {
            id,
            incarnation: cx.incarnation(),
            persisted: false,
            state: GroupState::Empty,
            previous_state: GroupState::Dead,
            state_timestamp_ms: Some(cx.now.wall_ms),
            generation_id: 0,
            protocol_type: None,
            protocol_name: None,
            leader: None,
            members: BTreeMap::new(),
            static_members: BTreeMap::new(),
            pending_joins: BTreeMap::new(),
            pending_syncs: BTreeSet::new(),
            awaiting_join_count: 0,
            supported: BTreeMap::new(),
            subscribed_topics: None,
            new_member_added: false,
            join_timer: None,
            sync_timer: None,
            offsets: GroupOffsets::default(),
        }
    }

    pub(crate) fn reference(&self) -> GroupRef {
        GroupRef { id: self.id.clone(), incarnation: self.incarnation }
    }

    pub(crate) fn transition(&mut self, cx: &Context, state: GroupState) {
        use GroupState::*;
        let allowed = match state {
            Empty => matches!(self.state, PreparingRebalance | Dead),
            PreparingRebalance => matches!(self.state, Empty | CompletingRebalance | Stable),
            CompletingRebalance => self.state == PreparingRebalance,
            Stable => self.state == CompletingRebalance,
            Dead => true,
        };
        assert!(allowed, "a group does not go from {} to {state}", self.state);
        self.previous_state = self.state;
        self.state = state;
        self.state_timestamp_ms = Some(cx.now.wall_ms);
    }

    pub(crate) fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_deref() == Some(member_id)
    }

    pub(crate) fn uses_consumer_protocol(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER_PROTOCOL_TYPE)
    }

    /// Nothing is known of it that the log would not say by saying nothing.
    pub(crate) fn is_void(&self) -> bool {
        self.state == GroupState::Empty
            && !self.persisted
            && self.members.is_empty()
            && self.pending_joins.is_empty()
            && self.offsets.is_void()
    }

    pub(crate) fn all_members_joined(&self) -> bool {
        self.awaiting_join_count == self.members.len() && self.pending_joins.is_empty()
    }

    /// Longest rebalance timeout of the members.
    pub(crate) fn rebalance_timeout_ms(&self) -> i64 {
        self.members.values().map(|m| i64::from(m.rebalance_timeout_ms)).max().unwrap_or(0)
    }

    /// Whether a member that lists these could join: some protocol must suit everybody.
    pub(crate) fn supports(&self, protocol_type: &str, protocols: &[Protocol]) -> bool {
        if self.state == GroupState::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols.iter().any(|p| self.supported.get(&p.name).copied().unwrap_or(0) == self.members.len())
    }

    /// The protocol with the most votes among those that all members support; each votes for its first such. A tie goes
    /// to the name that sorts first (Kafka leaves it open).
    pub(crate) fn select_protocol(&self) -> Option<String> {
        let common = |name: &String| self.supported.get(name) == Some(&self.members.len());
        let mut votes: BTreeMap<&String, usize> = BTreeMap::new();
        for member in self.members.values() {
            if let Some(choice) = member.protocols.iter().map(|p| &p.name).find(|name| common(name)) {
                *votes.entry(choice).or_default() += 1;
            }
        }
        votes.iter().rev().max_by_key(|(_, count)| **count).map(|(name, _)| (*name).clone())
    }

    /// Checks that a member belongs here (25) and that no successor has its instance id (82).
    pub(crate) fn validate_member(&self, member_id: &str, instance_id: Option<&str>) -> Result<(), ErrorCode> {
        if let Some(instance_id) = instance_id {
            match self.static_members.get(instance_id) {
                None => return Err(ErrorCode::UnknownMemberId),
                Some(current) if **current != *member_id => return Err(ErrorCode::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.members.contains_key(member_id) { Ok(()) } else { Err(ErrorCode::UnknownMemberId) }
    }

    /// Takes a member in. Its session is the caller's to arm.
    pub(crate) fn add_member(&mut self, member: Member, protocol_type: &str) {
        if let Some(instance_id) = &member.instance_id {
            let replaced = self.static_members.insert(instance_id.clone(), member.id.clone());
            assert!(replaced.is_none(), "an instance id belongs to one member");
        }
        if self.members.is_empty() {
            self.protocol_type = Some(protocol_type.to_owned());
        }
        if self.leader.is_none() {
            self.leader = Some(member.id.clone());
        }
        self.count_protocols(&member.protocols, true);
        self.awaiting_join_count += usize::from(member.awaiting_join.is_some());
        let replaced = self.members.insert(member.id.clone(), member);
        assert!(replaced.is_none(), "a member id belongs to one member");
    }

    /// Takes a member out, ends its session and answers what it waits for with 25. The first of the others becomes leader
    /// if it was.
    pub(crate) fn remove_member(&mut self, cx: &mut Context, member_id: &str) {
        self.forget_pending_join(cx, member_id);
        self.pending_syncs.remove(member_id);
        self.answer_join(cx, member_id, |id| JoinResponse::error(id, ErrorCode::UnknownMemberId));
        self.answer_sync(cx, member_id, SyncResponse::error(ErrorCode::UnknownMemberId));
        if let Some(member) = self.members.remove(member_id) {
            self.count_protocols(&member.protocols, false);
            if let Some(timer) = member.session.armed {
                cx.timers.cancel(timer);
            }
            if let Some(instance_id) = &member.instance_id {
                self.static_members.remove(instance_id);
            }
        }
        if self.is_leader(member_id) {
            self.leader = self.members.keys().next().cloned();
        }
    }

    /// A member that was pending is not any more. Answers whether it was.
    pub(crate) fn forget_pending_join(&mut self, cx: &mut Context, member_id: &str) -> bool {
        match self.pending_joins.remove(member_id) {
            Some(timer) => {
                cx.timers.cancel(timer);
                true
            }
            None => false,
        }
    }

    /// Takes over what a member says in a new join, and lets the join wait.
    pub(crate) fn update_member(
        &mut self,
        cx: &mut Context,
        member_id: &str,
        protocols: Vec<Protocol>,
        timeouts: (i32, i32),
        ticket: Ticket,
    ) {
        self.supersede_join(cx, member_id);
        self.replace_protocols(member_id, protocols, timeouts);
        if let Some(member) = self.members.get_mut(member_id) {
            member.awaiting_join = Some(ticket);
            self.awaiting_join_count += 1;
        }
    }

    /// `timeouts`: rebalance and session, in milliseconds.
    pub(crate) fn replace_protocols(&mut self, member_id: &str, protocols: Vec<Protocol>, timeouts: (i32, i32)) {
        let Some(member) = self.members.get_mut(member_id) else { return };
        (member.rebalance_timeout_ms, member.session_timeout_ms) = timeouts;
        let old = std::mem::replace(&mut member.protocols, protocols.clone());
        self.count_protocols(&old, false);
        self.count_protocols(&protocols, true);
    }

    fn count_protocols(&mut self, protocols: &[Protocol], up: bool) {
        for protocol in protocols {
            let count = self.supported.entry(protocol.name.clone()).or_default();
            *count = if up { *count + 1 } else { *count - 1 };
            if *count == 0 {
                self.supported.remove(&protocol.name);
            }
        }
    }

    /// A member that asks again while its join waits gets the older request answered: Kafka leaves that one hanging, which
    /// would block a connection that pipelines.
    fn supersede_join(&mut self, cx: &mut Context, member_id: &str) {
        self.answer_join(cx, member_id, |id| JoinResponse::error(id, ErrorCode::RebalanceInProgress));
    }

    /// Answers the join that a member waits for, if it does.
    pub(crate) fn answer_join(
        &mut self,
        cx: &mut Context,
        member_id: &str,
        response: impl FnOnce(Arc<str>) -> JoinResponse,
    ) {
        let Some(member) = self.members.get_mut(member_id) else { return };
        if let Some(ticket) = member.awaiting_join.take() {
            self.awaiting_join_count -= 1;
            cx.reply(ticket, Response::Join(response(member.id.clone())));
        }
    }

    /// Answers the sync that a member waits for. Answers whether it did.
    pub(crate) fn answer_sync(&mut self, cx: &mut Context, member_id: &str, response: SyncResponse) -> bool {
        match self.members.get_mut(member_id).and_then(|m| m.awaiting_sync.take()) {
            Some(ticket) => {
                cx.reply(ticket, Response::Sync(response));
                true
            }
            None => false,
        }
    }

    /// Starts a member's session anew. The timer is touched only if it would look too late.
    pub(crate) fn extend_session(&mut self, cx: &mut Context, member_id: &str, timeout_ms: i64) {
        let Some(member) = self.members.get_mut(member_id) else { return };
        let deadline_ms = cx.deadline_ms(timeout_ms);
        member.session.deadline_ms = deadline_ms;
        if let Some(armed) = member.session.armed {
            if armed.deadline_ms <= deadline_ms {
                return;
            }
            cx.timers.cancel(armed);
        }
        let timer = Timer::Session { group: self.id.clone(), member: member.id.clone() };
        member.session.armed = Some(cx.timers.arm(deadline_ms, timer));
    }

    /// The same with the member's own session timeout.
    pub(crate) fn renew_session(&mut self, cx: &mut Context, member_id: &str) {
        if let Some(timeout_ms) = self.members.get(member_id).map(|m| i64::from(m.session_timeout_ms)) {
            self.extend_session(cx, member_id, timeout_ms);
        }
    }

    /// Ends all the group's timers, before it goes away.
    pub(crate) fn cancel_timers(&mut self, cx: &mut Context) {
        let sessions = self.members.values_mut().filter_map(|m| m.session.armed.take());
        let pending = std::mem::take(&mut self.pending_joins).into_values();
        let phases = self.join_timer.take().into_iter().chain(self.sync_timer.take());
        for timer in sessions.chain(pending).chain(phases) {
            cx.timers.cancel(timer);
        }
    }

    /// Recomputes the topics that the members read.
    pub(crate) fn compute_subscribed_topics(&mut self) {
        self.subscribed_topics = if !self.uses_consumer_protocol() {
            None
        } else if self.members.is_empty() {
            Some(BTreeSet::new())
        } else {
            self.protocol_name.as_ref().and_then(|protocol| {
                let mut topics = BTreeSet::new();
                for member in self.members.values() {
                    subscription::add_topics(&member.metadata(protocol), &mut topics)?;
                }
                Some(topics)
            })
        };
    }

    /// Unknown subscriptions of consumers count as subscribed to everything.
    pub(crate) fn is_subscribed_to(&self, topic: &str) -> bool {
        match &self.subscribed_topics {
            Some(topics) => topics.contains(topic),
            None => self.uses_consumer_protocol(),
        }
    }

    /// Paired with the counting above; tests call it after every step.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        assert_eq!(self.awaiting_join_count, self.members.values().filter(|m| m.awaiting_join.is_some()).count());
        let mut supported: BTreeMap<String, usize> = BTreeMap::new();
        for protocol in self.members.values().flat_map(|m| &m.protocols) {
            *supported.entry(protocol.name.clone()).or_default() += 1;
        }
        assert_eq!(self.supported, supported);
        for (instance, id) in &self.static_members {
            assert_eq!(self.members[id].instance_id.as_ref(), Some(instance));
        }
        assert!(self.pending_syncs.iter().all(|id| self.members.contains_key(id)));
        assert!(self.pending_joins.keys().all(|id| !self.members.contains_key(id)));
        match &self.leader {
            Some(leader) => assert!(self.members.contains_key(leader)),
            None => assert!(self.members.is_empty()),
        }
        if matches!(self.state, GroupState::Empty | GroupState::Dead) {
            assert!(self.members.is_empty());
        }
        for member in self.members.values() {
            assert!(member.session.armed.is_some() || member.has_satisfied_heartbeat());
            assert!(member.session.armed.is_none_or(|t| t.deadline_ms <= member.session.deadline_ms));
            assert!(member.awaiting_sync.is_none() || self.state == GroupState::CompletingRebalance);
        }
    }
}
