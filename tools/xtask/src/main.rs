//! `cargo xtask`: the repository's own chores, one module a subcommand.

mod fuzz;
mod generate;
mod sim;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask <subcommand>
  generate [--check]   write net/wire/src/generated from net/wire/schema; --check: only say whether it is current
  fuzz <target>|all [--seconds N] [--seed N] | --list | <target> --replay FILE
                       feed a decoder mutated valid input; a panic is a finding
  sim [--world log|node|both] [--seeds A..B] [--jobs N] [--mutants] | --seed N
                       the log, or the whole node with clients, on a simulated disk and network: seeded faults,
                       crashes, and a checker
  tidy                 check crate arrows, sizes, banned names and the README's map";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (subcommand, rest) = match arguments.split_first() {
        Some((subcommand, rest)) => (subcommand.as_str(), rest),
        None => ("", [].as_slice()),
    };
    let outcome = match subcommand {
        "fuzz" => fuzz::run(rest),
        "generate" => generate::run(rest),
        "sim" => sim::run(rest),
        "tidy" => tidy::run(&root()),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}

/// The repository's top: this crate lies two folders below it.
fn root() -> std::path::PathBuf {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}
