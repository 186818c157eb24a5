//! The figures of `ringlog tune disk` as a table for people or as JSON, and what follows from them.

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::disk_measure::{Kind, Phase};
use super::disk_profile::{Choice, ENOUGH_PERCENT, first_enough};
use super::verdict::bytes;
use crate::cli::output::Table;

/// What one phase gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub phase: Phase,
    pub operations: u64,
    pub took_ns: u64,
    pub p50_us: u64,
    pub p99_us: u64,
    pub max_us: u64,
}

impl Row {
    pub fn new(phase: Phase, took_ns: u64, latencies: &Histogram<u64>) -> Row {
        Row {
            phase,
            operations: latencies.len(),
            took_ns,
            p50_us: latencies.value_at_quantile(0.5),
            p99_us: latencies.value_at_quantile(0.99),
            max_us: latencies.max(),
        }
    }

    pub fn per_s(&self) -> f64 {
        self.operations as f64 * 1e9 / self.took_ns.max(1) as f64
    }

    pub fn mib_per_s(&self) -> f64 {
        self.per_s() * self.phase.size as f64 / f64::from(1 << 20)
    }

    fn json(&self) -> Value {
        json!({
            "kind": match self.phase.kind { Kind::Write => "write", Kind::WriteSync => "write_fdatasync", Kind::Read => "read" },
            "size_bytes": self.phase.size, "depth": self.phase.depth, "operations": self.operations,
            "mib_per_s": rounded(self.mib_per_s()), "iops": rounded(self.per_s()),
            "p50_us": self.p50_us, "p99_us": self.p99_us, "max_us": self.max_us,
        })
    }
}

fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[derive(Clone, Debug)]
pub struct Report {
    /// What the figures belong to, as name and value.
    pub host: Vec<(&'static str, String)>,
    pub in_memory: bool,
    pub rows: Vec<Row>,
}

/// What follows from the figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Derived {
    pub choice: Choice,
    /// Fewest reads at once that reach most of the best rate of 4 KiB reads.
    pub read_depth: usize,
    /// One block and its sync: the least that acks=all costs.
    pub sync_p50_us: u64,
    pub sync_p99_us: u64,
}

impl Report {
    pub fn derived(&self) -> Option<Derived> {
        let synced = self.rows.iter().filter(|r| r.phase.kind == Kind::WriteSync);
        let reads: Vec<&Row> = self.rows.iter().filter(|r| r.phase.kind == Kind::Read).collect();
        let smallest = synced.min_by_key(|r| r.phase.size)?;
        let block = reads.iter().map(|r| r.phase.size).min()?;
        let reads: Vec<&Row> = reads.into_iter().filter(|r| r.phase.size == block).collect();
        Some(Derived {
            choice: Choice::of(&self.rows)?,
            read_depth: first_enough(&reads, |r| r.phase.depth)?.phase.depth,
            sync_p50_us: smallest.p50_us,
            sync_p99_us: smallest.p99_us,
        })
    }

    pub fn json(&self) -> Value {
        let host: serde_json::Map<String, Value> =
            self.host.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let derived = self.derived().map(|d| {
            json!({
                "disk_write_max_bytes": d.choice.write_max_bytes, "disk_queue_depth": d.choice.queue_depth,
                "disk_expected_write_us": d.choice.expected_write_us, "read_depth": d.read_depth,
                "sync_p50_us": d.sync_p50_us, "sync_p99_us": d.sync_p99_us,
            })
        });
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        json!({ "host": host, "in_memory": self.in_memory, "phases": rows, "derived": derived })
    }

    pub fn text(&self) -> String {
        let mut out = format!("{}\n{}", self.host_text(), self.table());
        if self.in_memory {
            out.push_str("\nThe folder lies in memory: the figures say nothing about a drive.\n");
        } else if let Some(derived) = self.derived() {
            out.push_str(&format!("\n{}\n", conclusion(&derived)));
        }
        out
    }

    pub fn host_text(&self) -> String {
        self.host.iter().map(|(name, value)| format!("{:<12} {value}\n", name.replace('_', " "))).collect()
    }

