//! A broker of a few lines for tests of the generator's connections: answers Produce and Fetch on one connection, as told.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use bytes::Bytes;
use wire::generated::fetch::{FetchableTopicResponse, PartitionData};
use wire::generated::produce::{PartitionProduceResponse, TopicProduceResponse};
use wire::generated::{FetchRequest, FetchResponse, ProduceResponse};
use wire::produce::ProduceWalk;
use wire::{Decode, Encode, Reader, Records, RequestHeader, Writer};

use crate::answers::{FETCH_VERSION, PRODUCE_VERSION};

/// What one partition of a Fetch is answered with: its index, error and records.
pub type Fetched = (i32, i16, Vec<u8>);

/// Serves one connection with `answer` until it is closed; gives how many requests came.
pub fn serve(mut answer: impl FnMut(Bytes) -> Vec<u8> + Send + 'static) -> (u16, JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for requests in 0.. {
            let mut size = [0; 4];
            if stream.read_exact(&mut size).is_err() {
                return requests;
            }
            let mut frame = vec![0; u32::from_be_bytes(size) as usize];
            stream.read_exact(&mut frame).unwrap();
            let body = answer(frame.into());
            let mut out = (body.len() as u32 + 4).to_be_bytes().to_vec();
            out.extend_from_slice(&1i32.to_be_bytes());
            out.extend_from_slice(&body);
            if stream.write_all(&out).is_err() {
                return requests + 1;
            }
        }
        0
    });
    (port, serving)
}

fn encoded<R: Encode>(response: &R, version: i16) -> Vec<u8> {
    let mut writer = Writer::new();
    response.encode(&mut writer, version).unwrap();
    Records::Chunks(writer.finish()).to_bytes().unwrap().to_vec()
}

/// An answer that takes every batch, each at the end of its partition in `ends`; with `error` it takes none.
pub fn produced(frame: &Bytes, ends: &mut [i64], error: i16) -> Vec<u8> {
    let mut reader = Reader::new(frame);
    let header = RequestHeader::decode(&mut reader).unwrap();
    let walk = ProduceWalk::open(reader, header.api_version).unwrap();
    let mut partition_responses = Vec::new();
    for partition in walk.partitions() {
        let partition = partition.unwrap();
        let end = &mut ends[partition.index as usize];
        let base_offset = *end;
        *end += crate::answers::batches(&partition.records.unwrap()).records as i64;
        partition_responses.push(PartitionProduceResponse {
            index: partition.index,
            error_code: error,
            base_offset,
            ..PartitionProduceResponse::default()
        });
    }
    let topic = TopicProduceResponse { name: "t".into(), partition_responses, ..Default::default() };
    encoded(&ProduceResponse { responses: vec![topic], ..ProduceResponse::default() }, PRODUCE_VERSION)
}

/// Session id, epoch, and the partitions with their offsets that a Fetch names.
pub fn asked(frame: &Bytes) -> (i32, i32, Vec<(i32, i64)>) {
    let mut reader = Reader::new(frame);
    RequestHeader::decode(&mut reader).unwrap();
    let request = FetchRequest::decode(&mut reader, FETCH_VERSION).unwrap();
    let named = request.topics.iter().flat_map(|t| &t.partitions).map(|p| (p.partition, p.fetch_offset)).collect();
    (request.session_id, request.session_epoch, named)
}

pub fn fetched(session_id: i32, error_code: i16, partitions: Vec<Fetched>) -> Vec<u8> {
    let data = |(partition_index, error_code, records): Fetched| PartitionData {
        partition_index,
        error_code,
        records: Records::from(Bytes::from(records)),
        ..PartitionData::default()
    };
    let partitions = partitions.into_iter().map(data).collect();
    let topic = FetchableTopicResponse { topic: "t".into(), partitions, ..Default::default() };
    encoded(&FetchResponse { session_id, error_code, responses: vec![topic], ..Default::default() }, FETCH_VERSION)
}
