//! Loading: the state is what the records say, in the order of the log.
//!
//! A group's record is complete in itself, so the last one wins; members found in it are taken for alive and get a fresh
//! session when loading is finished. A rebalance that was under way is not in the log: its members join again.

use crate::config::Now;
use crate::coordinator::GroupCoordinator;
use crate::group::{Group, GroupState};
use crate::member::{Member, Protocol, Session};
use crate::offsets::OffsetChange;
use crate::records::group_metadata::{GroupMetadata, MemberMetadata};
use crate::records::{Record, RecordError, decode};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a record was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayed {
    Applied,
    /// Of a kind that is not built here (the newer group protocols).
    Skipped,
}

impl GroupCoordinator {
    /// One record of the log, while loading. `Err` leaves the state as it was; the caller decides whether to go on.
    pub fn replay(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<Replayed, RecordError> {
        assert!(self.loading, "records are replayed while loading");
        match decode(key, value)? {
            Record::Offset { group, topic, partition, value } => {
                let (group, topic) = (self.shared_id(&group), Arc::from(topic));
                self.apply_offset(OffsetChange { group, topic, partition, value });
            }
            Record::Group { group, value: Some(metadata) } => self.replay_group(&group, metadata)?,
            Record::Group { group, value: None } => self.remove_group(&group),
            Record::Unknown { .. } => {
                self.skipped_records += 1;
                return Ok(Replayed::Skipped);
            }
        }
        Ok(Replayed::Applied)
    }

    /// All records have been replayed: sessions begin, and requests are taken.
    pub fn finish_loading(&mut self, now: Now) {
        assert!(self.loading, "loading is finished once");
        self.cx.now = now;
        self.loading = false;
        for group in self.groups.values_mut() {
            for member_id in group.members.keys().cloned().collect::<Vec<_>>() {
                group.renew_session(&mut self.cx, &member_id);
            }
            if group.members.len() > self.cx.config.max_members() {
                // `group.max.size` was lowered: the first to come back stay.
                group.prepare_rebalance(&mut self.cx);
            }
        }
        self.arm_expiry();
    }

    fn shared_id(&self, group_id: &str) -> Arc<str> {
        self.groups.get_key_value(group_id).map_or_else(|| Arc::from(group_id), |(id, _)| id.clone())
    }

    fn replay_group(&mut self, group_id: &str, metadata: GroupMetadata) -> Result<(), RecordError> {
        check_members(&metadata)?;
        let old = self.groups.remove(group_id);
        let mut group = Group::new(Arc::from(group_id), &mut self.cx);
        group.persisted = true;
        if let Some(old) = old {
            group.offsets = old.offsets;
        }
        group.state = if metadata.members.is_empty() { GroupState::Empty } else { GroupState::Stable };
        group.state_timestamp_ms = (metadata.state_timestamp_ms != -1).then_some(metadata.state_timestamp_ms);
        group.generation_id = metadata.generation_id;
        group.protocol_type = (!metadata.protocol_type.is_empty()).then(|| metadata.protocol_type.clone());
        group.protocol_name = metadata.protocol_name.clone();
        let protocol = metadata.protocol_name.unwrap_or_default();
        for member in metadata.members {
            group.add_member(loaded_member(member, &protocol), &metadata.protocol_type);
        }
        if let Some(leader) = metadata.leader.filter(|l| group.members.contains_key(l.as_str())) {
            group.leader = Some(Arc::from(leader));
        }
        group.compute_subscribed_topics();
        self.groups.insert(group.id.clone(), group);
        Ok(())
    }
}

/// What the group's own counting relies on.
fn check_members(metadata: &GroupMetadata) -> Result<(), RecordError> {
    let (mut ids, mut instances) = (BTreeSet::new(), BTreeSet::new());
    for member in &metadata.members {
        let again = member.instance_id.as_ref().is_some_and(|instance| !instances.insert(instance));
        if !ids.insert(&member.member_id) || again {
            return Err(RecordError::DuplicateMember);
        }
    }
    if !metadata.members.is_empty() && metadata.protocol_name.is_none() {
        return Err(RecordError::MembersWithoutProtocol);
    }
    Ok(())
}

/// Only the chosen protocol is in the record: a member that lists more when it joins again starts a rebalance, as in Kafka.
fn loaded_member(member: MemberMetadata, protocol: &str) -> Member {
    let session_timeout_ms = member.session_timeout_ms;
    Member {
        id: Arc::from(member.member_id),
        instance_id: member.instance_id.map(Arc::from),
        client_id: member.client_id,
        client_host: member.client_host,
        rebalance_timeout_ms: if member.rebalance_timeout_ms < 0 {
            session_timeout_ms
        } else {
            member.rebalance_timeout_ms
        },
        session_timeout_ms,
        protocols: vec![Protocol { name: protocol.to_owned(), metadata: member.subscription }],
        assignment: member.assignment,
        awaiting_join: None,
        awaiting_sync: None,
        is_new: false,
        session: Session::default(),
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
