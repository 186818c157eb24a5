#![allow(clippy::unwrap_used)]
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn image(topics: u32) -> Image {
    let mut image = Image {
        version: 77,
        cluster_id: Some("AAAAAAAAQACAAAAAAAAAAQ".into()),
        next_producer_id: 3000,
        ..Image::default()
    };
    image.features.insert("metadata.version".into(), 25);
    for node in 0..3 {
        let broker = BrokerRegistration {
            node: NodeId(node),
            incarnation: Incarnation([node as u8; 16]),
            epoch: 5,
            host: "localhost".into(),
            port: 9092,
            rack: (node == 1).then(|| "r".into()),
        };
        image.brokers.insert(NodeId(node), Arc::new(broker));
    }
    let nodes: Arc<[NodeId]> = Arc::from([NodeId(0), NodeId(1), NodeId(2)]);
    for number in 0..topics {
        let mut id = [0x41; 16];
        id[..4].copy_from_slice(&number.wrapping_mul(0x9e37_79b9).to_be_bytes());
        let partition = PartitionState {
            replicas: Arc::clone(&nodes),
            isr: Arc::from([NodeId(1)]),
            leader: NodeId(1),
            leader_epoch: LeaderEpoch(4),
            partition_epoch: 6,
        };
        let configs: Configs = (0..number % 3).map(|i| (format!("key{i}").into(), i.to_string().into())).collect();
        image.put_topic(Arc::new(Topic {
            id: TopicId(id),
            name: format!("some.topic-{number}").into(),
            partitions: vec![partition; 1 + number as usize % 2],
            configs: Arc::new(configs),
        }));
    }
    for resource in
        [ConfigResource::Broker(NodeId(1)), ConfigResource::BrokerDefault, ConfigResource::Group("g".into())]
    {
        image.configs.insert(resource, Arc::new(Configs::from([("a".into(), "b".into())])));
    }
    image
}

#[test]
fn a_snapshot_comes_back_as_it_was() {
    for topics in [0, 1, 100] {
        let image = image(topics);
        let bytes = encode_snapshot(80, 3, &image).unwrap();
        assert_eq!(decode_snapshot(&bytes).unwrap(), Snapshot { index: 80, term: 3, image });
    }
}

#[test]
fn ten_thousand_topics_take_milliseconds() {
    let image = image(10_000);
    // The best of several: others use the machine too.
    let measure = || {
        let start = Instant::now();
        let bytes = encode_snapshot(80, 3, &image).unwrap();
        let encoded = start.elapsed();
        let decoded = decode_snapshot(&bytes).unwrap();
        assert_eq!(decoded.image.topic_count(), 10_000);
        (start.elapsed(), encoded, bytes.len())
    };
    let (both, encoded, len) = (0..10).map(|_| measure()).min().unwrap();
    eprintln!("{len} bytes, encoded in {encoded:?}, both in {both:?}");
    // An unoptimised build on a busy machine gets its share.
    let bound = if cfg!(debug_assertions) { Duration::from_secs(5) } else { Duration::from_millis(100) };
    assert!(both < bound, "{both:?}");
}

#[test]
fn node_lists_are_shared_after_reading() {
    let image = decode_snapshot(&encode_snapshot(80, 3, &image(10)).unwrap()).unwrap().image;
    let mut partitions = image.topics().flat_map(|topic| &topic.partitions);
    let first = partitions.next().unwrap();
    assert!(partitions.all(|p| Arc::ptr_eq(&p.replicas, &first.replicas) && Arc::ptr_eq(&p.isr, &first.isr)));
}

#[test]
fn a_newer_version_damage_and_impossible_positions_are_named() {
    let newer = envelope::seal(Kind::Snapshot, SNAPSHOT_VERSION + 1, 0, b"x");
    assert!(matches!(decode_snapshot(&newer), Err(MetadataError::NewerVersion { version: 2, newest: 1, .. })));
    let bytes = encode_snapshot(80, 3, &image(3)).unwrap();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(decode_snapshot(&damaged).is_err());
        assert!(decode_snapshot(&bytes[..at]).is_err());
    }
    // The image cannot be newer than its snapshot.
    let early = encode_snapshot(76, 3, &image(3)).unwrap();
    assert!(matches!(decode_snapshot(&early), Err(MetadataError::DamagedSnapshot { .. })));
}

#[test]
fn a_snapshot_that_names_a_topic_twice_is_refused() {
    let mut stored = StoredSnapshot { index: 80, term: 3, image: to_stored(&image(2)) };
    stored.image.topics[1].name = stored.image.topics[0].name.clone();
    let payload = rkyv::to_bytes::<rancor::Error>(&stored).unwrap();
    let bytes = envelope::seal(Kind::Snapshot, SNAPSHOT_VERSION, 0, &payload);
    assert_eq!(decode_snapshot(&bytes), Err(MetadataError::DamagedSnapshot { what: "it names a topic twice" }));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(payload in vec(any::<u8>(), 0..600)) {
        crate::fuzz_targets::fuzz_snapshot(&payload);
        crate::fuzz_targets::fuzz_snapshot(&envelope::seal(Kind::Snapshot, SNAPSHOT_VERSION, 0, &payload));
    }

    #[test]
    fn changed_bytes_are_read_or_refused(changes in vec((any::<u16>(), any::<u8>()), 1..6)) {
        let bytes = encode_snapshot(80, 3, &image(3)).unwrap();
        let mut payload = bytes[envelope::HEADER_LEN..].to_vec();
        for (at, value) in changes {
            let at = usize::from(at) % payload.len();
            payload[at] = value;
        }
        crate::fuzz_targets::fuzz_snapshot(&envelope::seal(Kind::Snapshot, SNAPSHOT_VERSION, 0, &payload));
    }
}
