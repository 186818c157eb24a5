//! `ringlog perf` and `ringlog demo`: short runs whose figures add up.

use ringlog_e2e::Broker;
use ringlog_e2e::cli::{self, LIMIT};
use ringlog_e2e::requests::until;
use serde_json::Value;

fn records_in(broker: &Broker, topic: &str) -> usize {
    cli::consume(broker, topic, &["-f", "%V\\n"]).lines().count()
}

#[track_caller]
fn positive(figures: &Value, keys: &[&str]) {
    for key in keys {
        assert!(figures[key].as_f64().is_some_and(|value| value > 0.0), "{key}: {figures:#}");
    }
}

const RATES: [&str; 4] = ["bytes", "seconds", "records_per_second", "mib_per_second"];

#[test]
fn produce_and_consume_count_the_same() {
    let broker = Broker::start();
    let produce =
        ["perf", "produce", "load", "--create", "4", "--records", "20000", "--record-size", "300", "--duration", "60s"];
    let produced = cli::json(&broker, &[&produce[..], &["--codec", "lz4"]].concat());
    assert_eq!(produced["records"], 20_000, "{produced:#}");
    positive(&produced, &RATES);
    // Of so short a run it may be none that the clock tells.
    assert!(produced["client_cpu_seconds_per_gib"].as_f64().is_some_and(|cpu| cpu >= 0.0), "{produced:#}");
    let latencies = &produced["until acknowledged_ms"];
    positive(latencies, &["p50", "p99", "p99.9", "max"]);
    assert!(latencies["p50"].as_f64() <= latencies["max"].as_f64(), "{produced:#}");
    let consumed = cli::json(&broker, &["perf", "consume", "load"]);
    assert_eq!(consumed["records"], 20_000, "{consumed:#}");
    positive(&consumed, &RATES);
    let decoded = cli::json(&broker, &["perf", "consume", "load", "--decode"]);
    assert_eq!((&decoded["records"], &decoded["bytes"]), (&consumed["records"], &consumed["bytes"]));
    let sizes = cli::consume(&broker, "load", &["-f", "%V "]);
    assert!(sizes.split_whitespace().all(|size| size == "300") && sizes.split_whitespace().count() == 20_000);
    let table = cli::text(&broker, &["perf", "consume", "load"]);
    assert!(table.contains("20000 records") && table.contains("MiB/s"), "{table}");
}

#[test]
fn a_rate_a_time_and_keys_are_kept() {
    let broker = Broker::start();
    let produce = ["perf", "produce", "load", "--create", "4", "--rate", "2000", "--duration", "2s", "--keys", "10"];
    let produced = cli::json(&broker, &produce);
    let records = produced["records"].as_i64().unwrap();
    assert!((3_900..=4_100).contains(&records), "{produced:#}");
    let keys = cli::consume(&broker, "load", &["-f", "%k\\n"]);
    let distinct: std::collections::BTreeSet<&str> = keys.lines().collect();
    assert_eq!((keys.lines().count() as i64, distinct.len()), (records, 10));
}

#[test]
fn end_to_end_reads_what_it_wrote() {
    let broker = Broker::start();
    let arguments = ["perf", "e2e", "load", "--create", "2", "--rate", "500", "--duration", "2s"];
    let figures = cli::json(&broker, &arguments);
    assert_eq!(figures["records"], 1_000, "{figures:#}");
    positive(&figures, &RATES);
    for key in ["until acknowledged_ms", "until read_ms"] {
        positive(&figures[key], &["p50", "p99", "p99.9", "max"]);
    }
    assert_eq!(records_in(&broker, "load"), 1_000);
    let again = cli::json(&broker, &arguments);
    assert_eq!(again["records"], 1_000, "what was there before is not counted: {again:#}");
}

/// The number behind `word` in a line of figures; thousands may be grouped by anything but a space.
#[track_caller]
fn figure(line: &str, word: &str) -> i64 {
    let mut words = line.split_whitespace().skip_while(|one| *one != word).skip(1);
    let text = words.next().unwrap_or_else(|| panic!("no {word} in {line:?}"));
    text.chars()
        .filter(char::is_ascii_digit)
        .collect::<String>()
        .parse()
        .unwrap_or_else(|_| panic!("{word} in {line:?}"))
}

#[test]
fn the_clickstream_reads_every_event_it_wrote() {
    let broker = Broker::start();
    let arguments =
        ["demo", "clickstream", "--rate", "1000", "--events", "5000", "--partitions", "6", "--consumers", "3"];
    let shown = cli::text(&broker, &arguments);
    let last = shown.lines().last().unwrap();
    assert!(shown.lines().any(|line| line == "in all:"), "{shown}");
    assert_eq!((figure(last, "produced"), figure(last, "consumed"), figure(last, "lag")), (5000, 5000, 0), "{shown}");
    assert!(shown.lines().count() >= 6, "a line a second:\n{shown}");
    let sessions = figure(last, "sessions");
    assert!((1..=5000).contains(&sessions), "{shown}");
    // What lies in the topic agrees: keys are sessions, and values are JSON.
    let read = cli::consume(&broker, "clickstream", &["-f", "%p\\t%k\\t%v\\n"]);
    assert_eq!(read.lines().count(), 5000);
    let mut homes = std::collections::BTreeMap::new();
    for line in read.lines() {
        let fields: Vec<&str> = line.splitn(3, '\t').collect();
        cli::parsed(fields[2]);
        assert_eq!(*homes.entry(fields[1]).or_insert(fields[0]), fields[0], "a session stays in its partition");
    }
    assert_eq!(homes.len() as i64, sessions, "a key is a session");
    until("the group left and committed all", || {
        let has_left = cli::shares(&broker, "clickstream-demo")?.is_empty();
        (has_left && cli::has_read_all(&broker, "clickstream-demo", 6)).then_some(())
    });
}

#[test]
fn the_same_seed_gives_the_same_visits_and_ctrl_c_ends_an_endless_one() {
    let broker = Broker::start();
    for topic in ["one", "two"] {
        let arguments = ["demo", "clickstream", "--topic", topic, "--group", topic, "--rate", "0", "--events", "2000"];
        cli::run(&broker, &[&arguments[..], &["--seed", "7", "--encoding", "compact", "--partitions", "1"]].concat())
            .ok();
    }
    let sizes = |topic: &str| cli::consume(&broker, topic, &["-f", "%K %V\\n"]);
    assert_eq!(sizes("one").lines().count(), 2000);
    assert_eq!(sizes("one"), sizes("two"));
    let mut endless = cli::spawn(&broker, &["demo", "clickstream", "--topic", "three", "--group", "three"]);
    endless.find_line(LIMIT, |line| (line.contains("consumed") && figure(line, "consumed") > 0).then_some(())).unwrap();
    endless.signal("INT");
    assert_eq!(endless.wait(LIMIT).unwrap().code(), Some(0), "{}", endless.tail());
    let last = endless.lines().into_iter().rev().find(|line| line.contains("consumed")).unwrap();
    assert_eq!(figure(&last, "produced"), figure(&last, "consumed"), "{last}");
    assert_eq!(records_in(&broker, "three") as i64, figure(&last, "produced"));
}
