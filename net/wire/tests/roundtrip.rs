//! Every message of every version: what we encode decodes to the same value, at every cut it is an
//! error or a whole value but never a panic, and the walkers see what the generated codecs see.
#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use ringlog_wire::fuzz_targets::{choice, fuzz_request, fuzz_response};
use ringlog_wire::generated::{AnyRequest, AnyResponse};
use ringlog_wire::sample::SampleSource;
use ringlog_wire::{ApiKey, Encode, Reader, Records, Writer};

fn written(message: &impl Encode, version: i16) -> Bytes {
    let mut writer = Writer::new();
    message.encode(&mut writer, version).unwrap();
    Records::Chunks(writer.finish()).to_bytes().unwrap()
}

fn all_versions() -> impl Iterator<Item = (ApiKey, i16)> {
    ApiKey::ALL.into_iter().flat_map(|api| api.versions().map(move |version| (api, version)))
}

#[test]
fn decoding_what_was_encoded_gives_the_same_value_and_reads_every_byte() {
    for (api, version) in all_versions() {
        for seed in 0..30 {
            let mut source = SampleSource::new(seed);
            let request = AnyRequest::sample(api, &mut source, version);
            let bytes = written(&request, version);
            let mut reader = Reader::new(&bytes);
            assert_eq!(AnyRequest::decode(api, &mut reader, version), Ok(request));
            assert_eq!(reader.remaining(), 0, "{api:?} v{version} request");

            let response = AnyResponse::sample(api, &mut source, version);
            let bytes = written(&response, version);
            let mut reader = Reader::new(&bytes);
            assert_eq!(AnyResponse::decode(api, &mut reader, version), Ok(response));
            assert_eq!(reader.remaining(), 0, "{api:?} v{version} response");
        }
    }
}

#[test]
fn every_proper_prefix_of_a_message_is_refused() {
    for (api, version) in all_versions() {
        let request = AnyRequest::sample(api, &mut SampleSource::new(7), version);
        let bytes = written(&request, version);
        for len in 0..bytes.len() {
            let cut = bytes.slice(..len);
            let outcome = AnyRequest::decode(api, &mut Reader::new(&cut), version);
            assert!(outcome.is_err(), "{api:?} v{version} cut to {len} of {}", bytes.len());
        }
    }
}

#[test]
fn the_fuzz_targets_accept_every_valid_message() {
    for (api, version) in all_versions() {
        for seed in 0..10 {
            let mut source = SampleSource::new(seed);
            let mut data = choice(api, version).to_vec();
            data.extend(written(&AnyRequest::sample(api, &mut source, version), version));
            fuzz_request(&data);
            data.truncate(2);
            data.extend(written(&AnyResponse::sample(api, &mut source, version), version));
            fuzz_response(&data);
        }
    }
}

#[test]
fn versions_that_are_not_described_are_refused() {
    for api in ApiKey::ALL {
        let bytes = Bytes::new();
        for version in [-1, i16::MIN, i16::MAX, api.versions().end() + 2] {
            assert!(AnyRequest::decode(api, &mut Reader::new(&bytes), version).is_err());
            assert!(AnyResponse::decode(api, &mut Reader::new(&bytes), version).is_err());
        }
    }
}
