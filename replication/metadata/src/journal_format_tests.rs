#![allow(clippy::unwrap_used)]
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::fuzz_targets::fuzz_log;

fn identity() -> Identity {
    Identity { cluster_id: "AAAAAAAAQACAAAAAAAAAAQ".into(), node: NodeId(0) }
}

fn hard_state(term: u64, commit: u64) -> HardState {
    HardState { term, vote: 1, commit, ..HardState::default() }
}

fn entry(index: u64, term: u64) -> Entry {
    raft_entry(index, term, Bytes::from(vec![index as u8; 5 + index as usize]))
}

/// Five frames, the last but one of which replaces an entry; and where each ends.
fn journal() -> (Vec<u8>, Vec<usize>) {
    let (mut writer, mut bytes) = JournalWriter::create(&identity(), LogPosition::default(), 42);
    let mut ends = vec![bytes.len()];
    for (state, entries) in [
        (hard_state(1, 0), vec![entry(1, 1)]),
        (hard_state(1, 1), vec![entry(2, 1), entry(3, 1)]),
        (hard_state(2, 2), vec![]),
        (hard_state(2, 2), vec![entry(3, 2)]),
        (hard_state(3, 3), vec![entry(4, 3)]),
    ] {
        bytes.extend(writer.frame(&state, &entries));
        assert_eq!(writer.len, bytes.len() as u64);
        ends.push(bytes.len());
    }
    (bytes, ends)
}

#[test]
fn a_journal_comes_back_as_it_was_written() {
    let (bytes, _) = journal();
    let read = read_journal(&bytes).unwrap();
    assert_eq!(read.identity, identity());
    assert_eq!(read.hard_state, hard_state(3, 3));
    assert_eq!(read.entries, vec![entry(1, 1), entry(2, 1), entry(3, 2), entry(4, 3)]);
    assert_eq!((read.len, read.has_torn_tail, read.next_sequence), (bytes.len() as u64, false, 5));
}

#[test]
fn a_journal_cut_at_every_byte_ends_at_its_last_whole_frame() {
    let (bytes, ends) = journal();
    for cut in 0..=bytes.len() {
        let read = read_journal(&bytes[..cut]);
        let Some(frames) = ends.iter().rposition(|end| *end <= cut) else {
            // The header was durable before the file got its name.
            assert!(matches!(read, Err(MetadataError::DamagedJournal { offset: 0, .. })), "cut at {cut}");
            continue;
        };
        let read = read.unwrap();
        assert_eq!(read.next_sequence, frames as u64, "cut at {cut}");
        assert_eq!(read.len as usize, ends[frames]);
        assert_eq!(read.has_torn_tail, cut != ends[frames]);
    }
}

#[test]
fn zeros_behind_the_last_frame_are_no_data() {
    let (mut bytes, _) = journal();
    let len = bytes.len() as u64;
    bytes.resize(bytes.len() + 4096, 0);
    let read = read_journal(&bytes).unwrap();
    assert_eq!((read.len, read.has_torn_tail), (len, true));
}

#[test]
fn damage_before_a_valid_frame_is_an_error_and_in_the_last_frame_an_end() {
    let (bytes, ends) = journal();
    let last = ends[ends.len() - 2];
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        match read_journal(&damaged) {
            Ok(read) => {
                assert!(at >= last, "flipped at {at}");
                assert_eq!((read.len as usize, read.has_torn_tail), (last, true));
            }
            Err(MetadataError::DamagedJournal { offset, .. }) => {
                assert!(at < last, "flipped at {at}");
                assert!(offset as usize <= at);
            }
            Err(other) => panic!("flipped at {at}: {other}"),
        }
    }
}

#[test]
fn a_missing_frame_in_the_middle_is_damage() {
    let (bytes, ends) = journal();
    let mut holed = bytes.clone();
    holed[ends[1]..ends[2]].fill(0);
    assert!(matches!(read_journal(&holed), Err(MetadataError::DamagedJournal { .. })));
}

