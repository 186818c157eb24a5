//! The budget of the two hot ways: walking a Produce or a Fetch request allocates nothing.
#![allow(clippy::unwrap_used)]

mod counting;

use bytes::{BufMut, Bytes, BytesMut};
use counting::allocations_of;
use ringlog_wire::fetch::FetchWalk;
use ringlog_wire::generated::AnyRequest;
use ringlog_wire::produce::ProduceWalk;
use ringlog_wire::sample::SampleSource;
use ringlog_wire::{ApiKey, Reader, RequestHeader, Split, encode_request, split_frame};

/// A frame as the connection has it: cut from the bytes of a socket.
fn frame(request: &AnyRequest<'_>, version: i16) -> Bytes {
    let chunks = match request {
        AnyRequest::Produce(request) => encode_request(1, Some("client"), version, request),
        AnyRequest::Fetch(request) => encode_request(1, Some("client"), version, request),
        other => panic!("{other:?} is not on a hot way"),
    };
    let mut socket = BytesMut::new();
    let whole = ringlog_wire::Records::Chunks(chunks.unwrap()).to_bytes().unwrap();
    socket.put_slice(&whole);
    let Split::Frame(frame) = split_frame(&mut socket, 1 << 20).unwrap() else { panic!("a whole frame was put in") };
    frame
}

#[test]
fn the_counter_counts() {
    let (count, _) = allocations_of(|| vec![1, 2, 3]);
    assert_eq!(count, 1);
}

#[test]
fn walking_a_produce_request_allocates_nothing() {
    let mut partitions_seen = 0;
    for version in ApiKey::Produce.versions() {
        for seed in 0..20 {
            let mut source = SampleSource::new(seed);
            let frame = frame(&AnyRequest::sample(ApiKey::Produce, &mut source, version), version);
            let (count, seen) = allocations_of(|| {
                let mut reader = Reader::new(&frame);
                let header = RequestHeader::decode(&mut reader).unwrap();
                let walk = ProduceWalk::open(reader, header.api_version).unwrap();
                walk.partitions().map(|partition| partition.unwrap()).filter(|one| one.index != 42).count()
            });
            assert_eq!(count, 0, "Produce v{version}, seed {seed}");
            partitions_seen += seen;
        }
    }
    assert!(partitions_seen > 100, "the samples hold {partitions_seen} partitions only");
}

#[test]
fn walking_a_fetch_request_allocates_nothing() {
    let mut partitions_seen = 0;
    for version in ApiKey::Fetch.versions() {
        for seed in 0..20 {
            let mut source = SampleSource::new(seed);
            let frame = frame(&AnyRequest::sample(ApiKey::Fetch, &mut source, version), version);
            let (count, seen) = allocations_of(|| {
                let mut reader = Reader::new(&frame);
                let header = RequestHeader::decode(&mut reader).unwrap();
                let walk = FetchWalk::open(reader, header.api_version).unwrap();
                walk.partitions().count() + walk.forgotten().count()
            });
            assert_eq!(count, 0, "Fetch v{version}, seed {seed}");
            partitions_seen += seen;
        }
    }
    assert!(partitions_seen > 100, "the samples hold {partitions_seen} partitions only");
}
