//! Heartbeat (key 12): keeps a session alive and tells of a rebalance. The most frequent request of idle consumers: one
//! message to the coordinator's shard, answered on the spot.

use coordinator::HeartbeatRequest as Beat;
use model::ErrorCode;
use wire::generated::heartbeat::{HeartbeatRequest, HeartbeatResponse};

use super::Context;
use crate::groups::Need;

pub async fn handle(context: &Context<'_>, request: HeartbeatRequest<'_>) -> HeartbeatResponse {
    let (group_id, member_id) = (request.group_id.to_owned(), request.member_id.to_owned());
    let instance_id = request.group_instance_id.map(str::to_owned);
    let generation_id = request.generation_id;
    let call = context.shard.with_group(request.group_id, Need::Nothing, move |driver| async move {
        driver.look(|coordinator, now| {
            let beat = Beat {
                group_id: &group_id,
                generation_id,
                member_id: &member_id,
                group_instance_id: instance_id.as_deref(),
            };
            coordinator.heartbeat(now, beat)
        })
    });
    let error = match call.await {
        Ok(error) => error,
        Err(unreached) => match unreached.code() {
            // Nobody is thrown out because the coordinator has just begun to load.
            ErrorCode::CoordinatorLoadInProgress => ErrorCode::None,
            code => code,
        },
    };
    HeartbeatResponse { throttle_time_ms: 0, error_code: error.code() }
}
