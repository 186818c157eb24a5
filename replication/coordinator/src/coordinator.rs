//! One partition of `__consumer_offsets`: its groups, and what they share. Owned by the shard that leads the partition.

use crate::config::{CoordinatorConfig, Now};
use crate::context::Context;
use crate::group::Group;
use crate::offsets::OffsetChange;
use crate::response::{Effect, Response};
use crate::timers::Timer;
use crate::{expire, limits};
use model::ErrorCode;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) type Groups = BTreeMap<Arc<str>, Group>;

/// Groups and offsets of one partition of `__consumer_offsets`. See the crate's documentation for how to drive it.
#[derive(Debug)]
pub struct GroupCoordinator {
    pub(crate) groups: Groups,
    pub(crate) cx: Context,
    pub(crate) loading: bool,
    /// Records of kinds that are not built here, seen while loading.
    pub(crate) skipped_records: u64,
    pub(crate) expiry: expire::Progress,
}

impl GroupCoordinator {
    /// A coordinator that loads: feed it all records of the partition, then call `finish_loading`.
    pub fn new(config: CoordinatorConfig) -> GroupCoordinator {
        GroupCoordinator {
            groups: BTreeMap::new(),
            cx: Context::new(config),
            loading: true,
            skipped_records: 0,
            expiry: expire::Progress::default(),
        }
    }

    /// Settings may change while it runs; timers that run keep their time.
    pub fn set_config(&mut self, config: CoordinatorConfig) {
        self.cx.config = config;
    }

    pub fn is_loading(&self) -> bool {
        self.loading
    }

    /// The next thing to do, in order. Call it until `None` after every other call.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.cx.effects.pop_front()
    }

    /// When `on_timer` wants to be called, on the monotonic clock. May be earlier than anything happens, never later.
    pub fn next_deadline_ms(&self) -> Option<i64> {
        self.cx.timers.next_deadline_ms()
    }

    /// Fires what is due, at most [`limits::MAX_TIMERS_PER_CALL`]; look at `next_deadline_ms` again afterwards.
    pub fn on_timer(&mut self, now: Now) {
        self.cx.now = now;
        for _ in 0..limits::MAX_TIMERS_PER_CALL {
            match self.cx.timers.pop_due(now.monotonic_ms) {
                Some(timer) => self.fire(timer),
                None => break,
            }
        }
    }

    fn fire(&mut self, timer: Timer) {
        let group_id = match &timer {
            Timer::Expiry => return self.expire_slice(),
            Timer::Session { group, .. }
            | Timer::PendingMember { group, .. }
            | Timer::InitialRebalance { group, .. }
            | Timer::Join { group }
            | Timer::Sync { group, .. } => group,
        };
        let Some(group) = self.groups.get_mut(group_id) else {
            debug_assert!(false, "a group that goes takes its timers along");
            return;
        };
        let cx = &mut self.cx;
        match timer {
            Timer::Session { member, .. } => group.on_session_timer(cx, &member),
            Timer::PendingMember { member, .. } => group.expire_pending_member(cx, &member),
            Timer::InitialRebalance { delay_ms, remaining_ms, .. } => {
                group.on_initial_delay(cx, delay_ms, remaining_ms)
            }
            Timer::Join { .. } => group.on_join_timeout(cx),
            Timer::Sync { generation_id, .. } => group.on_sync_timeout(cx, generation_id),
            Timer::Expiry => None,
        };
    }

    /// The partition has another leader: everything that waits is told so (NOT_COORDINATOR), and the state is gone.
    pub fn resign(&mut self) {
        for group in self.groups.values_mut() {
            group.abandon(&mut self.cx, ErrorCode::NotCoordinator);
        }
        for pending in std::mem::take(&mut self.cx.appends).into_values() {
            if let Some((ticket, response)) = pending.reply {
                self.cx.reply(ticket, response.failed(ErrorCode::NotCoordinator));
            }
        }
        self.cx.effects.retain(|effect| matches!(effect, Effect::Reply { .. }));
        self.groups.clear();
        self.cx.timers.clear();
        self.cx.offset_count = 0;
        self.expiry = expire::Progress::default();
        self.loading = true;
    }

    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// Members of all groups.
    pub fn member_count(&self) -> usize {
        self.groups.values().map(|group| group.members.len()).sum()
    }

    /// Committed offsets of all groups.
    pub fn offset_count(&self) -> usize {
        self.cx.offset_count
    }

    /// Records seen while loading that belong to protocols that are not built here.
    pub fn skipped_records(&self) -> u64 {
        self.skipped_records
    }

    pub(crate) fn create_group(&mut self, group_id: &str) -> &mut Group {
        let id: Arc<str> = Arc::from(group_id);
        let cx = &mut self.cx;
        self.groups.entry(id.clone()).or_insert_with(|| Group::new(id, cx))
    }

    /// Takes a group out with its timers and offsets.
    pub(crate) fn remove_group(&mut self, group_id: &str) {
        if let Some(mut group) = self.groups.remove(group_id) {
            group.cancel_timers(&mut self.cx);
            self.cx.offset_count -= group.offsets.len();
        }
    }

    pub(crate) fn drop_if_void(&mut self, group_id: &str) {
        if self.groups.get(group_id).is_some_and(Group::is_void) {
            self.remove_group(group_id);
        }
    }

    /// Applies a change that is in the log. A commit makes the group that it is for: so simple groups come to be.
    pub(crate) fn apply_offset(&mut self, change: OffsetChange) {
        if change.value.is_some() && !self.groups.contains_key(&change.group) {
            self.create_group(&change.group);
        }
        let Some(group) = self.groups.get_mut(&change.group) else { return };
        group.persisted |= change.value.is_some();
        let difference = group.offsets.apply(&change.topic, change.partition, change.value);
        self.cx.offset_count = self.cx.offset_count.saturating_add_signed(difference);
    }

    /// An answer to a request that cannot be taken now.
    pub(crate) fn refuse_while_loading(&mut self, ticket: crate::Ticket, response: Response) -> bool {
        if self.loading {
            self.cx.reply(ticket, response.failed(ErrorCode::CoordinatorLoadInProgress));
        }
        self.loading
    }

    #[cfg(test)]
    pub(crate) fn check(&self) {
        self.groups.values().for_each(Group::check);
        assert_eq!(self.cx.offset_count, self.groups.values().map(|g| g.offsets.len()).sum::<usize>());
        let members: usize = self.groups.values().map(|g| g.members.len() + g.pending_joins.len()).sum();
        assert!(self.cx.timers.len() <= members + 2 * self.groups.len() + 1, "timers are bounded");
    }
}
