//! `ringlog tune`: judges the host for a broker, measures its drive, and writes what a process may write itself.
//!
//! [`host`] reads `/proc` and `/sys`, [`parse`] understands the texts, `check_*` judge, [`verdict`] shows. The profile that
//! all of it is judged by, and that `serve` starts with, is [`in_force`].

mod apply;
mod check;
mod check_cpu;
mod check_interrupts;
mod check_limits;
mod check_memory;
mod check_storage;
mod disk;
mod disk_measure;
mod disk_profile;
mod disk_report;
pub mod host;
pub mod in_force;
mod parse;
mod verdict;

use std::process::ExitCode;

use clap::Subcommand;

pub const AFTER_HELP: &str = "\
Example:
  ringlog tune check";

#[derive(Debug, Subcommand)]
pub enum TuneCommand {
    /// Say what of this host holds a broker back, and the command that mends each. Changes nothing.
    #[command(after_help = check::AFTER_HELP)]
    Check(check::CheckArgs),
    /// Measure the drive under a folder: direct writes with and without fdatasync, and random reads. With --write, leave the
    /// figures as a tuning profile for serve.
    #[command(after_help = disk::AFTER_HELP)]
    Disk(disk::DiskArgs),
    /// Show what could be written on this host to mend it, and write it with --yes.
    #[command(after_help = apply::AFTER_HELP)]
    Apply(apply::ApplyArgs),
}

/// The error is a sentence.
pub fn run(command: &TuneCommand) -> Result<ExitCode, String> {
    match command {
        TuneCommand::Check(args) => check::run(args),
        TuneCommand::Disk(args) => disk::run(args),
        TuneCommand::Apply(args) => apply::run(args),
    }
}

/// Prints what a command has to say.
fn print(text: &str) -> Result<(), String> {
    crate::cli::output::print(text).map_err(|e| format!("the output cannot be written: {e}"))
}
