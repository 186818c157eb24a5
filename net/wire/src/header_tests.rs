#![allow(clippy::unwrap_used)]
use bytes::Bytes;

use super::*;
use crate::generated::{ApiVersionsRequest, HeartbeatResponse};
use crate::{Decode, Records};

fn written(header: &RequestHeader<'_>) -> Bytes {
    let mut writer = Writer::new();
    header.encode(&mut writer).unwrap();
    Records::Chunks(writer.finish()).to_bytes().unwrap()
}

#[test]
fn headers_of_every_api_and_version_go_both_ways() {
    for api_key in ApiKey::ALL {
        for api_version in api_key.versions() {
            for client_id in [None, Some(""), Some("rdkafka")] {
                let header = RequestHeader { api_key, api_version, correlation_id: -5, client_id };
                let bytes = written(&header);
                let mut reader = Reader::new(&bytes);
                assert_eq!(RequestHeader::decode(&mut reader), Ok(header));
                assert_eq!(reader.remaining(), 0);
            }
        }
    }
}

#[test]
fn unknown_apis_and_versions_are_named_errors() {
    let decode = |bytes: &[u8]| RequestHeader::decode(&mut Reader::new(&Bytes::copy_from_slice(bytes))).map(|_| ());
    let unknown = decode(&[0x7f, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff]);
    assert_eq!(unknown, Err(WireError::UnknownApi { api_key: 0x7f00 }));
    let produce_v2 = decode(&[0, 0, 0, 2, 0, 0, 0, 1, 0xff, 0xff]);
    assert_eq!(produce_v2, Err(WireError::UnsupportedVersion { api_key: 0, version: 2 }));
}

#[test]
fn api_versions_of_an_unknown_version_still_has_a_header() {
    let frame = Bytes::from_static(b"\0\x12\0\x63\0\0\0\x09\0\x01c\0rest");
    let header = RequestHeader::decode(&mut Reader::new(&frame)).unwrap();
    assert_eq!((header.api_version, header.correlation_id, header.client_id), (99, 9, Some("c")));
    assert!(!header.is_served());
    assert_eq!(header.response_header_version(), 0);
}

#[test]
fn an_answer_is_prefix_header_and_message() {
    let response = HeartbeatResponse { throttle_time_ms: 1, error_code: 27 };
    let plain = encode_response(8, 0, 1, &response).unwrap();
    assert_eq!(plain, [Chunk::Bytes(Bytes::from_static(b"\0\0\0\x0a\0\0\0\x08\0\0\0\x01\0\x1b"))]);
    let flexible = encode_response(8, 1, 4, &response).unwrap();
    assert_eq!(flexible, [Chunk::Bytes(Bytes::from_static(b"\0\0\0\x0c\0\0\0\x08\0\0\0\0\x01\0\x1b\0"))]);
}

#[test]
fn the_scratch_buffer_serves_many_answers() {
    let mut buffer = BytesMut::with_capacity(1024);
    let mut answers = Vec::new();
    for correlation_id in 0..20 {
        let chunks = encode_response_with(&mut buffer, correlation_id, 0, |writer| {
            writer.i16(3);
            Ok(())
        });
        answers.push(chunks.unwrap());
    }
    for (correlation_id, chunks) in answers.iter().enumerate() {
        let expected = [&[0, 0, 0, 6, 0, 0, 0, correlation_id as u8, 0, 3][..]].concat();
        assert_eq!(*chunks, [Chunk::Bytes(expected.into())]);
    }
}

#[test]
fn a_request_is_read_as_it_was_written() {
    let request = ApiVersionsRequest { client_software_name: "me", client_software_version: "1", ..Default::default() };
    let chunks = encode_request(3, Some("id"), 3, &request).unwrap();
    let frame = Records::Chunks(chunks).to_bytes().unwrap().slice(4..);
    let mut reader = Reader::new(&frame);
    let header = RequestHeader::decode(&mut reader).unwrap();
    assert_eq!((header.api_key, header.api_version, header.correlation_id), (ApiKey::ApiVersions, 3, 3));
    assert_eq!(ApiVersionsRequest::decode(&mut reader, 3), Ok(request));
}

#[test]
fn a_response_header_is_read_as_it_was_written() {
    for header_version in [0, 1] {
        let mut writer = Writer::new();
        encode_response_header(&mut writer, 77, header_version);
        let bytes = Records::Chunks(writer.finish()).to_bytes().unwrap();
        let mut reader = Reader::new(&bytes);
        assert_eq!(decode_response_header(&mut reader, header_version), Ok(77));
        assert_eq!(reader.remaining(), 0);
    }
}
