#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn a_bad_name_is_named_in_the_sentence() {
    let refusal = check("a b").unwrap_err();
    assert_eq!(refusal.code, ErrorCode::InvalidTopicException);
    assert!(refusal.message.contains("'a b'"), "{}", refusal.message);
    assert_eq!(check("a.b_c-1"), Ok(()));
}

#[test]
fn internal_names_are_the_brokers() {
    for name in ["__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"] {
        assert_eq!(check_not_reserved(name, "Creation of").map_err(|r| r.code), Err(ErrorCode::InvalidRequest));
    }
    assert_eq!(check_not_reserved("__other", "Creation of"), Ok(()));
}

#[test]
fn dots_and_underscores_are_one_in_metrics() {
    assert!(same_metric_name("a.b_c", "a_b.c"));
    assert!(same_metric_name("a.b", "a.b"));
    assert!(!same_metric_name("a.b", "a-b"));
    assert!(!same_metric_name("a.b", "a.bc"));
}
