//! DescribeGroups and ListGroups: what operators see. Reads: answered by return value, in the order of the group ids.

use crate::coordinator::GroupCoordinator;
use crate::group::GroupState;
use bytes::Bytes;
use model::ErrorCode;
use std::sync::Arc;

/// The type of all groups here, as ListGroups spells it.
const GROUP_TYPE: &str = "classic";

#[derive(Clone, Debug, PartialEq)]
pub struct GroupDescription {
    pub state: GroupState,
    /// Empty for a simple group.
    pub protocol_type: String,
    /// The chosen protocol of a stable group, else empty.
    pub protocol: String,
    pub members: Vec<MemberDescription>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MemberDescription {
    pub member_id: Arc<str>,
    pub group_instance_id: Option<Arc<str>>,
    pub client_id: String,
    pub client_host: String,
    /// Of the chosen protocol, in a stable group.
    pub metadata: Bytes,
    pub assignment: Bytes,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ListedGroup {
    pub group_id: Arc<str>,
    pub protocol_type: String,
    pub state: GroupState,
}

impl GroupCoordinator {
    /// `None` for an unknown group: the caller answers state Dead, from v6 with GROUP_ID_NOT_FOUND.
    pub fn describe(&self, group_id: &str) -> Result<Option<GroupDescription>, ErrorCode> {
        if self.is_loading() {
            return Err(ErrorCode::CoordinatorLoadInProgress);
        }
        let Some(group) = self.groups.get(group_id) else { return Ok(None) };
        let protocol = match (group.state, &group.protocol_name) {
            (GroupState::Stable, Some(protocol)) => protocol.clone(),
            _ => String::new(),
        };
        let describe = |m: &crate::member::Member| MemberDescription {
            member_id: m.id.clone(),
            group_instance_id: m.instance_id.clone(),
            client_id: m.client_id.clone(),
            client_host: m.client_host.clone(),
            metadata: if group.state == GroupState::Stable { m.metadata(&protocol) } else { Bytes::new() },
            assignment: m.assignment.clone(),
        };
        let members = group.members.values().map(describe).collect();
        let protocol_type = group.protocol_type.clone().unwrap_or_default();
        Ok(Some(GroupDescription { state: group.state, protocol_type, protocol, members }))
    }

    /// Groups in these states and of these types, by name without regard to case. An empty filter lets all pass.
    pub fn list(&self, states: &[String], types: &[String]) -> Result<Vec<ListedGroup>, ErrorCode> {
        if self.is_loading() {
            return Err(ErrorCode::CoordinatorLoadInProgress);
        }
        let passes =
            |filter: &[String], name: &str| filter.is_empty() || filter.iter().any(|f| f.eq_ignore_ascii_case(name));
        if !passes(types, GROUP_TYPE) {
            return Ok(Vec::new());
        }
        let listed = self.groups.values().filter(|g| passes(states, g.state.as_str())).map(|g| ListedGroup {
            group_id: g.id.clone(),
            protocol_type: g.protocol_type.clone().unwrap_or_default(),
            state: g.state,
        });
        Ok(listed.collect())
    }
}

#[cfg(test)]
#[path = "describe_tests.rs"]
mod tests;
