#![allow(clippy::unwrap_used)]

use wire::generated::produce::TopicProduceResponse;

use super::*;

fn part(topic: &str, id: u8, index: i32) -> Part {
    let key = PartKey { slot: index as u32, batch: 0 };
    Part { topic: topic.into(), topic_id: [id; 16], index, records: Bytes::from_static(b"batch"), key }
}

fn request(parts: Vec<Part>) -> NodeRequest {
    NodeRequest { id: 1, node: 3, acks: -1, timeout_ms: 30_000, parts }
}

fn answer(index: i32, code: i16) -> PartitionProduceResponse<'static> {
    PartitionProduceResponse { index, error_code: code, ..Default::default() }
}

fn topic(name: &'static str, id: u8, answers: Vec<PartitionProduceResponse<'static>>) -> TopicProduceResponse<'static> {
    TopicProduceResponse { name: name.into(), topic_id: [id; 16], partition_responses: answers }
}

fn codes(request: &NodeRequest, responses: Vec<TopicProduceResponse<'static>>) -> Vec<Option<i16>> {
    let response = ProduceResponse { responses, ..Default::default() };
    InFlight::new(request).pair(&response).iter().map(|found| found.map(|answer| answer.error_code)).collect()
}

#[test]
fn it_is_written_as_kafka_reads_it() {
    use wire::{Decode, Reader};
    let request = request(vec![part("a", 1, 0), part("a", 1, 4), part("b", 2, 0)]);
    for version in 3..=13 {
        let chunks = wire::encode_request(9, Some("me"), version, &request).unwrap();
        let all: Vec<u8> =
            chunks.iter().flat_map(|c| if let wire::Chunk::Bytes(b) = c { b.to_vec() } else { vec![] }).collect();
        let frame = Bytes::from(all).slice(4..);
        let mut reader = Reader::new(&frame);
        wire::RequestHeader::decode(&mut reader).unwrap();
        let read = ProduceRequest::decode(&mut reader, version).unwrap();
        assert_eq!((read.acks, read.timeout_ms, read.topic_data.len()), (-1, 30_000, 2));
        let indexes: Vec<_> = read.topic_data[0].partition_data.iter().map(|p| p.index).collect();
        assert_eq!(indexes, [0, 4]);
        assert_eq!(read.topic_data[1].partition_data[0].records.to_bytes().unwrap(), &b"batch"[..]);
    }
}

#[test]
fn topic_ids_are_used_only_where_all_are_known() {
    assert_eq!(request(vec![part("a", 1, 0), part("b", 2, 0)]).newest_version(), 13);
    assert_eq!(request(vec![part("a", 1, 0), part("b", 0, 0)]).newest_version(), 12);
}

#[test]
fn answers_are_paired_by_name_or_id_in_any_order() {
    let request = request(vec![part("a", 1, 0), part("a", 1, 1), part("b", 2, 0)]);
    let by_name = vec![topic("a", 0, vec![answer(0, 1), answer(1, 2)]), topic("b", 0, vec![answer(0, 3)])];
    assert_eq!(codes(&request, by_name), [Some(1), Some(2), Some(3)]);
    let by_id = vec![topic("", 2, vec![answer(0, 3)]), topic("", 1, vec![answer(1, 2), answer(0, 1)])];
    assert_eq!(codes(&request, by_id), [Some(1), Some(2), Some(3)]);
}

#[test]
fn what_was_not_asked_is_ignored_and_what_is_missing_is_missed() {
    let request = request(vec![part("a", 1, 0), part("a", 1, 1)]);
    let strange = vec![
        topic("z", 0, vec![answer(0, 9)]),
        topic("", 9, vec![answer(0, 9)]),
        topic("", 0, vec![answer(1, 9)]),
        topic("a", 0, vec![answer(7, 9), answer(1, 2), answer(1, 9), answer(-1, 9)]),
    ];
    assert_eq!(codes(&request, strange), [None, Some(2)]);
    assert_eq!(codes(&request, vec![]), [None, None]);
}
