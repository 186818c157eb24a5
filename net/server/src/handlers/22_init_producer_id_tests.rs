use super::*;

fn judged(transactional_id: Option<&str>, producer_id: i64, producer_epoch: i16) -> Result<(), ErrorCode> {
    judge(&InitProducerIdRequest { transactional_id, producer_id, producer_epoch, ..InitProducerIdRequest::default() })
}

#[test]
fn idempotent_producers_may_or_may_not_know_their_id() {
    for (id, epoch) in [(-1, -1), (1_000, 3), (-5, -5)] {
        assert_eq!(judged(None, id, epoch), Ok(()));
    }
    for (id, epoch) in [(1_000, -1), (-1, 3)] {
        assert_eq!(judged(None, id, epoch), Err(ErrorCode::InvalidRequest));
    }
}

#[test]
fn transactions_fail_at_once() {
    assert_eq!(judged(Some("t"), -1, -1), Err(ErrorCode::TransactionalIdAuthorizationFailed));
    assert_eq!(judged(Some(""), -1, -1), Err(ErrorCode::InvalidRequest));
    let refused = refusal(ErrorCode::TransactionalIdAuthorizationFailed);
    assert_eq!((refused.producer_id, refused.producer_epoch), (-1, -1));
}
