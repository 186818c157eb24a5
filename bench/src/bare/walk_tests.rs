#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use model::builder::BatchBuilder;
use wire::generated::produce::{PartitionProduceData, TopicProduceData};
use wire::generated::{MetadataRequest, ProduceRequest};
use wire::{Records, RequestHeader};

use super::*;
use crate::client::frame;

/// What a walk said, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    Request(usize),
    Produce(i32, usize),
    Topic(String, usize),
    Partition(i32),
    Batch(i32),
    End,
}

fn batch(records: i32) -> Bytes {
    let mut builder = BatchBuilder::new();
    for record in 0..records {
        builder.push(0, None, Some(&[record as u8; 100]), &[]);
    }
    builder.finish().into()
}

fn produce(topics: &[(&str, Vec<Bytes>)], acks: i16) -> Vec<u8> {
    let data = |(index, records): (usize, &Bytes)| PartitionProduceData {
        index: index as i32,
        records: Records::from(records.clone()),
    };
    let topic = |(name, partitions): &(&'static str, Vec<Bytes>)| TopicProduceData {
        name,
        topic_id: [0; 16],
        partition_data: partitions.iter().enumerate().map(data).collect(),
    };
    let names: Vec<(&'static str, Vec<Bytes>)> =
        topics.iter().map(|(name, all)| (&*name.to_string().leak(), all.clone())).collect();
    let topic_data = names.iter().map(topic).collect();
    frame(7, PRODUCE_VERSION, &ProduceRequest { transactional_id: None, acks, timeout_ms: 1, topic_data }).unwrap()
}

/// Walks bytes that arrive `piece` at a time.
fn walked(bytes: &[u8], piece: usize) -> Result<Vec<Said>, Malformed> {
    let (mut walk, mut said, mut taken, mut arrived) = (Walk::default(), Vec::new(), 0, 0);
    loop {
        let (read, step) = walk.step(&bytes[taken..arrived])?;
        taken += read;
        match step {
            Step::Wants(wanted) => {
                assert!(wanted > arrived - taken, "what is there already is not waited for");
                if arrived == bytes.len() {
                    return Ok(said);
                }
                arrived = (arrived + piece).min(bytes.len());
            }
            Step::Request(request) => said.push(Said::Request(request.len())),
            Step::Produce { correlation_id, topics } => said.push(Said::Produce(correlation_id, topics)),
            Step::Topic { name, partitions } => said.push(Said::Topic(name.to_owned(), partitions)),
            Step::Partition { index } => said.push(Said::Partition(index)),
            Step::Batch(batch) => {
                batch.check_crc().unwrap();
                said.push(Said::Batch(batch.header.record_count));
            }
            Step::End => said.push(Said::End),
        }
    }
}

#[test]
fn requests_are_walked_however_they_arrive() {
    let two: Bytes = [batch(3), batch(4)].concat().into();
    let mut bytes = produce(&[("one", vec![batch(1), two]), ("none", vec![]), ("other", vec![batch(5)])], -1);
    let metadata = frame(8, 4, &MetadataRequest::default()).unwrap();
    bytes.extend_from_slice(&metadata);
    bytes.extend_from_slice(&produce(&[("one", vec![batch(2)])], -1));
    let topic = |name: &str, partitions| Said::Topic(name.to_owned(), partitions);
    let wanted = [
        Said::Produce(7, 3),
        topic("one", 2),
        Said::Partition(0),
        Said::Batch(1),
        Said::Partition(1),
        Said::Batch(3),
        Said::Batch(4),
        topic("none", 0),
        topic("other", 1),
        Said::Partition(0),
        Said::Batch(5),
        Said::End,
        Said::Request(metadata.len() - 4),
        Said::Produce(7, 1),
        topic("one", 1),
        Said::Partition(0),
        Said::Batch(2),
        Said::End,
    ];
    for piece in [1, 2, 7, 61, 100, 1_000, bytes.len()] {
        assert_eq!(walked(&bytes, piece).unwrap(), wanted, "{piece} bytes at a time");
    }
}

#[test]
fn records_that_are_null_are_no_batches() {
    let bytes = produce(&[("t", vec![Bytes::new()])], -1);
    let wanted = [Said::Produce(7, 1), Said::Topic("t".to_owned(), 1), Said::Partition(0), Said::End];
    assert_eq!(walked(&bytes, 5).unwrap(), wanted);
}

#[test]
fn a_batch_is_wanted_whole_and_no_more() {
    let records = batch(50);
    let bytes = produce(&[("t", vec![records.clone(), batch(1)])], -1);
    let mut walk = Walk::default();
    let mut taken = 0;
    let from = bytes.windows(records.len()).position(|window| window == records).unwrap();
    while taken < from {
        taken += walk.step(&bytes[taken..from + 70]).unwrap().0;
    }
    let (read, step) = walk.step(&bytes[taken..from + 70]).unwrap();
    assert_eq!(read, 0);
    assert!(matches!(step, Step::Wants(wanted) if wanted == records.len()), "{step:?}");
}

#[test]
fn what_no_generator_sends_ends_the_connection() {
    let good = produce(&[("t", vec![batch(1)])], -1);
    let with = |at: usize, value: &[u8]| {
        let mut bytes = good.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        bytes
    };
    let size = good.len() as i32 - 4;
    let from = good.len() - batch(1).len();
    let wrong = [
        ("an older version", with(6, &7i16.to_be_bytes())),
        ("a frame without header", with(0, &3i32.to_be_bytes())),
        ("a frame that is shorter than its records", with(0, &(size - 1).to_be_bytes())),
        ("a frame that is longer than its records", [with(0, &(size + 1).to_be_bytes()), vec![0]].concat()),
        ("records longer than the frame", with(from - 4, &i32::MAX.to_be_bytes())),
        ("an old record format", with(from + 16, &[1])),
        ("a batch longer than its records", with(from + 8, &100_000i32.to_be_bytes())),
        ("offsets that go back", with(from + 23, &(-1i32).to_be_bytes())),
        ("acks=1", produce(&[("t", vec![batch(1)])], 1)),
    ];
    assert!(walked(&good, good.len()).is_ok());
    for (what, bytes) in wrong {
        assert_eq!(walked(&bytes, bytes.len()), Err(Malformed), "{what}");
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let good = produce(&[("t", vec![batch(2), batch(1)])], -1);
    for at in 0..good.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = good.clone();
            bytes[at] = value;
            let _ = std::panic::catch_unwind(|| walk_on(&bytes)).unwrap();
        }
    }
}

/// Walks without looking into batches.
fn walk_on(bytes: &[u8]) -> Result<(), Malformed> {
    let (mut walk, mut taken) = (Walk::default(), 0);
    loop {
        let (read, step) = walk.step(&bytes[taken..])?;
        taken += read;
        if matches!(step, Step::Wants(_)) {
            return Ok(());
        }
    }
}

#[test]
fn the_walk_agrees_with_the_general_decoder() {
    let bytes = produce(&[("name", vec![batch(2), batch(3), batch(4)])], -1);
    let whole = Bytes::from(bytes.clone()).slice(4..);
    let mut reader = wire::Reader::new(&whole);
    let header = RequestHeader::decode(&mut reader).unwrap();
    let general = wire::produce::ProduceWalk::open(reader, header.api_version).unwrap();
    let indexes: Vec<Said> = general.partitions().map(|one| Said::Partition(one.unwrap().index)).collect();
    let ours = walked(&bytes, 64).unwrap();
    let of_ours: Vec<Said> = ours.into_iter().filter(|one| matches!(one, Said::Partition(_))).collect();
    assert_eq!(indexes, of_ours);
}