#[test]
fn frames_of_another_file_or_place_do_not_pass() {
    let (mut bytes, ends) = journal();
    let (mut other, _) = JournalWriter::create(&identity(), LogPosition::default(), 43);
    other.len = bytes.len() as u64;
    let foreign = other.frame(&hard_state(9, 9), &[]);
    // What a client may have put into a command, or an old lap left behind: a torn tail, neither data nor damage.
    let copy = bytes[ends[3]..ends[4]].to_vec();
    let len = bytes.len() as u64;
    bytes.extend(foreign);
    bytes.extend(copy);
    let read = read_journal(&bytes).unwrap();
    assert_eq!((read.len, read.has_torn_tail), (len, true));
}

#[test]
fn newer_versions_are_named_and_never_taken_for_a_torn_tail() {
    let (mut bytes, _) = journal();
    let mut frame = marker(42, bytes.len() as u64).to_vec();
    envelope::seal_into(&mut frame, Kind::JournalFrame, JOURNAL_VERSION + 1, 42, b"x");
    bytes.extend(frame);
    assert!(matches!(read_journal(&bytes), Err(MetadataError::NewerVersion { version: 2, newest: 1, .. })));
    let mut header = MAGIC.to_vec();
    envelope::seal_into(&mut header, Kind::JournalHeader, JOURNAL_VERSION + 1, 0, b"x");
    assert!(matches!(read_journal(&header), Err(MetadataError::NewerVersion { .. })));
}

#[test]
fn impossible_entries_and_states_are_damage() {
    let wrong = [
        (hard_state(1, 0), vec![entry(2, 1)]),
        (hard_state(1, 0), vec![entry(1, 1), entry(3, 1)]),
        (hard_state(2, 0), vec![entry(1, 2), entry(2, 1)]),
        (hard_state(1, 2), vec![entry(1, 1)]),
        (hard_state(1, 0), vec![entry(1, 2)]),
    ];
    for (state, entries) in wrong {
        let (mut writer, mut bytes) = JournalWriter::create(&identity(), LogPosition::default(), 1);
        bytes.extend(writer.frame(&state, &entries));
        assert!(read_journal(&bytes).is_err(), "{state:?} {entries:?}");
    }
}

#[test]
fn a_journal_needs_the_snapshot_it_names() {
    let base = LogPosition { index: 7, term: 2 };
    let (writer, bytes) = JournalWriter::create(&identity(), base, 1);
    let plan = disk_steps::RecoveryPlan { journal: Some(writer.file), ..Default::default() };
    let snapshot = |index, term| stored_image::encode_snapshot(index, term, &Image::default()).unwrap();
    assert!(recover(&plan, Some(&bytes), Some(&snapshot(7, 2))).is_ok());
    assert!(matches!(recover(&plan, Some(&bytes), None), Err(MetadataError::MissingFile { .. })));
    assert!(recover(&plan, Some(&bytes), Some(&snapshot(7, 1))).is_err());
    assert!(recover(&plan, Some(&bytes), Some(&snapshot(8, 2))).is_err());
    let renamed = disk_steps::RecoveryPlan { journal: Some(disk_steps::journal_name(8)), ..Default::default() };
    assert!(recover(&renamed, Some(&bytes), Some(&snapshot(7, 2))).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..300), behind_a_header in any::<bool>()) {
        let (mut log, _) = journal();
        if behind_a_header {
            log.truncate(HEADER_LEN);
            log.extend(&bytes);
            fuzz_log(&log);
        }
        fuzz_log(&bytes);
    }

    /// A right cover around anything.
    #[test]
    fn any_frame_is_read_or_refused(payload in vec(any::<u8>(), 0..200)) {
        let (mut log, _) = journal();
        let mut frame = marker(42, log.len() as u64).to_vec();
        envelope::seal_into(&mut frame, Kind::JournalFrame, JOURNAL_VERSION, 42, &payload);
        log.extend(frame);
        fuzz_log(&log);
    }
}
