#![allow(clippy::unwrap_used)]

use model::{PartitionIndex, TopicId};

use super::super::testing::RingMaker;
use super::*;

const OWNER: Owner = Owner { incarnation: 42, writer: 0 };
const FILE: usize = 64 << 10;

fn key(n: u8) -> PartitionKey {
    PartitionKey { topic_id: TopicId::from_random([n; 16]), partition: PartitionIndex(0) }
}

/// Rounds one behind the other, as the journal makes them.
struct Writer(RingMaker);

impl std::ops::Deref for Writer {
    type Target = RingMaker;

    fn deref(&self) -> &RingMaker {
        &self.0
    }
}

impl std::ops::DerefMut for Writer {
    fn deref_mut(&mut self) -> &mut RingMaker {
        &mut self.0
    }
}

impl Writer {
    fn new(files: usize) -> Writer {
        Writer(RingMaker::new(files, FILE))
    }

    /// A round that writes one byte string for each partition, or voids it.
    fn round(&mut self, durable_through: u64, entries: &[(u8, u64, Option<&[u8]>)]) {
        let action = |position, bytes: Option<&[u8]>| match bytes {
            Some(bytes) => Action::Write { segment_base: Offset(0), position, len: bytes.len() as u32 },
            None => Action::Void { below: Offset(i64::MAX) },
        };
        let entries =
            entries.iter().map(|&(n, position, bytes)| (key(n), action(position, bytes), bytes.unwrap_or_default()));
        self.0.round(OWNER, durable_through, entries.collect());
    }

    fn next_file(&mut self, file: usize) {
        self.at = (file, 0);
    }

    fn text(&self, n: u8) -> Vec<(u64, String)> {
        let plan = plan(OWNER, &self.files).unwrap();
        let pieces = plan.pieces.get(&key(n)).cloned().unwrap_or_default();
        let text = |p: &Piece| String::from_utf8_lossy(&self.files[p.file][p.bytes.clone()]).into_owned();
        pieces.iter().map(|p| (p.position, text(p))).collect()
    }
}

fn three() -> Writer {
    let mut writer = Writer::new(2);
    writer.round(0, &[(1, 0, Some(b"one")), (2, 0, Some(b"two"))]);
    writer.round(0, &[(1, 3, Some(b"more"))]);
    writer.round(2, &[(2, 3, Some(b"last"))]);
    writer
}

#[test]
fn rounds_are_applied_in_order() {
    let writer = three();
    assert_eq!(writer.text(1), [(0, "one".to_string()), (3, "more".to_string())]);
    assert_eq!(writer.text(2), [(0, "two".to_string()), (3, "last".to_string())]);
    let plan = plan(OWNER, &writer.files).unwrap();
    assert_eq!((plan.rounds, plan.bytes, plan.last_sequence), (3, 14, 3));
}

#[test]
fn empty_files_hold_nothing() {
    assert_eq!(plan(OWNER, &[]), Ok(Plan::default()));
    assert_eq!(plan(OWNER, &[vec![0; FILE]]), Ok(Plan::default()));
}

#[test]
fn a_torn_last_round_is_the_end() {
    let mut writer = three();
    writer.flip(2, 113);
    assert_eq!(writer.text(2), [(0, "two".to_string())]);
    assert!(plan(OWNER, &writer.files).unwrap().damaged.is_empty());
}

#[test]
fn a_damaged_durable_round_costs_those_it_names() {
    let mut writer = three();
    writer.flip(1, 64 + 48);
    let plan = plan(OWNER, &writer.files).unwrap();
    assert_eq!(plan.damaged, BTreeMap::from([(key(1), 2)]));
    assert_eq!(writer.text(2), [(0, "two".to_string()), (3, "last".to_string())]);
}

#[test]
fn a_durable_round_without_a_list_is_nobodys() {
    let mut writer = three();
    writer.flip(1, 70);
    assert_eq!(plan(OWNER, &writer.files), Err(Lost { sequence: 2 }));
}

#[test]
fn what_was_voided_is_not_applied() {
    let mut writer = three();
    writer.round(3, &[(1, 0, None)]);
    writer.round(4, &[(1, 0, Some(b"new"))]);
    assert_eq!(writer.text(1), [(0, "new".to_string())]);
    assert_eq!(writer.text(2).len(), 2);
}

#[test]
fn laps_follow_each_other_and_old_ones_do_not_count() {
    let mut writer = Writer::new(2);
    for n in 0..4 {
        writer.round(n, &[(1, n, Some(b"a"))]);
    }
    writer.next_file(1);
    writer.round(4, &[(1, 4, Some(b"b"))]);
    // The first file is free and written again: what is left of its first lap is behind the new round.
    writer.next_file(0);
    writer.oldest_needed = 5;
    writer.round(5, &[(1, 5, Some(b"c"))]);
    assert_eq!(writer.text(1), [(4, "b".to_string()), (5, "c".to_string())]);
}

#[test]
fn a_round_that_names_another_one_before_is_the_end() {
    let mut writer = three();
    writer.previous_crc ^= 1;
    writer.round(3, &[(1, 7, Some(b"forged"))]);
    assert_eq!(writer.text(1).len(), 2);
}

#[test]
fn a_mark_says_that_nothing_before_it_is_needed_however_that_looks() {
    let mut ring = Writer::new(1);
    ring.round(0, &[(1, 0, Some(b"is in its segment"))]);
    ring.round(1, &[(1, 17, Some(b"this too"))]);
    ring.oldest_needed = 3;
    ring.round(2, &[]);
    // The first round of the next lap, of which only the end got to the drive.
    ring.files[0][..BLOCK as usize].fill(7);
    let plan = plan(OWNER, &ring.files).unwrap();
    assert_eq!((plan.rounds, plan.bytes, plan.last_sequence), (1, 0, 3));
    assert!(plan.pieces.is_empty() && plan.damaged.is_empty());
    // Without the mark it looks like damage.
    ring.files[0][2 * BLOCK as usize..].fill(0);
    assert_eq!(super::plan(OWNER, &ring.files), Err(Lost { sequence: 1 }));
}
