#![allow(clippy::unwrap_used)]

use model::Offset;
use model::builder::BatchBuilder;
use wire::generated::fetch::{AbortedTransaction, FetchableTopicResponse, PartitionData};
use wire::generated::produce::{BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse};
use wire::generated::{FetchResponse, ProduceResponse};
use wire::{Encode, Records, Writer};

use super::*;

fn encoded<R: Encode>(response: &R, version: i16) -> Vec<u8> {
    let mut writer = Writer::new();
    response.encode(&mut writer, version).unwrap();
    Records::Chunks(writer.finish()).to_bytes().unwrap().to_vec()
}

fn produce_answer() -> Vec<u8> {
    let of = |index, error_code, base_offset| PartitionProduceResponse {
        index,
        error_code,
        base_offset,
        ..PartitionProduceResponse::default()
    };
    let message = BatchIndexAndErrorMessage { batch_index: 3, batch_index_error_message: Some("no".into()) };
    let refused = PartitionProduceResponse {
        record_errors: vec![message],
        error_message: Some("refused".into()),
        ..of(9, 87, -1)
    };
    let topic = |name: &'static str, partition_responses| TopicProduceResponse {
        name: name.into(),
        partition_responses,
        ..Default::default()
    };
    let responses = vec![topic("a", vec![of(0, 0, 17), refused]), topic("bb", vec![of(1, 0, 1 << 40)])];
    encoded(&ProduceResponse { responses, ..ProduceResponse::default() }, PRODUCE_VERSION)
}

fn fetch_answer(records: Vec<u8>) -> Vec<u8> {
    let aborted = vec![AbortedTransaction { producer_id: 1, first_offset: 2 }; 2];
    let full = PartitionData {
        partition_index: 5,
        high_watermark: 77,
        aborted_transactions: Some(aborted),
        records: Records::from(bytes::Bytes::from(records)),
        ..PartitionData::default()
    };
    let failed = PartitionData { partition_index: 6, error_code: 1, ..PartitionData::default() };
    let topic = FetchableTopicResponse { topic: "a".into(), partitions: vec![full, failed], ..Default::default() };
    encoded(&FetchResponse { session_id: 31, responses: vec![topic], ..FetchResponse::default() }, FETCH_VERSION)
}

#[test]
fn a_produce_answer_is_walked_as_it_was_encoded() {
    let mut seen = Vec::new();
    produced(&produce_answer(), |one| seen.push((one.partition, one.error, one.base_offset))).unwrap();
    assert_eq!(seen, [(0, 0, 17), (9, 87, -1), (1, 0, 1 << 40)]);
}

#[test]
fn a_fetch_answer_is_walked_as_it_was_encoded() {
    let answer = fetch_answer(vec![7; 300]);
    let mut seen = Vec::new();
    let head = fetched(&answer, |one| seen.push((one.partition, one.error, one.high_watermark, one.records.len())));
    assert_eq!(head, Ok((0, 31)));
    assert_eq!((seen[0], seen[1].0, seen[1].1, seen[1].3), ((5, 0, 77, 300), 6, 1, 0));
}

#[test]
fn answers_that_are_cut_anywhere_are_malformed() {
    let (produce, fetch) = (produce_answer(), fetch_answer(vec![7; 30]));
    for cut in 0..produce.len() {
        assert_eq!(produced(&produce[..cut], |_| ()), Err(Malformed), "{cut}");
    }
    for cut in 0..fetch.len() {
        assert_eq!(fetched(&fetch[..cut], |_| ()), Err(Malformed), "{cut}");
    }
}

#[test]
fn whole_batches_count_and_a_cut_one_does_not() {
    let batch = |base, count: usize| {
        let mut builder = BatchBuilder::new().base_offset(Offset(base));
        (0..count).for_each(|_| builder.push(1, None, Some(b"value"), &[]));
        builder.finish()
    };
    let (first, second) = (batch(10, 3), batch(13, 2));
    let mut both = first.clone();
    both.extend_from_slice(&second);
    let whole = batches(&both);
    assert_eq!((whole.records, whole.bytes, whole.next_offset), (5, both.len() as u64, Some(15)));
    let cut = batches(&both[..both.len() - 1]);
    assert_eq!((cut.records, cut.bytes, cut.next_offset), (3, first.len() as u64, Some(13)));
    assert_eq!(batches(&first[..20]), Batches::default());
}
