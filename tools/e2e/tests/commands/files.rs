//! `ringlog log dump` on the folder of a broker that was stopped, that was killed, and that was damaged.

use std::fs;

use ringlog_e2e::batch::Batch;
use ringlog_e2e::broker::skip_on_kafka;
use ringlog_e2e::cli::{self, FINDINGS, LIMIT};
use ringlog_e2e::raw::Raw;
use ringlog_e2e::requests::{self, Produce};
use ringlog_e2e::sample::CODECS;
use ringlog_e2e::{Broker, process};
use serde_json::Value;

const NOT_KAFKA: &str = "it is about the files of Ringlog";

fn dump(arguments: &[&str]) -> process::Finished {
    process::run(&mut cli::alone(&[&["log", "dump"], arguments].concat()), b"", LIMIT)
}

fn with_records() -> Broker {
    let broker = Broker::start();
    cli::create_topic(&broker, "t", 2);
    for codec in CODECS {
        let lines: String = (0..50).map(|at| format!("key{at}:{codec} {at}\n")).collect();
        cli::produce(&broker, "t", &["-K:", "-z", codec], &lines);
    }
    cli::consume(&broker, "t", &["--group", "g"]);
    broker
}

fn items(text: &str) -> Vec<Value> {
    text.lines().map(cli::parsed).collect()
}

/// The sum over all partitions of `topic` of a figure of their verdicts.
fn sum(items: &[Value], topic: &str, figure: &str) -> i64 {
    let (mut inside, mut sum) = (false, 0);
    for item in items {
        match item["type"].as_str().unwrap() {
            "partition" => inside = item["folder"].as_str().unwrap().contains(&format!("/{topic}-")),
            "verdict" if inside => sum += item[figure].as_i64().unwrap_or_default(),
            _ => {}
        }
    }
    sum
}

#[test]
fn a_stopped_brokers_folder_is_sound_and_holds_what_was_written() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let mut broker = with_records();
    broker.stop();
    let folder = broker.data_dir();
    let folder = folder.to_str().unwrap();
    let dumped = dump(&["--json", folder]).ok();
    let seen = items(&dumped.text());
    assert_eq!(
        (sum(&seen, "t", "records"), sum(&seen, "t", "cut_bytes"), sum(&seen, "t", "damaged_in_closed")),
        (250, 0, 0)
    );
    let end = seen.last().unwrap();
    assert_eq!((&end["type"], &end["clean_mark"]), (&Value::from("data_folder"), &Value::from(true)), "{end:#}");
    let text = dump(&["--records", folder]).ok().text();
    for codec in CODECS {
        assert!(text.contains(&format!("\"key7\" = \"{codec} 7\"")), "{codec}");
    }
    let summary = dump(&["--summary", folder]).ok().text();
    assert!(summary.contains("stopped cleanly") && summary.lines().count() < text.lines().count(), "{summary}");
}

#[test]
fn a_running_and_a_killed_brokers_folder_is_sound() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let mut broker = with_records();
    let folder = broker.data_dir();
    let folder = folder.to_str().unwrap();
    let running = items(&dump(&["--json", folder]).ok().text());
    assert_eq!(sum(&running, "t", "records"), 250, "beside the broker");
    broker.kill();
    let killed = items(&dump(&["--json", folder]).ok().text());
    assert_eq!(sum(&killed, "t", "records"), 250);
    assert_eq!(killed.last().unwrap()["clean_mark"], false);
}

#[test]
fn damage_is_found_and_the_start_keeps_what_the_dump_said() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let mut broker = Broker::start();
    cli::create_topic(&broker, "t", 1);
    for at in 0..3 {
        cli::produce(&broker, "t", &[], format!("batch {at}\n"));
    }
    broker.kill();
    let log = broker.partition_dir("t", 0).join("00000000000000000000.log");
    let mut bytes = fs::read(&log).unwrap();
    let at = bytes.windows(7).rposition(|window| window == b"batch 2").unwrap();
    bytes[at] ^= 1;
    fs::write(&log, &bytes).unwrap();
    let dumped = dump(&["--json", log.parent().unwrap().to_str().unwrap()]);
    assert_eq!(dumped.status.code(), Some(FINDINGS), "{}", dumped.all());
    let seen = items(&dumped.text());
    let verdict = seen.iter().find(|item| item["type"] == "verdict").unwrap();
    assert_eq!(verdict["log_end_offset"], 2, "{verdict:#}");
    broker.start_again();
    ringlog_e2e::requests::wait_for_leaders(&mut ringlog_e2e::raw::Raw::connect(&broker), "t", 1);
    assert_eq!(cli::consume(&broker, "t", &[]), "batch 0\nbatch 1\n");
}

