#![allow(clippy::unwrap_used)]

use super::*;

fn key(config: &ConsumerConfig) -> &'static str {
    match config.validate() {
        Err(ClientError::BadConfig { key, .. }) => key,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_defaults_are_fine() {
    ConsumerConfig::default().validate().unwrap();
}

#[test]
fn each_bad_setting_is_named() {
    let base = ConsumerConfig::default;
    assert_eq!(key(&ConsumerConfig { group_id: Some(String::new()), ..base() }), "group_id");
    assert_eq!(key(&ConsumerConfig { group_instance_id: Some("i".into()), ..base() }), "group_instance_id");
    assert_eq!(key(&ConsumerConfig { fetch_max_bytes: 0, ..base() }), "fetch_max_bytes");
    assert_eq!(key(&ConsumerConfig { fetch_max_bytes: i32::MAX, ..base() }), "fetch_max_bytes");
    assert_eq!(key(&ConsumerConfig { max_poll_records: 0, ..base() }), "max_poll_records");
    assert_eq!(key(&ConsumerConfig { heartbeat_interval_ms: 45_000, ..base() }), "heartbeat_interval_ms");
    assert_eq!(key(&ConsumerConfig { partition_assignors: vec![], ..base() }), "partition_assignors");
    let twice = vec![AssignorKind::Range, AssignorKind::Range];
    assert_eq!(key(&ConsumerConfig { partition_assignors: twice, ..base() }), "partition_assignors");
}

#[test]
fn without_a_group_nothing_is_committed() {
    assert!(!ConsumerConfig::default().commits_automatically());
    assert!(ConsumerConfig { group_id: Some("g".into()), ..ConsumerConfig::default() }.commits_automatically());
}
