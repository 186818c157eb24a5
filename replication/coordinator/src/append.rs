//! Records on their way to the log, and what happens when they are there or are not.
//!
//! Results are taken in the order of the appends, whatever order they come in: offsets then change in the order of the
//! log. **A failed append** changes nothing that clients can see: its offsets are dropped, and its request is answered with
//! the error that Kafka gives for it. What it was about goes back: a group that could not be made goes away again, an
//! assignment that could not be kept starts a new rebalance, a static member gets its old id back, a group that could not
//! be deleted is Empty again. (As in Kafka, a failed append may still be found in the log after a change of leader.)

use crate::config::Now;
use crate::context::Context;
use crate::coordinator::{GroupCoordinator, Groups};
use crate::group::{Group, GroupRef, GroupState};
use crate::offsets::OffsetChange;
use crate::response::{AppendId, Response, Ticket};
use crate::static_member::Replacement;
use crate::sync::Assignment;
use model::ErrorCode;

/// What to do with the result of an append.
#[derive(Debug)]
pub(crate) enum After {
    Nothing,
    /// The first record of a group.
    Created(GroupRef),
    Assigned(Assignment),
    Replaced(Replacement),
    /// The tombstones of groups.
    Deleted(Vec<GroupRef>),
}

#[derive(Debug)]
pub(crate) struct PendingAppend {
    pub(crate) changes: Vec<OffsetChange>,
    pub(crate) after: After,
    /// An answer that leaves when the records are durable.
    pub(crate) reply: Option<(Ticket, Response)>,
    pub(crate) result: Option<Result<(), ErrorCode>>,
}

impl GroupCoordinator {
    /// The result of an append. Each is reported once; one that this coordinator does not wait for (it resigned meanwhile)
    /// is ignored.
    pub fn append_done(&mut self, now: Now, append_id: AppendId, result: Result<(), ErrorCode>) {
        self.cx.now = now;
        let Some(pending) = self.cx.appends.get_mut(&append_id) else { return };
        debug_assert!(pending.result.is_none(), "an append has one result");
        pending.result = Some(result);
        while let Some(first) = self.cx.appends.first_entry() {
            let Some(result) = first.get().result else { break };
            let pending = first.remove();
            self.finish_append(pending, result.map_err(response_error));
        }
    }

    fn finish_append(&mut self, pending: PendingAppend, result: Result<(), ErrorCode>) {
        for change in pending.changes {
            self.finish_offset(change, result.is_ok());
        }
        match pending.after {
            After::Nothing => {}
            After::Created(group) => {
                if let Err(error) = result {
                    self.undo_creation(&group, error);
                }
            }
            After::Assigned(assignment) => {
                let (cx, groups) = (&mut self.cx, &mut self.groups);
                if let Some(group) = find(groups, &assignment.group) {
                    group.finish_assignment(cx, assignment, result);
                }
            }
            After::Replaced(replacement) => {
                let (cx, groups) = (&mut self.cx, &mut self.groups);
                if let Some(group) = find(groups, &replacement.group) {
                    group.finish_replacement(cx, replacement, result);
                }
            }
            After::Deleted(deleted) => deleted.iter().for_each(|group| self.finish_deletion(group, result.is_ok())),
        }
        if let Some((ticket, response)) = pending.reply {
            let response = match result {
                Ok(()) => response,
                Err(error) => response.failed(error),
            };
            self.cx.reply(ticket, response);
        }
    }

    fn finish_offset(&mut self, change: OffsetChange, durable: bool) {
        if change.value.is_some()
            && let Some(group) = self.groups.get_mut(&change.group)
        {
            group.offsets.end(&change.topic, change.partition);
        }
        let group_id = change.group.clone();
        if durable {
            self.apply_offset(change);
        }
        self.drop_if_void(&group_id);
    }

    /// The group's first record could not be written. Unless it has come further meanwhile, it never was.
    fn undo_creation(&mut self, reference: &GroupRef, error: ErrorCode) {
        let Some(group) = find(&mut self.groups, reference) else { return };
        if group.generation_id != 0 || !matches!(group.state, GroupState::Empty | GroupState::PreparingRebalance) {
            return;
        }
        group.abandon(&mut self.cx, error);
        group.protocol_type = None;
        group.persisted = !group.offsets.topics().is_empty();
        group.state = GroupState::Empty;
        self.drop_if_void(&reference.id);
    }

    fn finish_deletion(&mut self, reference: &GroupRef, durable: bool) {
        let Some(group) = find(&mut self.groups, reference) else { return };
        debug_assert_eq!(group.state, GroupState::Dead);
        if durable {
            self.remove_group(&reference.id);
        } else {
            group.transition(&self.cx, GroupState::Empty);
        }
    }
}

impl Group {
    /// Answers everything that waits with an error and forgets the members.
    pub(crate) fn abandon(&mut self, cx: &mut Context, error: ErrorCode) {
        use crate::response::{JoinResponse, SyncResponse};
        for member_id in self.members.keys().cloned().collect::<Vec<_>>() {
            self.answer_join(cx, &member_id, |id| JoinResponse::error(id, error));
            self.answer_sync(cx, &member_id, SyncResponse::error(error));
            self.remove_member(cx, &member_id);
        }
        self.cancel_timers(cx);
    }
}

/// The group that is meant, unless it has gone.
fn find<'a>(groups: &'a mut Groups, reference: &GroupRef) -> Option<&'a mut Group> {
    groups.get_mut(&reference.id).filter(|g| g.incarnation == reference.incarnation)
}

/// What clients are told when records could not be written: Kafka's table.
fn response_error(append_error: ErrorCode) -> ErrorCode {
    match append_error {
        ErrorCode::UnknownTopicOrPartition
        | ErrorCode::NotEnoughReplicas
        | ErrorCode::NotEnoughReplicasAfterAppend
        | ErrorCode::RequestTimedOut => ErrorCode::CoordinatorNotAvailable,
        ErrorCode::NotLeaderOrFollower | ErrorCode::KafkaStorageError => ErrorCode::NotCoordinator,
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge | ErrorCode::InvalidFetchSize => {
            ErrorCode::UnknownServerError
        }
        other => other,
    }
}

#[cfg(test)]
#[path = "append_tests.rs"]
mod tests;
