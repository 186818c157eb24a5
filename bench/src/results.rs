//! Results: a line of JSON for each run, in one file for each workload, only ever appended to.
//!
//! A line names the comparison it belongs to, so that the newest comparison of a workload can be found among older ones; the
//! figures of one comparison were measured in turns and may be held against each other, those of different ones may not. A crash
//! leaves whole lines and perhaps a cut one, which reading skips.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Figures of a run by the names of [`crate::metrics`].
pub type Figures = BTreeMap<String, f64>;

#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
pub struct Run {
    /// When the comparison began, seconds of UTC; one for all its runs.
    pub comparison: u64,
    pub workload: String,
    pub round: usize,
    /// In the order of the comparison, the first being what others are held against.
    pub place: usize,
    pub contestant: String,
    pub figures: Figures,
    /// Flags of the comparison and settings of the contestant.
    pub flags: Value,
    /// The workload as it was read.
    pub definition: Value,
    pub host: Value,
}

fn path(dir: &Path, workload: &str) -> PathBuf {
    dir.join(format!("{workload}.jsonl"))
}

pub fn append(dir: &Path, run: &Run) -> Result<(), String> {
    append_line(&path(dir, &run.workload), &serde_json::to_value(run).map_err(|e| e.to_string())?)
}

/// Makes the file and its folder where they are missing.
pub fn append_line(path: &Path, value: &Value) -> Result<(), String> {
    let fail = |e: std::io::Error| format!("{}: {e}", path.display());
    path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(fail)?;
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).map_err(fail)?;
    file.write_all(format!("{value}\n").as_bytes()).map_err(fail)
}

/// The runs of a workload's newest comparison; none where it was never measured.
pub fn newest(dir: &Path, workload: &str) -> Vec<Run> {
    newest_of(&std::fs::read_to_string(path(dir, workload)).unwrap_or_default())
}

fn newest_of(text: &str) -> Vec<Run> {
    let runs: Vec<Run> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let newest = runs.iter().map(|run| run.comparison).max();
    runs.into_iter().filter(|run| Some(run.comparison) == newest).collect()
}

/// Contestants in the order of the comparison.
pub fn contestants(runs: &[Run]) -> Vec<String> {
    let by_place: BTreeMap<usize, &str> = runs.iter().map(|run| (run.place, run.contestant.as_str())).collect();
    by_place.into_values().map(str::to_owned).collect()
}

/// The median and the range of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// Nothing of nothing. The median of an even number of values is the mean of the middle two.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Spread { median, min, max })
    }

    pub fn of_runs(runs: &[Run], contestant: &str, metric: &str) -> Option<Spread> {
        let of_it = runs.iter().filter(|run| run.contestant == contestant);
        Spread::of(&of_it.filter_map(|run| run.figures.get(metric).copied()).collect::<Vec<_>>())
    }
}

#[cfg(test)]
#[path = "results_tests.rs"]
pub(crate) mod tests;
