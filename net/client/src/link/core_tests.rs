#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use wire::generated::api_versions::ApiVersion;
use wire::generated::metadata::{MetadataRequest, MetadataResponse};
use wire::{RequestHeader, encode_response};

use super::*;

const FAR: Deadline = Deadline { at_ms: 1_000_000, after_ms: 1_000_000 };

fn joined(chunks: Vec<Chunk>) -> Vec<u8> {
    let mut out = Vec::new();
    for chunk in chunks {
        match chunk {
            Chunk::Bytes(bytes) => out.extend_from_slice(&bytes),
            Chunk::External { .. } => panic!("an answer in memory"),
        }
    }
    out
}

fn versions_answer(correlation_id: i32, version: i16, code: i16, metadata: RangeInclusive<i16>) -> Vec<u8> {
    let keys = vec![
        ApiVersion { api_key: 3, min_version: *metadata.start(), max_version: *metadata.end() },
        ApiVersion { api_key: 999, min_version: 0, max_version: 1 },
    ];
    let answer = ApiVersionsResponse { error_code: code, api_keys: keys, ..ApiVersionsResponse::default() };
    joined(encode_response(correlation_id, 0, version, &answer).unwrap())
}

fn metadata_answer(correlation_id: i32, version: i16) -> Vec<u8> {
    let header = ApiKey::Metadata.response_header_version(version);
    joined(encode_response(correlation_id, header, version, &MetadataResponse::default()).unwrap())
}

fn feed(core: &mut LinkCore<u32>, bytes: &[u8]) {
    core.received(&mut BytesMut::from(bytes), 0);
}

/// Takes what is to be written and gives the headers of the requests in it.
fn sent(core: &mut LinkCore<u32>) -> Vec<(ApiKey, i16, i32)> {
    let mut all = BytesMut::new();
    for bytes in core.take_output() {
        all.extend_from_slice(&bytes);
    }
    core.wrote(all.len());
    let mut headers = Vec::new();
    while let Ok(Split::Frame(frame)) = split_frame(&mut all, 1 << 20) {
        let header = RequestHeader::decode(&mut Reader::new(&frame)).unwrap();
        headers.push((header.api_key, header.api_version, header.correlation_id));
    }
    headers
}

fn ready() -> LinkCore<u32> {
    let mut core = LinkCore::new(7, "test", 100);
    core.connected(0);
    sent(&mut core);
    feed(&mut core, &versions_answer(0, 3, 0, 0..=12));
    assert_eq!(core.phase(), Phase::Ready);
    core
}

fn ask(core: &mut LinkCore<u32>, deadline: Deadline, waiter: u32) {
    core.send(&MetadataRequest::default(), None, deadline, waiter).unwrap();
}

fn done(core: &mut LinkCore<u32>) -> Vec<(u32, bool)> {
    core.take_done().into_iter().map(|(waiter, outcome)| (waiter, outcome.is_ok())).collect()
}

#[test]
fn versions_are_asked_before_anything_else() {
    let mut core = LinkCore::new(7, "test", 100);
    assert!(core.send(&MetadataRequest::default(), None, FAR, 1).is_err());
    core.connected(0);
    assert!(core.send(&MetadataRequest::default(), None, FAR, 1).is_err());
    assert_eq!(sent(&mut core), [(ApiKey::ApiVersions, 3, 0)]);
    feed(&mut core, &versions_answer(0, 3, 0, 0..=12));
    assert!(core.has_room() && core.was_ready());
}

#[test]
fn error_35_leads_to_version_0() {
    let mut core = LinkCore::new(7, "test", 100);
    core.connected(0);
    sent(&mut core);
    feed(&mut core, &versions_answer(0, 0, 35, 0..=12));
    assert_eq!(sent(&mut core), [(ApiKey::ApiVersions, 0, 1)]);
    feed(&mut core, &versions_answer(1, 0, 0, 0..=5));
    assert_eq!(core.version(ApiKey::Metadata, None).unwrap(), 5);
}

#[test]
fn error_35_twice_is_the_end() {
    let mut core = LinkCore::new(7, "test", 100);
    core.connected(0);
    feed(&mut core, &versions_answer(0, 0, 35, 0..=12));
    feed(&mut core, &versions_answer(1, 0, 35, 0..=12));
    assert_eq!(core.phase(), Phase::Ended);
    assert!(!core.was_ready());
}

#[test]
fn the_version_is_the_highest_that_all_three_speak() {
    let core = ready();
    assert_eq!(core.version(ApiKey::Metadata, None).unwrap(), 12);
    assert_eq!(core.version(ApiKey::Metadata, Some(&(4..=9))).unwrap(), 9);
    let error = core.version(ApiKey::Metadata, Some(&(13..=13))).unwrap_err();
    assert!(matches!(error, ClientError::UnsupportedApi { api: "Metadata", .. }), "{error}");
    assert!(core.version(ApiKey::Fetch, None).is_err());
}

#[test]
fn requests_leave_in_the_order_of_the_calls_and_answers_find_them() {
    let mut core = ready();
    (0..3).for_each(|waiter| ask(&mut core, FAR, waiter));
    let ids: Vec<i32> = sent(&mut core).iter().map(|header| header.2).collect();
    assert_eq!(ids, [1, 2, 3]);
    let mut bytes = metadata_answer(1, 12);
    bytes.extend(metadata_answer(2, 12));
    feed(&mut core, &bytes);
    assert_eq!(done(&mut core), [(0, true), (1, true)]);
    assert_eq!(core.under_way(), 1);
}

