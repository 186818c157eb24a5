//! Runs targets until their time is over, and keeps the first input that leads to each place that panics.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::mutate::{Dice, mutate};
use super::panics;
use super::report::{Finding, Report, header};
use super::targets::{self, TARGETS, Target};

const DEFAULT_SECONDS: u64 = 60;

/// Inputs between two looks at the clock.
const INPUTS_PER_LOOK: u64 = 256;

/// How often the progress is told.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// Places that panic, for each target; more say nothing more.
const MOST_FINDINGS: usize = 32;

const USAGE: &str = "usage: cargo xtask fuzz <target>|all [--seconds N] [--seed N], cargo xtask fuzz --list, \
                     or cargo xtask fuzz <target> --replay FILE; N seconds are for each target";

struct Options {
    targets: &'static [Target],
    seconds: u64,
    seed: u64,
    replay: Option<PathBuf>,
}

pub fn run(arguments: &[String]) -> Result<(), String> {
    if arguments == ["--list"] {
        TARGETS.iter().for_each(|target| println!("{:<28} {}", target.name, target.sentence));
        return Ok(());
    }
    let options = parse(arguments)?;
    match (&options.replay, options.targets) {
        (None, targets) => fuzz_each(targets, options.seconds, options.seed),
        (Some(file), [target]) => replay(target, file),
        (Some(_), _) => Err(USAGE.to_owned()),
    }
}

fn parse(arguments: &[String]) -> Result<Options, String> {
    let (name, mut rest) = arguments.split_first().ok_or(USAGE)?;
    let targets = match name.as_str() {
        "all" => TARGETS,
        name => std::slice::from_ref(
            targets::find(name).ok_or_else(|| format!("there is no target `{name}`; --list names them"))?,
        ),
    };
    let mut options = Options { targets, seconds: DEFAULT_SECONDS, seed: seed_of_now(), replay: None };
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

/// A panic here is not caught: its text and backtrace are what a replay is for.
fn replay(target: &Target, file: &PathBuf) -> Result<(), String> {
    let input = fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    (target.run)(&input);
    println!("{} takes {} without a panic", target.name, file.display());
    Ok(())
}

fn fuzz_each(targets: &[Target], seconds: u64, seed: u64) -> Result<(), String> {
    println!("{} targets, {seconds} s each, seed {seed}\n{}", targets.len(), header());
    let mut sentences = Vec::new();
    for target in targets {
        let report = fuzz(target, Duration::from_secs(seconds), seed, targets.len() == 1)?;
        println!("{}", report.row());
        sentences.extend(report.sentences());
    }
    if sentences.is_empty() { Ok(()) } else { Err(sentences.join("\n")) }
}

/// One target's run.
struct Session<'a> {
    target: &'a Target,
    runs: u64,
    findings: Vec<Finding>,
}

fn fuzz(target: &Target, limit: Duration, seed: u64, is_told: bool) -> Result<Report, String> {
    let corpus = (target.corpus)();
    let mut session = Session { target, runs: 0, findings: Vec::new() };
    let started = Instant::now();
    for input in &corpus {
        session.try_input(input)?;
    }
    let (mut dice, mut input, mut told) = (Dice::new(seed), Vec::new(), started);
    loop {
        for _ in 0..INPUTS_PER_LOOK {
            mutate(&mut dice, &corpus, &mut input);
            session.try_input(&input)?;
        }
        let now = Instant::now();
        if now - started >= limit {
            let seconds = (now - started).as_secs_f64();
            return Ok(Report { name: target.name, runs: session.runs, seconds, findings: session.findings });
        }
        if is_told && now - told >= TELL_EVERY {
            told = now;
            println!("{}: {} runs in {} s", target.name, session.runs, (now - started).as_secs());
        }
    }
}

impl Session<'_> {
    fn try_input(&mut self, input: &[u8]) -> Result<(), String> {
        self.try_bytes(input)?;
        for seal in self.target.seals {
            self.try_bytes(&seal(input))?;
        }
        Ok(())
    }

    fn try_bytes(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.runs += 1;
        let Some(panicked) = panics::catch(|| (self.target.run)(bytes)) else { return Ok(()) };
        let is_known = self.findings.iter().any(|finding| finding.panicked.place == panicked.place);
        if !is_known && self.findings.len() < MOST_FINDINGS {
            let file = keep(self.target, bytes)?;
            self.findings.push(Finding { panicked, file });
        }
        Ok(())
    }
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
