//! `ringlog serve`: configuration from defaults, tuning profile, file and flags (the later wins), then a node.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use model::config::{BrokerConfig, Durability};
use runtime::{ShardSpec, checks, signals};
use server::{Node, NodeOptions, Started};
use tuning::Profile;

use crate::metrics::Metrics;
use crate::tune::host::Host;
use crate::tune::in_force::InForce;

pub const LONG_ABOUT: &str = "Start a broker. Without any flag it listens on 127.0.0.1:9092 and keeps its data in \
./ringlog-data.\n\nWhat is set later wins: defaults, tuning profile, configuration file, flags. SIGTERM and Ctrl-C stop it \
cleanly; a second one ends it at once.";

/// What commands connect to when nothing is said.
const DEFAULT_ADDRESS: (&str, u16) = ("127.0.0.1", 9092);

/// The example works as pasted; the keys come from the one table of properties.
pub fn after_help() -> String {
    format!(
        "Example:\n  ringlog serve --data-dir /tmp/ringlog --listen 127.0.0.1:9092 --set num.partitions=4\n\n\
         Keys of --set and of the configuration file (`ringlog properties` says more):\n{}",
        model::config::help_text()
    )
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Configuration file: lines of key=value, keys as in Kafka's server.properties. Default: none.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data folder; may be repeated: new partitions then go where most space is free. Default: ./ringlog-data.
    #[arg(long, value_name = "DIR")]
    data_dir: Vec<PathBuf>,
    /// Address to listen on; port 0 picks a free one and prints it. Default: 127.0.0.1:9092.
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Address that clients are told to connect to. Needed when --listen is a wildcard. Default: what --listen says.
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Option<String>,
    /// Number of this node in its cluster, 0 or more. Default: 1.
    #[arg(long, value_name = "N")]
    node_id: Option<i32>,
    /// Shards: threads with a ring and a share of the partitions each. Default: one for each CPU.
    #[arg(long, value_name = "N")]
    shards: Option<usize>,
    /// Tuning profile (TOML): pins shards to CPUs and sizes memory. Default: derived from this host, not pinned.
    #[arg(long, value_name = "FILE")]
    tuning: Option<PathBuf>,
    /// Sets one configuration property; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
}

/// Runs until a signal. The error is a sentence.
pub fn run(args: &ServeArgs) -> Result<(), String> {
    let started_at = std::time::Instant::now();
    checks::raise_limits();
    let in_force = InForce::read(&Host::new(Path::new("/")), args.tuning.as_deref())?;
    let (config, placement) = configuration_and_placement(args, &in_force)?;
    let helper_cpu = in_force.helper_cpu().map_err(|e| e.to_string())?;
    let shards: Vec<ShardSpec> = placement
        .iter()
        .map(|&cpu| ShardSpec { cpu: in_force.pinned.then_some(cpu), preempt_timer_us: config.shards.preempt_timer_us })
        .collect();
    // Before the node, so that a mistaken address is told at once, and /healthz has an answer during the start.
    let listen = config.node.metrics_listen.as_ref();
    let metrics = listen.map(|listen| Metrics::start(listen, helper_cpu)).transpose()?;
    let options = NodeOptions { config: config.clone(), shards, helper_cpu };
    let (node, started) = Node::start(options).map_err(|e| e.to_string())?;
    if let Some(metrics) = &metrics {
        metrics.ready(node.figures(), &started);
    }
    let block = Block { config: &config, started: &started, cpus: &placement, metrics: metrics.as_ref() };
    print_block(&block, &in_force, started_at.elapsed().as_millis());
    let signal = signals::wait();
    signals::unblock();
    if let Some(metrics) = &metrics {
        metrics.stopping();
    }
    eprintln!("ringlog: stopping ({})", if signal == signals::Stop::Interrupt { "Ctrl-C" } else { "SIGTERM" });
    if node.stop()? {
        eprintln!("ringlog: stopped cleanly");
    } else {
        eprintln!("ringlog: stopped; the next start looks at the ends of the logs, as after a crash");
    }
    Ok(())
}

/// A profile's sizes go with the number of shards, which the configuration may override: then they are taken again.
fn configuration_and_placement(args: &ServeArgs, in_force: &InForce) -> Result<(BrokerConfig, Vec<usize>), String> {
    let place = |shards| in_force.place(shards).map_err(|e| e.to_string());
    let own = in_force.profile.shards.map_or_else(|| place(0).map(|cpus| cpus.len()), Ok)?;
    let config = configuration(args, &in_force.profile, own)?;
    let placement = place(config.shards.shards)?;
    let config = if placement.len() == own { config } else { configuration(args, &in_force.profile, placement.len())? };
    Ok((config, placement))
}

