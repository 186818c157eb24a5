#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn host_and_port_are_read_and_written() {
    for text in ["127.0.0.1:9092", "[::1]:9092", "broker-1.example:19092"] {
        assert_eq!(Address::parse(text).unwrap().to_string(), text);
    }
    assert_eq!(Address::parse("[::1]:1").unwrap().host, "::1");
}

#[test]
fn what_is_no_address_gets_a_sentence() {
    for text in ["", "host", "host:", "host:0", "host:70000", ":9092", "::1:9092", "host:nine"] {
        let error = Address::parse(text).unwrap_err().to_string();
        assert!(error.contains("give HOST:PORT"), "{text}: {error}");
    }
}

#[test]
fn a_name_is_resolved_on_the_pool() {
    let found = runtime::testing::run(|| async { Address::parse("localhost:1234").unwrap().resolve().await });
    assert!(found.unwrap().iter().all(|address| address.port() == 1234));
}
