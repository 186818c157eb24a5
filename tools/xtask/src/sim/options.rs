//! What the command line asks for.

use std::collections::BTreeSet;
use std::ops::Range;

pub const USAGE: &str =
    "usage: cargo xtask sim [--world W] [--seeds A..B] [--jobs N] [--mutants], or cargo xtask sim --world W --seed N [--trace LINES]
  --world W     log, node (the whole node), or both (both; one seed: log)
  --seeds A..B  these seeds (0..1000)       --jobs N   threads (one for each core)
  --mutants     each fault put in on purpose until a seed finds it, at most those seeds (0..200)
  --mutant NAME that one alone
  --seed N      one seed, with its trace    --trace L  its last L lines (50)
  --without A,B that seed without some of its troubles, by their numbers";

/// What is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum World {
    /// `engine/log` alone.
    Log,
    /// The whole node and its clients.
    Node,
}

impl World {
    pub fn name(self) -> &'static str {
        match self {
            World::Log => "log",
            World::Node => "node",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub worlds: Vec<World>,
    pub seeds: Range<u64>,
    pub jobs: usize,
    pub mutants: bool,
    /// The only mutant to look for.
    pub mutant: Option<String>,
    /// Lines of the trace to print for a seed that fails, or for the one that was asked for.
    pub trace: usize,
    pub one: bool,
    /// Troubles of the one seed that are left out.
    pub without: BTreeSet<usize>,
}

pub fn parse(arguments: &[String]) -> Result<Options, String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let worlds = vec![World::Log, World::Node];
    let seeds = 0..1000;
    let without = BTreeSet::new();
    let (mutants, mutant) = (false, None);
    let mut options = Options { worlds, seeds, jobs: cores, mutants, mutant, trace: 50, one: false, without };
    let (mut seeds, mut named) = (None, false);
    let mut rest = arguments;
    loop {
        rest = match rest {
            [] => break,
            [flag, after @ ..] if flag == "--mutants" => {
                options.mutants = true;
                after
            }
            [flag, value, after @ ..] => {
                match flag.as_str() {
                    "--world" => {
                        options.worlds = worlds_of(value)?;
                        named = true;
                    }
                    "--seeds" => seeds = Some(range(value)?),
                    "--jobs" => options.jobs = number(flag, value)?.max(1) as usize,
                    "--mutant" => (options.mutants, options.mutant) = (true, Some(value.clone())),
                    "--without" => options.without = numbers(flag, value)?,
                    "--trace" => options.trace = number(flag, value)? as usize,
                    "--seed" => {
                        let seed = number(flag, value)?;
                        seeds = Some(seed..seed.saturating_add(1));
                        options.one = true;
                    }
                    _ => return Err(USAGE.to_owned()),
                }
                after
            }
            [_] => return Err(USAGE.to_owned()),
        };
    }
    if options.one && !named {
        options.worlds = vec![World::Log];
    }
    if !options.one && !options.without.is_empty() {
        return Err("--without leaves out troubles of one seed: say --seed N with it".to_string());
    }
    options.seeds = seeds.unwrap_or(if options.mutants { 0..200 } else { 0..1000 });
    Ok(options)
}

fn worlds_of(text: &str) -> Result<Vec<World>, String> {
    match text {
        "log" => Ok(vec![World::Log]),
        "node" => Ok(vec![World::Node]),
        "both" => Ok(vec![World::Log, World::Node]),
        _ => Err(USAGE.to_owned()),
    }
}

fn number(flag: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{flag} needs a number, not `{value}`"))
}

fn numbers(flag: &str, value: &str) -> Result<BTreeSet<usize>, String> {
    value.split(',').map(|one| number(flag, one).map(|number| number as usize)).collect()
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or(USAGE)?;
    let (from, to) = (number("--seeds", from)?, number("--seeds", to)?);
    if from < to { Ok(from..to) } else { Err(format!("there is no seed in {text}")) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn flags_are_read() {
        let options = parsed("--seeds 5..9 --jobs 3").unwrap();
        assert_eq!((options.seeds, options.jobs, options.mutants), (5..9, 3, false));
        assert_eq!(parsed("--mutants").unwrap().seeds, 0..200);
        let one = parsed("--seed 7 --trace 9").unwrap();
        assert_eq!((one.seeds, one.trace, one.one), (7..8, 9, true));
        assert_eq!(parsed("--world node --seed 7").unwrap().worlds, [World::Node]);
        assert_eq!(parsed("--seed 7 --without 3,1").unwrap().without, BTreeSet::from([1, 3]));
        assert!(parsed("--seed 7 --without 3,x").is_err());
        assert_eq!(parsed("--seeds 0..7").unwrap().worlds, [World::Log, World::Node]);
        assert!(parsed("--seeds 0..7 --without 1").is_err());
        let mutant = parsed("--mutant SyncLeftOut").unwrap();
        assert_eq!((mutant.mutants, mutant.mutant.as_deref(), mutant.seeds), (true, Some("SyncLeftOut"), 0..200));
        assert!(parsed("--world moon").is_err());
        assert!(parsed("--seeds 9..5").is_err() && parsed("--seeds").is_err() && parsed("--what 1").is_err());
    }
}
