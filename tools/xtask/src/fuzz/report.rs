//! What came of fuzzing a target, as rows of a table.

use super::panics::Panicked;

/// A place that panics, with the first input that led there.
pub struct Finding {
    pub panicked: Panicked,
    pub file: String,
}

pub struct Report {
    pub name: &'static str,
    pub runs: u64,
    pub seconds: f64,
    /// One for each place.
    pub findings: Vec<Finding>,
}

pub fn header() -> String {
    format!("{:<28} {:>12} {:>10} {:>9}", "target", "runs", "runs/s", "findings")
}

impl Report {
    pub fn row(&self) -> String {
        let per_second = self.runs as f64 / self.seconds.max(0.001);
        format!("{:<28} {:>12} {per_second:>10.0} {:>9}", self.name, self.runs, self.findings.len())
    }

    /// How each finding is repeated.
    pub fn sentences(&self) -> Vec<String> {
        let sentence = |Finding { panicked: Panicked { place, message }, file }: &Finding| {
            let name = self.name;
            format!("{name} panics at {place}: {message}\n  repeat with `cargo xtask fuzz {name} --replay {file}`")
        };
        self.findings.iter().map(sentence).collect()
    }
}
