//! A workload: one TOML file of `bench/workloads`, which says everything about a run but who is measured.
//!
//! Every field, its default and its unit is written down in `bench/workloads/firehose.toml`. An unknown field, a value out
//! of its bounds, or two fields that contradict each other are refused with a sentence before any broker is started: a
//! misspelt field would otherwise measure something else than its author meant.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::metrics;

/// Largest request: what both brokers take at their defaults, with room for batches' headers.
const REQUEST_BYTES_MAX: usize = 90 << 20;
/// Largest batch of a partition: `message.max.bytes` of both brokers at their defaults.
const BATCH_BYTES_MAX: usize = 1_048_576;
const PARTITIONS_MAX: i32 = 100_000;
const CONNECTIONS_MAX: usize = 10_000;
const SECONDS_MAX: f64 = 3_600.0;

/// What is measured.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Producers, consumers, or both, for a time.
    #[default]
    Load,
    /// From the start of the process to its first answer, in an empty folder and again after a clean stop.
    Start,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    #[default]
    None,
    Lz4,
}

/// When consumers read.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Consume {
    None,
    /// From the beginning, after the producers have ended.
    #[default]
    After,
    /// At the end of the partitions, while the producers write.
    Tail,
    /// From the beginning of `preload_mib` that the page cache no longer holds, while the producers write.
    Behind,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    Ringlog,
    Kafka,
}

/// See the module's comment for where the fields are described.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Workload {
    /// The file's name without its end.
    #[serde(skip_deserializing)]
    pub name: String,
    pub about: String,
    pub kind: Kind,
    pub partitions: i32,
    pub record_bytes: usize,
    pub keys: u64,
    pub random_share: f64,
    pub codec: Codec,
    pub batch_bytes: usize,
    pub partitions_per_request: i32,
    pub scattered_records: usize,
    pub in_flight: usize,
    pub connections: usize,
    pub client_threads: usize,
    pub rate: u64,
    pub warm_up_seconds: f64,
    pub seconds: f64,
    pub mib: u64,
    pub preload_mib: u64,
    pub consume: Consume,
    pub groups: usize,
    pub consumers: usize,
    pub sync: Vec<Side>,
    pub table: Vec<String>,
}

impl Default for Workload {
    fn default() -> Workload {
        Workload {
            name: String::new(),
            about: String::new(),
            kind: Kind::Load,
            partitions: 1,
            record_bytes: 500,
            keys: 0,
            random_share: 1.0,
            codec: Codec::None,
            batch_bytes: 16_000,
            partitions_per_request: 0,
            scattered_records: 0,
            in_flight: 5,
            connections: 1,
            client_threads: 1,
            rate: 0,
            warm_up_seconds: 2.0,
            seconds: 10.0,
            mib: 0,
            preload_mib: 0,
            consume: Consume::After,
            groups: 1,
            consumers: 1,
            sync: vec![Side::Ringlog],
            table: Vec::new(),
        }
    }
}

impl Workload {
    pub fn parse(name: &str, text: &str) -> Result<Workload, String> {
        let mut workload: Workload = toml::from_str(text).map_err(|e| format!("workload {name}: {}", one_line(&e)))?;
        workload.name = name.to_owned();
        workload.check().map_err(|sentence| format!("workload {name}: {sentence}"))?;
        Ok(workload)
    }

    pub fn read(dir: &Path, name: &str) -> Result<Workload, String> {
        let path = dir.join(format!("{name}.toml"));
        let text = std::fs::read_to_string(&path)
            .map_err(|e| format!("{}: {e}; `bench compare --list` names the workloads", path.display()))?;
        Workload::parse(name, &text)
    }

    fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: f64, least: f64, most: f64| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(format!("{name} is {value}, but has to be within {least} and {most}"))
        };
        within("partitions", f64::from(self.partitions), 1.0, f64::from(PARTITIONS_MAX))?;
        within("record_bytes", self.record_bytes as f64, 1.0, 1_000_000.0)?;
        within("batch_bytes", self.batch_bytes as f64, 1.0, BATCH_BYTES_MAX as f64)?;
        within("random_share", self.random_share, 0.0, 1.0)?;
        within("in_flight", self.in_flight as f64, 1.0, 1_000.0)?;
        within("connections", self.connections as f64, 0.0, CONNECTIONS_MAX as f64)?;
        within("client_threads", self.client_threads as f64, 1.0, 64.0)?;
        within("warm_up_seconds", self.warm_up_seconds, 0.0, SECONDS_MAX)?;
        within("seconds", self.seconds, 0.1, SECONDS_MAX)?;
        within("groups", self.groups as f64, 1.0, 1_000.0)?;
        within("consumers", self.consumers as f64, 1.0, f64::from(self.partitions))?;
        within("partitions_per_request", f64::from(self.partitions_per_request), 0.0, f64::from(self.partitions))?;
        within("scattered_records", self.scattered_records as f64, 0.0, 1_000_000.0)?;
        if self.connections == 0 {
            return self.check_together();
        }
        within("request's bytes", self.request_bytes() as f64, 1.0, REQUEST_BYTES_MAX as f64)?;
        self.check_together()
    }

    fn check_together(&self) -> Result<(), String> {
        if self.about.trim().is_empty() {
            return Err("`about` has to say in a sentence what it stands for".to_owned());
        }
        if self.scattered_records > 0 && self.partitions_per_request > 0 {
            return Err("scattered_records and partitions_per_request contradict each other".to_owned());
        }
        if (self.consume == Consume::Behind) != (self.preload_mib > 0) {
            return Err("`consume = \"behind\"` and preload_mib need each other".to_owned());
        }
        if self.consume == Consume::Behind && self.connections == 0 {
            return Err("`consume = \"behind\"` needs producers".to_owned());
        }
        if self.keys > 0 && self.keys < self.partitions as u64 {
            return Err("fewer keys than partitions leave partitions empty".to_owned());
        }
        if !self.sync.contains(&Side::Ringlog) {
            return Err("Ringlog has no mode without sync, so `sync` has to name it".to_owned());
        }
        match self.table.iter().find(|name| metrics::find(name).is_none()) {
            Some(unknown) => Err(format!("`table` names {unknown}, which is no figure of a run")),
            None => Ok(()),
        }
    }

    /// Records of a batch, unless records are scattered.
    pub fn records_per_batch(&self) -> usize {
        (self.batch_bytes / self.record_bytes).max(1)
    }

    /// Records of a request; a scattered request has as many as it says.
    pub fn records_per_request(&self) -> usize {
        if self.scattered_records > 0 {
            return self.scattered_records;
        }
        self.records_per_batch() * self.batches_per_request()
    }

    pub fn batches_per_request(&self) -> usize {
        let all = self.partitions.max(1) as usize;
        if self.partitions_per_request == 0 { all } else { self.partitions_per_request as usize }
    }

    fn request_bytes(&self) -> usize {
        self.records_per_request().saturating_mul(self.record_bytes)
    }

    pub fn syncs(&self, side: Side) -> bool {
        self.sync.contains(&side)
    }

    /// The same for a fraction of the time and bytes.
    pub fn scaled(mut self, scale: f64) -> Workload {
        let bytes = |mib: u64| if mib == 0 { 0 } else { ((mib as f64 * scale) as u64).max(1) };
        (self.mib, self.preload_mib) = (bytes(self.mib), bytes(self.preload_mib));
        self.seconds = (self.seconds * scale).max(0.1);
        self.warm_up_seconds *= scale;
        self
    }
}

/// TOML's errors are a picture of several lines.
fn one_line(error: &toml::de::Error) -> String {
    error.message().replace('\n', " ")
}

/// The names of all workloads of a folder, sorted.
pub fn names(dir: &Path) -> Result<Vec<String>, String> {
    let list = std::fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let paths = list.filter_map(Result::ok).map(|entry| entry.path());
    let toml = |path: PathBuf| {
        let is = path.extension().is_some_and(|end| end == "toml");
        path.file_stem().filter(|_| is).map(|stem| stem.to_string_lossy().into_owned())
    };
    let mut names: Vec<String> = paths.filter_map(toml).collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
#[path = "workload_tests.rs"]
mod tests;
