//! Entry points for the fuzzer (`cargo xtask fuzz`): plain functions over bytes, so that any engine
//! can drive them. A panic is a finding.

use bytes::{Bytes, BytesMut};

use crate::fetch::{FetchPartition, FetchWalk};
use crate::generated::{AnyRequest, AnyResponse, FetchRequest};
use crate::produce::{ProducePartition, ProduceWalk};
use crate::{ApiKey, Encode, Reader, Records, RequestHeader, Split, TopicRef, WireError, Writer, split_frame};

type Decoded<'a> = Result<AnyRequest<'a>, WireError>;

/// The first bytes choose API and version; the rest is the message.
fn choose(data: &[u8]) -> Option<(ApiKey, i16, Bytes)> {
    let [api, version, message @ ..] = data else { return None };
    let api = ApiKey::ALL[usize::from(*api) % ApiKey::ALL.len()];
    let versions = api.versions();
    let count = i32::from(*versions.end()) - i32::from(*versions.start()) + 1;
    let version = *versions.start() + (i32::from(*version) % count) as i16;
    Some((api, version, Bytes::copy_from_slice(message)))
}

/// The bytes that make [`fuzz_request`] and [`fuzz_response`] choose this API and version.
pub fn choice(api: ApiKey, version: i16) -> [u8; 2] {
    let index = ApiKey::ALL.iter().position(|one| *one == api).unwrap_or_default();
    [index as u8, (version - api.versions().start()) as u8]
}

/// What decodes must encode again, and what was encoded must decode to the same value.
fn check_again<T: Encode + PartialEq + std::fmt::Debug>(
    value: &T,
    version: i16,
    decode: impl for<'b> FnOnce(&'b Bytes) -> Option<bool>,
) {
    let mut writer = Writer::new();
    if let Err(error) = value.encode(&mut writer, version) {
        panic!("a decoded value does not encode: {error}: {value:?}");
    }
    let bytes = joined(writer);
    assert_eq!(decode(&bytes), Some(true), "encoded and decoded again it differs: {value:?}");
}

fn joined(writer: Writer) -> Bytes {
    Records::Chunks(writer.finish()).to_bytes().unwrap_or_default()
}

/// A quota may be NaN, which is not equal to itself; values that hold one are not compared.
fn same<T: PartialEq>(first: &T, second: &T) -> bool {
    let holds_nan = first.ne(first);
    first == second || holds_nan
}

pub fn fuzz_request(data: &[u8]) {
    let Some((api, version, message)) = choose(data) else { return };
    let decoded = AnyRequest::decode(api, &mut Reader::new(&message), version);
    match api {
        ApiKey::Produce => check_produce_walk(&message, version, &decoded),
        ApiKey::Fetch => check_fetch_walk(&message, version, &decoded),
        _ => {}
    }
    let Ok(request) = decoded else { return };
    check_again(&request, version, |bytes| {
        let again = AnyRequest::decode(api, &mut Reader::new(bytes), version).ok()?;
        Some(same(&request, &again))
    });
}

pub fn fuzz_response(data: &[u8]) {
    let Some((api, version, message)) = choose(data) else { return };
    let Ok(response) = AnyResponse::decode(api, &mut Reader::new(&message), version) else { return };
    check_again(&response, version, |bytes| {
        let again = AnyResponse::decode(api, &mut Reader::new(bytes), version).ok()?;
        Some(same(&response, &again))
    });
}

/// A connection's bytes: frames, headers, messages, until the first error.
pub fn fuzz_frames(data: &[u8]) {
    const LIMIT: usize = 1 << 20;
    let mut buffered = BytesMut::from(data);
    while let Ok(Split::Frame(frame)) = split_frame(&mut buffered, LIMIT) {
        let mut reader = Reader::new(&frame);
        let Ok(header) = RequestHeader::decode(&mut reader) else { return };
        if header.is_served() {
            let _ = AnyRequest::decode(header.api_key, &mut reader, header.api_version);
        }
    }
}

