#![allow(clippy::unwrap_used)]
use bytes::Bytes;

use super::*;
use crate::generated::FetchRequest;
use crate::generated::fetch::{self as message, FetchTopic, ForgottenTopic, ReplicaState};
use crate::{Encode, Records, Writer};

/// A follower's request with everything in it that the version can carry.
fn request(version: i16) -> Bytes {
    let by_id = version >= FIRST_WITH_TOPIC_ID;
    let name = |name| if by_id { "" } else { name };
    let id = |id| if by_id { [id; 16] } else { [0; 16] };
    let partition = message::FetchPartition {
        partition: 6,
        current_leader_epoch: 3,
        fetch_offset: 1000,
        last_fetched_epoch: if version >= FIRST_WITH_LAST_FETCHED_EPOCH { 2 } else { -1 },
        log_start_offset: 10,
        partition_max_bytes: 4096,
        replica_directory_id: [9; 16],
        high_watermark: 900,
    };
    let has_state = version >= FIRST_WITH_REPLICA_STATE;
    let forgotten = ForgottenTopic { topic: name("old"), topic_id: id(3), partitions: vec![7, 8] };
    let request = FetchRequest {
        cluster_id: Some("cluster"),
        replica_id: if has_state { -1 } else { 2 },
        replica_state: if has_state {
            ReplicaState { replica_id: 2, replica_epoch: 55 }
        } else {
            ReplicaState::default()
        },
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: 1 << 20,
        isolation_level: 1,
        session_id: 44,
        session_epoch: 5,
        topics: vec![
            FetchTopic { topic: name("empty"), topic_id: id(1), partitions: Vec::new() },
            FetchTopic { topic: name("clicks"), topic_id: id(2), partitions: vec![partition] },
        ],
        forgotten_topics_data: if version >= FIRST_WITH_SESSION { vec![forgotten] } else { Vec::new() },
        rack_id: "rack",
    };
    let mut writer = Writer::new();
    request.encode(&mut writer, version).unwrap();
    Records::Chunks(writer.finish()).to_bytes().unwrap()
}

fn topic<'a>(version: i16, name: &'a str, id: u8) -> TopicRef<'a> {
    if version >= FIRST_WITH_TOPIC_ID { TopicRef::Id([id; 16]) } else { TopicRef::Name(name) }
}

#[test]
fn everything_is_seen_and_what_a_version_lacks_is_at_its_default() {
    for version in ApiKey::Fetch.versions() {
        let body = request(version);
        let walk = FetchWalk::open(Reader::new(&body), version).unwrap();
        let since = |first: i16| version >= first;
        assert_eq!((walk.replica_id, walk.max_wait_ms, walk.min_bytes), (2, 500, 1), "v{version}");
        assert_eq!(walk.replica_epoch, if since(15) { 55 } else { -1 });
        assert_eq!((walk.max_bytes, walk.isolation_level), (1 << 20, 1));
        assert_eq!((walk.session_id, walk.session_epoch), if since(7) { (44, 5) } else { (0, -1) });
        assert_eq!(walk.cluster_id, since(12).then_some("cluster"));
        assert_eq!(walk.rack_id, if since(11) { "rack" } else { "" });
        let expected = FetchPartition {
            topic_index: 1,
            topic: topic(version, "clicks", 2),
            partition: 6,
            current_leader_epoch: if since(9) { 3 } else { -1 },
            fetch_offset: 1000,
            last_fetched_epoch: if since(12) { 2 } else { -1 },
            log_start_offset: if since(5) { 10 } else { -1 },
            partition_max_bytes: 4096,
            replica_directory_id: if since(17) { [9; 16] } else { [0; 16] },
            high_watermark: if since(18) { 900 } else { i64::MAX },
        };
        assert_eq!(walk.partitions().collect::<Vec<_>>(), [Ok(expected)], "v{version}");
        assert_eq!((walk.topic_count, walk.partition_count), (2, 1));
    }
}

#[test]
fn forgotten_partitions_are_visited_with_their_topic() {
    for version in ApiKey::Fetch.versions() {
        let body = request(version);
        let walk = FetchWalk::open(Reader::new(&body), version).unwrap();
        let forgotten: Vec<_> = walk.forgotten().map(Result::unwrap).collect();
        let expected = [7, 8].map(|partition| ForgottenPartition { topic: topic(version, "old", 3), partition });
        assert_eq!(forgotten, if version >= FIRST_WITH_SESSION { &expected[..] } else { &[] });
        assert_eq!(walk.forgotten_count, forgotten.len());
    }
}

#[test]
fn a_request_that_is_broken_at_its_end_is_refused_before_anything_is_visited() {
    for version in ApiKey::Fetch.versions() {
        let body = request(version);
        for len in 0..body.len() {
            let cut = body.slice(..len);
            assert!(FetchWalk::open(Reader::new(&cut), version).is_err(), "v{version} cut to {len}");
        }
    }
}