#[test]
fn an_answer_in_single_bytes_is_an_answer() {
    let mut core = ready();
    ask(&mut core, FAR, 1);
    sent(&mut core);
    let mut buffer = BytesMut::new();
    for byte in metadata_answer(1, 12) {
        buffer.extend_from_slice(&[byte]);
        core.received(&mut buffer, 0);
    }
    let (_, outcome) = core.take_done().remove(0);
    let answer = outcome.unwrap();
    assert_eq!(MetadataResponse::decode(&mut Reader::new(&answer.body), 12).unwrap(), MetadataResponse::default());
}

#[test]
fn an_answer_that_fits_nothing_ends_the_connection() {
    for bytes in [metadata_answer(2, 12), metadata_answer(9, 12), vec![0, 0, 0, 2, 0, 0], vec![255; 8], vec![0; 4]] {
        let mut core = ready();
        ask(&mut core, FAR, 1);
        ask(&mut core, FAR, 2);
        sent(&mut core);
        feed(&mut core, &bytes);
        assert_eq!(core.phase(), Phase::Ended, "{bytes:?}");
        assert_eq!(done(&mut core), [(1, false), (2, false)]);
    }
}

#[test]
fn an_answer_without_a_question_ends_the_connection() {
    let mut core = ready();
    feed(&mut core, &metadata_answer(1, 12));
    assert_eq!(core.phase(), Phase::Ended);
}

#[test]
fn a_size_over_the_bound_is_refused_before_anything_is_kept() {
    let mut core = ready();
    ask(&mut core, FAR, 1);
    sent(&mut core);
    feed(&mut core, &(MAX_ANSWER_BYTES as i32 + 1).to_be_bytes());
    assert_eq!(core.phase(), Phase::Ended);
}

#[test]
fn the_next_read_is_sized_by_the_prefix() {
    let mut core = ready();
    ask(&mut core, FAR, 1);
    sent(&mut core);
    assert_eq!(core.received(&mut BytesMut::from(&[0, 0, 1, 0, 9][..]), 0), 255);
}

#[test]
fn a_late_answer_ends_everything_under_way() {
    let mut core = ready();
    ask(&mut core, Deadline::after(0, 50), 1);
    ask(&mut core, FAR, 2);
    sent(&mut core);
    assert_eq!(core.next_deadline_ms(), Some(50));
    core.expire(49);
    assert_eq!(core.phase(), Phase::Ready);
    core.expire(50);
    let done = core.take_done();
    assert_eq!(done[0].1, Err(ClientError::TimedOut { what: "Metadata", after_ms: 50 }));
    assert!(matches!(done[1].1, Err(ClientError::Disconnected { node: 7, .. })));
    feed(&mut core, &metadata_answer(1, 12));
    assert!(core.take_done().is_empty());
}

#[test]
fn negotiation_has_a_deadline_too() {
    let mut core: LinkCore<u32> = LinkCore::new(7, "test", 100);
    core.connected(10);
    core.expire(110);
    assert_eq!(core.phase(), Phase::Ended);
    assert!(core.end_reason().contains("ApiVersions"), "{}", core.end_reason());
}

#[test]
fn what_never_left_is_told_apart_from_what_may_have_arrived() {
    let mut core = ready();
    ask(&mut core, FAR, 1);
    sent(&mut core);
    ask(&mut core, FAR, 2);
    core.end("cut");
    let done = core.take_done();
    assert!(matches!(done[0].1, Err(ClientError::Disconnected { .. })));
    assert!(matches!(done[1].1, Err(ClientError::NotConnected { .. })));
    assert!(core.take_output().is_empty());
}

#[test]
fn a_request_without_an_answer_is_done_once_it_is_written() {
    let mut core = ready();
    core.send_unanswered(&MetadataRequest::default(), None, FAR, 1).unwrap();
    ask(&mut core, FAR, 2);
    let bytes: usize = core.take_output().iter().map(Bytes::len).sum();
    core.wrote(1);
    assert!(core.take_done().is_empty());
    core.wrote(bytes - 1);
    assert_eq!(done(&mut core), [(1, true)]);
    feed(&mut core, &metadata_answer(2, 12));
    assert_eq!(done(&mut core), [(2, true)]);
}

#[test]
fn requests_under_way_are_bounded() {
    let mut core = ready();
    (0..MAX_IN_FLIGHT_PER_LINK as u32).for_each(|waiter| ask(&mut core, FAR, waiter));
    assert!(!core.has_room());
    assert!(core.send(&MetadataRequest::default(), None, FAR, 0).is_err());
    sent(&mut core);
    feed(&mut core, &metadata_answer(1, 12));
    assert!(core.has_room());
}

#[test]
fn a_request_that_cannot_be_written_leaves_the_connection_as_it_was() {
    let mut core = ready();
    let request = MetadataRequest { include_cluster_authorized_operations: true, ..MetadataRequest::default() };
    let error = core.send(&request, None, FAR, 1).unwrap_err();
    assert!(matches!(error, ClientError::BadRequest { .. }), "{error}");
    ask(&mut core, FAR, 2);
    assert_eq!(sent(&mut core), [(ApiKey::Metadata, 12, 1)]);
}

#[test]
fn correlation_ids_stay_positive() {
    let mut core = ready();
    core.next_correlation_id = i32::MAX;
    ask(&mut core, FAR, 1);
    ask(&mut core, FAR, 2);
    let ids: Vec<i32> = sent(&mut core).iter().map(|header| header.2).collect();
    assert_eq!(ids, [i32::MAX, 0]);
}

proptest! {
    #[test]
    fn any_bytes_leave_every_question_with_one_outcome(data in proptest::collection::vec(any::<u8>(), 0..400)) {
        crate::fuzz_targets::link_answers(&data);
    }
}
