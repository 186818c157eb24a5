//! Who takes part in a comparison, and a run of one of them: a fresh folder, a dropped page cache, a broker, the load, a clean stop.
//!
//! A run owns its folder and its broker; both are gone when it returns, also with an error.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bare::limits::TAIL_MEMORY_MIB;
use crate::broker::{Broker, Kind, Programs};
use crate::cpus::{Cpus, written};
use crate::gauge::{Device, drop_page_cache, write_back};
use crate::results::Figures;
use crate::traffic::{self, Field};
use crate::workload::{self, Consume, Workload};

/// For a broker that has just started to become quiet.
const QUIET: Duration = Duration::from_secs(2);
/// Bytes that were acknowledged may still be on their way from a journal to their segments.
const WRITES_QUIET: Duration = Duration::from_millis(500);
const WRITES_LIMIT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct Contestant {
    pub name: String,
    pub kind: Kind,
    /// Of Ringlog.
    pub program: PathBuf,
    /// `key=value`, of Ringlog or of the bare contestant.
    pub settings: Vec<String>,
}

impl Contestant {
    pub fn flags(&self) -> Value {
        json!({ "settings": self.settings })
    }

    /// Its settings in a run of a workload.
    fn settings_for(&self, workload: &Workload) -> Vec<String> {
        let mut settings = self.settings.clone();
        if self.kind == Kind::Bare && workload.consume == Consume::Tail {
            settings.push(format!("memory-mib={TAIL_MEMORY_MIB}"));
        }
        settings
    }

    /// Why it cannot do a workload, if it cannot.
    pub fn refusal(&self, workload: &Workload) -> Option<String> {
        let what = match (self.kind, workload.kind, workload.consume) {
            (Kind::Bare, workload::Kind::Start, _) => "it recovers nothing, so that its start says nothing",
            (Kind::Bare, _, Consume::Behind) => "it reads nothing from disk, so that no consumer can be behind",
            _ => return None,
        };
        Some(format!("{} cannot do the workload {}: {what}", self.name, workload.name))
    }
}

/// Where and on which CPUs runs take place.
#[derive(Clone, Debug)]
pub struct Place {
    pub dir: PathBuf,
    pub kafka_packages: PathBuf,
    pub cpus: Cpus,
}

/// Removes the folder when dropped.
struct Folder<'a>(&'a Path);

impl Drop for Folder<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0);
    }
}

/// One run. Says on stderr where the page cache could not be dropped.
pub fn measure(place: &Place, contestant: &Contestant, workload: &Workload) -> Result<Figures, String> {
    let dir = place.dir.join("run");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let _folder = Folder(&dir);
    if let Err(sentence) = drop_page_cache(&dir) {
        eprintln!("bench: {sentence}");
    }
    let programs = Programs {
        ringlog: contestant.program.clone(),
        kafka_packages: place.kafka_packages.clone(),
        bench: std::env::current_exe().map_err(|e| format!("this program's own path: {e}"))?,
        cpus: written(&place.cpus.brokers),
    };
    let settings = contestant.settings_for(workload);
    let start = || Broker::start_with(contestant.kind, &programs, &dir, &settings);
    match workload.kind {
        workload::Kind::Start => starts(start),
        workload::Kind::Load => load(start()?, place, contestant.kind, workload, &dir),
    }
}

fn starts(start: impl Fn() -> Result<Broker, String>) -> Result<Figures, String> {
    let ms = |broker: &Broker| broker.started_in.as_secs_f64() * 1e3;
    let broker = start()?;
    let mut figures = Figures::from([("start_ms".to_owned(), ms(&broker))]);
    std::thread::sleep(QUIET);
    figures.insert("resident_idle_mib".to_owned(), broker.resident_mib());
    broker.stop()?;
    let broker = start()?;
    figures.insert("restart_ms".to_owned(), ms(&broker));
    broker.stop()?;
    Ok(figures)
}

fn load(broker: Broker, place: &Place, kind: Kind, workload: &Workload, dir: &Path) -> Result<Figures, String> {
    write_back(dir);
    let device = Device::of(dir);
    let on_device = || device.as_ref().and_then(Device::written_bytes);
    let before = (broker.written_bytes(), on_device());
    let field = Field { broker: &broker, kind, workload, cpus: &place.cpus.client, dir };
    let outcome = traffic::run(&field)?;
    let mut figures = outcome.figures;
    let produced = outcome.produced_bytes as f64;
    if produced > 0.0 {
        let written = quiet_writes(&broker) - before.0;
        figures.insert("process_written_per_byte".to_owned(), written / produced);
    }
    broker.stop()?;
    write_back(dir);
    if let (Some(before), Some(after), true) = (before.1, on_device(), produced > 0.0) {
        figures.insert("device_written_per_byte".to_owned(), (after - before) / produced);
    }
    Ok(figures)
}

/// What the process has written once it writes no more for a moment.
fn quiet_writes(broker: &Broker) -> f64 {
    let deadline = Instant::now() + WRITES_LIMIT;
    let mut written = broker.written_bytes();
    loop {
        std::thread::sleep(WRITES_QUIET);
        let now = broker.written_bytes();
        if now <= written || Instant::now() > deadline {
            return now;
        }
        written = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bare_contestant_says_what_it_cannot_do() {
        let of = |kind| Contestant { name: "one".to_owned(), kind, program: PathBuf::new(), settings: Vec::new() };
        let consuming = |consume| Workload { consume, ..Workload::default() };
        let start = Workload { kind: workload::Kind::Start, ..Workload::default() };
        for workload in [&consuming(Consume::Behind), &start] {
            assert!(of(Kind::Bare).refusal(workload).is_some());
            assert_eq!((of(Kind::Kafka).refusal(workload), of(Kind::Ringlog).refusal(workload)), (None, None));
        }
        for consume in [Consume::None, Consume::After, Consume::Tail] {
            assert_eq!(of(Kind::Bare).refusal(&consuming(consume)), None);
            let remembers = !of(Kind::Bare).settings_for(&consuming(consume)).is_empty();
            assert_eq!(remembers, consume == Consume::Tail, "only consumers at the tail need memory");
        }
    }
}
