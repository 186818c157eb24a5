//! Heartbeat: keeps a session alive and tells of a rebalance. By far the most frequent request of an idle cluster, so it is
//! answered by return value, with two map look-ups and no allocation.

use crate::config::Now;
use crate::coordinator::GroupCoordinator;
use crate::group::GroupState;
use crate::join::check_group_id;
use crate::request::HeartbeatRequest;
use model::ErrorCode;

impl GroupCoordinator {
    pub fn heartbeat(&mut self, now: Now, request: HeartbeatRequest<'_>) -> ErrorCode {
        self.cx.now = now;
        if self.is_loading() {
            // As Kafka: nobody is thrown out because the coordinator just moved.
            return ErrorCode::None;
        }
        self.checked_heartbeat(request).err().unwrap_or(ErrorCode::None)
    }

    fn checked_heartbeat(&mut self, request: HeartbeatRequest<'_>) -> Result<(), ErrorCode> {
        check_group_id(request.group_id)?;
        let group = self.groups.get_mut(request.group_id).ok_or(ErrorCode::UnknownMemberId)?;
        if group.state == GroupState::Dead {
            return Err(ErrorCode::CoordinatorNotAvailable);
        }
        group.validate_member(request.member_id, request.group_instance_id)?;
        if request.generation_id != group.generation_id {
            return Err(ErrorCode::IllegalGeneration);
        }
        group.renew_session(&mut self.cx, request.member_id);
        match group.state {
            GroupState::PreparingRebalance => Err(ErrorCode::RebalanceInProgress),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "heartbeat_tests.rs"]
mod tests;
