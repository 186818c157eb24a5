//! # Host profiles: which CPUs the shards sit on, and the sizes that go with the machine
//!
//! A profile is a small TOML file (`--tuning FILE`; three are shipped beside this crate). Without one,
//! [`Profile::derive`] makes a sensible one from the CPUs the process may use. Checking and arithmetic only: the
//! caller reads the file, asks the machine for its CPUs and pins the threads.
//!
//! What a profile sets is a default like the table's own: the configuration file and `--set` win over it. So it is
//! handed on as `key=value` pairs ([`Profile::pairs`]) that go before theirs.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;

/// Most CPUs that a profile may name.
pub const MAX_CPUS: usize = 1024;

/// The keys of a profile, in the order of the sentence that lists them.
const KEYS: &str = "shards, cpus, leave_out, preempt_timer_us, pulse_interval_ms, io_memory_bytes, batch_cache_bytes, \
                    max_open_segments, listen_backlog";

/// A profile as written. Everything may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Shards; as many as CPUs when left out.
    pub shards: Option<usize>,
    /// CPUs to use, in the order in which shards take them; all of the process when left out.
    pub cpus: Option<Vec<usize>>,
    /// CPUs to keep free: for interrupts, for other programs.
    #[serde(default)]
    pub leave_out: Vec<usize>,
    pub preempt_timer_us: Option<u32>,
    pub pulse_interval_ms: Option<u32>,
    /// Per shard.
    pub io_memory_bytes: Option<u64>,
    /// Of the whole process.
    pub batch_cache_bytes: Option<u64>,
    /// Of the whole process.
    pub max_open_segments: Option<u32>,
    pub listen_backlog: Option<u32>,
}

/// Why a profile is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TuningError {
    /// Not TOML, an unknown key or a value of the wrong type: the parser's words and the line they are about.
    Syntax {
        line: usize,
        message: String,
    },
    NoSuchCpu {
        cpu: usize,
        usable: Vec<usize>,
    },
    CpuTwice {
        cpu: usize,
    },
    NoCpuLeft,
    TooManyShards {
        shards: usize,
        cpus: usize,
    },
    NoShards,
}

impl fmt::Display for TuningError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TuningError::Syntax { line, message } => write!(f, "line {line}: {message}"),
            TuningError::NoSuchCpu { cpu, usable } => {
                write!(f, "CPU {cpu} does not exist or is not open to this process; it may use {}.", ranges(usable))
            }
            TuningError::CpuTwice { cpu } => write!(f, "CPU {cpu} is named twice in cpus."),
            TuningError::NoCpuLeft => {
                write!(f, "No CPU is left for a shard: cpus is empty, or leave_out takes all of them.")
            }
            TuningError::TooManyShards { shards, cpus } => write!(
                f,
                "{shards} shards do not fit on {cpus} CPUs: each shard needs a CPU of its own; use at most {cpus}."
            ),
            TuningError::NoShards => write!(f, "shards=0 would serve nobody; use at least 1, or leave it out."),
        }
    }
}

impl std::error::Error for TuningError {}

/// "0-3, 8".
fn ranges(cpus: &[usize]) -> String {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => spans.push((cpu, cpu)),
        }
    }
    let shown: Vec<String> = spans
        .iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    if shown.is_empty() { "none".to_owned() } else { format!("CPUs {}", shown.join(", ")) }
}

impl Profile {
    /// Reads a profile's text. Unknown keys are refused.
    pub fn parse(text: &str) -> Result<Profile, TuningError> {
        toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start).min(text.len());
            let line = 1 + text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count();
            let message = error.message();
            let message = match message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')) {
                Some((key, _)) => format!("{key} is not a key of a tuning profile; the keys are {KEYS}."),
                None => format!("{}.", message.lines().collect::<Vec<_>>().join(" ")),
            };
            TuningError::Syntax { line, message }
        })
    }

    /// The profile for a machine nobody wrote one for: every CPU a shard, and memory that grows with them.
    pub fn derive(cpu_count: usize) -> Profile {
        let cpus = cpu_count.clamp(1, MAX_CPUS);
        let few = cpus <= 4;
        Profile {
            // A core of many is left to interrupts and to the threads that are no shards.
            leave_out: if cpus >= 8 { vec![0] } else { Vec::new() },
            io_memory_bytes: Some(if few { 16 << 20 } else { 64 << 20 }),
            batch_cache_bytes: Some((cpus as u64) * if few { 16 << 20 } else { 32 << 20 }),
            ..Profile::default()
        }
    }

    /// The CPU of each shard, in the order of shards. `usable` are the CPUs that the process may run on, as the
    /// operating system numbers them; `shards` overrides the profile (it comes from `--shards` or the configuration)
    /// unless it is 0.
    pub fn placement(&self, usable: &[usize], shards: usize) -> Result<Vec<usize>, TuningError> {
        let known: BTreeSet<usize> = usable.iter().copied().collect();
        let chosen = match &self.cpus {
            Some(cpus) => check_cpus(cpus, &known)?,
            None => known.iter().copied().collect(),
        };
        // CPUs to keep free need not exist: leaving out one that is not there changes nothing.
        let mut free: Vec<usize> = chosen.into_iter().filter(|cpu| !self.leave_out.contains(cpu)).collect();
        if free.is_empty() {
            return Err(TuningError::NoCpuLeft);
        }
        let wanted = match (shards, self.shards) {
            (0, Some(0)) => return Err(TuningError::NoShards),
            (0, Some(shards)) => shards,
            (0, None) => free.len().min(MAX_CPUS),
            (shards, _) => shards,
        };
        if wanted > free.len() {
            return Err(TuningError::TooManyShards { shards: wanted, cpus: free.len() });
        }
        free.truncate(wanted);
        Ok(free)
    }

    /// What the profile sets, under the names of the configuration table.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::new();
        let mut put = |name, value: Option<String>| pairs.extend(value.map(|value| (name, value)));
        put("ringlog.shards", self.shards.map(|v| v.to_string()));
        put("ringlog.preempt.timer.us", self.preempt_timer_us.map(|v| v.to_string()));
        put("ringlog.pulse.interval.ms", self.pulse_interval_ms.map(|v| v.to_string()));
        put("ringlog.io.memory.bytes", self.io_memory_bytes.map(|v| v.to_string()));
        put("ringlog.batch.cache.bytes", self.batch_cache_bytes.map(|v| v.to_string()));
        put("ringlog.max.open.segments", self.max_open_segments.map(|v| v.to_string()));
        put("socket.listen.backlog.size", self.listen_backlog.map(|v| v.to_string()));
        pairs
    }
}

fn check_cpus(cpus: &[usize], known: &BTreeSet<usize>) -> Result<Vec<usize>, TuningError> {
    let mut seen = BTreeSet::new();
    for &cpu in cpus {
        if !known.contains(&cpu) {
            return Err(TuningError::NoSuchCpu { cpu, usable: known.iter().copied().collect() });
        }
        if !seen.insert(cpu) {
            return Err(TuningError::CpuTwice { cpu });
        }
    }
    Ok(cpus.to_vec())
}

#[cfg(test)]
#[path = "lib_tests.rs"]
mod tests;
