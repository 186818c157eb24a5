//! Append, commit and offset look-up of one partition on one shard.

use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use log::{LogShard, LogShardConfig, Patch, ReadLimits};
use model::builder::BatchBuilder;
use model::{LeaderEpoch, Offset};
use runtime::ChunkPool;
use runtime::testing::{TempDir, run};

#[path = "shared/partition.rs"]
mod partition;
use partition::partition;

/// Time of `count` appends of `bytes` each; with `durable`, until the last is synced (one wait for each 64).
fn append(count: u64, bytes: usize, durable: bool) -> Duration {
    let dir = TempDir::new("bench-append");
    let path = dir.path().to_path_buf();
    run(move || {
        let path = path.clone();
        async move {
            let shard = LogShard::new(LogShardConfig::new(0, ChunkPool::new(64 << 20)));
            let log = partition(&shard, &path).await;
            let batch = BatchBuilder::new().record(0, None, Some(&vec![7; bytes])).finish();
            let begun = Instant::now();
            let mut spent = Duration::ZERO;
            for i in 0..count {
                let appended = loop {
                    let at = Instant::now();
                    let result = log.append(&batch, Patch::leader(LeaderEpoch(0)));
                    spent += at.elapsed();
                    match result {
                        Ok(appended) => break appended,
                        // More bytes wait for the disk than a shard may hold: wait as a connection would.
                        Err(_) => log.wait_durable(log.log_end_offset()).await.expect("the disk works"),
                    }
                };
                if i % 64 == 63 || i + 1 == count {
                    log.wait_durable(appended.next_offset).await.expect("the disk works");
                }
            }
            let total = begun.elapsed();
            shard.stop_clean().await.expect("the log closes");
            if durable { total } else { spent }
        }
    })
}

/// Time of `count` reads of one batch each at offsets all over a log of 20 000 batches, chunks and files mixed.
fn look_up(count: u64) -> Duration {
    const BATCHES: u64 = 20_000;
    let dir = TempDir::new("bench-lookup");
    let path = dir.path().to_path_buf();
    run(move || {
        let path = path.clone();
        async move {
            let shard = LogShard::new(LogShardConfig::new(0, ChunkPool::new(64 << 20)));
            let log = partition(&shard, &path).await;
            let batch = BatchBuilder::new().record(0, None, Some(&[7; 500])).finish();
            for i in 0..BATCHES {
                let appended = log.append(&batch, Patch::leader(LeaderEpoch(0))).expect("there is room");
                if i % 1000 == 999 {
                    log.wait_durable(appended.next_offset).await.expect("the disk works");
                }
            }
            let upper_bound = log.durable_end();
            let limits = ReadLimits { max_bytes: 1, min_one_batch: true, upper_bound };
            let begun = Instant::now();
            for i in 0..count {
                let offset = Offset((i.wrapping_mul(7919) % BATCHES) as i64);
                let read = log.read(offset, limits).await.expect("the offset is there");
                assert!(read.bytes > 0);
            }
            let taken = begun.elapsed();
            shard.stop_clean().await.expect("the log closes");
            taken
        }
    })
}

fn log_benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("append");
    group.sample_size(10);
    for bytes in [500, 16_000] {
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(format!("{bytes} B, the call"), |b| b.iter_custom(|n| append(n, bytes, false)));
        group
            .bench_function(format!("{bytes} B, durable, 64 under way"), |b| b.iter_custom(|n| append(n, bytes, true)));
    }
    group.finish();
    criterion.bench_function("read one batch by offset", |b| b.iter_custom(look_up));
}

criterion_group!(benches, log_benches);
criterion_main!(benches);
