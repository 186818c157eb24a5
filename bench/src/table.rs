//! Tables of results in Markdown: a row for each figure, medians with their range, and the ratio to each peer. A row that is
//! lost is shown like one that is won.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;

use crate::metrics::METRICS;
use crate::results::{Run, Spread, contestants, newest};
use crate::workload::{Workload, names};

/// Flags of `bench table`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Only this workload; may be given more than once.
    #[arg(long)]
    workload: Vec<String>,
    /// Every figure, not only those that a workload says matter.
    #[arg(long)]
    all: bool,
    /// Folder of the results.
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
    /// Folder of the workloads.
    #[arg(long, default_value = "bench/workloads")]
    workloads: PathBuf,
}

pub fn run(options: &Options) -> Result<(), String> {
    let names = if options.workload.is_empty() { names(&options.workloads)? } else { options.workload.clone() };
    let mut sections: Vec<(Vec<String>, String)> = Vec::new();
    for name in names {
        let workload = Workload::read(&options.workloads, &name)?;
        let runs = newest(&options.results, &name);
        let rows = rows(&workload, &runs, options.all);
        if rows.is_empty() {
            eprintln!("{name} has no results");
            continue;
        }
        let heads = contestants(&runs);
        match sections.last_mut() {
            Some((last, text)) if *last == heads => text.push_str(&rows),
            _ => sections.push((heads, rows)),
        }
    }
    for (heads, rows) in sections {
        println!("{}{rows}", head(&heads));
    }
    Ok(())
}

pub fn head(contestants: &[String]) -> String {
    let ratios = contestants.iter().skip(1).map(|peer| format!(" ratio to {peer} |"));
    let cells: String = contestants.iter().map(|name| format!(" {name} |")).chain(ratios).collect();
    let columns = 2 * contestants.len();
    format!("| median (min to max) |{cells}\n|{}\n", "---|".repeat(columns))
}

/// The rows of one workload; empty without runs.
pub fn rows(workload: &Workload, runs: &[Run], all: bool) -> String {
    let contestants = contestants(runs);
    let mut out = String::new();
    for metric in METRICS {
        let wanted = all || workload.table.is_empty() || workload.table.iter().any(|name| name == metric.name);
        let of = |contestant: &String| Spread::of_runs(runs, contestant, metric.name);
        let spreads: Vec<Option<Spread>> = contestants.iter().map(of).collect();
        if !wanted || spreads.iter().all(Option::is_none) {
            continue;
        }
        let _ = write!(out, "| {}: {}, {} |", workload.name, metric.title, metric.unit);
        for spread in &spreads {
            let _ = write!(out, " {} |", spread.map_or_else(|| "not measured".to_owned(), cell));
        }
        for peer in spreads.iter().skip(1) {
            let _ = write!(out, " {} |", ratio(spreads[0], *peer));
        }
        out.push('\n');
    }
    out
}

pub fn cell(spread: Spread) -> String {
    format!("{} ({} to {})", number(spread.median), number(spread.min), number(spread.max))
}

/// The first one's median in multiples of the peer's.
pub fn ratio(ours: Option<Spread>, peer: Option<Spread>) -> String {
    match (ours, peer) {
        (Some(ours), Some(peer)) if peer.median != 0.0 => format!("{}x", number(ours.median / peer.median)),
        _ => String::new(),
    }
}

/// Three digits that mean something, or all before the point.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => 0,
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        v if v >= 0.1 => 3,
        _ => 4,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::results::tests::run;

    #[test]
    fn numbers_keep_what_means_something() {
        for (value, text) in [(0.0, "0"), (0.01234, "0.0123"), (0.1234, "0.123"), (1.234, "1.23"), (12.34, "12.3")] {
            assert_eq!(number(value), text);
        }
        assert_eq!((number(123.4), number(1_234_567.0)), ("123".to_owned(), "1234567".to_owned()));
    }

    #[test]
    fn a_row_has_a_cell_for_each_contestant_and_a_ratio_for_each_peer() {
        let workload = Workload { name: "firehose".to_owned(), ..Workload::default() };
        let mut runs = vec![run(1, 0, "Ringlog", 1.0), run(1, 0, "Ringlog", 3.0), run(1, 1, "Kafka", 4.0)];
        runs.push(run(1, 2, "Other", 8.0));
        runs[3].figures.clear();
        assert_eq!(
            rows(&workload, &runs, false),
            "| firehose: produce p99, ms | 2.00 (1.00 to 3.00) | 4.00 (4.00 to 4.00) | not measured | 0.500x |  |\n"
        );
        let head = head(&contestants(&runs));
        assert!(head.lines().all(|line| line.matches('|').count() == 7), "{head}");
    }

    #[test]
    fn a_workload_says_which_rows_matter() {
        let workload = Workload { table: vec!["produce_p50_ms".to_owned()], ..Workload::default() };
        let runs = [run(1, 0, "Ringlog", 1.0)];
        assert!(rows(&workload, &runs, false).is_empty());
        assert!(!rows(&workload, &runs, true).is_empty());
    }
}
