#![allow(clippy::unwrap_used)]
use super::*;

fn sealed() -> Vec<u8> {
    seal(Kind::Command, 1, 9, b"payload")
}

#[test]
fn what_was_sealed_opens() {
    let mut bytes = sealed();
    bytes.extend_from_slice(b"rest");
    let opened = open(&bytes, Kind::Command, 1, 9, 100).unwrap();
    assert_eq!((opened.version, opened.payload, opened.rest), (1, &b"payload"[..], &b"rest"[..]));
    assert_eq!(open_whole(&bytes, Kind::Command, 1, 9, 100), Err(EnvelopeError::TrailingBytes));
}

#[test]
fn every_flipped_bit_and_every_cut_is_noticed() {
    let bytes = sealed();
    for at in 0..bytes.len() {
        assert!(open(&bytes[..at], Kind::Command, 1, 9, 100).is_err());
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            assert!(open(&damaged, Kind::Command, 1, 9, 100).is_err());
        }
    }
}

#[test]
fn a_newer_version_another_kind_and_another_salt_are_named() {
    let newer = seal(Kind::Command, 3, 9, b"payload");
    assert_eq!(open(&newer, Kind::Command, 2, 9, 100), Err(EnvelopeError::Newer { version: 3, newest: 2 }));
    assert_eq!(open(&sealed(), Kind::Snapshot, 1, 9, 100), Err(EnvelopeError::WrongKind));
    assert_eq!(open(&sealed(), Kind::Command, 1, 8, 100), Err(EnvelopeError::Checksum));
    assert_eq!(open(&sealed(), Kind::Command, 1, 9, 6), Err(EnvelopeError::TooLong));
}
