#![allow(clippy::unwrap_used)]
use super::*;
use proptest::prelude::*;

fn entry(n: i64) -> CheckpointEntry {
    CheckpointEntry {
        key: PartitionKey { topic_id: TopicId::from_random([n as u8; 16]), partition: PartitionIndex(n as i32) },
        topic: format!("topic-{n}"),
        log_start_offset: Offset(n),
        segment_base: Offset(n * 10),
        fill: Fill {
            size: 4711,
            next_offset: Offset(n * 10 + 5),
            max_timestamp_ms: 99,
            max_timestamp_offset: Offset(n * 10 + 3),
            first_timestamp_ms: 7,
            unindexed_bytes: 11,
            last_time_entry_ms: 98,
        },
        index_entries: 3,
        time_entries: 2,
        closed_count: 1,
        closed_bytes: 1 << 40,
        created_ms: 1,
        last_append_ms: 2,
        snapshot_at: (n % 2 == 0).then_some(Offset(n)),
        epochs: (n % 3 != 0).then(|| vec![EpochEntry { epoch: LeaderEpoch(4), start_offset: Offset(0) }]),
    }
}

#[test]
fn goes_both_ways_and_notices_every_damaged_byte() {
    let entries: Vec<_> = (0..5).map(entry).collect();
    let bytes = encode(77, entries.iter());
    assert_eq!(decode(&bytes), Some(Checkpoint { incarnation: 77, entries }));
    for i in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[i] ^= 0x10;
        assert_eq!(decode(&damaged), None, "byte {i}");
        assert_eq!(decode(&bytes[..i]), None, "cut at {i}");
    }
}

proptest! {
    /// Bytes with a right checksum but wrong content must not be trusted for lengths or counts.
    #[test]
    fn any_body_is_survived(mut body in prop::collection::vec(any::<u8>(), 0..400), count in any::<u32>()) {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&1u64.to_le_bytes());
        bytes.extend_from_slice(&(count % 4).to_le_bytes());
        bytes.append(&mut body);
        let crc = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        let _ = decode(&bytes);
    }
}

#[test]
fn a_newer_version_is_told_from_damage() {
    let mut bytes = encode(1, [entry(1)].iter());
    assert_eq!(newer_version(&bytes), None);
    bytes[8] = 2;
    assert_eq!(newer_version(&bytes), None, "a flipped bit is no version");
    let end = bytes.len() - CRC_LEN;
    let crc = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&crc.to_le_bytes());
    assert_eq!((newer_version(&bytes), decode(&bytes)), (Some(2), None));
}
