//! `ringlog serve` as an operator meets it: what it prints, how it refuses, how it stops. About Ringlog alone.

#![allow(clippy::unwrap_used)]

use std::process::Command;
use std::time::{Duration, Instant};

use ringlog_e2e::broker::{listening_port, ringlog_serve, skip_on_kafka};
use ringlog_e2e::groups;
use ringlog_e2e::place::{self, TempDir};
use ringlog_e2e::process::{self, Finished, Running};
use ringlog_e2e::raw::Raw;
use ringlog_e2e::requests;

const LIMIT: Duration = Duration::from_secs(15);
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// What a start may take in a build without optimisation on a busy machine; the promise is 100 ms.
const LISTEN_LIMIT: Duration = Duration::from_secs(1);
const NOT_KAFKA: &str = "it is about our command line";

fn serve(dir: &TempDir, more: &[&str]) -> Command {
    let mut command = ringlog_serve(dir.path(), "127.0.0.1:0");
    command.args(more);
    command
}

/// Starts, and waits until it listens.
#[track_caller]
fn started(command: &mut Command) -> (Running, u16) {
    let process = Running::start("ringlog", command);
    let port = listening_port(&process).unwrap_or_else(|| panic!("it does not listen:\n{}", process.tail()));
    (process, port)
}

/// A start that must be refused, with a sentence that has every one of `words`.
#[track_caller]
fn refused(command: &mut Command, words: &[&str]) -> Finished {
    let ended = process::run(command, b"", LIMIT);
    let said = ended.errors();
    assert!(!ended.status.success(), "it ended well:\n{}", ended.all());
    assert!(ended.status.code().is_some(), "it was killed: {}", ended.status);
    for word in words {
        assert!(said.contains(word), "{word:?} is not in what it said:\n{said}");
    }
    assert!(!said.contains("panicked"), "a panic is no sentence:\n{said}");
    ended
}

#[test]
fn it_prints_its_block_and_listens_soon() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let mut starts = Vec::new();
    for _ in 0..5 {
        let dir = TempDir::new();
        let begun = Instant::now();
        let (process, port) = started(&mut serve(&dir, &[]));
        Raw::connect_to(port);
        starts.push(begun.elapsed());
        std::thread::sleep(Duration::from_millis(50));
        let block = process.lines().join("\n");
        assert!(block.contains(env!("CARGO_PKG_VERSION")), "the version:\n{block}");
        assert!(block.contains(dir.path().to_str().unwrap()), "the data folder:\n{block}");
        assert!(block.contains("CPU") || block.contains("not pinned"), "where the shards sit:\n{block}");
        for word in ["shard", "durab", &format!("listening on 127.0.0.1:{port}")] {
            assert!(block.contains(word), "{word}:\n{block}");
        }
        assert!(process.lines().len() <= 20, "a short block:\n{block}");
    }
    starts.sort();
    println!("from the process's start to an accepted connection: median {:?}, slowest {:?}", starts[2], starts[4]);
    assert!(starts[2] < LISTEN_LIMIT, "{starts:?}");
}

#[test]
fn it_stops_cleanly_on_sigterm_and_ctrl_c() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let dir = TempDir::new();
    for signal in ["TERM", "INT"] {
        let (mut process, port) = started(&mut serve(&dir, &[]));
        let mut raw = Raw::connect_to(port);
        let topic = format!("before-{signal}");
        requests::create_topic(&mut raw, &topic, 2, &[]);
        requests::produce(&mut raw, &topic, &ringlog_e2e::batch::Batch::of(&["a"]));
        groups::ready(&mut raw, "g");
        let begun = Instant::now();
        process.signal(signal);
        let status = process.wait(STOP_LIMIT).unwrap_or_else(|| panic!("no stop on SIG{signal}:\n{}", process.tail()));
        println!("SIG{signal}: stopped after {:?}", begun.elapsed());
        assert!(status.success(), "SIG{signal}: {status}\n{}", process.tail());
    }
}

#[test]
fn a_stop_does_not_wait_for_clients_that_wait() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let dir = TempDir::new();
    let (mut process, port) = started(&mut serve(&dir, &[]));
    let mut raw = Raw::connect_to(port);
    requests::create_topic(&mut raw, "t", 1, &[]);
    let waiting = requests::fetch_request("t", vec![requests::fetch_partition(0, 0, 1024)], 1024);
    raw.send(12, &waiting.with_max_wait_ms(60_000));
    std::thread::sleep(Duration::from_millis(200));
    let status = process.terminate(STOP_LIMIT);
    assert!(status.success(), "{status}\n{}", process.tail());
}

#[test]
fn help_tells_every_flag() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let help = process::run(Command::new(place::ringlog()).args(["serve", "--help"]), b"", LIMIT).ok().text();
    let flags = ["--config", "--data-dir", "--listen", "--advertise", "--node-id", "--shards", "--tuning", "--set"];
    for flag in flags {
        assert!(help.contains(flag), "{flag}:\n{help}");
    }
    assert!(help.contains("127.0.0.1:9092"), "the default address:\n{help}");
    let top = process::run(Command::new(place::ringlog()).arg("--help"), b"", LIMIT).ok().text();
    assert!(top.contains("serve"), "{top}");
}

