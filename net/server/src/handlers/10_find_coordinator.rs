//! FindCoordinator (key 10): which node coordinates a group. With one node that is this one; the topic of committed
//! offsets is made first, so that the client's next request finds its coordinator.

use std::borrow::Cow;

use model::ErrorCode;
use wire::generated::find_coordinator::{Coordinator, FindCoordinatorRequest, FindCoordinatorResponse};

use super::Context;
use crate::groups;

const FIRST_WITH_KEYS: i16 = 4;
const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;

pub async fn handle(context: &Context<'_>, request: FindCoordinatorRequest<'_>) -> FindCoordinatorResponse<'static> {
    let error = find(context, request.key_type).await;
    let facts = &context.shard.facts;
    let (node_id, host, port) = match error {
        ErrorCode::None => (facts.node_id.0, facts.host.clone(), i32::from(facts.port)),
        _ => (-1, String::new(), -1),
    };
    let mut response = FindCoordinatorResponse::default();
    if context.version < FIRST_WITH_KEYS {
        response.error_code = error.code();
        // Kafka says the name of "no error" here, and nothing from v4 on.
        let message = if error == ErrorCode::None { "NONE" } else { error.sentence() };
        response.error_message = Some(Cow::Borrowed(message));
        response.node_id = node_id;
        response.host = Cow::Owned(host);
        response.port = port;
        return response;
    }
    let message = if error == ErrorCode::None { "" } else { error.sentence() };
    let coordinator = |key: &&str| Coordinator {
        key: Cow::Owned((*key).to_owned()),
        node_id,
        host: Cow::Owned(host.clone()),
        port,
        error_code: error.code(),
        error_message: Some(Cow::Borrowed(message)),
    };
    response.coordinators = request.coordinator_keys.iter().map(coordinator).collect();
    response
}

/// Transactions and share groups are not built: the errors are those on which clients give up at once.
async fn find(context: &Context<'_>, key_type: i8) -> ErrorCode {
    match key_type {
        GROUP => groups::ensure_topic(context.shard).await.err().unwrap_or(ErrorCode::None),
        TRANSACTION => ErrorCode::TransactionalIdAuthorizationFailed,
        // 2 is a share group; other types do not exist.
        _ => ErrorCode::InvalidRequest,
    }
}
