//! Why a profile is not taken, each with a sentence that says what to change.

use std::fmt;

use crate::cpu_list;

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
    NoSuchNode {
        node: usize,
        nodes: Vec<usize>,
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
    /// Two keys that answer the same question.
    Conflict {
        one: &'static str,
        other: &'static str,
    },
    Split {
        sum: u32,
    },
}

impl fmt::Display for TuningError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TuningError::Syntax { line, message } => write!(f, "line {line}: {message}"),
            TuningError::NoSuchCpu { cpu, usable } => {
                let list = cpu_list::format(usable);
                let list = if list.is_empty() { "none".to_owned() } else { format!("CPUs {list}") };
                write!(f, "CPU {cpu} does not exist or is not open to this process; it may use {list}.")
            }
            TuningError::NoSuchNode { node, nodes } if nodes.is_empty() => {
                write!(f, "numa_node={node} cannot be found: this host does not say which CPU lies on which node.")
            }
            TuningError::NoSuchNode { node, nodes } => {
                write!(f, "NUMA node {node} has no CPU for this process; nodes with CPUs: {}.", cpu_list::format(nodes))
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
            TuningError::Conflict { one, other } => {
                write!(f, "{one} and {other} answer the same question; keep one of them.")
            }
            TuningError::Split { sum } => {
                write!(f, "The percentages of [memory] add up to {sum}; they must give 100.")
            }
        }
    }
}

impl std::error::Error for TuningError {}
