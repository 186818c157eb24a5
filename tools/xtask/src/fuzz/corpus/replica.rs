//! Producer snapshots, written by the replica itself.

use model::{Offset, ProducerEpoch, ProducerId};
use replica::producers::{BatchMemory, ProducerTable};
use replica::snapshot;

pub use super::model::batches;

pub fn snapshots() -> Vec<Vec<u8>> {
    [(0, 0), (1, 1), (3, 5), (20, 2)].map(|(producers, batches)| snapshot::encode(&table(producers, batches))).into()
}

/// Producers whose sequence numbers wrap somewhere in between.
fn table(producers: i64, batches: i64) -> ProducerTable {
    let table = ProducerTable::default();
    for producer in 0..producers {
        for batch in 0..batches {
            let first_sequence = (i64::from(i32::MAX) - 10 + batch * 5).rem_euclid(1 << 31);
            let first_offset = producer * 1000 + batch * 5;
            let memory = BatchMemory {
                first_sequence: first_sequence as i32,
                last_sequence: (first_sequence + 4).rem_euclid(1 << 31) as i32,
                first_offset: Offset(first_offset),
                last_offset: Offset(first_offset + 4),
                timestamp_ms: 1_700_000_000_000 + batch,
            };
            table.restore(ProducerId(producer), ProducerEpoch(producer as i16), memory, 0);
        }
    }
    table
}
