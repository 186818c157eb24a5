//! `ringlog tune check`: what of this host holds a broker back. Reads `/proc` and `/sys` once and changes nothing.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use model::config::BrokerConfig;
use runtime::checks;
use serde_json::json;
use tuning::Topology;

use super::host::Host;
use super::in_force::InForce;
use super::verdict::{Level, Verdict, summary, table};
use super::{check_cpu, check_interrupts, check_limits, check_memory, check_storage};
use crate::cli::failure::FINDINGS;

const CLOCK_READS: u32 = 20_000;

pub const AFTER_HELP: &str = "\
Verdicts: ok; note (worth knowing); warning (costs throughput or latency); problem (the broker cannot start, or would promise
what this host does not keep); unknown (cannot be read here, with the reason).

Exit codes: 0 no problem, 1 it failed, 2 the command line is wrong, 3 a problem was found.

Example:
  ringlog tune check
  ringlog tune check --data-dir /tmp --json";

/// What the host is judged for.
#[derive(Debug, Args)]
pub struct HostArgs {
    /// Tuning profile (TOML) that the broker will run with. Default: the one derived from this host.
    #[arg(long, value_name = "FILE")]
    pub tuning: Option<PathBuf>,
    /// Folder of all data; need not exist yet.
    #[arg(long, value_name = "DIR", default_value = "./ringlog-data")]
    pub data_dir: PathBuf,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// Everything the checks look at; they read nothing else.
#[derive(Debug)]
pub struct Setting {
    pub host: Host,
    pub topology: Topology,
    pub shard_cpus: Vec<usize>,
    pub pinned: bool,
    pub config: BrokerConfig,
    /// The data folder, or the folder nearest above it that exists; absolute.
    pub data_dir: PathBuf,
    pub io_uring: Result<(), String>,
    /// What one look at the clock takes, measured.
    pub clock_read_ns: Option<u64>,
}

impl Setting {
    pub fn of_this_host(args: &HostArgs) -> Result<(Setting, InForce), String> {
        let host = Host::new(Path::new("/"));
        let in_force = InForce::read(&host, args.tuning.as_deref())?;
        let shard_cpus = in_force.place(0).map_err(|e| e.to_string())?;
        let pairs = in_force.profile.pairs(shard_cpus.len());
        let config =
            BrokerConfig::from_pairs(pairs.iter().map(|(k, v)| (*k, v.as_str()))).map_err(|e| e.to_string())?;
        let setting = Setting {
            host,
            topology: in_force.topology.clone(),
            shard_cpus,
            pinned: in_force.pinned,
            config,
            data_dir: nearest_folder(&args.data_dir)?,
            io_uring: checks::check_host().map_err(|e| e.to_string()),
            clock_read_ns: Some(clock_read_ns()),
        };
        Ok((setting, in_force))
    }

    /// Registered memory of all shards.
    pub fn io_memory_bytes(&self) -> u64 {
        self.config.shards.io_memory_bytes as u64 * self.shard_cpus.len() as u64
    }
}

pub fn run(args: &CheckArgs) -> Result<ExitCode, String> {
    let (setting, in_force) = Setting::of_this_host(&args.host)?;
    let verdicts = verdicts(&setting);
    let text = if args.json {
        let list: Vec<_> = verdicts.iter().map(Verdict::json).collect();
        let all = json!({
            "profile": in_force.name, "shard_cpus": setting.shard_cpus, "pinned": setting.pinned,
            "data_dir": args.host.data_dir.display().to_string(), "verdicts": list,
        });
        format!("{all:#}\n")
    } else {
        let (cpus, shards) = (in_force.cpus_text(&setting.shard_cpus), setting.shard_cpus.len());
        let head = format!("profile  {}: {shards} shards {cpus}\n", in_force.name);
        let data = format!("data     {}\n", args.host.data_dir.display());
        format!("{head}{data}\n{}\n{}\n", table(&verdicts), summary(&verdicts))
    };
    super::print(&text)?;
    let problem = verdicts.iter().any(|verdict| verdict.level == Level::Problem);
    Ok(if problem { ExitCode::from(FINDINGS) } else { ExitCode::SUCCESS })
}

/// All checks, in the order of the table.
pub fn verdicts(setting: &Setting) -> Vec<Verdict> {
    let mut all = check_limits::verdicts(setting);
    all.extend(check_cpu::verdicts(setting));
    all.push(check_interrupts::verdict(setting));
    all.extend(check_storage::verdicts(setting));
    all.extend(check_memory::verdicts(setting));
    all
}

fn nearest_folder(dir: &Path) -> Result<PathBuf, String> {
    let absolute = std::path::absolute(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let there = absolute.ancestors().find_map(|folder| std::fs::canonicalize(folder).ok());
    Ok(there.unwrap_or_else(|| PathBuf::from("/")))
}

/// Shards look at the clock at every turn: a clock that needs a system call shows here.
fn clock_read_ns() -> u64 {
    let start = Instant::now();
    for _ in 0..CLOCK_READS {
        std::hint::black_box(Instant::now());
    }
    (start.elapsed().as_nanos() / u128::from(CLOCK_READS)) as u64
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
