//! The phases that joins, leaves, expiries and failed appends share: prepare a rebalance, complete the join phase, give up
//! on members that do not sync. Everything here works on one group and its timers.

use crate::append::After;
use crate::context::Context;
use crate::group::{Group, GroupState};
use crate::limits;
use crate::records::group_metadata;
use crate::response::{AppendId, JoinMember, JoinResponse, SyncResponse};
use crate::timers::Timer;
use bytes::Bytes;
use model::ErrorCode;
use std::sync::Arc;

impl Group {
    /// Starts a rebalance if the state allows one, else looks whether the one under way is complete.
    pub(crate) fn rebalance_or_complete(&mut self, cx: &mut Context) -> Option<AppendId> {
        match self.state {
            GroupState::Empty | GroupState::CompletingRebalance | GroupState::Stable => self.prepare_rebalance(cx),
            GroupState::PreparingRebalance => self.complete_if_all_joined(cx),
            GroupState::Dead => None,
        }
    }

    pub(crate) fn prepare_rebalance(&mut self, cx: &mut Context) -> Option<AppendId> {
        if self.state == GroupState::CompletingRebalance {
            self.reset_assignments(cx, ErrorCode::RebalanceInProgress);
        }
        self.end_sync_phase(cx);
        let is_initial = self.state == GroupState::Empty;
        self.transition(cx, GroupState::PreparingRebalance);
        if is_initial {
            let delay_ms = i64::from(cx.config.group_initial_rebalance_delay_ms);
            let remaining_ms = (self.rebalance_timeout_ms() - delay_ms).max(0);
            self.arm_initial_rebalance(cx, delay_ms, remaining_ms);
            None
        } else if self.all_members_joined() {
            self.complete_join(cx)
        } else {
            self.arm_join(cx, self.rebalance_timeout_ms());
            None
        }
    }

    /// The initial delay runs its course whoever has joined; afterwards the phase ends with the last join.
    pub(crate) fn complete_if_all_joined(&mut self, cx: &mut Context) -> Option<AppendId> {
        let may_complete = self.state == GroupState::PreparingRebalance && self.previous_state != GroupState::Empty;
        if may_complete && self.all_members_joined() { self.complete_join(cx) } else { None }
    }

    /// The initial delay is over: wait on if somebody came meanwhile, at most for the rebalance timeout in all.
    pub(crate) fn on_initial_delay(&mut self, cx: &mut Context, delay_ms: i64, remaining_ms: i64) -> Option<AppendId> {
        self.join_timer = None;
        if self.new_member_added && remaining_ms != 0 {
            self.new_member_added = false;
            let next_ms = i64::from(cx.config.group_initial_rebalance_delay_ms).min(remaining_ms);
            self.arm_initial_rebalance(cx, next_ms, (remaining_ms - delay_ms).max(0));
            return None;
        }
        self.complete_join(cx)
    }

    pub(crate) fn on_join_timeout(&mut self, cx: &mut Context) -> Option<AppendId> {
        self.join_timer = None;
        self.complete_join(cx)
    }

    fn arm_initial_rebalance(&mut self, cx: &mut Context, delay_ms: i64, remaining_ms: i64) {
        self.end_join_phase(cx);
        let timer = Timer::InitialRebalance { group: self.id.clone(), delay_ms, remaining_ms };
        self.join_timer = Some(cx.timers.arm(cx.deadline_ms(delay_ms), timer));
    }

    fn arm_join(&mut self, cx: &mut Context, delay_ms: i64) {
        self.end_join_phase(cx);
        self.join_timer = Some(cx.timers.arm(cx.deadline_ms(delay_ms), Timer::Join { group: self.id.clone() }));
    }

    fn end_join_phase(&mut self, cx: &mut Context) {
        if let Some(timer) = self.join_timer.take() {
            cx.timers.cancel(timer);
        }
    }

    fn end_sync_phase(&mut self, cx: &mut Context) {
        self.pending_syncs.clear();
        if let Some(timer) = self.sync_timer.take() {
            cx.timers.cancel(timer);
        }
    }

    /// The join phase is over. Dynamic members that did not join are out; static ones keep their place.
    pub(crate) fn complete_join(&mut self, cx: &mut Context) -> Option<AppendId> {
        if self.state != GroupState::PreparingRebalance {
            return None;
        }
        self.end_join_phase(cx);
        let late = self.members.values().filter(|m| m.awaiting_join.is_none() && m.instance_id.is_none());
        for member_id in late.map(|m| m.id.clone()).collect::<Vec<_>>() {
            self.remove_member(cx, &member_id);
        }
        if !self.elect_joined_leader() && !self.members.is_empty() {
            let retry_ms = self.rebalance_timeout_ms().max(limits::MIN_RETRY_REBALANCE_MS);
            self.arm_join(cx, retry_ms);
            return None;
        }
        self.next_generation(cx);
        if self.state == GroupState::Empty {
            let record = group_metadata::record(self, |_| Bytes::new());
            self.persisted = true;
            return Some(cx.append(vec![record], After::Nothing));
        }
        self.answer_joins(cx);
        None
    }

