//! `bench limits`: what the machine itself can do, to hold brokers' figures against: its disk, written directly in pieces of a
//! broker's sizes with a sync after each, and read directly; a lone small write with its sync; its loopback.
//!
//! The disk is measured by `fio` where that is installed, else by a program of ours; the line says which.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use serde_json::json;

use crate::results::append_line;
use crate::table::number;
use crate::{host, limits_disk, limits_loopback};

pub const MIB_DEFAULT: u64 = 1_024;
/// Sizes of a broker's writes.
const BLOCKS_KIB: &[u64] = &[64, 128, 256, 512, 1_024];
/// KiB of a read and how many at once, beside small synced writes.
const BESIDE: &[(u64, u64)] = &[(128, 1), (128, 4), (128, 8), (1_024, 1), (1_024, 4)];

/// Flags of `bench limits`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// MiB written, read and sent in each measurement.
    #[arg(long, default_value_t = MIB_DEFAULT)]
    mib: u64,
    /// Folder on the disk that is measured.
    #[arg(long, default_value = "/tmp/ringlog-bench")]
    dir: PathBuf,
    /// Folder of the results.
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
}

pub fn run(options: &Options) -> Result<(), String> {
    measure(&options.dir, &options.results, options.mib)
}

pub fn measure(dir: &Path, results: &Path, mib: u64) -> Result<(), String> {
    std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let file = dir.join("limits");
    let mut figures = BTreeMap::<String, f64>::new();
    let by = if limits_disk::has_fio() { "fio" } else { "our own program" };
    let measured = disk(&file, mib, &mut figures);
    let _ = std::fs::remove_file(&file);
    measured?;
    eprintln!("limits: loopback");
    let loopback = limits_loopback::measure(mib << 20).map_err(|e| format!("loopback: {e}"))?;
    figures.insert("loopback_mib_per_s".to_owned(), loopback.mib_per_s);
    figures.insert("loopback_send_s_per_gib".to_owned(), loopback.send_s_per_gib);
    figures.insert("loopback_receive_s_per_gib".to_owned(), loopback.receive_s_per_gib);
    println!("| the machine's limits, disk by {by} | |\n|---|---|");
    for (name, value) in &figures {
        println!("| {} | {} |", name.replace('_', " "), number(*value));
    }
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let host = host::describe(dir, Path::new("ringlog"));
    append_line(&results.join("limits.jsonl"), &json!({ "at": at, "by": by, "figures": figures, "host": host }))
}

fn disk(file: &Path, mib: u64, figures: &mut BTreeMap<String, f64>) -> Result<(), String> {
    for &kib in BLOCKS_KIB {
        eprintln!("limits: direct writes of {kib} KiB, each synced");
        let rate = limits_disk::write(file, kib << 10, mib << 20)?;
        figures.insert(format!("write_{kib:04}_kib_synced_mib_per_s"), rate);
    }
    for jobs in [1, 4] {
        eprintln!("limits: direct reads of 1 MiB, {jobs} at once");
        let rate = limits_disk::read(file, 1 << 20, mib << 20, jobs)?;
        figures.insert(format!("read_1024_kib_{jobs}_at_once_mib_per_s"), rate);
    }
    for &(kib, jobs) in BESIDE {
        eprintln!("limits: direct reads of {kib} KiB, {jobs} at once, beside small synced writes");
        let beside = limits_disk::read_beside_writes(file, kib << 10, mib << 20, jobs)?;
        let name = format!("read_{kib:04}_kib_{jobs}_at_once_beside_writes");
        figures.insert(format!("{name}_mib_per_s"), beside.read_mib_per_s);
        figures.insert(format!("{name}_write_p50_ms"), beside.writes.value_at_quantile(0.5) as f64 / 1e3);
        figures.insert(format!("{name}_write_p99_ms"), beside.writes.value_at_quantile(0.99) as f64 / 1e3);
    }
    eprintln!("limits: lone writes of 4 KiB, each synced");
    let lone = limits_disk::lone_writes(file).map_err(|e| format!("{}: {e}", file.display()))?;
    figures.insert("lone_write_p50_ms".to_owned(), lone.value_at_quantile(0.5) as f64 / 1e3);
    figures.insert("lone_write_p99_ms".to_owned(), lone.value_at_quantile(0.99) as f64 / 1e3);
    Ok(())
}
