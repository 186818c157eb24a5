//! Deletions: groups (DeleteGroups), offsets of a group (OffsetDelete), offsets of topics that are gone. All are tombstones;
//! what they delete is visible until they are durable.

use crate::append::After;
use crate::config::Now;
use crate::coordinator::GroupCoordinator;
use crate::group::{Group, GroupRef, GroupState};
use crate::join::check_group_id;
use crate::limits;
use crate::offsets::OffsetChange;
use crate::records::{group_metadata, offset_commit};
use crate::request::DeleteOffsetsRequest;
use crate::response::{AppendId, RecordBytes, Response, Ticket};
use model::{ErrorCode, TopicId};
use std::sync::Arc;

impl GroupCoordinator {
    /// Deletes groups that have no members. Until their tombstones are durable they are Dead: joins and commits are told to
    /// try again.
    pub fn delete_groups(&mut self, now: Now, ticket: Ticket, group_ids: Vec<String>) {
        self.cx.now = now;
        let mut results: Vec<(String, ErrorCode)> = group_ids.into_iter().map(|id| (id, ErrorCode::None)).collect();
        if self.refuse_while_loading(ticket, Response::DeleteGroups(results.clone())) {
            return;
        }
        let (mut changes, mut deleted) = (Vec::new(), Vec::new());
        for (group_id, result) in &mut results {
            match self.begin_deletion(group_id, &mut changes) {
                Ok(group) => deleted.push(group),
                Err(error) => *result = error,
            }
        }
        let append = self.append_deletions(changes, deleted);
        self.cx.reply_after(append, ticket, Response::DeleteGroups(results));
    }

    fn begin_deletion(&mut self, group_id: &str, changes: &mut Vec<OffsetChange>) -> Result<GroupRef, ErrorCode> {
        let group = self.groups.get_mut(group_id).ok_or(ErrorCode::GroupIdNotFound)?;
        match group.state {
            GroupState::Dead => return Err(ErrorCode::GroupIdNotFound),
            GroupState::Empty => {}
            _ => return Err(ErrorCode::NonEmptyGroup),
        }
        changes.extend(group.tombstones(|_, _| true));
        group.cancel_timers(&mut self.cx);
        group.transition(&self.cx, GroupState::Dead);
        Ok(group.reference())
    }

    /// Writes offset tombstones, then those of groups, cut into appends of bounded size. Answers the last one.
    pub(crate) fn append_deletions(&mut self, changes: Vec<OffsetChange>, deleted: Vec<GroupRef>) -> Option<AppendId> {
        let mut last = None;
        let mut rest = changes.into_iter().peekable();
        while rest.peek().is_some() {
            let part: Vec<OffsetChange> = rest.by_ref().take(limits::MAX_RECORDS_PER_APPEND).collect();
            let records: Vec<RecordBytes> = part.iter().map(offset_commit::record).collect();
            last = Some(self.cx.append_offsets(records, part, After::Nothing));
        }
        for part in deleted.chunks(limits::MAX_RECORDS_PER_APPEND) {
            let records = part.iter().map(|group| group_metadata::tombstone(&group.id)).collect();
            last = Some(self.cx.append(records, After::Deleted(part.to_vec())));
        }
        last
    }

    /// Deletes offsets of topics that the group does not read.
    pub fn delete_offsets(&mut self, now: Now, ticket: Ticket, request: DeleteOffsetsRequest) {
        self.cx.now = now;
        let empty = Response::DeleteOffsets { error: ErrorCode::None, topics: Vec::new() };
        if self.refuse_while_loading(ticket, empty.clone()) {
            return;
        }
        let group = match self.group_for_offset_deletion(&request.group_id) {
            Ok(group) => group,
            Err(error) => return self.cx.reply(ticket, empty.failed(error)),
        };
        let (mut changes, mut topics) = (Vec::new(), Vec::with_capacity(request.topics.len()));
        for (name, partitions) in request.topics {
            let subscribed = group.is_subscribed_to(&name);
            let error = if subscribed { ErrorCode::GroupSubscribedToTopic } else { ErrorCode::None };
            let topic = group.offsets.intern(&name);
            for &partition in partitions.iter().filter(|_| !subscribed) {
                if group.offsets.get(&topic, partition).is_some() || group.offsets.is_pending(&topic, partition) {
                    changes.push(group.tombstone(topic.clone(), partition));
                }
            }
            topics.push((name, partitions.into_iter().map(|p| (p, error)).collect()));
        }
        let append = self.append_deletions(changes, Vec::new());
        self.cx.reply_after(append, ticket, Response::DeleteOffsets { error: ErrorCode::None, topics });
    }

    fn group_for_offset_deletion(&self, group_id: &str) -> Result<&Group, ErrorCode> {
        check_group_id(group_id)?;
        let group = self.groups.get(group_id).ok_or(ErrorCode::GroupIdNotFound)?;
        match group.state {
            GroupState::Dead => Err(ErrorCode::GroupIdNotFound),
            GroupState::Empty => Ok(group),
            _ if group.uses_consumer_protocol() => Ok(group),
            _ => Err(ErrorCode::NonEmptyGroup),
        }
    }

    /// A topic was deleted: so are its offsets, in every group. One made again under its name has another id and keeps what
    /// is committed for it; offsets without an id go by the name.
    pub fn topic_deleted(&mut self, now: Now, name: &str, topic_id: TopicId) {
        self.remove_offsets(now, |topic, id| {
            topic == name && (id == topic_id || id == TopicId::ZERO || topic_id == TopicId::ZERO)
        });
    }

    /// After loading: deletes the offsets of topics that do not exist (any more), which a crash may have left.
    pub fn retain_topics(&mut self, now: Now, mut exists: impl FnMut(&str, TopicId) -> bool) {
        self.remove_offsets(now, |topic, id| !exists(topic, id));
    }

    fn remove_offsets(&mut self, now: Now, mut doomed: impl FnMut(&str, TopicId) -> bool) {
        self.cx.now = now;
        let alive = self.groups.values().filter(|g| g.state != GroupState::Dead);
        let changes: Vec<OffsetChange> = alive.flat_map(|g| g.tombstones(&mut doomed)).collect();
        self.append_deletions(changes, Vec::new());
    }
}

impl Group {
    fn tombstone(&self, topic: Arc<str>, partition: i32) -> OffsetChange {
        OffsetChange { group: self.id.clone(), topic, partition, value: None }
    }

    fn tombstones(&self, doomed: impl FnMut(&str, TopicId) -> bool) -> Vec<OffsetChange> {
        let selected = self.offsets.select(doomed);
        selected.into_iter().map(|(topic, partition)| self.tombstone(topic, partition)).collect()
    }
}

#[cfg(test)]
#[path = "delete_tests.rs"]
mod tests;
