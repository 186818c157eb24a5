#![allow(clippy::unwrap_used)]

use super::*;

const OWNER: Owner = Owner { incarnation: 0x1234_5678_9abc_def0, writer: 3 };

fn key(n: u8) -> PartitionKey {
    PartitionKey { topic_id: TopicId::from_random([n; 16]), partition: PartitionIndex(i32::from(n)) }
}

fn write(n: u8, position: u64, len: u32) -> Entry {
    Entry { key: key(n), action: Action::Write { segment_base: Offset(100), position, len } }
}

fn round(sequence: u64, entries: Vec<Entry>) -> Round {
    Round { sequence, previous_crc: 77, durable_through: sequence.saturating_sub(2), oldest_needed: 1, entries }
}

fn bytes_of(round: &Round, payload: &[u8]) -> Vec<u8> {
    let (mut bytes, _) = encode(OWNER, round, std::iter::once(payload));
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len().next_multiple_of(BLOCK as usize), 0);
    bytes
}

#[test]
fn a_round_comes_back_as_it_was_written() {
    let round = round(
        9,
        vec![Entry { key: key(1), action: Action::Void { below: Offset(7) } }, write(2, 4096, 3), write(3, 0, 2)],
    );
    let bytes = bytes_of(&round, b"abcde");
    let found = decode(OWNER, &bytes).unwrap();
    assert_eq!(found.round, round);
    assert!(found.payload_ok);
    assert_eq!(&bytes[found.payload.clone()], b"abcde");
    assert_eq!((found.len, round_len(3, 5)), (4096, 4096));
}

#[test]
fn every_flipped_bit_is_noticed() {
    let bytes = bytes_of(&round(9, vec![write(2, 4096, 300)]), &[7; 300]);
    let list = header_len(1);
    for at in 0..list + 300 {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            match decode(OWNER, &damaged) {
                None => assert!(at < list, "byte {at} is of the payload"),
                Some(found) => {
                    assert!(!found.payload_ok && (at >= list || (44..48).contains(&at)), "byte {at} bit {bit}")
                }
            }
        }
    }
}

#[test]
fn another_start_or_writer_does_not_count() {
    let bytes = bytes_of(&round(9, vec![write(2, 0, 1)]), b"x");
    assert_eq!(decode(Owner { incarnation: 1, ..OWNER }, &bytes), None);
    assert_eq!(decode(Owner { writer: 4, ..OWNER }, &bytes), None);
}

#[test]
fn a_cut_round_has_no_payload_and_a_cut_list_is_none() {
    let bytes = bytes_of(&round(9, vec![write(2, 0, 5000)]), &[1; 5000]);
    for len in 0..bytes.len() {
        match decode(OWNER, &bytes[..len]) {
            None => assert!(len < header_len(1)),
            Some(found) => assert_eq!(found.payload_ok, len >= header_len(1) + 5000, "{len}"),
        }
    }
}

#[test]
fn counts_are_held_against_the_bytes() {
    let mut bytes = bytes_of(&round(9, vec![write(2, 0, 1)]), b"x");
    bytes[48..52].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(decode(OWNER, &bytes), None);
    assert_eq!(decode(OWNER, &[]), None);
}

#[test]
fn the_state_says_whose_rounds_count_and_notices_damage() {
    let bytes = encode_state(OWNER, 5);
    assert_eq!(bytes.len(), STATE_LEN);
    assert_eq!(decode_state(&bytes), Ok((OWNER, 5)));
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(decode_state(&damaged).is_err(), "byte {at}");
    }
    let mut newer = bytes.clone();
    newer[4] = 2;
    let crc = crc32fast::hash(&newer[..STATE_LEN - 4]);
    newer[STATE_LEN - 4..].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(decode_state(&newer), Err("it was written by a newer version"));
    assert_eq!((newer_version(&newer), newer_version(&bytes), newer_version(&newer[..9])), (Some(2), None, None));
}
