//! Ringlog's durable direct write beside bare ones of the same size, depth and sync policy, in turns on the same disk.
//!
//! Budget (design, disk): 90 % of what a bare sequential direct write gets, at most 1.1 bytes written for each byte appended. The
//! bare writes are two, because a sync costs differently: into a fresh file whose space was allocated before, which is what a segment
//! is, and over bytes that are there already (`fio`, where it is installed). Ringlog appends batches to one partition without a
//! journal, and keeps as many that are not durable yet as the bare writes have blocks for each sync; how many of them a sync covers is
//! its own affair. No harness: turns of
//! several programs are no criterion bench. `cargo bench -p ringlog-bench --bench direct_write -- ROUNDS MIB`.

use std::path::Path;
use std::time::Instant;

use log::{LogShard, LogShardConfig, Patch};
use model::builder::BatchBuilder;
use model::{LeaderEpoch, Offset};
use ringlog_bench::limits_disk::{has_fio, write_allocated, write_in_groups};
use ringlog_bench::results::Spread;
use ringlog_bench::table::{cell, number};
use runtime::ChunkPool;
use runtime::shard::{HelperSpec, ShardSpec, start};
use runtime::testing::TempDir;

#[path = "shared/partition.rs"]
mod partition;
use partition::partition;

const MIB: f64 = (1u64 << 20) as f64;
const KIB_OF_BLOCKS: [u64; 3] = [64, 256, 1_024];
/// Blocks for each sync, and batches under way.
const GROUPS: [u64; 3] = [1, 4, 16];
const ROUNDS: usize = 5;
const MIB_OF_RUN: u64 = 128;
/// Room for a batch's header and its record's, so that the batch has a block's length, and less.
const HEADERS: u64 = 80;

/// What one shard's appends reached: MiB/s, and bytes that the process wrote for each appended one.
fn ringlog(dir: &Path, block: u64, bytes: u64, group: u64) -> (f64, f64) {
    let path = dir.to_path_buf();
    let spec = ShardSpec::default();
    let running = start(&[spec], HelperSpec::default(), move |_| {
        let path = path.clone();
        async move { appended(&path, block, bytes, group).await }
    });
    running.expect("a shard starts").join().expect("it ends")[0]
}

async fn appended(path: &Path, block: u64, bytes: u64, group: u64) -> (f64, f64) {
    let shard = LogShard::new(LogShardConfig::new(0, ChunkPool::new(64 << 20)));
    let log = partition(&shard, path).await;
    let batch = BatchBuilder::new().record(0, None, Some(&vec![7; (block - HEADERS) as usize])).finish();
    let append = || log.append(&batch, Patch::leader(LeaderEpoch(0))).expect("there is room");
    // The first makes the segment's files.
    log.wait_durable(append().next_offset).await.expect("the disk works");
    let (before, begun) = (written_bytes(), Instant::now());
    let mut end = Offset(0);
    for number in 0..bytes / block {
        end = append().next_offset;
        if number + 1 >= group {
            // One record a batch: so many batches are offsets.
            log.wait_durable(Offset(end.0 - (group as i64 - 1))).await.expect("the disk works");
        }
    }
    log.wait_durable(end).await.expect("the disk works");
    let (seconds, written) = (begun.elapsed().as_secs_f64(), written_bytes() - before);
    shard.stop_clean().await.expect("the log closes");
    let sum = (bytes / block * batch.len() as u64) as f64;
    (sum / MIB / seconds, written / sum)
}

/// Bytes that this process has handed to the device.
fn written_bytes() -> f64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes:"));
    line.and_then(|value| value.trim().parse().ok()).unwrap_or(0.0)
}

fn row(kib: u64, group: u64, rounds: usize, bytes: u64) {
    let dir = TempDir::new("bench-direct-write");
    let mut columns: [Vec<f64>; 4] = Default::default();
    for round in 0..rounds {
        let (rate, written) = ringlog(&dir.path().join(format!("data-{round}")), kib << 10, bytes, group);
        let bare = |name: &str| dir.path().join(name);
        let allocated = write_allocated(&bare("allocated"), kib << 10, bytes, group).expect("the disk works");
        let over = write_in_groups(&bare("over"), kib << 10, bytes, group).expect("the disk works");
        for (column, value) in columns.iter_mut().zip([rate, allocated, over, written]) {
            column.push(value);
        }
    }
    let spreads = columns.map(|column| Spread::of(&column).expect("a round at least"));
    let [ringlog, allocated, over, written] = spreads;
    let ratio = |bare: Spread| number(ringlog.median / bare.median);
    println!(
        "| {kib} KiB, {group} under way | {} | {} | {} | {}x | {}x | {} |",
        cell(ringlog),
        cell(allocated),
        cell(over),
        ratio(allocated),
        ratio(over),
        number(written.median)
    );
}

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let rounds = numbers.first().map_or(ROUNDS, |rounds| (*rounds).max(1) as usize);
    let bytes = numbers.get(1).map_or(MIB_OF_RUN, |mib| (*mib).max(8)) << 20;
    let by = if has_fio() { "fio" } else { "our own program" };
    println!(
        "| MiB/s, median (min to max) of {rounds} rounds | Ringlog | bare, allocated file | bare, written over, {by} | ratio | ratio | written per byte |"
    );
    println!("|---|---|---|---|---|---|---|");
    for kib in KIB_OF_BLOCKS {
        for group in GROUPS {
            row(kib, group, rounds, bytes);
        }
    }
}
