//! Instruction counts from callgrind's output, by crate, and the guard that holds them against what was committed.
//!
//! Counts do not depend on the machine's mood. A program is counted twice with different numbers of operations; the difference
//! over the difference in number is what one operation costs, without start and stop. Instructions count for the crate that their
//! source lies in, also inlined ones; those of libraries for the crates that called them, by the calls' shares. What [`OUTSIDE`]
//! names is no part of the product: the simulated disk and network below it, and the driver above it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Growth that is a failure.
pub const TOLERANCE: f64 = 0.1;
/// Parts of paths that make a source file one of a crate's.
const CRATES: &[(&str, &str)] = &[
    ("engine/runtime/src/sim/", OUTSIDE),
    ("bench/", OUTSIDE),
    ("engine/model/", "model"),
    ("engine/runtime/", "runtime"),
    ("engine/log/", "log"),
    ("replication/metadata/", "metadata"),
    ("replication/replica/", "replica"),
    ("replication/coordinator/", "coordinator"),
    ("net/wire/", "wire"),
    ("net/server/", "server"),
];
/// Simulator and driver.
pub const OUTSIDE: &str = "outside";
/// What the standard library, libc and other people's crates did that nobody's call explains: start and end of the program.
pub const LIBRARIES: &str = "libraries";
/// Calls from library to library that are followed.
const SETTLING_ROUNDS: usize = 60;

/// Instructions by crate.
pub type Counts = BTreeMap<String, f64>;

fn crate_of(file: &str) -> &'static str {
    // Other people's crates have folders of these names too.
    let theirs = file.contains("/registry/") || file.contains("/rustc/");
    CRATES.iter().find(|(part, _)| !theirs && file.contains(part)).map_or(LIBRARIES, |(_, name)| *name)
}

/// Names that callgrind writes once in full and then as a number.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    /// Of `(12) name` or `(12)`.
    fn resolve(&mut self, text: &str) -> String {
        let Some((number, rest)) = text.strip_prefix('(').and_then(|rest| rest.split_once(')')) else {
            return text.to_owned();
        };
        let name = rest.trim();
        if name.is_empty() {
            return self.0.get(number).cloned().unwrap_or_default();
        }
        self.0.insert(number.to_owned(), name.to_owned());
        name.to_owned()
    }
}

/// A function: the file it is defined in, and its name.
type Function = (String, String);

/// Who made a call, or stands for a cost: a crate of ours, or a library's function, whose costs are its callers'.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Home {
    Crate(&'static str),
    Library(Function),
}

impl Home {
    fn of(file: &str, name: String) -> Home {
        match crate_of(file) {
            LIBRARIES => Home::Library((file.to_owned(), name)),
            name => Home::Crate(name),
        }
    }
}

/// A run: what each crate and each function of a library did itself, and what calls into libraries cost with all that those
/// called in turn.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    own: BTreeMap<Home, f64>,
    calls: BTreeMap<(Function, Home), f64>,
}

/// What the output says, as it is walked.
#[derive(Default)]
struct Walk {
    files: Names,
    names: Names,
    /// Where the function at hand is defined, and where its line at hand comes from, which differs where something was inlined.
    function_file: String,
    file: String,
    home: Option<Home>,
    called_file: Option<String>,
    called: Option<Home>,
    profile: Profile,
}

impl Walk {
    /// Whose a line is: the crate that its source is of, else its function's.
    fn home_of_line(&self) -> Option<Home> {
        match crate_of(&self.file) {
            LIBRARIES => self.home.clone(),
            name => Some(Home::Crate(name)),
        }
    }

    fn cost(&mut self, instructions: f64) {
        if let Some(home) = self.home_of_line() {
            *self.profile.own.entry(home).or_default() += instructions;
        }
    }

    fn call(&mut self, instructions: f64) {
        if let (Some(Home::Library(callee)), Some(caller)) = (self.called.take(), self.home_of_line())
            && caller != Home::Library(callee.clone())
        {
            *self.profile.calls.entry((callee, caller)).or_default() += instructions;
        }
    }

    fn name(&mut self, key: &str, value: &str) {
        match key {
            "fl" => {
                self.function_file = self.files.resolve(value);
                self.file = self.function_file.clone();
            }
            "fi" | "fe" => self.file = self.files.resolve(value),
            "fn" => {
                self.file = self.function_file.clone();
                let name = self.names.resolve(value);
                self.home = Some(Home::of(&self.file, name));
            }
            "cfi" | "cfl" => self.called_file = Some(self.files.resolve(value)),
            "cfn" => {
                let name = self.names.resolve(value);
                let file = self.called_file.take().unwrap_or_else(|| self.function_file.clone());
                self.called = Some(Home::of(&file, name));
            }
            _ => {}
        }
    }
}

