//! Runs one target until its time is over or a finding is made.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::mutate::{Dice, mutate};
use super::targets::{self, TARGETS, Target};

const DEFAULT_SECONDS: u64 = 60;

/// Runs between two looks at the clock.
const RUNS_PER_LOOK: u64 = 256;

/// How often the progress is told.
const TELL_EVERY: Duration = Duration::from_secs(10);

const USAGE: &str = "usage: cargo xtask fuzz <target> [--seconds N] [--seed N], cargo xtask fuzz --list, \
                     or cargo xtask fuzz <target> --replay FILE";

struct Options {
    target: &'static Target,
    seconds: u64,
    seed: u64,
    replay: Option<PathBuf>,
}

pub fn run(arguments: &[String]) -> Result<(), String> {
    if arguments == ["--list"] {
        TARGETS.iter().for_each(|target| println!("{:<16} {}", target.name, target.sentence));
        return Ok(());
    }
    let options = parse(arguments)?;
    match &options.replay {
        Some(file) => {
            let input = fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
            (options.target.run)(&input);
            println!("{} takes {} without a panic", options.target.name, file.display());
            Ok(())
        }
        None => fuzz(&options),
    }
}

fn parse(arguments: &[String]) -> Result<Options, String> {
    let (name, mut rest) = arguments.split_first().ok_or(USAGE)?;
    let target = targets::find(name).ok_or_else(|| format!("there is no target `{name}`; --list names them"))?;
    let mut options = Options { target, seconds: DEFAULT_SECONDS, seed: seed_of_now(), replay: None };
    while let [flag, value, after @ ..] = rest {
        let number = || value.parse::<u64>().map_err(|_| format!("{flag} needs a number, not `{value}`"));
        match flag.as_str() {
            "--seconds" => options.seconds = number()?,
            "--seed" => options.seed = number()?,
            "--replay" => options.replay = Some(PathBuf::from(value)),
            _ => return Err(USAGE.to_owned()),
        }
        rest = after;
    }
    if rest.is_empty() { Ok(options) } else { Err(USAGE.to_owned()) }
}

fn seed_of_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64)
}

fn fuzz(options: &Options) -> Result<(), String> {
    let target = options.target;
    let corpus = (target.corpus)();
    println!("{}: {} valid inputs, {} s, seed {}", target.name, corpus.len(), options.seconds, options.seed);
    for input in &corpus {
        try_input(target, input)?;
    }
    let (mut dice, mut input, mut runs) = (Dice::new(options.seed), Vec::new(), 0u64);
    let (started, limit) = (Instant::now(), Duration::from_secs(options.seconds));
    let mut told = started;
    loop {
        for _ in 0..RUNS_PER_LOOK {
            mutate(&mut dice, &corpus, &mut input);
            try_input(target, &input)?;
        }
        runs += RUNS_PER_LOOK;
        let now = Instant::now();
        let is_over = now - started >= limit;
        if is_over || now - told >= TELL_EVERY {
            told = now;
            let seconds = (now - started).as_secs_f64();
            println!("{}: {runs} runs in {seconds:.0} s, {:.0} a second", target.name, runs as f64 / seconds);
        }
        if is_over {
            return Ok(());
        }
    }
}

fn try_input(target: &Target, input: &[u8]) -> Result<(), String> {
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_ok() {
        return Ok(());
    }
    let file = keep(target, input)?;
    Err(format!(
        "{} panics on {} bytes, kept in {file}; repeat with `cargo xtask fuzz {} --replay {file}`",
        target.name,
        input.len(),
        target.name
    ))
}

/// Writes a finding beside the build's other output.
fn keep(target: &Target, input: &[u8]) -> Result<String, String> {
    let folder = PathBuf::from(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into())).join("fuzz");
    let file = folder.join(format!("{}-{}-{}.bin", target.name, input.len(), checksum(input)));
    let kept = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, input));
    kept.map_err(|error| format!("{} panics, but {} cannot be written: {error}", target.name, file.display()))?;
    Ok(file.display().to_string())
}

/// Tells findings of the same length apart (FNV-1a).
fn checksum(input: &[u8]) -> String {
    let sum = input.iter().fold(0x811c_9dc5_u32, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    format!("{sum:08x}")
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