/// The walker must accept what the generated codec accepts, and see the same. Where both refuse,
/// they may do so at different bytes: the walker knows tighter bounds.
fn check_produce_walk(message: &Bytes, version: i16, decoded: &Decoded<'_>) {
    let walked = ProduceWalk::open(Reader::new(message), version);
    let (walk, request) = match (walked, decoded) {
        (Ok(walk), Ok(AnyRequest::Produce(request))) => (walk, request),
        (Err(_), Err(_)) => return,
        (walked, decoded) => panic!("{walked:?} but {decoded:?}"),
    };
    assert_eq!(walk.transactional_id, request.transactional_id);
    assert_eq!((walk.acks, walk.timeout_ms), (request.acks, request.timeout_ms));
    let mut seen = walk.partitions().map(after_open);
    for (topic_index, topic) in request.topic_data.iter().enumerate() {
        let name = topic_ref(version >= 13, topic.topic_id, topic.name);
        for partition in &topic.partition_data {
            let walked = seen.next().expect("the walk misses partitions");
            let expected = ProducePartition {
                topic_index,
                topic: name,
                index: partition.index,
                records: partition.records.to_bytes(),
            };
            assert_eq!(walked, expected);
        }
    }
    assert_eq!(seen.next(), None);
    assert_eq!(walk.partitions().count(), walk.partition_count);
}

fn check_fetch_walk(message: &Bytes, version: i16, decoded: &Decoded<'_>) {
    let walked = FetchWalk::open(Reader::new(message), version);
    let (walk, request) = match (walked, decoded) {
        (Ok(walk), Ok(AnyRequest::Fetch(request))) => (walk, request),
        (Err(_), Err(_)) => return,
        (walked, decoded) => panic!("{walked:?} but {decoded:?}"),
    };
    check_fetch_fields(&walk, request, version);
    let mut seen = walk.partitions().map(after_open);
    for (topic_index, topic) in request.topics.iter().enumerate() {
        for partition in &topic.partitions {
            let walked = seen.next().expect("the walk misses partitions");
            let expected = FetchPartition {
                topic_index,
                topic: topic_ref(version >= 13, topic.topic_id, topic.topic),
                partition: partition.partition,
                current_leader_epoch: partition.current_leader_epoch,
                fetch_offset: partition.fetch_offset,
                last_fetched_epoch: partition.last_fetched_epoch,
                log_start_offset: partition.log_start_offset,
                partition_max_bytes: partition.partition_max_bytes,
                replica_directory_id: partition.replica_directory_id,
                high_watermark: partition.high_watermark,
            };
            assert_eq!(walked, expected);
        }
    }
    assert_eq!(seen.next(), None);
    assert_eq!(walk.partitions().count(), walk.partition_count);
    check_forgotten(&walk, request, version);
}

fn check_fetch_fields(walk: &FetchWalk<'_>, request: &FetchRequest<'_>, version: i16) {
    let replica = match version {
        ..=14 => (request.replica_id, -1),
        _ => (request.replica_state.replica_id, request.replica_state.replica_epoch),
    };
    assert_eq!((walk.replica_id, walk.replica_epoch), replica);
    assert_eq!((walk.cluster_id, walk.rack_id), (request.cluster_id, request.rack_id));
    assert_eq!((walk.max_wait_ms, walk.min_bytes), (request.max_wait_ms, request.min_bytes));
    assert_eq!((walk.max_bytes, walk.isolation_level), (request.max_bytes, request.isolation_level));
    assert_eq!((walk.session_id, walk.session_epoch), (request.session_id, request.session_epoch));
    assert_eq!(walk.topic_count, request.topics.len());
}

fn check_forgotten(walk: &FetchWalk<'_>, request: &FetchRequest<'_>, version: i16) {
    let mut seen = walk.forgotten().map(after_open);
    for topic in &request.forgotten_topics_data {
        let name = topic_ref(version >= 13, topic.topic_id, topic.topic);
        for partition in &topic.partitions {
            let walked = seen.next().expect("the walk misses forgotten partitions");
            assert_eq!((walked.topic, walked.partition), (name, *partition));
        }
    }
    assert_eq!(seen.next(), None);
    assert_eq!(walk.forgotten().count(), walk.forgotten_count);
}

fn topic_ref<'a>(by_id: bool, id: [u8; 16], name: &'a str) -> TopicRef<'a> {
    if by_id { TopicRef::Id(id) } else { TopicRef::Name(name) }
}

/// `open` has checked the whole request, so a later error is a finding.
fn after_open<T>(item: Result<T, WireError>) -> T {
    item.unwrap_or_else(|error| panic!("an error after open: {error}"))
}
