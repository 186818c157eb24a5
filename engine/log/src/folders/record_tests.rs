#![allow(clippy::unwrap_used)]

use super::*;

fn topic(byte: u8) -> TopicId {
    TopicId([byte; 16])
}

fn record() -> Record {
    let folder = |byte, path: &str| KnownFolder { id: DirectoryId::of_bytes([byte; 16]), path: path.into() };
    let mut record = Record { folders: vec![folder(1, "/a"), folder(2, "/b c")], ..Record::default() };
    record.put(topic(7), 0, &[0, 1, 0]);
    record.put(topic(8), 0, &[1]);
    record
}

#[test]
fn it_goes_both_ways_and_later_frames_win() {
    let mut bytes = record().encode();
    assert_eq!(Record::decode(&bytes), Ok((record(), bytes.len())));
    bytes.extend(homes_frame(topic(7), 2, &[1, NOWHERE]));
    let (read, len) = Record::decode(&bytes).unwrap();
    assert_eq!((read.homes[&topic(7)].as_slice(), len), ([0, 1, 1, NOWHERE].as_slice(), bytes.len()));
    assert_eq!((read.count_in(0), read.count_in(1)), (1, 3));
}

#[test]
fn a_cut_last_frame_is_dropped_and_nothing_else() {
    let whole = record().encode();
    let mut longer = whole.clone();
    longer.extend(homes_frame(topic(9), 0, &[0, 0]));
    for len in whole.len()..longer.len() {
        assert_eq!(Record::decode(&longer[..len]), Ok((record(), whole.len())), "{len} bytes");
        let mut zeroed = longer.clone();
        zeroed[len..].fill(0);
        assert_eq!(Record::decode(&zeroed).unwrap().0.folders.len(), 2, "zeros from {len}");
    }
    for len in 0..HEADER_LEN {
        assert!(Record::decode(&whole[..len]).is_err());
    }
}

#[test]
fn a_flipped_bit_before_the_last_frame_is_damage() {
    let bytes = record().encode();
    let last = homes_frame(topic(8), 0, &[1]).len();
    for at in 0..bytes.len() - last {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(Record::decode(&damaged).is_err(), "byte {at}");
    }
}

#[test]
fn unknown_versions_and_folders_are_refused() {
    let mut newer = record().encode();
    newer[8] = 2;
    assert_eq!(Record::decode(&newer), Err("it was written by a newer version"));
    let mut bytes = record().encode();
    bytes.extend(homes_frame(topic(9), 0, &[2]));
    assert_eq!(Record::decode(&bytes), Err("it names folders that it does not know"));
    let mut gap = record().encode();
    gap.extend(homes_frame(topic(9), 5, &[0]));
    assert_eq!(Record::decode(&gap), Err("a frame contradicts itself"));
}
