//! Every message of every version against the crate `kafka-protocol`: what we encode it decodes,
//! and what it encodes again is what we wrote, byte for byte. It only ever sees what we encoded:
//! five arbitrary bytes make it abort.
#![allow(clippy::unwrap_used)]

use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::{Decodable, Encodable, Message};
use ringlog_wire::generated::{AnyRequest, AnyResponse};
use ringlog_wire::sample::SampleSource;
use ringlog_wire::{ApiKey, Encode, Reader, Records, Writer};

/// Seeded messages per message and version.
const SEEDS: u64 = 40;

/// Where the oracle cannot be followed: message, first and last version, reason. Each is checked
/// to be still needed.
const EXCEPTIONS: &[(&str, i16, i16, &str)] = &[
    ("ListOffsetsRequest", 11, 11, TRAILS),
    ("ListOffsetsResponse", 11, 11, TRAILS),
    ("OffsetCommitRequest", 10, 10, TRAILS),
    ("OffsetFetchRequest", 10, 10, TRAILS),
    ("ApiVersionsRequest", 5, 5, TRAILS),
    ("ApiVersionsResponse", 5, 5, TRAILS),
    ("WriteTxnMarkersRequest", 2, 2, TRAILS),
    ("WriteTxnMarkersResponse", 2, 2, TRAILS),
    ("TxnOffsetCommitRequest", 6, 6, TRAILS),
    ("TxnOffsetCommitResponse", 6, 6, TRAILS),
    ("DescribeLogDirsRequest", 5, 5, TRAILS),
    ("DescribeLogDirsResponse", 5, 5, TRAILS),
    ("DeleteGroupsRequest", 3, 3, TRAILS),
    ("DeleteGroupsResponse", 3, 3, TRAILS),
];

/// The oracle knows fewer versions than Kafka 4.4; ours still decode to what was encoded.
const TRAILS: &str = "the oracle ends before this version";

/// What came of one message at one version.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Same,
    NotCovered,
    Differs(String),
}

fn written(message: &impl Encode, version: i16) -> Bytes {
    let mut writer = Writer::new();
    message.encode(&mut writer, version).unwrap();
    Records::Chunks(writer.finish()).to_bytes().unwrap()
}

fn ask<T: Decodable + Encodable + Message>(bytes: &Bytes, version: i16) -> Verdict {
    if version < T::VERSIONS.min || version > T::VERSIONS.max {
        return Verdict::NotCovered;
    }
    let mut rest = bytes.clone();
    let decoded = match T::decode(&mut rest, version) {
        Ok(decoded) => decoded,
        Err(error) => return Verdict::Differs(format!("it cannot decode: {error}")),
    };
    if rest.has_remaining() {
        return Verdict::Differs(format!("it leaves {} bytes", rest.remaining()));
    }
    let mut encoded = BytesMut::new();
    if let Err(error) = decoded.encode(&mut encoded, version) {
        return Verdict::Differs(format!("it cannot encode: {error}"));
    }
    if encoded == *bytes {
        Verdict::Same
    } else {
        Verdict::Differs(format!("it encodes {} bytes for our {}", encoded.len(), bytes.len()))
    }
}

/// Asks for every seed; the first answer that is not "the same" is the verdict.
fn verdict(mut one_seed: impl FnMut(&mut SampleSource) -> Verdict) -> Verdict {
    let verdicts = (0..SEEDS).map(|seed| one_seed(&mut SampleSource::new(seed)));
    verdicts.into_iter().find(|verdict| *verdict != Verdict::Same).unwrap_or(Verdict::Same)
}

fn exception(message: &str, version: i16) -> Option<&'static str> {
    let found =
        EXCEPTIONS.iter().find(|(name, first, last, _)| *name == message && (*first..=*last).contains(&version));
    found.map(|(_, _, _, reason)| *reason)
}

/// All that is not as expected, so that one run shows everything.
fn judge(message: &str, api: ApiKey, mut at: impl FnMut(i16) -> Verdict) -> Vec<String> {
    let mut complaints = Vec::new();
    for version in api.versions() {
        match (at(version), exception(message, version)) {
            (Verdict::Same, None) => {}
            (Verdict::Same, Some(_)) => {
                complaints.push(format!("{message} v{version}: the exception is not needed any more"));
            }
            (_, Some(_)) => {}
            (verdict, None) => complaints.push(format!("{message} v{version}: {verdict:?}")),
        }
    }
    complaints
}

macro_rules! compare_all {
    ($($name:ident $request:ident $response:ident;)*) => {
        fn complaints() -> Vec<String> {
            let mut all = Vec::new();
            $(
                let api = ApiKey::$name;
                all.extend(judge(stringify!($request), api, |version| verdict(|source| {
                    let request = AnyRequest::sample(api, source, version);
                    let bytes = written(&request, version);
                    let verdict = ask::<theirs::$request>(&bytes, version);
                    let again = AnyRequest::decode(api, &mut Reader::new(&bytes), version).unwrap();
                    assert_eq!(again, request, "{} v{version}", stringify!($request));
                    verdict
                })));
                all.extend(judge(stringify!($response), api, |version| verdict(|source| {
                    let response = AnyResponse::sample(api, source, version);
                    let bytes = written(&response, version);
                    let verdict = ask::<theirs::$response>(&bytes, version);
                    let again = AnyResponse::decode(api, &mut Reader::new(&bytes), version).unwrap();
                    assert_eq!(again, response, "{} v{version}", stringify!($response));
                    verdict
                })));
            )*
            all
        }
    };
}

ringlog_wire::for_each_api!(compare_all);

#[test]
fn every_message_of_every_version_is_what_the_oracle_writes() {
    let complaints = complaints();
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}
