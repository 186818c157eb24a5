#![allow(clippy::unwrap_used)]
use super::*;
use proptest::prelude::*;

fn read(bytes: &[u8]) -> Result<ProducerTable, SnapshotError> {
    decode(bytes)
}

fn table(batches: &[(i64, i32, u16, i64)]) -> ProducerTable {
    let table = ProducerTable::default();
    for &(id, last_sequence, delta, first_offset) in batches {
        let memory = BatchMemory {
            first_sequence: (i64::from(last_sequence) - i64::from(delta)).rem_euclid(1 << 31) as i32,
            last_sequence,
            first_offset: Offset(first_offset),
            last_offset: Offset(first_offset + i64::from(delta)),
            timestamp_ms: first_offset * 3,
        };
        table.restore(ProducerId(id), ProducerEpoch(2), memory, 0);
    }
    table
}

proptest! {
    #[test]
    fn what_is_written_is_read(batches in prop::collection::vec((0i64..9, 0i32.., any::<u16>(), 0i64..1 << 50), 0..40)) {
        let table = table(&batches);
        prop_assert_eq!(read(&encode(&table)).unwrap(), table);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }
}

#[test]
fn every_flipped_bit_and_cut_is_found() {
    let good = encode(&table(&[(1, 5, 2, 10), (7, 0, 0, 99)]));
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 4;
        assert!(read(&bad).is_err(), "byte {at}");
        assert!(read(&good[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn the_empty_table_is_ten_bytes() {
    let bytes = encode(&ProducerTable::default());
    assert_eq!(bytes.len(), 10);
    assert!(read(&bytes).unwrap().is_empty());
}

#[test]
fn a_newer_version_is_told_from_damage() {
    let mut newer = encode(&table(&[(1, 5, 2, 10)]));
    newer[1] = 2;
    let refused = read(&newer).unwrap_err();
    assert_eq!(refused, SnapshotError::Newer(2));
    assert_eq!(refused.to_string(), "the producer snapshot has version 2; this Ringlog knows versions up to 1");
    newer[12] ^= 1;
    assert_eq!(read(&newer).unwrap_err(), SnapshotError::Version(2));
}
