//! `ringlog log dump`: what the files of a log hold, and whether they are sound.
//!
//! Only reads, takes no lock, and holds one batch and one window at a time; so it runs beside a broker, on folders of Apache
//! Kafka as well. Beside a running broker the newest bytes may be on their way still and look cut.
//!
//! [`walk`] finds batches, [`index`] checks indexes against them, [`records`] understands what is in them, [`segment`] and
//! [`folder`] put it together, [`journal`] reads the rings, [`recovery_point`] knows where a start would begin to scan, [`out`] prints.

mod folder;
mod index;
mod journal;
mod out;
mod records;
mod recovery_point;
mod segment;
pub mod walk;

use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use log::format::names::{FileKind, parse_file_name};
use serde_json::json;

use self::folder::FolderLook;
use self::index::{Index, IndexKind};
use self::out::{Detail, Out};
use self::records::Dialect;
use self::recovery_point::RecoveryPoints;
use self::segment::{Fail, Look};
use self::walk::PATIENT;
use crate::cli::failure::FINDINGS;

pub const AFTER_HELP: &str = "\
Example:
  ringlog log dump --summary ./ringlog-data";

const DUMP_AFTER_HELP: &str = "\
A line for each batch tells where it lies, its offsets, leader epoch, codec, timestamps, producer and sequence numbers, and
whether its CRC holds. Offsets that are missing are damage, unless the topic is compacted. At the end of a partition stands what a start would keep of it and, in a data folder of this broker,
from which recovery point it would scan. Damage is told and passed over.
Of a journal each round is told, with its entries, and whether a start would apply it: rounds of older laps and of other starts,
torn ones, those behind the end and those of deleted partitions it does not. A start applies the journal before it looks at partitions;
what is said of those is as their segments are now. Of a data folder only rounds that count are told.
Nothing is ever written, and a broker may be running; its newest bytes may then look cut.

Exit codes: 0 all sound, 1 it failed, 2 the command line is wrong, 3 damage was found.

Example:
  ringlog log dump --summary ./ringlog-data
  ringlog log dump --records --json ./ringlog-data";

#[derive(Debug, Subcommand)]
pub enum LogCommand {
    /// Print the batches of a log, check their CRCs and indexes, and say what a start would keep.
    #[command(after_help = DUMP_AFTER_HELP)]
    Dump(DumpArgs),
    /// Take the topics of a stopped Apache Kafka's data folder over into a stopped broker's.
    #[command(after_help = crate::log_import::AFTER_HELP)]
    Import(crate::log_import::ImportArgs),
}

#[derive(Debug, Args)]
pub struct DumpArgs {
    /// A data folder, a partition's folder, a journal's (ringlog.journal), or single .log, .index, .timeindex, .snapshot, .ring or .state files.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Print the records too; those of internal topics in words.
    #[arg(long, conflicts_with = "summary")]
    records: bool,
    /// No line for each sound batch.
    #[arg(long)]
    summary: bool,
    /// The topic is or was compacted: offsets that are missing are no damage.
    #[arg(long)]
    compacted: bool,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
}

/// The error is a sentence.
pub fn run(command: &LogCommand) -> Result<ExitCode, String> {
    match command {
        LogCommand::Dump(args) => run_dump(args),
        LogCommand::Import(args) => crate::log_import::run(args).map(|()| ExitCode::SUCCESS),
    }
}

fn run_dump(args: &DumpArgs) -> Result<ExitCode, String> {
    let detail = Detail { json: args.json, records: args.records, summary: args.summary, compacted: args.compacted };
    let total = out::wants_progress(detail).then(|| args.paths.iter().map(|p| bytes_below(p)).sum());
    let mut to = BufWriter::new(io::stdout().lock());
    let mut out = Out::new(detail, &mut to, total);
    let dumped = args.paths.iter().try_for_each(|path| dump(path, &mut out));
    let flushed = out.finish();
    match dumped.and_then(|()| flushed.map_err(Fail::Out)) {
        Ok(()) if out.damage == 0 => Ok(ExitCode::SUCCESS),
        Ok(()) => {
            let plural = if out.damage == 1 { "" } else { "s" };
            eprintln!("ringlog: {} damaged place{plural} found", out.damage);
            Ok(ExitCode::from(FINDINGS))
        }
        // Whoever reads has enough (head, less).
        Err(Fail::Out(e)) if e.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(Fail::Out(e)) => Err(format!("the dump cannot be written: {e}")),
        Err(Fail::Sentence(sentence)) => Err(sentence),
    }
}

