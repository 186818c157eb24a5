//! Time that runs out: sessions of members, and offsets that nobody needs any more.
//!
//! Offsets expire (`offsets.retention.minutes`) when their group has been empty for so long, or when the topic is not
//! subscribed any more and the commit is that old. A group whose last offset goes, goes too. The check runs in slices of
//! bounded length, so that a million offsets do not hold up the core.

use crate::context::Context;
use crate::coordinator::GroupCoordinator;
use crate::group::{Group, GroupState};
use crate::limits;
use crate::offsets::{CommittedOffset, OffsetChange};
use crate::response::AppendId;
use crate::timers::Timer;
use std::ops::Bound;
use std::sync::Arc;

/// How far the current check has come.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    last_visited: Option<Arc<str>>,
}

/// Where an offset's retention begins.
#[derive(Clone, Copy)]
enum Since {
    Commit,
    Timestamp(i64),
}

impl GroupCoordinator {
    pub(crate) fn arm_expiry(&mut self) {
        let interval_ms = self.cx.config.offsets_retention_check_interval_ms.max(1);
        let deadline_ms = self.cx.deadline_ms(interval_ms);
        self.cx.timers.arm(deadline_ms, Timer::Expiry);
    }

    /// Looks at the next groups; goes on with the next tick of the clock until all have been seen.
    pub(crate) fn expire_slice(&mut self) {
        let (mut changes, mut deleted, mut visits) = (Vec::new(), Vec::new(), 0);
        let start = match self.expiry.last_visited.take() {
            Some(id) => Bound::Excluded(id),
            None => Bound::Unbounded,
        };
        let mut last_visited = None;
        for (id, group) in self.groups.range_mut::<Arc<str>, _>((start, Bound::Unbounded)) {
            if visits >= limits::EXPIRY_VISITS_PER_SLICE {
                break;
            }
            visits += 1 + group.offsets.len();
            last_visited = Some(id.clone());
            if group.expire_offsets(&self.cx, &mut changes) {
                group.cancel_timers(&mut self.cx);
                group.transition(&self.cx, GroupState::Dead);
                deleted.push(group.reference());
            }
        }
        self.append_deletions(changes, deleted);
        if visits >= limits::EXPIRY_VISITS_PER_SLICE {
            self.expiry.last_visited = last_visited;
            let deadline_ms = self.cx.deadline_ms(1);
            self.cx.timers.arm(deadline_ms, Timer::Expiry);
        } else {
            self.arm_expiry();
        }
    }
}

impl Group {
    /// Collects tombstones for what has expired. Answers whether nothing is left that the group is needed for.
    fn expire_offsets(&self, cx: &Context, changes: &mut Vec<OffsetChange>) -> bool {
        if self.state == GroupState::Dead {
            return false;
        }
        let mut all_expired = true;
        if let Some(since) = self.retention_since() {
            for (topic, partitions) in self.offsets.topics() {
                let subscribed = self.is_subscribed_to(topic);
                for (&partition, committed) in partitions {
                    // One that is just being committed is in use, whatever its past.
                    if subscribed || !is_expired(cx, committed, since) || self.offsets.is_pending(topic, partition) {
                        all_expired = false;
                    } else {
                        let (group, topic) = (self.id.clone(), topic.clone());
                        changes.push(OffsetChange { group, topic, partition, value: None });
                    }
                }
            }
        } else {
            all_expired = false;
        }
        all_expired && self.state == GroupState::Empty && self.pending_joins.is_empty() && !self.offsets.has_pending()
    }

    /// `None` when nothing of this group may expire now.
    fn retention_since(&self) -> Option<Since> {
        if self.protocol_type.is_none() {
            return Some(Since::Commit);
        }
        match self.state {
            GroupState::Empty => Some(self.state_timestamp_ms.map_or(Since::Commit, Since::Timestamp)),
            GroupState::Stable if self.uses_consumer_protocol() && self.subscribed_topics.is_some() => {
                Some(Since::Commit)
            }
            _ => None,
        }
    }

    /// A session's timer fired: look whether the session was extended meanwhile.
    pub(crate) fn on_session_timer(&mut self, cx: &mut Context, member_id: &str) -> Option<AppendId> {
        let member = self.members.get_mut(member_id)?;
        member.session.armed = None;
        if member.session.deadline_ms > cx.now.monotonic_ms {
            let timer = Timer::Session { group: self.id.clone(), member: member.id.clone() };
            member.session.armed = Some(cx.timers.arm(member.session.deadline_ms, timer));
            return None;
        }
        if member.has_satisfied_heartbeat() {
            // Its request waits here; the answer will start the session anew.
            return None;
        }
        self.expire_member(cx, member_id)
    }
}

fn is_expired(cx: &Context, committed: &CommittedOffset, since: Since) -> bool {
    if let Some(expire_timestamp_ms) = committed.expire_timestamp_ms {
        return cx.now.wall_ms >= expire_timestamp_ms;
    }
    let since_ms = match since {
        Since::Commit => committed.commit_timestamp_ms,
        Since::Timestamp(timestamp_ms) => timestamp_ms,
    };
    cx.now.wall_ms.saturating_sub(since_ms) >= cx.config.offsets_retention_ms
}

#[cfg(test)]
#[path = "expire_tests.rs"]
mod tests;