#[test]
fn unknown_keys_and_unusable_values_are_refused() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let dir = TempDir::new();
    refused(&mut serve(&dir, &["--set", "no.such.key=1"]), &["no.such.key"]);
    refused(&mut serve(&dir, &["--set", "num.partitions=many"]), &["num.partitions", "many"]);
    refused(&mut serve(&dir, &["--set", "num.partitions=0"]), &["num.partitions", "0"]);
    refused(&mut serve(&dir, &["--set", "num.partitions"]), &["num.partitions"]);
    refused(&mut serve(&dir, &["--shards", "0"]), &["shards"]);
    refused(&mut serve(&dir, &["--no-such-flag"]), &["--no-such-flag"]);
    refused(&mut serve(&dir, &["--config", "/no/such/file.toml"]), &["/no/such/file.toml"]);
}

#[test]
fn an_unusable_address_is_refused() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let (first, second) = (TempDir::new(), TempDir::new());
    let (_process, port) = started(&mut serve(&first, &[]));
    refused(&mut ringlog_serve(second.path(), &format!("127.0.0.1:{port}")), &[&port.to_string(), "in use"]);
    refused(&mut ringlog_serve(second.path(), "nonsense"), &["nonsense"]);
    refused(&mut ringlog_serve(second.path(), "0.0.0.0:0"), &["0.0.0.0", "--advertise"]);
}

#[test]
fn a_wildcard_with_an_advertised_address_tells_clients_that_one() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let dir = TempDir::new();
    let mut command = ringlog_serve(dir.path(), "0.0.0.0:0");
    let (_process, port) = started(command.args(["--advertise", "broker.example:1234"]));
    let brokers = requests::metadata(&mut Raw::connect_to(port), &[], false).brokers;
    assert_eq!((brokers[0].host.as_str(), brokers[0].port), ("broker.example", 1234));
}

#[test]
fn a_data_folder_in_use_or_of_another_node_is_refused() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let dir = TempDir::new();
    let folder = dir.path().to_str().unwrap().to_owned();
    let (mut process, _) = started(&mut serve(&dir, &["--node-id", "3"]));
    refused(&mut serve(&dir, &["--node-id", "3"]), &[&folder, "in use"]);
    process.terminate(STOP_LIMIT);
    refused(&mut serve(&dir, &["--node-id", "4"]), &[&folder, "3", "4"]);
    let (mut process, _) = started(&mut serve(&dir, &["--node-id", "3"]));
    process.kill();
    started(&mut serve(&dir, &["--node-id", "3"]));
}

#[test]
fn any_number_of_shards_reads_the_same_folder() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let dir = TempDir::new();
    for (round, shards) in ["1", "2", "1"].into_iter().enumerate() {
        let (mut process, port) = started(&mut serve(&dir, &["--shards", shards]));
        let mut raw = Raw::connect_to(port);
        if round == 0 {
            requests::create_topic(&mut raw, "t", 1, &[]);
        }
        let offset = requests::produce(&mut raw, "t", &ringlog_e2e::batch::Batch::of(&["a"]));
        assert_eq!(offset, round as i64, "{shards} shards");
        process.terminate(STOP_LIMIT);
    }
}

#[test]
fn node_zero_is_a_node() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let dir = TempDir::new();
    let (_process, port) = started(&mut serve(&dir, &["--node-id", "0"]));
    let mut raw = Raw::connect_to(port);
    assert_eq!(requests::metadata(&mut raw, &[], false).brokers[0].node_id.0, 0);
    requests::create_topic(&mut raw, "t", 1, &[]);
    assert_eq!(requests::produce(&mut raw, "t", &ringlog_e2e::batch::Batch::of(&["a"])), 0);
}

/// The broker on a host that refuses `what` (see `tools/clients/refuse.py`).
fn serve_refusing(what: &str, dir: &TempDir) -> Command {
    let mut command = Command::new("python3");
    command.arg(place::workspace().join("tools/clients/refuse.py")).arg(what).arg(place::ringlog());
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(dir.path());
    command
}

#[test]
fn a_host_without_io_uring_or_direct_io_is_told_what_to_do() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let dir = TempDir::new();
    refused(&mut serve_refusing("io_uring-forbidden", &dir), &["io_uring is forbidden", "kernel.io_uring_disabled"]);
    refused(&mut serve_refusing("io_uring-missing", &dir), &["no io_uring", "Linux 5.15"]);
    let folder = dir.path().to_str().unwrap().to_owned();
    refused(&mut serve_refusing("direct-io", &dir), &["refuses direct I/O", &folder, "ext4"]);
}

#[test]
fn too_little_lockable_memory_is_refused() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let dir = TempDir::new();
    // The shell's own limit holds for what it starts, root or not.
    let line = "ulimit -l 64 && exec \"$@\"";
    let mut command = Command::new("bash");
    command.args(["-c", line, "bash"]).arg(place::ringlog());
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(dir.path());
    refused(&mut command, &["RLIMIT_MEMLOCK is 64 KiB", "ulimit -l"]);
}
