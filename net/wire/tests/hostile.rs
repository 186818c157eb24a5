//! Bytes from nobody's friend: no panic, and no more memory than a small multiple of the frame.
#![allow(clippy::unwrap_used)]

mod counting;

use bytes::Bytes;
use counting::peak_of;
use proptest::collection::vec;
use proptest::prelude::*;
use ringlog_wire::fuzz_targets::{choice, fuzz_frames, fuzz_request, fuzz_response};
use ringlog_wire::generated::{AnyRequest, AnyResponse};
use ringlog_wire::sample::SampleSource;
use ringlog_wire::{ApiKey, Encode, Reader, Records, Writer};

/// Memory that decoding may take for each byte of the frame. The worst legal case is an array of
/// structs that take three bytes on the wire and some fifty here, while the array doubles; a count
/// of two billion in a small frame would be far beyond.
const MOST_PER_BYTE: usize = 80;

/// For the first elements of every array, whatever the frame's size.
const MOST_BESIDES: usize = 4096;

fn check_memory(api: ApiKey, version: i16, message: &Bytes) {
    let most = MOST_BESIDES + MOST_PER_BYTE * message.len();
    let taken = peak_of(|| drop(AnyRequest::decode(api, &mut Reader::new(message), version)));
    assert!(taken <= most, "{api:?} request v{version}: {taken} for {} bytes", message.len());
    let taken = peak_of(|| drop(AnyResponse::decode(api, &mut Reader::new(message), version)));
    assert!(taken <= most, "{api:?} response v{version}: {taken} for {} bytes", message.len());
}

fn written(message: &impl Encode, version: i16) -> Vec<u8> {
    let mut writer = Writer::new();
    message.encode(&mut writer, version).unwrap();
    Records::Chunks(writer.finish()).to_bytes().unwrap().to_vec()
}

fn any_api() -> impl Strategy<Value = ApiKey> {
    (0..ApiKey::ALL.len()).prop_map(|index| ApiKey::ALL[index])
}

fn nth_version(api: ApiKey, index: u8) -> i16 {
    let versions: Vec<i16> = api.versions().collect();
    versions[usize::from(index) % versions.len()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_neither_panic_nor_cost_memory(
        api in any_api(), index: u8, bytes in vec(any::<u8>(), 0..600),
    ) {
        let version = nth_version(api, index);
        let mut data = choice(api, version).to_vec();
        data.extend(&bytes);
        fuzz_request(&data);
        fuzz_response(&data);
        fuzz_frames(&bytes);
        check_memory(api, version, &bytes.into());
    }

    #[test]
    fn damaged_messages_neither_panic_nor_cost_memory(
        api in any_api(), index: u8, seed: u64, place: prop::sample::Index, value: u8,
    ) {
        let version = nth_version(api, index);
        let mut source = SampleSource::new(seed);
        for mut bytes in [
            written(&AnyRequest::sample(api, &mut source, version), version),
            written(&AnyResponse::sample(api, &mut source, version), version),
        ] {
            if !bytes.is_empty() {
                let place = place.index(bytes.len());
                bytes[place] = value;
            }
            let mut data = choice(api, version).to_vec();
            data.extend(&bytes);
            fuzz_request(&data);
            fuzz_response(&data);
            check_memory(api, version, &bytes.into());
        }
    }
}

/// Runs of equal bytes make the deepest and the widest messages: counts of themselves.
#[test]
fn uniform_frames_neither_panic_nor_cost_memory() {
    for api in ApiKey::ALL {
        for version in api.versions() {
            for byte in [0, 1, 2, 3, 4, 5, 0x10, 0x7f, 0x80, 0xff] {
                let bytes = Bytes::from(vec![byte; 20_000]);
                check_memory(api, version, &bytes);
            }
        }
    }
}

/// The count is judged by the bytes left before anything is reserved for it.
#[test]
fn a_count_beyond_the_frame_is_refused_without_memory() {
    let mut metadata_v1 = i32::MAX.to_be_bytes().to_vec();
    metadata_v1.extend([0; 16]);
    let metadata_v1 = Bytes::from(metadata_v1);
    let taken = peak_of(|| {
        let outcome = AnyRequest::decode(ApiKey::Metadata, &mut Reader::new(&metadata_v1), 1);
        assert!(outcome.is_err());
    });
    assert_eq!(taken, 0);
}

/// The worst that a legal frame can do: topics of three bytes, as many as fit.
#[test]
fn the_smallest_legal_elements_stay_within_the_bound() {
    const TOPICS: usize = 16_000;
    let mut frame = vec![0; 4 + 4 + 4 + 4 + 1 + 4 + 4];
    // The count of topics, one more than there are, as a varint of three bytes.
    let count = TOPICS as u32 + 1;
    frame.extend([(count & 0x7f) as u8 | 0x80, (count >> 7 & 0x7f) as u8 | 0x80, (count >> 14) as u8]);
    // An empty name, no partitions, no tags; then nothing forgotten, no rack, no tags.
    frame.extend([1, 1, 0].repeat(TOPICS));
    frame.extend([1, 1, 0]);
    let frame = Bytes::from(frame);
    let decoded = AnyRequest::decode(ApiKey::Fetch, &mut Reader::new(&frame), 12);
    let Ok(AnyRequest::Fetch(request)) = decoded else { panic!("{decoded:?}") };
    assert_eq!(request.topics.len(), TOPICS);
    check_memory(ApiKey::Fetch, 12, &frame);
}
