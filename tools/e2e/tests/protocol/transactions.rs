//! No transactions yet, and no half of them: errors at which clients fail at once rather than hang.

use ringlog_e2e::batch::{Batch, TRANSACTIONAL};
use ringlog_e2e::broker::skip_on_kafka;
use ringlog_e2e::groups::find_coordinator;
use ringlog_e2e::requests::{Produce, api_versions, init_producer_id, produce, refused};

use crate::with_topic;

const INVALID_REQUEST: i16 = 42;
const TRANSACTIONAL_ID_AUTHORIZATION_FAILED: i16 = 53;
const KAFKA_HAS_THEM: &str = "Kafka has transactions";

#[test]
fn whatever_belongs_to_a_transaction_is_refused() {
    if skip_on_kafka(KAFKA_HAS_THEM) {
        return;
    }
    let (_broker, mut raw) = with_topic(&[]);
    let refusal = TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
    assert_eq!(find_coordinator(&mut raw, "tx", 1), refusal);
    assert_eq!(find_coordinator(&mut raw, "group:topic:0", 2), INVALID_REQUEST, "share groups");
    assert_eq!(init_producer_id(&mut raw, Some("tx")).0, refusal);
    let plain = Batch::idempotent(1, 0, 0, 1);
    let send = Produce { transactional_id: Some("tx"), ..Produce::new("t", &plain) };
    assert_eq!(send.code(&mut raw), refusal);
    assert_eq!(refused(&mut raw, "t", &Batch { attributes: TRANSACTIONAL, ..plain }), refusal);
    assert_eq!(produce(&mut raw, "t", &Batch::of(&["plain"])), 0, "nothing was appended, the connection lives");
}

#[test]
fn features_that_are_not_built_are_not_advertised() {
    if skip_on_kafka(KAFKA_HAS_THEM) {
        return;
    }
    let (_broker, mut raw) = with_topic(&[]);
    for version in [3, 4] {
        let answer = api_versions(&mut raw, version);
        let supported = answer.supported_features.iter().map(|feature| feature.name.to_string());
        let finalized = answer.finalized_features.iter().map(|feature| feature.name.to_string());
        for name in supported.chain(finalized) {
            assert!(name != "transaction.version" && name != "group.version", "{name} in version {version}");
        }
    }
}
