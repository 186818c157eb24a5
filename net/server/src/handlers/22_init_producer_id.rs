//! InitProducerId (key 22, KIP-98, KIP-360): ids for idempotent producers. Transactions are not built: a transactional
//! id is answered with the one error at which clients give up at once instead of asking again for ever.

use model::ErrorCode;
use wire::generated::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};

use super::Context;
use super::admin::producer_ids;

pub async fn handle(context: &Context<'_>, request: InitProducerIdRequest<'_>) -> InitProducerIdResponse {
    if let Err(code) = judge(&request) {
        return refusal(code);
    }
    match producer_ids::next(context.shard).await {
        Ok(id) => InitProducerIdResponse { producer_id: id.0, producer_epoch: 0, ..InitProducerIdResponse::default() },
        Err(code) => refusal(code),
    }
}

/// An id and epoch that the producer has already make no difference without a transactional id, but either alone is
/// malformed.
fn judge(request: &InitProducerIdRequest<'_>) -> Result<(), ErrorCode> {
    match request.transactional_id {
        Some("") => Err(ErrorCode::InvalidRequest),
        Some(_) => Err(ErrorCode::TransactionalIdAuthorizationFailed),
        None if (request.producer_id == -1) != (request.producer_epoch == -1) => Err(ErrorCode::InvalidRequest),
        None => Ok(()),
    }
}

fn refusal(code: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse { error_code: code.code(), producer_epoch: -1, ..InitProducerIdResponse::default() }
}

#[cfg(test)]
#[path = "22_init_producer_id_tests.rs"]
mod tests;