impl Profile {
    pub fn parse(out: &str) -> Profile {
        let mut walk = Walk::default();
        let mut is_call = false;
        for line in out.lines() {
            if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
                let cost = line.split_whitespace().nth(1).and_then(|cost| cost.parse::<f64>().ok());
                match cost {
                    Some(cost) if is_call => walk.call(cost),
                    Some(cost) => walk.cost(cost),
                    None => {}
                }
                is_call = false;
            } else if let Some((key, value)) = line.split_once('=') {
                is_call = key == "calls";
                walk.name(key, value);
            }
        }
        walk.profile
    }

    /// What this run did beyond another that began and ended alike. It is taken before libraries' costs find their callers: a
    /// start calls libraries in other proportions than an operation does.
    #[must_use]
    pub fn beyond(&self, other: &Profile) -> Profile {
        fn minus<K: Ord + Clone>(many: &BTreeMap<K, f64>, few: &BTreeMap<K, f64>) -> BTreeMap<K, f64> {
            let difference = |(key, value): (&K, &f64)| (key.clone(), (value - few.get(key).unwrap_or(&0.0)).max(0.0));
            many.iter().map(difference).collect()
        }
        Profile { own: minus(&self.own, &other.own), calls: minus(&self.calls, &other.calls) }
    }

    /// Instructions by crate: what libraries did moves to their callers, each by its share of the calls, until it is at home.
    pub fn counts(&self) -> Counts {
        let mut callers = BTreeMap::<&Function, Vec<(&Home, f64)>>::new();
        for ((callee, caller), cost) in self.calls.iter().filter(|(_, cost)| **cost > 0.0) {
            callers.entry(callee).or_default().push((caller, *cost));
        }
        let mut counts = Counts::new();
        let mut open: BTreeMap<&Home, f64> = self.own.iter().map(|(home, cost)| (home, *cost)).collect();
        for _ in 0..SETTLING_ROUNDS {
            let mut next = BTreeMap::<&Home, f64>::new();
            for (home, instructions) in open {
                let function = match home {
                    Home::Crate(name) => {
                        *counts.entry((*name).to_owned()).or_default() += instructions;
                        continue;
                    }
                    Home::Library(function) => function,
                };
                let Some(callers) = callers.get(function) else {
                    *counts.entry(LIBRARIES.to_owned()).or_default() += instructions;
                    continue;
                };
                let all: f64 = callers.iter().map(|(_, cost)| cost).sum();
                for (caller, cost) in callers {
                    *next.entry(caller).or_default() += instructions * cost / all;
                }
            }
            open = next;
        }
        *counts.entry(LIBRARIES.to_owned()).or_default() += open.values().sum::<f64>();
        counts
    }
}

/// What one operation costs: two runs' difference.
pub fn per_operation(few: &Profile, many: &Profile, operations: f64) -> Counts {
    many.beyond(few).counts().into_iter().map(|(name, count)| (name, count / operations)).collect()
}

/// Of our own crates together.
pub fn ours(counts: &Counts) -> f64 {
    counts.iter().filter(|(name, _)| ![OUTSIDE, LIBRARIES].contains(&name.as_str())).map(|(_, count)| count).sum()
}

/// Committed counts: instructions of one operation by name.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Guards {
    pub instructions: BTreeMap<String, u64>,
}

impl Guards {
    pub fn read(path: &Path) -> Result<Guards, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        toml::from_str(&text).map_err(|e| format!("{}: {}", path.display(), e.message()))
    }

    pub fn write(&self, path: &Path) -> Result<(), String> {
        let head = "# Instructions of one operation on the whole way through the node, without simulator and client.\n\
                    # Counted, compared and accepted by `cargo bench -p ringlog-bench --features sim --bench count`.\n\n";
        let body = toml::to_string(self).map_err(|e| e.to_string())?;
        std::fs::write(path, format!("{head}{body}")).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// A sentence for each count that grew by more than the tolerance, or that is not committed.
    pub fn findings(&self, found: &BTreeMap<String, u64>) -> Vec<String> {
        let judge = |(name, &count): (&String, &u64)| match self.instructions.get(name) {
            None => Some(format!("{name}: {count} instructions, nothing is committed")),
            Some(&committed) if count as f64 > committed as f64 * (1.0 + TOLERANCE) => {
                let growth = (count as f64 / committed as f64 - 1.0) * 100.0;
                Some(format!("{name}: {count} instructions, {growth:.1} % more than the committed {committed}"))
            }
            Some(_) => None,
        };
        found.iter().filter_map(judge).collect()
    }
}

#[cfg(test)]
#[path = "callgrind_tests.rs"]
mod tests;