/// Flags are short for properties, so that there is one way to set a thing.
fn configuration(args: &ServeArgs, profile: &Profile, shards: usize) -> Result<BrokerConfig, String> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut put = |key: &str, value: String| pairs.push((key.to_string(), value));
    profile.pairs(shards).into_iter().for_each(|(key, value)| put(key, value));
    if let Some(path) = &args.config {
        let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        BrokerConfig::from_properties(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        let lines = model::config::parse_properties(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        lines.into_iter().for_each(|line| put(&line.key, line.value));
    }
    if !args.data_dir.is_empty() {
        put("log.dirs", log_dirs(&args.data_dir)?);
    }
    if let Some(listen) = &args.listen {
        put("listeners", format!("PLAINTEXT://{listen}"));
    }
    if let Some(advertise) = &args.advertise {
        put("advertised.listeners", format!("PLAINTEXT://{advertise}"));
    }
    if let Some(node_id) = args.node_id {
        put("node.id", node_id.to_string());
    }
    if let Some(shards) = args.shards {
        if shards == 0 {
            return Err(
                "--shards 0 would serve nobody: give at least 1, or leave it out for one for each CPU".to_string()
            );
        }
        put("ringlog.shards", shards.to_string());
    }
    for setting in &args.settings {
        let (key, value) = model::config::parse_pair(setting).map_err(|e| format!("--set {setting}: {e}"))?;
        put(key, value.to_string());
    }
    BrokerConfig::from_pairs(pairs.iter().map(|(k, v)| (k.as_str(), v.as_str()))).map_err(|e| e.to_string())
}

/// As the list that the property is.
pub fn log_dirs(dirs: &[PathBuf]) -> Result<String, String> {
    let text = |dir: &PathBuf| match dir.to_str() {
        None => Err("--data-dir is not UTF-8: choose another folder".to_string()),
        Some(dir) if dir.contains(',') => Err(format!(
            "--data-dir {dir} has a comma, which separates folders: repeat --data-dir, or choose another folder"
        )),
        Some(dir) => Ok(dir.to_string()),
    };
    Ok(dirs.iter().map(text).collect::<Result<Vec<_>, _>>()?.join(","))
}

/// The profile in force and the sizes that came of it and of what overrides it.
fn tuning_text(config: &BrokerConfig, in_force: &InForce) -> String {
    let helper = in_force.helper_cpu().ok().flatten().map(|cpu| format!(", helper threads on CPU {cpu}"));
    let expected =
        Some(config.shards.disk_expected_write_us).filter(|us| *us > 0).map(|us| format!(", {us} µs expected"));
    format!(
        "{}: {} MiB of direct I/O memory and {} MiB of requests a shard, batch cache {} MiB, disk writes up to {} KiB, {} at once{}{}",
        in_force.name,
        config.shards.io_memory_bytes >> 20,
        config.connections.max_inflight_bytes_per_shard >> 20,
        config.shards.batch_cache_bytes >> 20,
        config.shards.disk_write_max_bytes >> 10,
        config.shards.disk_queue_depth,
        expected.unwrap_or_default(),
        helper.unwrap_or_default()
    )
}

/// What the printed block tells of.
struct Block<'a> {
    config: &'a BrokerConfig,
    started: &'a Started,
    cpus: &'a [usize],
    metrics: Option<&'a Metrics>,
}

fn print_block(block: &Block<'_>, in_force: &InForce, start_ms: u128) {
    let Block { config, started, cpus, metrics } = *block;
    let cpu_text = in_force.cpus_text(cpus);
    let durability = match config.topic_defaults.durability {
        _ if config.node.log_dirs.iter().any(|dir| checks::is_in_memory(Path::new(dir))) => {
            "memory: a data folder is on tmpfs, a restart of the host loses everything in it"
        }
        Durability::Fsync => "fsync: acks=all answers after the data is on stable storage",
        Durability::Memory => "memory: acks=all answers before the data is on stable storage",
    };
    let (host, port) = &started.advertised;
    let mut out = std::io::stdout().lock();
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "  {name:<11}{text}");
    };
    let state = if started.was_clean { "" } else { ", last stop was not clean" };
    line("ringlog", format!("{} node {} cluster {}", env!("CARGO_PKG_VERSION"), started.node_id, started.cluster_id));
    line("shards", format!("{} {cpu_text}", cpus.len()));
    line("tuning", tuning_text(config, in_force));
    line(
        "data",
        format!(
            "{} ({} topics, {} partitions{state})",
            config.node.log_dirs.join(", "),
            started.topics,
            started.partitions
        ),
    );
    line("address", format!("listening on {}, clients are told {host}:{port}", started.address));
    line("durability", durability.to_string());
    if let Some(metrics) = metrics {
        line("metrics", format!("http://{}/metrics", metrics.address()));
    }
    line("ready", format!("after {start_ms} ms; Ctrl-C stops it"));
    let to = if (host.as_str(), *port) == DEFAULT_ADDRESS { String::new() } else { format!(" -b {host}:{port}") };
    line("try", format!("ringlog demo clickstream{to}"));
    line("or", format!("ringlog topic create hello{to} && ringlog produce hello{to}   (a record a line, Ctrl-D ends)"));
    let _ = out.flush();
}
