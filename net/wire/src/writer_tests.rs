#![allow(clippy::unwrap_used)]
use super::*;
use crate::chunks_len;

fn memory(chunks: &[Chunk]) -> Vec<u8> {
    Records::Chunks(chunks.to_vec()).to_bytes().unwrap().to_vec()
}

#[test]
fn record_bytes_are_pushed_and_the_prefix_counts_them() {
    let (first, second) = (Bytes::from_static(b"one"), Bytes::from_static(b"two"));
    let mut writer = Writer::new_frame();
    writer.i16(7);
    writer.records(&Records::Bytes(vec![first.clone(), second]), false).unwrap();
    writer.i8(9);
    let chunks = writer.finish_frame().unwrap();
    assert_eq!(memory(&chunks), b"\0\0\0\x0d\0\x07\0\0\0\x06onetwo\x09");
    let Chunk::Bytes(pushed) = &chunks[1] else { panic!("the records are in memory") };
    assert_eq!(pushed.as_ptr(), first.as_ptr());
    assert_eq!(chunks.len(), 4);
}

#[test]
fn external_records_are_named_and_counted_but_not_held() {
    let mut writer = Writer::new_frame();
    writer.records(&Records::External { len: 1000, token: 5 }, true).unwrap();
    writer.uvarint(0);
    let chunks = writer.finish_frame().unwrap();
    assert_eq!(chunks_len(&chunks), 4 + 2 + 1000 + 1);
    assert_eq!(chunks[1], Chunk::External { len: 1000, token: 5 });
    let Chunk::Bytes(head) = &chunks[0] else { panic!("the head is in memory") };
    assert_eq!(head[..4], 1003u32.to_be_bytes());
}

#[test]
fn mixed_records_keep_their_order() {
    let parts = vec![Chunk::External { len: 10, token: 1 }, Chunk::Bytes(Bytes::from_static(b"new"))];
    let mut writer = Writer::new();
    writer.records(&Records::Chunks(parts.clone()), false).unwrap();
    let chunks = writer.finish();
    assert_eq!(chunks[1..], parts);
    assert_eq!(chunks_len(&chunks), 4 + 13);
}

#[test]
fn null_and_empty_records_differ() {
    let mut writer = Writer::new();
    writer.records(&Records::Null, false).unwrap();
    writer.records(&Records::Bytes(Vec::new()), false).unwrap();
    writer.records(&Records::Null, true).unwrap();
    writer.records(&Records::Bytes(Vec::new()), true).unwrap();
    assert_eq!(memory(&writer.finish()), b"\xff\xff\xff\xff\0\0\0\0\0\x01");
}

#[test]
fn large_byte_fields_are_shared_and_small_ones_copied() {
    let (small, large) = (Bytes::from(vec![1; 10]), Bytes::from(vec![2; COPY_BELOW]));
    let mut writer = Writer::new();
    writer.bytes(&small, false).unwrap();
    writer.bytes(&large, false).unwrap();
    let chunks = writer.finish();
    assert_eq!(chunks.len(), 2);
    assert_eq!(chunks[1], Chunk::Bytes(large));
}

#[test]
fn a_tagged_field_has_its_tag_and_size_before_it() {
    let large = Bytes::from(vec![7; COPY_BELOW]);
    let mut writer = Writer::new();
    writer.i8(1);
    writer.tagged(3, |writer| writer.bytes(&large, true)).unwrap();
    let written = memory(&writer.finish());
    // 512 bytes and their length of two bytes.
    assert_eq!(written[..6], [1, 3, 0x82, 0x04, 0x81, 0x04]);
    assert_eq!(written.len(), 6 + COPY_BELOW);
}

#[test]
fn strings_over_the_limit_are_refused() {
    let long = "x".repeat(MAX_STRING_LEN + 1);
    let error = WireError::StringTooLong { len: MAX_STRING_LEN + 1 };
    assert_eq!(Writer::new().string(&long, true), Err(error));
    assert_eq!(Writer::new().string(&long, false), Err(error));
    assert_eq!(Writer::new().string(&long[1..], false), Ok(()));
}

#[test]
fn the_buffer_is_given_back_with_its_spare_room() {
    let mut writer = Writer::with_buffer(BytesMut::with_capacity(4096));
    writer.i32(1);
    let (chunks, buffer) = writer.finish_with_buffer();
    assert_eq!(memory(&chunks), [0, 0, 0, 1]);
    assert!(buffer.is_empty() && buffer.capacity() >= 4000, "{} left", buffer.capacity());
}