/// Small batches to four partitions, enough of them that a journal takes them.
fn with_journalled(rounds: usize) -> Broker {
    let broker = Broker::with(&[("ringlog.shards", "1")]);
    let mut raw = Raw::connect(&broker);
    requests::create_topic(&mut raw, "t", 4, &[]);
    requests::wait_for_leaders(&mut raw, "t", 4);
    for number in 0..rounds {
        let mut produce = Produce::new("t", &Batch::of(&[&*format!("record {number}")]));
        produce.partition = (number % 4) as i32;
        assert_eq!(produce.code(&mut raw), 0);
    }
    broker
}

fn summaries(items: &[Value]) -> Vec<&Value> {
    items.iter().filter(|item| item["type"] == "journal_summary").collect()
}

#[test]
fn a_killed_brokers_journal_tells_what_a_start_will_apply() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    const ROUNDS: usize = 400;
    let mut broker = with_journalled(ROUNDS);
    let folder = broker.data_dir();
    let folder = folder.to_str().unwrap();
    let beside = items(&dump(&["--summary", "--json", folder]).ok().text());
    assert_eq!(summaries(&beside).len(), 1, "beside the broker: {beside:#?}");
    broker.kill();
    let seen = items(&dump(&["--json", folder]).ok().text());
    let summary = summaries(&seen)[0];
    assert!(summary["applied_entries"].as_i64().unwrap() > 100, "{summary:#}");
    let rounds: Vec<&Value> = seen.iter().filter(|item| item["type"] == "journal_round").collect();
    let entries = rounds.iter().flat_map(|round| round["entries"].as_array().unwrap());
    let applied: Vec<&Value> = entries.filter(|entry| entry["applied"] == true).collect();
    assert_eq!(applied.len() as i64, summary["applied_entries"].as_i64().unwrap());
    assert!(applied.iter().all(|entry| entry["partition"].as_str().unwrap().starts_with("t-")), "{applied:#?}");
    let text = dump(&[&format!("{folder}/ringlog.journal")]).ok().text();
    assert!(text.contains("journal of shard 0") && text.contains(": applied"), "{text}");
    // What it said is what the start does: every record is there, and then no round counts.
    broker.start_again();
    requests::wait_for_leaders(&mut Raw::connect(&broker), "t", 4);
    assert_eq!(cli::consume(&broker, "t", &[]).lines().count(), ROUNDS);
    broker.stop();
    let stopped = items(&dump(&["--json", folder]).ok().text());
    assert_eq!(summaries(&stopped)[0]["applied_entries"], 0);
    assert_eq!(sum(&stopped, "t", "records"), ROUNDS as i64);
}

#[test]
fn a_damaged_round_of_a_journal_is_found() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let mut broker = with_journalled(200);
    let folder = broker.data_dir();
    broker.kill();
    let ring = folder.join("ringlog.journal/00000.00000.ring");
    let mut bytes = fs::read(&ring).unwrap();
    let at = bytes.windows(10).position(|window| window == b"record 150").unwrap();
    bytes[at] ^= 1;
    fs::write(&ring, &bytes).unwrap();
    let dumped = dump(&["--summary", folder.to_str().unwrap()]);
    assert_eq!(dumped.status.code(), Some(FINDINGS), "{}", dumped.all());
    let text = dumped.text();
    // 150 is of partition 2.
    assert!(text.contains("DAMAGED although it was synced") && text.contains("DAMAGE: t-2: "), "{text}");
}