    /// The leader must be one that joined. Answers whether there is one.
    fn elect_joined_leader(&mut self) -> bool {
        let joined = |id: &Arc<str>| self.members.get(id).is_some_and(|m| m.awaiting_join.is_some());
        if self.leader.as_ref().is_some_and(joined) {
            return true;
        }
        match self.members.values().find(|m| m.awaiting_join.is_some()) {
            Some(member) => {
                self.leader = Some(member.id.clone());
                true
            }
            None => false,
        }
    }

    fn next_generation(&mut self, cx: &mut Context) {
        // Wraps to 0, because negative generations mean "none" to clients.
        self.generation_id = self.generation_id.checked_add(1).unwrap_or(0);
        self.pending_syncs.clear();
        self.new_member_added = false;
        if self.members.is_empty() {
            self.protocol_name = None;
            self.transition(cx, GroupState::Empty);
        } else {
            self.protocol_name = self.select_protocol();
            assert!(self.protocol_name.is_some(), "members are only let in when a protocol suits all");
            self.transition(cx, GroupState::CompletingRebalance);
        }
        self.compute_subscribed_topics();
    }

    /// Tells everybody the new generation, and the leader who is in it; then waits for the syncs.
    fn answer_joins(&mut self, cx: &mut Context) {
        for member_id in self.members.keys().cloned().collect::<Vec<_>>() {
            let response = self.join_response(&member_id, false);
            self.answer_join(cx, &member_id, |_| response);
            self.renew_session(cx, &member_id);
            if let Some(member) = self.members.get_mut(&member_id) {
                member.is_new = false;
            }
            self.pending_syncs.insert(member_id);
        }
        let timer = Timer::Sync { group: self.id.clone(), generation_id: self.generation_id };
        let deadline_ms = cx.deadline_ms(self.rebalance_timeout_ms());
        self.sync_timer = Some(cx.timers.arm(deadline_ms, timer));
    }

    /// What a member of the current generation is told.
    pub(crate) fn join_response(&self, member_id: &Arc<str>, skip_assignment: bool) -> JoinResponse {
        let members = if self.is_leader(member_id) { self.joined_members() } else { Vec::new() };
        JoinResponse {
            error: ErrorCode::None,
            generation_id: self.generation_id,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            leader: self.leader.clone().unwrap_or_else(|| Arc::from("")),
            skip_assignment,
            member_id: member_id.clone(),
            members,
        }
    }

    fn joined_members(&self) -> Vec<JoinMember> {
        let protocol = self.protocol_name.as_deref().unwrap_or("");
        self.members
            .values()
            .map(|m| JoinMember {
                member_id: m.id.clone(),
                group_instance_id: m.instance_id.clone(),
                metadata: m.metadata(protocol),
            })
            .collect()
    }

    /// Members that did not sync within the rebalance timeout are out, and the others start again.
    pub(crate) fn on_sync_timeout(&mut self, cx: &mut Context, generation_id: i32) -> Option<AppendId> {
        self.sync_timer = None;
        let is_current = generation_id == self.generation_id
            && matches!(self.state, GroupState::CompletingRebalance | GroupState::Stable);
        if !is_current || self.pending_syncs.is_empty() {
            return None;
        }
        for member_id in std::mem::take(&mut self.pending_syncs) {
            self.remove_member(cx, &member_id);
        }
        self.prepare_rebalance(cx)
    }

    /// A member synced; the phase's timeout ends with the last one.
    pub(crate) fn synced(&mut self, cx: &mut Context, member_id: &str) {
        self.pending_syncs.remove(member_id);
        if self.pending_syncs.is_empty() {
            self.end_sync_phase(cx);
        }
    }

    /// Takes all assignments back and answers the syncs that wait with the error.
    pub(crate) fn reset_assignments(&mut self, cx: &mut Context, error: ErrorCode) {
        for member_id in self.members.keys().cloned().collect::<Vec<_>>() {
            if let Some(member) = self.members.get_mut(&member_id) {
                member.assignment = Bytes::new();
            }
            if self.answer_sync(cx, &member_id, SyncResponse::error(error)) {
                self.renew_session(cx, &member_id);
            }
        }
    }

    /// A member's session is over.
    pub(crate) fn expire_member(&mut self, cx: &mut Context, member_id: &str) -> Option<AppendId> {
        self.remove_member(cx, member_id);
        match self.state {
            GroupState::Stable | GroupState::CompletingRebalance => self.prepare_rebalance(cx),
            GroupState::PreparingRebalance if self.all_members_joined() => self.complete_join(cx),
            _ => None,
        }
    }

    /// A member that was given an id did not come back.
    pub(crate) fn expire_pending_member(&mut self, cx: &mut Context, member_id: &str) -> Option<AppendId> {
        self.pending_joins.remove(member_id);
        let complete = self.state == GroupState::PreparingRebalance && self.all_members_joined();
        if complete { self.complete_join(cx) } else { None }
    }
}

#[cfg(test)]
#[path = "rebalance_tests.rs"]
mod tests;
