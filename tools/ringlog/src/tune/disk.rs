//! `ringlog tune disk`: how long the drive under a folder takes for what the broker asks of it.
//!
//! Measured with direct I/O in one temporary file that is unlinked as soon as it is open, so that nothing stays behind
//! whatever ends the command. Phases run one after the other; their time is the given one, split evenly. A shard reserves
//! the space as the broker does ([`disk_measure`] says who does what; [`disk_profile`] chooses and writes).

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use runtime::{HelperSpec, ShardSpec, checks};

use super::check_storage;
use super::disk_measure::{self, Phase};
use super::disk_profile;
use super::disk_report::{Report, Row};
use super::host::Host;

pub const AFTER_HELP: &str = "\
Takes 15 seconds unless told otherwise, and 256 MiB of space; refuses where less than twice that is free. Other programs'
reads and writes count into the figures: run it while the broker is idle. Figures from a shared machine (a virtual machine,
a drive that others use too) vary from run to run: run it more than once before you keep them.

--write leaves the smallest write size and the smallest depth that reach 90 % of the best, and the usual time of a synced
write, as a tuning profile: ringlog serve --tuning FILE takes it as it is and derives the rest from the machine.

Exit codes: 0 done, 1 it failed, 2 the command line is wrong.

Example:
  ringlog tune disk /tmp
  ringlog tune disk /tmp --seconds 5 --json
  ringlog tune disk /tmp --write /tmp/disk.toml --force";

#[derive(Debug, Args)]
pub struct DiskArgs {
    /// Folder on the drive to measure: the data folder, or one on the same file system.
    dir: PathBuf,
    /// Seconds of measuring in all, 2 to 600.
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(2..=600))]
    seconds: u32,
    /// Write what was chosen to this file, as a tuning profile of the disk alone.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// With --write: overwrite the file if it exists.
    #[arg(long, requires = "write")]
    force: bool,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &DiskArgs) -> Result<ExitCode, String> {
    let shown = args.dir.display();
    let dir = std::fs::canonicalize(&args.dir).map_err(|e| format!("the folder {shown} cannot be used: {e}"))?;
    if !dir.is_dir() {
        return Err(format!("{shown} is no folder: name one on the drive to measure"));
    }
    checks::check_host().map_err(|e| e.to_string())?;
    if let Some(path) = &args.write {
        disk_profile::check(path, args.force)?;
        if checks::is_in_memory(&dir) {
            return Err(format!("{shown} lies in memory: name a folder on the drive, or leave --write out"));
        }
    }
    let rows = measure(&dir, args.seconds)?;
    let report = Report { host: host_lines(&dir), in_memory: checks::is_in_memory(&dir), rows };
    super::print(&if args.json { format!("{:#}\n", report.json()) } else { report.text() })?;
    if let Some(path) = &args.write {
        let choice = disk_profile::Choice::of(&report.rows).ok_or("nothing was measured, so nothing is written")?;
        disk_profile::write(path, &choice.toml(&report), args.force)?;
        eprintln!("ringlog: wrote {0}; use it with: ringlog serve --tuning {0}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(dir: &Path, seconds: u32) -> Result<Vec<Row>, String> {
    let spec = ShardSpec::default();
    let phases = Phase::all();
    let phase_ns = u64::from(seconds) * 1_000_000_000 / phases.len() as u64;
    let dir = dir.to_path_buf();
    let show = std::io::stderr().is_terminal();
    let running = runtime::shard::start(&[spec], HelperSpec::default(), move |_| {
        let (dir, phases) = (dir.clone(), phases.clone());
        async move {
            let mut progress = move |done: usize, all: usize, phase: &Phase| {
                if show {
                    let left_s = (all - done) as u64 * phase_ns / 1_000_000_000 + 1;
                    eprint!("\r\x1b[K{done} of {all}: {phase}, {left_s} s left ");
                }
            };
            let rows = disk_measure::run(&dir, &phases, phase_ns, &mut progress).await;
            if show {
                eprint!("\r\x1b[K");
            }
            rows.map_err(|e| e.to_string())
        }
    });
    let mut results = running.and_then(|shards| shards.join()).map_err(|e| e.to_string())?;
    results.pop().unwrap_or_else(|| Err("the measuring shard gave no result".to_owned()))
}

/// What the figures belong to, as name and value.
fn host_lines(dir: &Path) -> Vec<(&'static str, String)> {
    let host = Host::new(Path::new("/"));
    let mount = check_storage::mount_of(&host, dir);
    let disks = mount.clone().and_then(|mount| check_storage::disks_of(&host, &mount));
    let file_system =
        mount.map_or_else(|why| format!("unknown: {why}"), |m| format!("{} at {}", m.kind, m.point.display()));
    let drives = disks.map_or_else(
        |why| format!("unknown: {why}"),
        |names| names.iter().map(|name| drive_line(&host, name)).collect::<Vec<_>>().join("; "),
    );
    let kernel = host.text("/proc/sys/kernel/osrelease").unwrap_or_else(|why| format!("unknown: {why}"));
    vec![
        ("folder", dir.display().to_string()),
        ("file_system", file_system),
        ("drive", drives),
        ("kernel", kernel),
        ("date", super::disk_report::date(runtime::clock::wall_ms())),
    ]
}

fn drive_line(host: &Host, name: &str) -> String {
    let model = host.text(&format!("/sys/block/{name}/device/model")).map(|m| format!(" {m}")).unwrap_or_default();
    let of = |file: &str| host.text(&format!("/sys/block/{name}/queue/{file}"));
    let scheduler = of("scheduler").ok().and_then(|text| super::parse::chosen(&text).map(str::to_owned));
    let parts = [scheduler.map(|s| format!("scheduler {s}")), of("write_cache").ok().map(|c| format!("cache {c}"))];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { format!("{name}{model}") } else { format!("{name}{model} ({})", parts.join(", ")) }
}
