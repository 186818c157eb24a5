//! `ringlog produce` and `ringlog consume`: records go in and come out as they were, in every shape the command can write.

use std::fs;

use ringlog_e2e::cli::{self, REFUSED, USAGE};
use ringlog_e2e::place::TempDir;
use ringlog_e2e::requests::{self, until};
use ringlog_e2e::sample::CODECS;
use ringlog_e2e::{Broker, process};
use serde_json::{Value, json};

fn with_topic(partitions: usize) -> Broker {
    let broker = Broker::start();
    cli::create_topic(&broker, "t", partitions);
    broker
}

/// `ringlog consume t --exit --json`, an object each record.
fn objects(broker: &Broker, more: &[&str]) -> Vec<Value> {
    let lines = cli::consume(broker, "t", &[more, &["--json"]].concat());
    lines.lines().map(cli::parsed).collect()
}

#[test]
fn each_line_is_a_record_and_the_last_needs_no_end() {
    let broker = with_topic(1);
    let produced = cli::run_with_input(&broker, &["produce", "t"], b"one\ntwo\n\nlast").ok();
    assert!(produced.errors().starts_with("4 records, 13 bytes in "), "{}", produced.errors());
    assert_eq!(produced.text(), "");
    assert_eq!(cli::consume(&broker, "t", &[]), "one\ntwo\n\nlast\n");
    assert_eq!(cli::consume(&broker, "t", &["-f", "%o:%V:%K:%v|"]), "0:3:-1:one|1:3:-1:two|2:0:-1:|3:4:-1:last|");
    let quiet = cli::run_with_input(&broker, &["produce", "t", "--quiet"], b"").ok();
    assert_eq!(quiet.all(), "", "nothing to write is no failure");
    assert_eq!(cli::consume(&broker, "t", &["-f", "%n"]), "1234");
}

#[test]
fn keys_headers_and_nulls() {
    let broker = with_topic(1);
    cli::produce(&broker, "t", &["-K", ":"], "k1:v1\nk2:v:2\n:no name\nempty:\n");
    cli::produce(&broker, "t", &["-K", ":", "-Z"], "gone:\nkept:x\n");
    cli::produce(&broker, "t", &["--key", "fixed", "-H", "h=1", "-H", "h=2", "-H", "empty="], "with headers\n");
    cli::produce(&broker, "t", &["-f", "%h %k %v\\n", "-H", "all=yes"], "a=1,b=2 key value and more\n k v\n");
    cli::produce(&broker, "t", &["-f", "<%k\\x00%v>\\n"], "<first\0a\nb>\n<second\0>\n");
    cli::produce(&broker, "t", &["-f", "%k=%%=%v\\n"], "50=%=off\n");
    let read = cli::consume(&broker, "t", &["-f", "%K %V [%k|%v|%h]\\n"]);
    let expected = "2 2 [k1|v1|]\n2 3 [k2|v:2|]\n0 7 [|no name|]\n5 0 [empty||]\n4 -1 [gone||]\n4 1 [kept|x|]\n\
                    5 12 [fixed|with headers|h=1,h=2,empty=]\n\
                    3 14 [key|value and more|all=yes,a=1,b=2]\n1 1 [k|v|all=yes]\n\
                    5 3 [first|a\nb|]\n6 0 [second||]\n2 3 [50|off|]\n";
    assert_eq!(read, expected);
}

#[test]
fn json_tells_null_from_empty_and_bytes_from_text() {
    let broker = with_topic(1);
    let before_ms = requests::now_ms();
    cli::produce(&broker, "t", &["-K", ":", "-Z"], "k:\n");
    cli::produce(&broker, "t", &["-H", "h=ä"], "line\n");
    cli::produce(&broker, "t", &["-f", "%k\\x01%v\\x02"], b"\xff\xfe\x01\"quoted\"\n\0\x02");
    let read = objects(&broker, &[]);
    let same = |at: usize, key: Value, value: Value| {
        assert_eq!(
            (&read[at]["topic"], &read[at]["partition"], &read[at]["offset"]),
            (&json!("t"), &json!(0), &json!(at))
        );
        assert_eq!((&read[at]["key"], &read[at]["value"]), (&key, &value), "record {at}");
        let stamp = read[at]["timestamp"].as_i64().unwrap();
        assert!((before_ms..=requests::now_ms()).contains(&stamp), "record {at}: {stamp}");
    };
    same(0, json!("k"), Value::Null);
    same(1, Value::Null, json!("line"));
    same(2, json!({"base64": "//4="}), json!("\"quoted\"\n\0"));
    assert_eq!((read[0].get("headers"), read.len()), (None, 3));
    assert_eq!(read[1]["headers"], json!([["h", "ä"]]));
}

#[test]
fn every_codec_and_every_acks() {
    let broker = with_topic(1);
    let lines: String = (0..2000).map(|at| format!("key{}:a value that repeats, number {at}\n", at % 7)).collect();
    let mut expected = String::new();
    for codec in CODECS {
        cli::produce(&broker, "t", &["-K:", "-z", codec], &lines);
        expected += &lines;
    }
    for acks in ["1", "all"] {
        cli::produce(&broker, "t", &["-K:", "--acks", acks], "x:acks\n");
        expected += "x:acks\n";
    }
    cli::produce(&broker, "t", &["-K:", "--no-idempotence"], "x:not idempotent\n");
    expected += "x:not idempotent\n";
    cli::produce(&broker, "t", &["-K:", "--acks", "0"], "x:into the blue\n");
    expected += "x:into the blue\n";
    let read = until("the record that nobody acknowledges is there", || {
        let read = cli::consume(&broker, "t", &["-f", "%k:%v\\n"]);
        read.ends_with("into the blue\n").then_some(read)
    });
    assert!(read == expected, "{} lines instead of {}", read.lines().count(), expected.lines().count());
}

