#![allow(clippy::unwrap_used)]
use super::*;
use crate::generated::ProduceRequest;
use crate::generated::produce::{PartitionProduceData, TopicProduceData};
use crate::{Encode, Records, Writer};

fn request(version: i16) -> Bytes {
    let partition = |index, records: Option<&'static [u8]>| PartitionProduceData {
        index,
        records: records.map(Bytes::from_static).into(),
    };
    let topic = |name, id, partition_data| TopicProduceData {
        name: if version < FIRST_WITH_TOPIC_ID { name } else { "" },
        topic_id: if version < FIRST_WITH_TOPIC_ID { [0; 16] } else { [id; 16] },
        partition_data,
    };
    let request = ProduceRequest {
        transactional_id: Some("txn"),
        acks: -1,
        timeout_ms: 1500,
        topic_data: vec![
            topic("none", 1, Vec::new()),
            topic("two", 2, vec![partition(4, Some(b"abc")), partition(5, None)]),
            topic("one", 3, vec![partition(0, Some(b""))]),
        ],
    };
    let mut writer = Writer::new();
    request.encode(&mut writer, version).unwrap();
    Records::Chunks(writer.finish()).to_bytes().unwrap()
}

#[test]
fn every_partition_is_visited_with_its_topic() {
    for version in ApiKey::Produce.versions() {
        let body = request(version);
        let walk = ProduceWalk::open(Reader::new(&body), version).unwrap();
        assert_eq!((walk.transactional_id, walk.acks, walk.timeout_ms), (Some("txn"), -1, 1500));
        assert_eq!((walk.topic_count, walk.partition_count, walk.records_len), (3, 3, 3));
        let topic = |name, id| if version < 13 { TopicRef::Name(name) } else { TopicRef::Id([id; 16]) };
        let seen: Vec<_> = walk.partitions().map(Result::unwrap).collect();
        let expected = [
            (1, topic("two", 2), 4, Some(Bytes::from_static(b"abc"))),
            (1, topic("two", 2), 5, None),
            (2, topic("one", 3), 0, Some(Bytes::new())),
        ];
        assert_eq!(
            seen,
            expected.map(|(topic_index, topic, index, records)| ProducePartition {
                topic_index,
                topic,
                index,
                records
            })
        );
        assert!(body.as_ptr_range().contains(&seen[0].records.as_ref().unwrap().as_ptr()), "a slice of the frame");
    }
}

#[test]
fn a_request_that_is_broken_at_its_end_is_refused_before_anything_is_visited() {
    for version in ApiKey::Produce.versions() {
        let body = request(version);
        for len in 0..body.len() {
            let cut = body.slice(..len);
            assert!(ProduceWalk::open(Reader::new(&cut), version).is_err(), "v{version} cut to {len}");
        }
    }
}

#[test]
fn versions_that_are_not_served_are_refused() {
    let body = request(3);
    for version in [0, 2, 14, -1] {
        let outcome = ProduceWalk::open(Reader::new(&body), version).map(|_| ());
        assert_eq!(outcome, Err(WireError::UnsupportedVersion { api_key: 0, version }));
    }
}
