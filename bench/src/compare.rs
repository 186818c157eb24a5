//! `bench compare`: contestants in turns, A B A B, each run with a broker and a folder of its own; every run is a line of the
//! results, and each workload ends with its table on stdout and its picture beside the lines. Progress is on stderr.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::bars::{Group, svg};
use crate::broker::Kind;
use crate::contestant::{Contestant, Place, measure};
use crate::cpus::{Cpus, written};
use crate::metrics::METRICS;
use crate::results::{Run, Spread, append};
use crate::workload::{Workload, names};
use crate::{host, limits, table};

/// Who Ringlog is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Peer {
    Kafka,
    /// A bare io_uring program that does the least a durable broker must; its file grows into preallocated space.
    Bare,
    /// The same with a file that is written over and over, as a journal is.
    BareRing,
    None,
}

impl Peer {
    fn contestant(self) -> Option<Contestant> {
        let (kind, more, settings) = match self {
            Peer::Kafka => (Kind::Kafka, "", Vec::new()),
            Peer::Bare => (Kind::Bare, "", Vec::new()),
            Peer::BareRing => (Kind::Bare, ", file written over", vec!["layout=ring".to_owned()]),
            Peer::None => return None,
        };
        Some(Contestant { name: format!("{}{more}", kind.name()), kind, program: PathBuf::new(), settings })
    }
}

/// Flags of `bench compare`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Only this workload; may be given more than once. All of them take an hour or more.
    #[arg(long)]
    workload: Vec<String>,
    /// Names the workloads and ends.
    #[arg(long)]
    list: bool,
    /// Who takes part besides Ringlog; several with commas between them.
    #[arg(long = "peer", value_enum, value_delimiter = ',', default_value = "kafka")]
    peers: Vec<Peer>,
    /// Turns; each contestant has a run in each.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Multiplies each workload's seconds and bytes, for a quick look.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// The ringlog program.
    #[arg(long, default_value = "target/release/ringlog")]
    ringlog: PathBuf,
    /// A setting of Ringlog's, in every run of it; may be given more than once.
    #[arg(long, value_name = "KEY=VALUE")]
    ringlog_set: Vec<String>,
    /// Also Ringlog without its journal: each partition synced by itself.
    #[arg(long)]
    against_direct: bool,
    /// Also another ringlog program, for instance that of an older tree.
    #[arg(long, value_name = "PATH")]
    other_ringlog: Option<PathBuf>,
    /// Also Ringlog with other settings (the other program's, if there is one); may be given more than once.
    #[arg(long, value_name = "KEY=VALUE")]
    other_set: Vec<String>,
    /// CPUs of the client's threads, such as 0 or 0,2-3. Where nothing is said of CPUs and there are four or more, a quarter of
    /// them is the client's, the others are the brokers'.
    #[arg(long, value_name = "CPUS")]
    pin_client: Option<String>,
    /// CPUs of the brokers.
    #[arg(long, value_name = "CPUS")]
    pin_broker: Option<String>,
    /// Client and brokers share all CPUs.
    #[arg(long, conflicts_with_all = ["pin_client", "pin_broker"])]
    share_cpus: bool,
    /// Measures the machine's own limits first, into the same results.
    #[arg(long)]
    with_limits: bool,
    /// Folder of Apache Kafka's packages (`tools/test prepare` fetches them).
    #[arg(long, default_value = ".cache/kafka-4.4.0")]
    kafka: PathBuf,
    /// Folder for the brokers' data; its disk is what is measured.
    #[arg(long, default_value = "/tmp/ringlog-bench")]
    dir: PathBuf,
    /// Folder of the results.
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
    /// Folder of the workloads.
    #[arg(long, default_value = "bench/workloads")]
    workloads: PathBuf,
}

impl Options {
    fn contestants(&self) -> Vec<Contestant> {
        let ringlog = |name: &str, program: &Path, more: &[String]| Contestant {
            name: name.to_owned(),
            kind: Kind::Ringlog,
            program: program.to_path_buf(),
            settings: self.ringlog_set.iter().chain(more).cloned().collect(),
        };
        let mut all = vec![ringlog("Ringlog", &self.ringlog, &[])];
        if self.against_direct {
            all.push(ringlog("Ringlog, no journal", &self.ringlog, &["ringlog.journal=false".to_owned()]));
        }
        if self.other_ringlog.is_some() || !self.other_set.is_empty() {
            let program = self.other_ringlog.as_deref().unwrap_or(&self.ringlog);
            all.push(ringlog("other Ringlog", program, &self.other_set));
        }
        all.extend(self.peers.iter().filter_map(|peer| peer.contestant()));
        all
    }

    fn place(&self) -> Result<Place, String> {
        Ok(Place {
            dir: self.dir.clone(),
            kafka_packages: self.kafka.clone(),
            cpus: Cpus::chosen(self.pin_client.as_deref(), self.pin_broker.as_deref(), self.share_cpus)?,
        })
    }