#[test]
fn files_come_one_behind_the_other_with_stdin_among_them() {
    let broker = with_topic(1);
    let dir = TempDir::new();
    let paths = ["a", "b"].map(|name| dir.path().join(name));
    fs::write(&paths[0], "a1\na2\n").unwrap();
    fs::write(&paths[1], "b1\nb2").unwrap();
    let [a, b] = paths.each_ref().map(|path| path.to_str().unwrap());
    cli::produce(&broker, "t", &[a, "-", b], "stdin\n");
    assert_eq!(cli::consume(&broker, "t", &["-f", "%v "]), "a1 a2 stdin b1 b2 ");
    let missing = cli::run(&broker, &["produce", "t", a, "/no/such/file"]);
    assert!(cli::ends_with(&missing, 1).contains("/no/such/file"), "{}", missing.all());
}

#[test]
fn partitions_by_number_by_key_and_in_turns() {
    let broker = with_topic(4);
    cli::produce(&broker, "t", &["--partition", "2"], "to two\n");
    assert_eq!(cli::consume(&broker, "t", &["-f", "%p %v\\n"]), "2 to two\n");
    assert_eq!(cli::consume(&broker, "t", &["--partition", "0,1,3"]), "");
    cli::produce(&broker, "t", &["--round-robin"], "x\n".repeat(400));
    for partition in ["0", "1", "3"] {
        assert_eq!(cli::consume(&broker, "t", &["-p", partition]).lines().count(), 100, "{partition}");
    }
    let keyed: String = (0..300).map(|at| format!("key{}:{at}\n", at % 30)).collect();
    cli::create_topic(&broker, "keyed", 4);
    cli::produce(&broker, "keyed", &["-K:"], &keyed);
    let read = cli::consume(&broker, "keyed", &["-f", "%p %k %v\\n"]);
    let mut last = std::collections::BTreeMap::<&str, (&str, u32)>::new();
    for line in read.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let number: u32 = fields[2].parse().unwrap();
        if let Some((partition, before)) = last.insert(fields[1], (fields[0], number)) {
            assert!(partition == fields[0] && before < number, "{line} after {before} in {partition}");
        }
    }
    assert_eq!((read.lines().count(), last.len()), (300, 30));
    let said = cli::ends_with(
        &cli::run_with_input(&broker, &["produce", "t", "-p", "9", "--timeout-ms", "3000"], b"x\n"),
        USAGE,
    );
    assert!(said.contains('9'), "{said}");
}

#[test]
fn a_large_value_goes_through_and_a_too_large_one_is_refused() {
    let broker = with_topic(1);
    let large: Vec<u8> = (0..1_000_000u32).map(|at| b'a' + (at % 26) as u8).collect();
    cli::produce(&broker, "t", &[], [&large[..], b"\n"].concat());
    assert!(cli::consume(&broker, "t", &["-f", "%v"]).as_bytes() == large);
    let too_large = cli::run_with_input(&broker, &["produce", "t"], &[large.repeat(3), b"\n".to_vec()].concat());
    assert!(cli::ends_with(&too_large, 1).contains("larger than"), "no broker was asked: {}", too_large.errors());
    assert_eq!(cli::consume(&broker, "t", &["-f", "%V "]), "1000000 ", "nothing of it was written");
}

#[test]
fn a_batch_larger_than_the_topic_takes_is_split_and_written_once() {
    let broker = with_topic(1);
    cli::run(&broker, &["config", "set", "topic:t", "max.message.bytes=20000"]).ok();
    until("the limit holds", || {
        let now = cli::json(&broker, &["config", "get", "topic:t", "max.message.bytes"]);
        (now[0]["value"] == "20000").then_some(())
    });
    let lines: String = (0..2000).map(|at| format!("{at:050}\n")).collect();
    cli::produce(&broker, "t", &["--linger-ms", "200"], &lines);
    assert_eq!(cli::consume(&broker, "t", &[]), lines);
    let alone = cli::run_with_input(&broker, &["produce", "t"], "x".repeat(30_000).as_bytes());
    let said = cli::ends_with(&alone, REFUSED);
    assert!(said.contains("1 were not sent"), "a record cannot be split: {said}");
}

#[test]
fn a_rate_is_kept() {
    let broker = with_topic(1);
    let begun = std::time::Instant::now();
    cli::produce(&broker, "t", &["--rate", "50"], "x\n".repeat(51));
    let took = begun.elapsed().as_secs_f64();
    assert!((1.0..4.0).contains(&took), "{took} s");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let broker = with_topic(1);
    cli::produce(&broker, "t", &[], "a line of some length to fill the pipe with\n".repeat(20_000));
    let line = format!(
        "set -o pipefail; '{}' consume t -b {} | head -1",
        ringlog_e2e::place::ringlog().display(),
        broker.bootstrap()
    );
    let read = process::run(std::process::Command::new("bash").args(["-c", &line]), b"", cli::LIMIT).ok();
    assert_eq!(read.text(), "a line of some length to fill the pipe with\n");
}
