//! Valid messages of every API and version.

use wire::fuzz_targets::choice;
use wire::generated::{AnyRequest, AnyResponse};
use wire::sample::SampleSource;
use wire::{ApiKey, Encode, Records, RequestHeader, Writer};

/// Messages per API and version.
const SEEDS: u64 = 4;

/// Requests in one connection's bytes.
const PIPELINED: u64 = 3;

fn bytes(writer: Writer) -> Vec<u8> {
    Records::Chunks(writer.finish()).to_bytes().unwrap_or_default().to_vec()
}

fn encoded(message: &impl Encode, version: i16) -> Vec<u8> {
    let mut writer = Writer::new();
    message.encode(&mut writer, version).expect("a sample holds only what its version can carry");
    bytes(writer)
}

/// One input for each API, version and seed.
fn for_all_versions(mut input: impl FnMut(ApiKey, i16, &mut SampleSource) -> Vec<u8>) -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for api in ApiKey::ALL {
        for version in api.versions() {
            for seed in 0..SEEDS {
                inputs.push(input(api, version, &mut SampleSource::new(seed)));
            }
        }
    }
    inputs
}

pub fn requests() -> Vec<Vec<u8>> {
    for_all_versions(|api, version, source| {
        let message = encoded(&AnyRequest::sample(api, source, version), version);
        [&choice(api, version)[..], &message].concat()
    })
}

pub fn responses() -> Vec<Vec<u8>> {
    for_all_versions(|api, version, source| {
        let message = encoded(&AnyResponse::sample(api, source, version), version);
        [&choice(api, version)[..], &message].concat()
    })
}

pub fn frames() -> Vec<Vec<u8>> {
    for_all_versions(|api_key, api_version, source| {
        let mut stream = Vec::new();
        for _ in 0..PIPELINED {
            let header =
                RequestHeader { api_key, api_version, correlation_id: source.i32(), client_id: Some(source.string()) };
            let mut writer = Writer::new();
            header.encode(&mut writer).expect("a header's only string is short");
            let mut frame = bytes(writer);
            frame.extend(encoded(&AnyRequest::sample(api_key, source, api_version), api_version));
            stream.extend((frame.len() as i32).to_be_bytes());
            stream.extend(frame);
        }
        stream
    })
}
