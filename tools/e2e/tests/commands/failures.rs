//! Wrong command lines, brokers that are not there, brokers that do not speak; completion scripts.

use std::process::Command;
use std::time::{Duration, Instant};

use ringlog_e2e::cli::{self, LIMIT, NO_BROKER, REFUSED, USAGE};
use ringlog_e2e::{Broker, place, process};

/// No answer in time.
const TIMED_OUT: i32 = 6;

#[test]
fn without_a_broker_each_command_says_how_to_start_one() {
    let address = format!("127.0.0.1:{}", place::free_port());
    for arguments in [
        &["topic", "list"][..],
        &["topic", "create", "t"],
        &["config", "get", "brokers"],
        &["group", "list"],
        &["cluster", "info"],
        &["produce", "t"],
        &["consume", "t"],
        &["perf", "produce", "t"],
        &["perf", "consume", "t"],
        &["perf", "e2e", "t"],
        &["demo", "clickstream"],
    ] {
        let begun = Instant::now();
        let more = ["--bootstrap", &address, "--timeout-ms", "1500"];
        let ended = process::run(&mut cli::alone(&[arguments, &more].concat()), b"x\n", LIMIT);
        let said = cli::ends_with(&ended, NO_BROKER);
        let expected = format!("ringlog: no broker answered at {address}");
        assert!(said.contains(&expected) && said.contains("ringlog serve"), "{arguments:?}: {said}");
        assert_eq!(ended.text(), "", "{arguments:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{arguments:?} took {:?}", begun.elapsed());
    }
}

#[test]
fn a_peer_that_accepts_and_says_nothing_is_given_up_in_time() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let begun = Instant::now();
    let list = ["topic", "list", "--bootstrap", &address, "--timeout-ms", "1000"];
    let ended = process::run(&mut cli::alone(&list), b"", LIMIT);
    assert!([Some(NO_BROKER), Some(TIMED_OUT)].contains(&ended.status.code()), "{}", ended.all());
    assert!(ended.errors().contains("ringlog: "), "{}", ended.all());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn one_broker_of_the_list_that_answers_is_enough() {
    let broker = Broker::start();
    let list = format!("127.0.0.1:{},{}", place::free_port(), broker.bootstrap());
    process::run(&mut cli::alone(&["topic", "create", "t", "--bootstrap", &list]), b"", LIMIT).ok();
    let mut by_environment = cli::alone(&["topic", "list"]);
    let listed = process::run(by_environment.env("RINGLOG_BOOTSTRAP", &list), b"", LIMIT).ok();
    assert!(listed.text().contains("\nt "), "{}", listed.text());
}

#[test]
fn a_wrong_command_line_is_refused_before_anything_is_asked() {
    let broker = Broker::start();
    cli::create_topic(&broker, "t", 1);
    for (arguments, word) in [
        (&["consume"][..], "TOPIC"),
        (&["consume", "t", "--offset", "soon"], "earliest"),
        (&["consume", "t", "--format", "%y"], "%k"),
        (&["consume", "t", "--json", "--format", "%v"], "--format"),
        (&["consume", "t", "--group", "g", "--partition", "0"], "--partition"),
        (&["consume", "t", "--group", "g", "--offset", "5"], "ringlog group seek"),
        (&["consume", "t", "--partition", "1"], "no partition 1"),
        (&["produce", "t", "--format", "%k%v\\n"], "between"),
        (&["produce", "t", "--format", "%v"], "end"),
        (&["produce", "t", "--format", "%o %v\\n"], "%o"),
        (&["produce", "t", "--header", "novalue"], "name=value"),
        (&["produce", "t", "--codec", "zip"], "zstd"),
        (&["produce", "t", "--acks", "2"], "all"),
        (&["group", "seek", "g"], "--to"),
        (&["nonsense"], "nonsense"),
    ] {
        let said = cli::fails(&broker, arguments, USAGE);
        assert!(said.contains(word), "{arguments:?}: {word:?} is not in\n{said}");
    }
    let bad = ["topic", "list", "--bootstrap", "no-port"];
    let said = cli::ends_with(&process::run(&mut cli::alone(&bad), b"", LIMIT), USAGE);
    assert!(said.contains("HOST:PORT"), "{said}");
}

#[test]
fn a_topic_that_is_not_there_is_not_made_by_accident() {
    let broker = Broker::start();
    for arguments in
        [&["produce", "typo"][..], &["consume", "typo"], &["consume", "typo", "-g", "g"], &["perf", "consume", "typo"]]
    {
        let said = cli::fails(&broker, arguments, REFUSED);
        assert!(said.contains("ringlog topic create typo"), "{arguments:?}: {said}");
    }
    assert_eq!(cli::json(&broker, &["topic", "list"]), serde_json::json!([]));
}

#[test]
fn completion_scripts_are_scripts() {
    let bash = process::run(&mut cli::alone(&["completion", "bash"]), b"", LIMIT).ok().stdout;
    process::run(Command::new("bash").args(["-n", "/dev/stdin"]), &bash, LIMIT).ok();
    // What a shell would offer after `ringlog topic `, by the script itself.
    let ask = "source /dev/stdin; COMP_WORDS=(ringlog topic ''); COMP_CWORD=2; \
               _ringlog ringlog '' topic; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let offered = process::run(Command::new("bash").args(["-c", ask]), &bash, LIMIT).ok().text();
    for word in ["create", "list", "describe", "alter", "delete", "add-partitions"] {
        assert!(offered.lines().any(|line| line == word), "{word} is not offered:\n{offered}");
    }
    for shell in ["zsh", "fish"] {
        let script = process::run(&mut cli::alone(&["completion", shell]), b"", LIMIT).ok().text();
        assert!(script.contains("add-partitions"), "{shell}");
    }
    cli::ends_with(&process::run(&mut cli::alone(&["completion", "dos"]), b"", LIMIT), USAGE);
}
