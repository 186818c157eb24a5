//! Planning a fetch from the batch cache: which slices of the log's memory an answer is made of.
//!
//! Budget: no record byte is copied or looked at, so that a plan costs the same for small records and large ones: batches are found by
//! their headers and an index, never by their records. `tests/copies.rs` counts the copies (none); this shows that the time follows
//! the number of batches, not their bytes.

use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use log::{LogShard, LogShardConfig, Patch, ReadLimits, Slice};
use model::builder::BatchBuilder;
use model::{LeaderEpoch, Offset};
use runtime::ChunkPool;
use runtime::testing::{TempDir, run};

#[path = "shared/partition.rs"]
mod partition;
use partition::partition;

/// All of them stay in the cache.
const BATCHES: u64 = 512;

/// Time of `count` plans, each of `at_once` batches whose records have `bytes` each.
fn plans(count: u64, bytes: usize, at_once: u64) -> Duration {
    let dir = TempDir::new("bench-plan");
    let path = dir.path().to_path_buf();
    run(move || {
        let path = path.clone();
        async move {
            let shard = LogShard::new(LogShardConfig::new(0, ChunkPool::new(128 << 20)));
            let log = partition(&shard, &path).await;
            let batch = BatchBuilder::new().record(0, None, Some(&vec![7; bytes])).finish();
            for _ in 0..BATCHES {
                let appended = log.append(&batch, Patch::leader(LeaderEpoch(0))).expect("there is room");
                log.wait_durable(appended.next_offset).await.expect("the disk works");
            }
            let max_bytes = batch.len() * at_once as usize;
            let limits = ReadLimits { max_bytes, min_one_batch: true, upper_bound: log.durable_end() };
            let begun = Instant::now();
            for turn in 0..count {
                let offset = Offset((turn.wrapping_mul(7919) % (BATCHES - at_once)) as i64);
                let read = log.read(offset, limits).await.expect("the offset is there");
                assert_eq!(read.bytes, max_bytes);
                assert!(read.slices.iter().all(|slice| matches!(slice, Slice::Bytes(_))), "it is all in the cache");
            }
            let taken = begun.elapsed();
            shard.stop_clean().await.expect("the log closes");
            taken
        }
    })
}

fn fetch_plan(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fetch_plan");
    group.sample_size(10);
    for (bytes, at_once) in [(500, 1), (500, 16), (16_000, 1), (16_000, 16), (60_000, 16)] {
        let name = format!("{at_once} batches of {bytes} B");
        group.bench_function(name, |b| b.iter_custom(|count| plans(count, bytes, at_once)));
    }
    group.finish();
}

criterion_group!(benches, fetch_plan);
criterion_main!(benches);
