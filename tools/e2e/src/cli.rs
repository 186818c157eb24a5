//! Our own command against the test's broker: what it printed, and the exit code it promises.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::place;
use crate::process::{self, Finished, Running};
use crate::raw::Raw;
use crate::{Broker, requests};

/// Longer than any call takes on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Exit codes, as `ringlog --help` lists them.
pub const USAGE: i32 = 2;
pub const FINDINGS: i32 = 3;
pub const NO_BROKER: i32 = 4;
pub const REFUSED: i32 = 5;
pub const INTERRUPTED: i32 = 130;

/// `ringlog ARGUMENTS`, which knows of no broker.
pub fn alone(arguments: &[&str]) -> Command {
    let mut command = Command::new(place::ringlog());
    command.args(arguments).env_remove("RINGLOG_BOOTSTRAP");
    command
}

/// `ringlog ARGUMENTS --bootstrap <broker>`.
pub fn command(broker: &Broker, arguments: &[&str]) -> Command {
    let mut command = alone(arguments);
    command.args(["--bootstrap", &broker.bootstrap()]);
    command
}

#[track_caller]
pub fn run(broker: &Broker, arguments: &[&str]) -> Finished {
    run_with_input(broker, arguments, b"")
}

#[track_caller]
pub fn run_with_input(broker: &Broker, arguments: &[&str], input: &[u8]) -> Finished {
    process::run(&mut command(broker, arguments), input, LIMIT)
}

/// What a call that must go well printed to stdout.
#[track_caller]
pub fn text(broker: &Broker, arguments: &[&str]) -> String {
    run(broker, arguments).ok().text()
}

/// The same with `--json`, read.
#[track_caller]
pub fn json(broker: &Broker, arguments: &[&str]) -> Value {
    parsed(&text(broker, &[arguments, &["--json"]].concat()))
}

/// The same where the call may fail; None then.
pub fn try_json(broker: &Broker, arguments: &[&str]) -> Option<Value> {
    let ended = run(broker, &[arguments, &["--json"]].concat());
    ended.status.success().then(|| parsed(&ended.text()))
}

#[track_caller]
pub fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

/// A call that must end with `code`, without a panic; what it said on stderr.
#[track_caller]
pub fn fails(broker: &Broker, arguments: &[&str], code: i32) -> String {
    ends_with(&run(broker, arguments), code)
}

#[track_caller]
pub fn ends_with(ended: &Finished, code: i32) -> String {
    let said = ended.errors();
    assert_eq!(ended.status.code(), Some(code), "{}\n{said}", ended.text());
    assert!(!said.contains("panicked"), "a panic is no sentence:\n{said}");
    assert!(!said.trim().is_empty(), "a failure says why");
    said
}

/// In the background.
pub fn spawn(broker: &Broker, arguments: &[&str]) -> Running {
    Running::start(&format!("ringlog {arguments:?}"), &mut command(broker, arguments))
}

/// Makes a topic by `ringlog topic create`, and waits until it can be used.
#[track_caller]
pub fn create_topic(broker: &Broker, name: &str, partitions: usize) {
    run(broker, &["topic", "create", name, "--partitions", &partitions.to_string()]).ok();
    requests::wait_for_leaders(&mut Raw::connect(broker), name, partitions);
}

/// `ringlog produce TOPIC ...` of `input`; must go well.
#[track_caller]
pub fn produce(broker: &Broker, topic: &str, more: &[&str], input: impl AsRef<[u8]>) {
    run_with_input(broker, &[&["produce", topic], more].concat(), input.as_ref()).ok();
}

/// `ringlog consume TOPIC --exit ...`; what it printed.
#[track_caller]
pub fn consume(broker: &Broker, topic: &str, more: &[&str]) -> String {
    text(broker, &[&["consume", topic, "--exit"], more].concat())
}

/// Where a group stands in a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lag {
    pub partition: i64,
    pub committed: Option<i64>,
    pub lag: Option<i64>,
}

/// Where a group stands in each partition that it has or has committed; None where the group is not known (yet).
pub fn lag(broker: &Broker, group: &str) -> Option<Vec<Lag>> {
    let seen = try_json(broker, &["group", "lag", group])?;
    let one = |row: &Value| Lag {
        partition: row["partition"].as_i64().expect("a partition's number"),
        committed: row["committed"].as_i64(),
        lag: row["lag"].as_i64(),
    };
    Some(seen.as_array()?.iter().map(one).collect())
}

/// True where the group has read so many partitions to their ends.
pub fn has_read_all(broker: &Broker, group: &str, partitions: usize) -> bool {
    lag(broker, group).is_some_and(|rows| rows.len() == partitions && rows.iter().all(|row| row.lag == Some(0)))
}

/// The group's members with the partitions that each was given, sorted; None where the group is not known (yet).
pub fn shares(broker: &Broker, group: &str) -> Option<Vec<Vec<i64>>> {
    let seen = try_json(broker, &["group", "members", group])?;
    let share = |member: &Value| -> Vec<i64> {
        let mut share: Vec<i64> =
            member["partitions"].as_array().unwrap().iter().map(|one| one["partition"].as_i64().unwrap()).collect();
        share.sort_unstable();
        share
    };
    Some(seen.as_array()?.iter().map(share).collect())
}

/// Waits until so many members share all `partitions` evenly, each partition with exactly one owner.
#[track_caller]
pub fn wait_for_shares(broker: &Broker, group: &str, members: usize, partitions: usize) {
    let mut last = None;
    let even = || {
        last = shares(broker, group);
        let shares = last.as_ref()?;
        let mut all: Vec<i64> = shares.iter().flatten().copied().collect();
        all.sort_unstable();
        let each_once = all.iter().copied().eq(0..partitions as i64);
        let is_even = shares.iter().all(|share| share.len().abs_diff(partitions / members) <= 1);
        (shares.len() == members && each_once && is_even).then_some(())
    };
    let met = requests::within(LIMIT, even);
    assert!(met.is_some(), "{members} members with {partitions} partitions expected, these are: {last:?}");
}