fn dump(path: &Path, out: &mut Out<'_>) -> Result<(), Fail> {
    let meta =
        std::fs::metadata(path).map_err(|e| Fail::Sentence(format!("{} cannot be read: {e}", path.display())))?;
    if !meta.is_dir() {
        return dump_file(path, out);
    }
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let names = folder::names(path)?;
    if folder::is_partition(&names) {
        let points = RecoveryPoints::above(path)?;
        return folder::dump(
            path,
            &names,
            FolderLook { patience: PATIENT, points: points.as_ref(), gaps: out.detail.compacted },
            out,
        );
    }
    if names.iter().any(|name| journal::parse_name(name).is_some()) {
        return journal::dump_folder(path, true, out);
    }
    let points = RecoveryPoints::read(path, &names)?;
    if names.iter().any(|name| name == journal::FOLDER) {
        journal::dump_folder(&path.join(journal::FOLDER), false, out)?;
    }
    let look = FolderLook { patience: PATIENT, points: points.as_ref(), gaps: out.detail.compacted };
    let mut partitions = 0;
    for name in names.iter().filter(|name| folder::topic_of(name).is_some() && path.join(name).is_dir()) {
        let inner = path.join(name);
        let files = folder::names(&inner)?;
        if folder::is_partition(&files) {
            partitions += 1;
            folder::dump(&inner, &files, look, out)?;
        }
    }
    if partitions == 0 && !names.iter().any(|name| name == "ringlog.meta") {
        let shown = path.display();
        return Err(Fail::Sentence(format!(
            "{shown} holds no log: give a data folder, a partition's folder (like orders-0) or a .log file"
        )));
    }
    // The mark vouches for the checkpoint; the first write of a start takes it away.
    let clean = names.iter().any(|name| name == "ringlog.clean" || name == ".kafka_cleanshutdown");
    let state = if clean { "stopped cleanly, or not written to since" } else { "in use, or not stopped cleanly" };
    out.item(
        || format!("data folder: {partitions} partitions with files, {state}"),
        || json!({ "type": "data_folder", "partitions": partitions, "clean_mark": clean }),
    )?;
    Ok(())
}

fn dump_file(path: &Path, out: &mut Out<'_>) -> Result<(), Fail> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if journal::parse_name(&name).is_some() {
        return journal::dump_file(path, out);
    }
    let Some((base, kind)) = parse_file_name(&name) else {
        return Err(Fail::Sentence(format!(
            "{} is no file of a log: those are called like 00000000000000000042.log",
            path.display()
        )));
    };
    match kind {
        FileKind::Log => dump_segment(path, base, dialect_of(path), out),
        FileKind::Index => dump_index(path, IndexKind::Offset, base, out),
        FileKind::TimeIndex => dump_index(path, IndexKind::Time, base, out),
        FileKind::Snapshot => folder::snapshot(path, None, out),
        FileKind::TxnIndex => {
            Err(Fail::Sentence(format!("{}: transaction indexes are not understood yet", path.display())))
        }
    }
}

fn dump_segment(path: &Path, base: model::Offset, dialect: Dialect, out: &mut Out<'_>) -> Result<(), Fail> {
    let folder = folder_name(path);
    let gaps = folder::may_have_gaps(&folder, out.detail.compacted);
    match segment::dump(path, Look { base, dialect, patience: PATIENT, trusted: None, gaps }, out)? {
        Some(_) => Ok(()),
        None => Err(Fail::Sentence(format!("{} is gone", path.display()))),
    }
}

fn dialect_of(file: &Path) -> Dialect {
    Dialect::of_topic(folder::topic_of(&folder_name(file)).unwrap_or_default())
}

/// Of the folder that a file lies in.
fn folder_name(file: &Path) -> String {
    let full = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    full.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
}

/// Prints the entries, then checks them against the log beside it, if there is one.
fn dump_index(path: &Path, kind: IndexKind, base: model::Offset, out: &mut Out<'_>) -> Result<(), Fail> {
    let index = Index::read(path, kind, base).map_err(Fail::Sentence)?;
    let index = index.ok_or_else(|| Fail::Sentence(format!("{} is gone", path.display())))?;
    for entry in &index.entries {
        out.item(
            || format!("    {}", index.entry_text(entry)),
            || json!({ "type": "entry", "kind": kind.name(), "offset": entry.offset.0, "at": entry.at }),
        )?;
    }
    let log = path.with_extension("log");
    if log.exists() {
        let quiet = Detail { records: false, summary: true, ..out.detail };
        let shown = std::mem::replace(&mut out.detail, quiet);
        let checked = dump_segment(&log, base, Dialect::Plain, out);
        out.detail = shown;
        return checked;
    }
    if index.problem_count > 0 {
        let why = index.problems.join("; ");
        out.damage(|| format!("    DAMAGE: {why}"), || json!({ "type": "damage", "why": why }))?;
    }
    Ok(())
}

/// Bytes of `.log` files, for the progress line.
fn bytes_below(path: &Path) -> u64 {
    if path.is_file() {
        return std::fs::metadata(path).map_or(0, |meta| meta.len());
    }
    let Ok(names) = folder::names(path) else { return 0 };
    let of = |name: &String| match parse_file_name(name) {
        Some((_, FileKind::Log)) => bytes_below(&path.join(name)),
        None if folder::topic_of(name).is_some() && path.join(name).is_dir() => bytes_below(&path.join(name)),
        _ => 0,
    };
    names.iter().map(of).sum()
}