    fn flags(&self, contestant: &Contestant, cpus: &Cpus) -> Value {
        json!({
            "contestant": contestant.flags(), "rounds": self.rounds, "scale": self.scale,
            "pin_client": written(&cpus.client), "pin_broker": written(&cpus.brokers),
        })
    }
}

pub fn run(options: &Options) -> Result<(), String> {
    let all = names(&options.workloads)?;
    let wanted = if options.workload.is_empty() { &all } else { &options.workload };
    let workloads: Vec<Workload> =
        wanted.iter().map(|name| Workload::read(&options.workloads, name)).collect::<Result<_, _>>()?;
    if options.list {
        workloads.iter().for_each(|w| println!("{:<18} {}", w.name, w.about));
        return Ok(());
    }
    let (place, contestants) = (options.place()?, options.contestants());
    if options.peers.contains(&Peer::Kafka) && !options.kafka.is_dir() {
        let missing = options.kafka.display();
        return Err(format!(
            "{missing} is not there: `tools/test prepare` fetches Apache Kafka, `--peer none` does without"
        ));
    }
    std::fs::create_dir_all(&options.dir).map_err(|e| format!("{}: {e}", options.dir.display()))?;
    let host = host::describe(&options.dir, &options.ringlog);
    if cfg!(debug_assertions) {
        eprintln!("bench: this program is not optimised: its figures mean nothing");
    }
    if options.with_limits {
        limits::measure(&options.dir, &options.results, limits::MIB_DEFAULT)?;
    }
    let comparison = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let mut turns = Turns { options, place, contestants, host, comparison, failures: Vec::new() };
    for workload in workloads {
        let workload = workload.scaled(options.scale);
        let runs = turns.all(&workload)?;
        show(options, &workload, &runs)?;
    }
    if turns.failures.is_empty() { Ok(()) } else { Err(turns.failures.join("\nbench: ")) }
}

/// A comparison under way.
struct Turns<'a> {
    options: &'a Options,
    place: Place,
    contestants: Vec<Contestant>,
    host: Value,
    comparison: u64,
    /// Runs that came to nothing; the others go on, and the command fails at its end.
    failures: Vec<String>,
}

impl Turns<'_> {
    /// Every contestant in every round.
    fn all(&mut self, workload: &Workload) -> Result<Vec<Run>, String> {
        let mut runs = Vec::new();
        let rounds = self.options.rounds.max(1);
        for round in 0..rounds {
            for (place, contestant) in self.contestants.iter().enumerate() {
                if let Some(sentence) = contestant.refusal(workload) {
                    eprintln!("bench: {sentence}");
                    continue;
                }
                eprintln!("{}, round {} of {rounds}: {}", workload.name, round + 1, contestant.name);
                let figures = match measure(&self.place, contestant, workload) {
                    Ok(figures) => figures,
                    Err(sentence) => {
                        let sentence = format!("{}, {}: {sentence}", workload.name, contestant.name);
                        eprintln!("bench: {sentence}");
                        self.failures.push(sentence);
                        continue;
                    }
                };
                let run = Run {
                    comparison: self.comparison,
                    workload: workload.name.clone(),
                    round,
                    place,
                    contestant: contestant.name.clone(),
                    figures,
                    flags: self.options.flags(contestant, &self.place.cpus),
                    definition: serde_json::to_value(workload).map_err(|e| e.to_string())?,
                    host: self.host.clone(),
                };
                append(&self.options.results, &run)?;
                runs.push(run);
            }
        }
        Ok(runs)
    }
}

fn show(options: &Options, workload: &Workload, runs: &[Run]) -> Result<(), String> {
    let contestants = crate::results::contestants(runs);
    println!("{}{}", table::head(&contestants), table::rows(workload, runs, true));
    let path = options.results.join(format!("{}.svg", workload.name));
    std::fs::write(&path, picture(workload, runs)).map_err(|e| format!("{}: {e}", path.display()))?;
    eprintln!("{}: {} and the picture beside it", workload.name, path.with_extension("jsonl").display());
    Ok(())
}

/// The figures that matter, of all contestants.
pub fn picture(workload: &Workload, runs: &[Run]) -> String {
    let contestants = crate::results::contestants(runs);
    let wanted = |name: &str| workload.table.is_empty() || workload.table.iter().any(|one| one == name);
    let groups = METRICS.iter().filter(|metric| wanted(metric.name)).map(|metric| Group {
        metric,
        spreads: contestants.iter().map(|name| Spread::of_runs(runs, name, metric.name)).collect(),
    });
    let groups: Vec<Group> = groups.filter(|group| group.spreads.iter().any(Option::is_some)).collect();
    let host = runs.first().map_or(&Value::Null, |run| &run.host);
    let of = |name: &str| host[name].as_str().unwrap_or("unknown").to_owned();
    let rounds = runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
    let below = format!(
        "Medians of {rounds} rounds in turns, whiskers from least to most. {}, {} CPUs, Linux {}, {}.",
        of("cpu"),
        host["cpus"].as_u64().unwrap_or(0),
        of("kernel"),
        of("file_system")
    );
    svg(&workload.name, &workload.about, &below, &contestants, &groups)
}
