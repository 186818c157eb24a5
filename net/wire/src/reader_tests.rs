#![allow(clippy::unwrap_used)]
use super::*;

fn bytes(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

#[test]
fn uvarints_end_at_32_bits() {
    for (encoded, value) in [
        (&[0][..], Ok(0)),
        (&[0x7f], Ok(127)),
        (&[0x80, 0x01], Ok(128)),
        (&[0xff, 0xff, 0xff, 0xff, 0x0f], Ok(u32::MAX)),
        (&[0x80, 0x80, 0x80, 0x80, 0x00], Ok(0)),
        (&[0xff, 0xff, 0xff, 0xff, 0x1f], Err(WireError::InvalidVarint)),
        (&[0x80, 0x80, 0x80, 0x80, 0x80, 0x01], Err(WireError::InvalidVarint)),
        (&[0x80], Err(WireError::UnexpectedEnd { needed: 1, left: 0 })),
    ] {
        assert_eq!(Reader::new(&bytes(encoded)).uvarint(), value, "{encoded:x?}");
    }
}

#[test]
fn strings_are_borrowed_and_checked() {
    let frame = bytes(b"\0\x03abc");
    assert_eq!(Reader::new(&frame).string(false), Ok("abc"));
    assert_eq!(Reader::new(&bytes(b"\x04abc")).string(true), Ok("abc"));
    assert_eq!(Reader::new(&bytes(b"\xff\xff")).nullable_string(false), Ok(None));
    assert_eq!(Reader::new(&bytes(b"\0")).nullable_string(true), Ok(None));
    assert_eq!(Reader::new(&bytes(b"\0\x01\xff")).string(false), Err(WireError::InvalidUtf8));
    let null = bytes(b"\0");
    assert_eq!(Reader::new(&null).string(true), Err(WireError::NullNotAllowed { field: "a string" }));
    let long = bytes(&[0x81, 0x80, 0x02, b'a']);
    assert_eq!(Reader::new(&long).string(true), Err(WireError::StringTooLong { len: 32_768 }));
}

#[test]
fn any_negative_length_is_null_as_in_kafka() {
    assert_eq!(Reader::new(&bytes(&(-7i32).to_be_bytes())).nullable_bytes(false), Ok(None));
    assert_eq!(Reader::new(&bytes(&(-7i32).to_be_bytes())).nullable_count(false, 1), Ok(None));
}

#[test]
fn bytes_are_slices_of_the_frame() {
    let frame = bytes(b"\0\0\0\x02xy!");
    let value = Reader::new(&frame).bytes(false).unwrap();
    assert_eq!(value, "xy");
    assert_eq!(value.as_ptr(), frame[4..].as_ptr());
}

#[test]
fn a_count_is_judged_by_the_least_size_of_its_elements() {
    let frame = bytes(&[0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(Reader::new(&frame).count(false, 3), Ok(3));
    assert_eq!(Reader::new(&frame).count(false, 4), Err(WireError::CountTooLarge { count: 3, left: 11 }));
}

#[test]
fn unknown_tags_are_skipped_and_known_ones_cannot_read_beyond_their_size() {
    // Tags 5 (two bytes, of which one is read) and 9 (unknown), then a byte behind the section.
    let frame = bytes(&[2, 5, 2, 0xaa, 0xbb, 9, 1, 0xcc, 0xdd]);
    let mut reader = Reader::new(&frame);
    let mut read = None;
    reader
        .tagged_fields(|tag, reader| {
            if tag == 5 {
                read = Some(reader.i8()?);
            }
            Ok(())
        })
        .unwrap();
    assert_eq!((read, reader.remaining()), (Some(0xaa_u8 as i8), 1));

    let mut reader = Reader::new(&frame);
    let outcome = reader.tagged_fields(|_, reader| reader.i32().map(|_| ()));
    assert_eq!(outcome, Err(WireError::UnexpectedEnd { needed: 4, left: 2 }));
}
