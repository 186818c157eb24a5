//! The files of a partition and of a data folder. The log keeps their writers to itself, so they are written here again.

use ::log::format::identity::FolderIdentity;
use ::log::journal::format::{self, Action, Owner};
use ::log::journal::replay;
use ::log::journal::testing::RingMaker;
use ::log::{DirectoryId, Identity};
use model::{NodeId, Offset, PartitionIndex, PartitionKey, TopicId};

use super::model::segment;
use crate::fuzz::seal;

/// Entries of the largest index: a search tree's worth, small enough for many runs.
const ENTRIES: i32 = 200;

pub fn offset_indexes() -> Vec<Vec<u8>> {
    let index = |count: i32| -> Vec<u8> {
        (1..=count).flat_map(|i| [(i * 7 - 1).to_be_bytes(), ((i - 1) * 4100).to_be_bytes()].concat()).collect()
    };
    vec![Vec::new(), index(1), index(5), index(ENTRIES), entry_pair(i32::MAX - 1, i32::MAX)]
}

fn entry_pair(first: i32, second: i32) -> Vec<u8> {
    [first, first, second, second].map(i32::to_be_bytes).concat()
}

pub fn time_indexes() -> Vec<Vec<u8>> {
    let entry = |timestamp_ms: i64, relative: i32| -> Vec<u8> {
        [&timestamp_ms.to_be_bytes()[..], &relative.to_be_bytes()].concat()
    };
    let index = |count: i32| -> Vec<u8> {
        (0..count).flat_map(|i| entry(1_700_000_000_000 + i64::from(i) * 1000, i * 9)).collect()
    };
    let extremes = [entry(0, 0), entry(1, 1), entry(i64::MAX, i32::MAX)].concat();
    vec![Vec::new(), index(1), index(5), index(ENTRIES), extremes]
}

/// Fields of a checkpoint's entry in their order, little-endian.
fn checkpoint_entry(number: u8, epochs: Option<u16>) -> Vec<u8> {
    let (topic, base) = (format!("topic-{number}"), i64::from(number) * 1000);
    let mut out = vec![0x40 | number; 16];
    out.extend(i32::from(number).to_le_bytes());
    out.extend((topic.len() as u16).to_le_bytes());
    out.extend(topic.as_bytes());
    // Log start, segment base; the fill: size, next offset, four about timestamps and index, its last time entry.
    for long in [base / 2, base, 65_536, base + 500, 1_700_000_000_000, base + 499, 1_699_999_999_000, 100, -1] {
        out.extend(long.to_le_bytes());
    }
    for int in [15u32, 9, u32::from(number)] {
        out.extend(int.to_le_bytes());
    }
    let snapshot_at = if number.is_multiple_of(2) { base } else { -1 };
    for long in [1 << 30, 1_600_000_000_000, 1_700_000_000_000, snapshot_at] {
        out.extend(i64::to_le_bytes(long));
    }
    out.extend(epochs.unwrap_or(u16::MAX).to_le_bytes());
    for epoch in 0..epochs.unwrap_or(0) {
        out.extend(i32::from(epoch).to_le_bytes());
        out.extend((i64::from(epoch) * 10).to_le_bytes());
    }
    out
}

/// Whole files, and bodies alone: the target tries those with a right checksum.
pub fn checkpoints() -> Vec<Vec<u8>> {
    let body = |entries: &[Vec<u8>]| {
        let mut out = b"RLCHKPT\n".to_vec();
        out.extend(1u16.to_le_bytes());
        out.extend(0x1234_5678_9abc_def0_u64.to_le_bytes());
        out.extend((entries.len() as u32).to_le_bytes());
        out.extend(entries.concat());
        out
    };
    let many: Vec<Vec<u8>> = (0..12).map(|n| checkpoint_entry(n, Some(u16::from(n) * 5))).collect();
    let bodies = [body(&[]), body(&[checkpoint_entry(1, None)]), body(&[checkpoint_entry(2, Some(64))]), body(&many)];
    let files = bodies.iter().map(|body| seal::checkpoint(&[&body[..], &[0; 4]].concat()));
    files.chain(bodies.iter().cloned()).collect()
}

pub fn leader_epoch_checkpoints() -> Vec<Vec<u8>> {
    let file = |count: i64| {
        let lines: String = (0..count).map(|i| format!("{} {}\n", i * 2, i * 1000)).collect();
        format!("0\n{count}\n{lines}").into_bytes()
    };
    let extremes = format!("0\n2\n0 0\n{} {}\n", i32::MAX, i64::MAX).into_bytes();
    vec![file(0), file(1), file(4), file(60), extremes]
}

pub fn partition_metadata() -> Vec<Vec<u8>> {
    let file = |id: TopicId| format!("version: 0\ntopic_id: {id}\n").into_bytes();
    [[0x5a; 16], [0xff; 16], [7; 16]].map(|bytes| file(TopicId::from_random(bytes))).into()
}

/// Of version 1 and of version 2, which knows which of its node's folders it is.
pub fn identities() -> Vec<Vec<u8>> {
    let identity = |cluster_id: &str, node, directory_id| {
        let owner = Identity { cluster_id: cluster_id.to_owned(), node_id: NodeId(node) };
        FolderIdentity { owner, directory_id }.encode().into_bytes()
    };
    vec![
        identity("AAAAAAAAQACAAAAAAAAAAQ", 0, None),
        identity("", i32::MAX, Some(DirectoryId::from_random([7; 16]))),
        identity("ringlog", -1, Some(DirectoryId::of_bytes([0; 16]))),
    ]
}

/// Segments of a few lengths, with what follows the last batch after a crash: nothing, zeros, half a batch.
pub fn segments() -> Vec<Vec<u8>> {
    let whole = segment(25);
    let cut = whole[..whole.len() - 30].to_vec();
    let preallocated = [segment(4), vec![0; 4096]].concat();
    vec![segment(1), segment(3), segment(8), whole, cut, preallocated]
}

/// Rounds of one file of a ring, its state, and a list of what was lost.
pub fn journals() -> Vec<Vec<u8>> {
    let owner = Owner { incarnation: 0, writer: 0 };
    let key = |n: u8| PartitionKey { topic_id: TopicId::from_random([n; 16]), partition: PartitionIndex(i32::from(n)) };
    let mut ring = RingMaker::new(1, 32 << 10);
    for sequence in 1..6_u64 {
        let bytes = vec![sequence as u8; 700 * sequence as usize];
        let action = Action::Write { segment_base: Offset(0), position: sequence * 100, len: bytes.len() as u32 };
        let entries = vec![(key(1), Action::Void { below: Offset(0) }, &[][..]), (key(2), action, &bytes[..])];
        ring.round(owner, sequence - 1, entries);
    }
    let file = ring.files[0][..ring.at.1].to_vec();
    let lost = replay::encode_lost(&[(key(3), 9)].into());
    vec![file[..4096].to_vec(), file, format::encode_state(owner, 3), lost]
}
