//! What one check found: a level, the finding, what it costs and how to mend it. Shown as a table or as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Ok,
    /// Could not be read here; the finding says why.
    Unknown,
    /// Worth knowing; right for many hosts.
    Note,
    /// Costs throughput or latency.
    Warning,
    /// The broker cannot start, or promises what the host does not keep.
    Problem,
}

impl Level {
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Unknown => "unknown",
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Problem => "problem",
        }
    }
}

/// A file of the host that a process may write itself, as root, to mend a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub path: String,
    pub now: String,
    pub value: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub level: Level,
    pub name: &'static str,
    pub found: String,
    /// Empty where it costs nothing.
    pub cost: String,
    /// A command, or what to do in words; empty where there is nothing to mend.
    pub mend: String,
    pub changes: Vec<Change>,
}

impl Verdict {
    pub fn ok(name: &'static str, found: impl Into<String>) -> Verdict {
        let (cost, mend) = (String::new(), String::new());
        Verdict { level: Level::Ok, name, found: found.into(), cost, mend, changes: Vec::new() }
    }

    pub fn unknown(name: &'static str, why: impl Into<String>) -> Verdict {
        Verdict { level: Level::Unknown, ..Verdict::ok(name, why) }
    }

    pub fn new(
        level: Level,
        name: &'static str,
        found: impl Into<String>,
        cost: impl Into<String>,
        mend: impl Into<String>,
    ) -> Verdict {
        Verdict { level, cost: cost.into(), mend: mend.into(), ..Verdict::ok(name, found) }
    }

    /// Adds what a process may write itself. Where no other mend is named the commands that write the same are it.
    #[must_use]
    pub fn with_changes(mut self, changes: Vec<Change>) -> Verdict {
        if self.mend.is_empty() {
            let commands: Vec<String> = changes.iter().map(|c| format!("echo {} > {}", c.value, c.path)).collect();
            self.mend = commands.join("; ");
        }
        self.changes = changes;
        self
    }

    pub fn json(&self) -> Value {
        json!({
            "verdict": self.level.as_str(), "check": self.name, "found": self.found, "cost": self.cost, "mend": self.mend,
        })
    }
}

/// One line for each verdict; what it costs and what mends it stand below.
pub fn table(verdicts: &[Verdict]) -> String {
    let name_width = verdicts.iter().map(|v| v.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for verdict in verdicts {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{:<8} {:<name_width$}  {}", verdict.level.as_str(), verdict.name, verdict.found);
        for (label, text) in [("costs:", &verdict.cost), ("mend:", &verdict.mend)] {
            if !text.is_empty() {
                let _ = writeln!(out, "{:<8} {:<name_width$}    {label} {text}", "", "");
            }
        }
    }
    out
}

/// "2 warnings, 1 note, 12 ok".
pub fn summary(verdicts: &[Verdict]) -> String {
    let levels = [Level::Problem, Level::Warning, Level::Note, Level::Unknown, Level::Ok];
    let parts: Vec<String> = levels
        .into_iter()
        .filter_map(|level| {
            let count = verdicts.iter().filter(|v| v.level == level).count();
            let plural = if count > 1 && !matches!(level, Level::Ok | Level::Unknown) { "s" } else { "" };
            (count > 0).then(|| format!("{count} {}{plural}", level.as_str()))
        })
        .collect();
    parts.join(", ")
}

/// "12 MiB", "1.5 GiB".
pub fn bytes(count: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.into_iter().find(|(_, size)| count >= *size) {
        Some((unit, size)) if count.is_multiple_of(size) => format!("{} {unit}", count / size),
        Some((unit, size)) => format!("{:.1} {unit}", count as f64 / size as f64),
        None => format!("{count} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_costs_and_mends_below_their_line() {
        let verdicts = [
            Verdict::ok("kernel", "6.18"),
            Verdict::new(Level::Warning, "swap", "in use", "stalls", "swapoff -a"),
            Verdict::unknown("governor", "there is no cpufreq here"),
        ];
        let text = table(&verdicts);
        assert!(text.starts_with("ok       kernel    6.18\n"), "{text}");
        assert!(text.contains("warning  swap      in use\n"), "{text}");
        assert!(text.contains("costs: stalls\n") && text.contains("mend: swapoff -a\n"), "{text}");
        assert_eq!(summary(&verdicts), "1 warning, 1 unknown, 1 ok");
    }

    #[test]
    fn changes_are_commands_where_nothing_else_is_named() {
        let change = Change { path: "/proc/x".into(), now: "60".into(), value: "1".into() };
        let verdict = Verdict::new(Level::Note, "x", "", "", "").with_changes(vec![change]);
        assert_eq!(verdict.mend, "echo 1 > /proc/x");
    }

    #[test]
    fn sizes_for_people() {
        assert_eq!((bytes(17), bytes(4096), bytes(3 << 29)), ("17 bytes".into(), "4 KiB".into(), "1.5 GiB".into()));
    }
}
