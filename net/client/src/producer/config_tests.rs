#![allow(clippy::unwrap_used)]

use super::*;

fn refused(change: impl FnOnce(&mut ProducerConfig)) -> String {
    let mut config = ProducerConfig::default();
    change(&mut config);
    config.check().unwrap_err().to_string()
}

#[test]
fn the_defaults_are_kafkas_and_fit_together() {
    let config = ProducerConfig::default();
    config.check().unwrap();
    assert_eq!((config.acks, config.linger_ms, config.batch_size), (Acks::All, 5, 16_384));
    assert_eq!((config.buffer_memory, config.max_request_size), (33_554_432, 1_048_576));
    assert_eq!((config.delivery_timeout_ms, config.max_block_ms, config.max_in_flight), (120_000, 60_000, 5));
    assert!(config.enable_idempotence);
}

#[test]
fn idempotence_needs_acks_all_and_few_in_flight() {
    assert!(refused(|c| c.acks = Acks::Leader).contains("must be all, not 1"));
    assert!(refused(|c| c.acks = Acks::None).contains("enable.idempotence=false"));
    assert!(refused(|c| c.max_in_flight = 6).contains("at most 5"));
    assert!(refused(|c| c.retries = 0).starts_with("retries"));
    let config = ProducerConfig {
        enable_idempotence: false,
        acks: Acks::None,
        max_in_flight: 50,
        retries: 0,
        ..ProducerConfig::default()
    };
    config.check().unwrap();
}

#[test]
fn the_delivery_timeout_covers_linger_and_request() {
    assert!(refused(|c| c.delivery_timeout_ms = 30_004).contains("30005"));
    let config = ProducerConfig { delivery_timeout_ms: 30_005, ..ProducerConfig::default() };
    config.check().unwrap();
}

#[test]
fn sizes_and_times_have_ranges() {
    assert!(refused(|c| c.linger_ms = -1).starts_with("linger.ms"));
    assert!(refused(|c| c.max_in_flight = 0).contains("1 to"));
    assert!(refused(|c| c.buffer_memory = 1 << 19).contains("at least one request"));
    assert!(refused(|c| c.request_timeout_ms = 0).starts_with("request.timeout.ms"));
}

#[test]
fn acks_have_kafkas_numbers() {
    assert_eq!([Acks::None.code(), Acks::Leader.code(), Acks::All.code()], [0, 1, -1]);
}