    pub fn table(&self) -> String {
        let mut table = Table::new(&["", "MiB/s", "per s", "p50 µs", "p99 µs", "max µs"]);
        for row in &self.rows {
            table.row(vec![
                row.phase.to_string(),
                format!("{:.1}", row.mib_per_s()),
                format!("{:.0}", row.per_s()),
                row.p50_us.to_string(),
                row.p99_us.to_string(),
                row.max_us.to_string(),
            ]);
        }
        table.render()
    }
}

fn conclusion(derived: &Derived) -> String {
    let choice = &derived.choice;
    format!(
        "An acks=all produce waits {} µs at least (p99 {} µs). {ENOUGH_PERCENT} % of the best is reached by synced writes of\n\
         {}, by {} small ones at once, and by {} reads of one block at once. As keys of a tuning profile\n\
         (--write FILE leaves them in a file that serve --tuning takes):\n\
         disk_write_max_bytes = {}\ndisk_queue_depth = {}\ndisk_expected_write_us = {}",
        derived.sync_p50_us,
        derived.sync_p99_us,
        bytes(choice.write_max_bytes as u64),
        choice.queue_depth,
        derived.read_depth,
        choice.write_max_bytes,
        choice.queue_depth,
        choice.expected_write_us
    )
}

/// Day and time in UTC: "2026-11-29 17:04 UTC".
pub fn date(wall_ms: i64) -> String {
    let minutes = wall_ms.div_euclid(60_000);
    let (days, minute) = (minutes.div_euclid(1440), minutes.rem_euclid(1440));
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", minute / 60, minute % 60)
}

/// Year, month and day of a count of days since 1970, counted from 1 March 0000, so that a leap day ends its year.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn row(kind: Kind, size: usize, depth: usize, operations: u64) -> Row {
        let phase = Phase { kind, size, depth };
        Row { phase, operations, took_ns: 1_000_000_000, p50_us: 100, p99_us: 900, max_us: 1000 }
    }

    fn report() -> Report {
        let rows = vec![
            row(Kind::WriteSync, 4096, 1, 1000),
            row(Kind::WriteSync, 1 << 14, 1, 950),
            row(Kind::WriteSync, 1 << 14, 4, 960),
            row(Kind::WriteSync, 1 << 16, 1, 960),
            row(Kind::WriteSync, 1 << 20, 1, 60),
            row(Kind::Read, 4096, 1, 10_000),
            row(Kind::Read, 4096, 4, 39_000),
            row(Kind::Read, 4096, 16, 40_000),
            row(Kind::Read, 1 << 16, 1, 1),
        ];
        Report { host: vec![("file_system", "ext4".into())], in_memory: false, rows }
    }

    #[test]
    fn figures_follow_from_the_rows() {
        let row = row(Kind::Read, 1 << 19, 1, 10);
        assert_eq!((row.per_s(), row.mib_per_s()), (10.0, 5.0));
        let choice = Choice { write_max_bytes: 1 << 16, queue_depth: 1, expected_write_us: 100 };
        let derived = Derived { choice, read_depth: 4, sync_p50_us: 100, sync_p99_us: 900 };
        assert_eq!(report().derived(), Some(derived));
        assert_eq!(Report { rows: Vec::new(), ..report() }.derived(), None);
    }

    #[test]
    fn both_shapes_hold_every_phase() {
        let text = report().text();
        assert!(
            text.contains("read 4 KiB, 16 at once") && text.contains("waits 100 µs at least (p99 900 µs)"),
            "{text}"
        );
        let json = report().json();
        assert_eq!(json["phases"].as_array().unwrap().len(), 9);
        assert_eq!(json["derived"]["disk_write_max_bytes"], 65_536);
        assert_eq!(json["phases"][0]["kind"], "write_fdatasync");
        assert_eq!(json["host"]["file_system"], "ext4");
        let memory = Report { in_memory: true, ..report() }.text();
        assert!(memory.contains("lies in memory") && !memory.contains("acks=all"), "{memory}");
    }

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400_000), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_767_225_599_000), "2025-12-31 23:59 UTC");
        assert_eq!(date(-60_000), "1969-12-31 23:59 UTC");
    }
}
