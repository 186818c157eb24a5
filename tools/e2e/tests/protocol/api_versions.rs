//! ApiVersions: the one request that is answered whatever its version; and what is not advertised is not served.

use std::time::Duration;

use bytes::{Buf, BufMut};
use kafka_protocol::messages::{ApiVersionsRequest, MetadataRequest};
use ringlog_e2e::Broker;
use ringlog_e2e::broker::skip_on_kafka;
use ringlog_e2e::raw::{Raw, frame, old_header, sized};
use ringlog_e2e::requests::api_versions;

const UNSUPPORTED_VERSION: i16 = 35;
const PRODUCE: i16 = 0;
const API_VERSIONS: i16 = 18;
/// Key, and the versions that Kafka 4.4 serves, of every API that one node needs for the main job.
const SERVED: [(i16, i16, i16); 32] = [
    (0, 0, 13),
    (1, 4, 18),
    (2, 1, 11),
    (3, 0, 13),
    (8, 2, 10),
    (9, 1, 10),
    (10, 0, 6),
    (11, 0, 9),
    (12, 0, 4),
    (13, 0, 5),
    (14, 0, 5),
    (15, 0, 6),
    (16, 0, 5),
    (18, 0, 5),
    (19, 2, 7),
    (20, 1, 6),
    (21, 0, 2),
    (22, 0, 5),
    (23, 2, 4),
    (32, 1, 4),
    (33, 0, 2),
    (35, 1, 5),
    (37, 0, 3),
    (42, 0, 3),
    (43, 0, 2),
    (44, 0, 1),
    (46, 0, 0),
    (47, 0, 0),
    (55, 0, 2),
    (60, 0, 2),
    (74, 0, 1),
    (75, 0, 0),
];

#[test]
fn every_api_that_is_needed_is_advertised_with_kafkas_versions() {
    let broker = Broker::start();
    let answer = api_versions(&mut Raw::connect(&broker), 3);
    let advertised = |key| answer.api_keys.iter().find(|api| api.api_key == key);
    let differs = |(key, min, max): &(i16, i16, i16)| {
        let versions = advertised(*key).map(|api| (api.min_version, api.max_version));
        (versions != Some((*min, *max))).then(|| format!("key {key}: {versions:?}, not {min} to {max}"))
    };
    let different: Vec<String> = SERVED.iter().filter_map(differs).collect();
    assert!(different.is_empty(), "{different:#?}");
}

#[test]
fn an_unknown_version_is_answered_in_version_zero_and_the_connection_lives() {
    let broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    let mut request = frame(7, 4, &ApiVersionsRequest::default()).to_vec();
    request[7] = 99;
    raw.send_bytes(&request);
    let mut answer = raw.receive_frame().expect("an answer");
    assert_eq!((answer.get_i32(), answer.get_i16()), (7, UNSUPPORTED_VERSION));
    let count = answer.get_i32();
    let listed: Vec<_> = (0..count).map(|_| (answer.get_i16(), answer.get_i16(), answer.get_i16())).collect();
    assert_eq!(listed, [(API_VERSIONS, 0, 5)]);
    assert!(answer.is_empty(), "version 0 ends here");
    api_versions(&mut raw, 3);
}

#[test]
fn an_unknown_key_or_version_ends_the_connection_and_no_other() {
    let broker = Broker::start();
    let mut other = Raw::connect(&broker);
    for (key, version) in [(999, 0), (-1, 0), (3, 99), (3, -1), (1, 3)] {
        let mut raw = Raw::connect(&broker);
        let mut request = old_header(key, version, 1);
        request.put_i32(0);
        raw.send_bytes(&sized(&request));
        assert!(raw.is_closed_within(Duration::from_secs(5)), "key {key} version {version}");
    }
    other.call(12, &MetadataRequest::default());
}

#[test]
fn what_is_advertised_is_served() {
    if skip_on_kafka("Kafka also serves APIs that the tests' codec does not know") {
        return;
    }
    let broker = Broker::start();
    let answer = api_versions(&mut Raw::connect(&broker), 3);
    let keys: Vec<i16> = answer.api_keys.iter().map(|api| api.api_key).collect();
    for key in [24, 25, 26, 28, 65, 66, 68, 69, 76, 77] {
        assert!(!keys.contains(&key), "key {key} belongs to what is not built");
    }
    assert!(keys.contains(&PRODUCE) && keys.is_sorted(), "{keys:?}");
}
