#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

const CODECS: [Codec; 5] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];
const PACKED: [Codec; 4] = [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

fn packed(codec: Codec, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    deflate(codec, payload, &mut out).unwrap();
    out
}

fn inflated(codec: Codec, payload: &[u8], max_bytes: usize) -> Result<Vec<u8>, CompressionError> {
    let mut out = b"left over".to_vec();
    inflate(codec, payload, max_bytes, &mut out).map(|()| out)
}

#[test]
fn empty_and_large_sections_come_back() {
    let large: Vec<u8> = (0..300_000u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
    for codec in CODECS {
        for payload in [&[] as &[u8], b"x", &large] {
            assert_eq!(inflated(codec, &packed(codec, payload), payload.len()).unwrap(), payload, "{codec:?}");
        }
    }
}

#[test]
fn a_bomb_stops_at_the_cap_and_takes_no_more_memory() {
    let zeros = vec![0u8; 8 << 20];
    for codec in PACKED {
        let bomb = packed(codec, &zeros);
        let mut out = Vec::new();
        for max_bytes in [0, 1, 1000, zeros.len() - 1] {
            let error = inflate(codec, &bomb, max_bytes, &mut out).unwrap_err();
            assert_eq!(error, CompressionError::TooLarge { max_bytes }, "{codec:?}");
            assert!(out.capacity() <= 2 * max_bytes + 64 * 1024, "{codec:?}: {} at {max_bytes}", out.capacity());
        }
        assert_eq!(inflated(codec, &bomb, zeros.len()).unwrap(), zeros, "{codec:?}");
    }
}

#[test]
fn a_claimed_length_takes_no_memory() {
    // Raw snappy: a varint that claims almost 4 GiB, then nothing.
    let mut out = Vec::new();
    let claim = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x00];
    assert!(inflate(Codec::Snappy, &claim, usize::MAX, &mut out).is_err());
    assert_eq!(out.capacity(), 0);
}

#[test]
fn cut_anywhere_is_an_error_not_a_shorter_section() {
    let payload: Vec<u8> = (0..5000u32).flat_map(|i| (i * i).to_le_bytes()).collect();
    for codec in PACKED {
        let whole = packed(codec, &payload);
        for cut in 0..whole.len() {
            // xerial's stream has no end mark: a cut between two blocks shows in the record walk only.
            if let Ok(short) = inflated(codec, &whole[..cut], usize::MAX) {
                assert_eq!(codec, Codec::Snappy, "cut at {cut}");
                assert!(short.len() < payload.len() && payload.starts_with(&short));
            }
        }
    }
}

#[test]
fn both_framings_of_snappy_are_read() {
    let payload = b"the same bytes, the same bytes, the same bytes".repeat(2000);
    let raw = snap::raw::Encoder::new().compress_vec(&payload).unwrap();
    assert_eq!(inflated(Codec::Snappy, &raw, 1 << 20).unwrap(), payload);
    let xerial = packed(Codec::Snappy, &payload);
    assert_eq!(xerial[..16], [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1]);
    assert_eq!(inflated(Codec::Snappy, &xerial, 1 << 20).unwrap(), payload);
    // Two streams behind each other are one section.
    let twice = [xerial.as_slice(), &xerial].concat();
    assert_eq!(inflated(Codec::Snappy, &twice, 1 << 20).unwrap(), payload.repeat(2));
}

#[test]
fn lz4_blocks_may_be_linked_or_independent_and_frames_repeated() {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let payload: Vec<u8> = (0..200_000u32).flat_map(|i| (i % 1000).to_le_bytes()).collect();
    for mode in [BlockMode::Linked, BlockMode::Independent] {
        let info = FrameInfo::new().block_mode(mode).block_size(BlockSize::Max64KB).content_checksum(true);
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(&payload).unwrap();
        let frame = encoder.finish().unwrap();
        assert_eq!(inflated(Codec::Lz4, &frame, payload.len()).unwrap(), payload);
        let twice = [frame.as_slice(), &frame].concat();
        assert_eq!(inflated(Codec::Lz4, &twice, 2 * payload.len()).unwrap(), payload.repeat(2));
        assert!(inflated(Codec::Lz4, &twice, 2 * payload.len() - 1).is_err());
    }
    // Ours are independent (bit 5 of FLG), because Java's reader refuses linked ones.
    assert_eq!(packed(Codec::Lz4, &payload)[4] & 0x20, 0x20);
}

#[test]
fn a_zstd_frame_with_a_huge_window_is_refused() {
    // Magic, frame header without single-segment, window descriptor for 2^31 bytes and more.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xff, 0x01, 0x00, 0x00];
    assert_eq!(inflated(Codec::Zstd, &frame, 1 << 20), Err(CompressionError::Corrupt { codec: Codec::Zstd }));
}

#[test]
fn errors_are_sentences() {
    assert_eq!(
        CompressionError::TooLarge { max_bytes: 5 }.to_string(),
        "the compressed batch inflates to more than 5 bytes"
    );
    assert_eq!(CompressionError::Corrupt { codec: Codec::Zstd }.to_string(), "the batch's Zstd data is damaged");
}

proptest! {
    #[test]
    fn sections_round_trip(payload in proptest::collection::vec(any::<u8>(), 0..5000), repeat in 1usize..20) {
        let payload = payload.repeat(repeat);
        for codec in CODECS {
            prop_assert_eq!(&inflated(codec, &packed(codec, &payload), payload.len()).unwrap(), &payload);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(data in proptest::collection::vec(any::<u8>(), 0..400)) {
        for codec in PACKED {
            if let Ok(out) = inflated(codec, &data, 1 << 16) {
                prop_assert!(out.len() <= 1 << 16);
            }
        }
        crate::fuzz_targets::fuzz_batch(&data);
        crate::fuzz_targets::fuzz_inflate(&data);
    }

    /// Bytes that begin well reach deeper than random ones do.
    #[test]
    fn damaged_sections_never_panic(
        payload in proptest::collection::vec(0u8..4, 0..3000),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
    ) {
        for codec in PACKED {
            let mut bytes = packed(codec, &payload);
            for (at, byte) in &damage {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            if let Ok(out) = inflated(codec, &bytes, 1 << 16) {
                prop_assert!(out.len() <= 1 << 16);
            }
        }
    }

    #[test]
    fn damaged_batches_never_panic(
        codec in 0i16..5,
        values in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..20),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut builder = crate::builder::BatchBuilder::new().attributes(codec);
        for value in &values {
            builder.push(7, None, Some(value), &[]);
        }
        let payload = packed(Codec::from_attributes(codec).unwrap(), builder.payload());
        let mut batch = builder.finish_with_payload(&payload);
        for (at, byte) in &damage {
            let at = at.index(batch.len());
            batch[at] = *byte;
        }
        crate::fuzz_targets::fuzz_batch(&batch);
    }
}
