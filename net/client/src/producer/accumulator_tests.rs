#![allow(clippy::unwrap_used)]

use bytes::Bytes;

use super::super::test_support::{TOPIC, cluster, record, set_leader};
use super::*;

fn accumulator(cluster: &Cluster) -> Accumulator {
    let config = ProducerConfig { batch_size: 4_000, buffer_memory: 2 << 20, ..ProducerConfig::default() };
    let mut accumulator = Accumulator::new(&config, 5);
    assert!(accumulator.add_topic(cluster, &TOPIC.into()));
    accumulator
}

fn unchosen() -> ProducerRecord {
    ProducerRecord { partition: None, ..record(0, Bytes::from(vec![1; 100])) }
}

fn append(accumulator: &mut Accumulator, record: &ProducerRecord) -> Appended {
    accumulator.append(record, 1_000, Mark::Tag(0), 0).map_err(|(refused, _)| refused).unwrap()
}

#[test]
fn a_buffer_grows_with_its_batch_and_the_next_one_starts_as_large() {
    let mut accumulator = accumulator(&cluster(1, 1));
    let small = record(0, Bytes::from_static(b"x"));
    let slot = append(&mut accumulator, &small).slot;
    assert_eq!(accumulator.pool.used(), MIN_BUFFER_BYTES);
    for _ in 0..30 {
        append(&mut accumulator, &record(0, Bytes::from(vec![0; 100])));
    }
    assert_eq!(accumulator.partitions[slot as usize].queue.len(), 1);
    assert_eq!(accumulator.pool.used(), 4_000);
    accumulator.seal_front(slot);
    append(&mut accumulator, &small);
    assert_eq!(accumulator.pool.used(), 8_000);
}

#[test]
fn records_without_a_key_fill_one_batch_at_a_time() {
    let mut accumulator = accumulator(&cluster(1, 16));
    let slots: Vec<u32> = (0..400).map(|_| append(&mut accumulator, &unchosen()).slot).collect();
    let changes = slots.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!((5..=14).contains(&changes), "400 records of 110 bytes are 11 batches of 4000, not {changes}");
}

#[test]
fn records_without_a_key_avoid_partitions_without_a_leader() {
    let mut cluster = cluster(1, 4);
    (0..3).for_each(|partition| set_leader(&mut cluster, partition, -1));
    let mut accumulator = accumulator(&cluster);
    for _ in 0..100 {
        let slot = append(&mut accumulator, &unchosen()).slot;
        assert_eq!(accumulator.partitions[slot as usize].index, 3);
    }
}

#[test]
fn a_key_stays_even_where_there_is_no_leader() {
    let mut cluster = cluster(1, 4);
    (0..4).for_each(|partition| set_leader(&mut cluster, partition, -1));
    let mut accumulator = accumulator(&cluster);
    let keyed = ProducerRecord { key: Some(Bytes::from_static(b"abc")), ..unchosen() };
    let slot = append(&mut accumulator, &keyed).slot;
    assert_eq!(accumulator.partitions[slot as usize].index, 479_470_107 % 4);
    assert_eq!(accumulator.partitions[slot as usize].leader, None);
}

#[test]
fn a_topic_that_went_away_takes_no_more() {
    let mut cluster = cluster(1, 1);
    let mut accumulator = accumulator(&cluster);
    append(&mut accumulator, &unchosen());
    cluster.topics.clear();
    cluster.version += 1;
    accumulator.update(&cluster);
    let refused = accumulator.append(&unchosen(), 0, Mark::Tag(0), 0).map_err(|(refused, _)| refused);
    assert_eq!(refused, Err(Refused::UnknownTopic));
    assert_eq!(accumulator.partitions[0].leader, None);
    assert!(!accumulator.add_topic(&cluster, &TOPIC.into()));
}

#[test]
fn a_leader_on_a_broker_that_is_not_there_is_none() {
    let mut cluster = cluster(1, 1);
    set_leader(&mut cluster, 0, 44);
    let mut accumulator = accumulator(&cluster);
    append(&mut accumulator, &unchosen());
    assert_eq!(accumulator.partitions[0].leader, None);
}
