//! Consumer groups of real clients: partitions shared out evenly, members that die, offsets that stay, the group tool.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use ringlog_e2e::groups::{Commit, committed, ready};
use ringlog_e2e::java::Tool;
use ringlog_e2e::process::Running;
use ringlog_e2e::raw::Raw;
use ringlog_e2e::{Broker, kcat, python, requests};

/// Longer than a session timeout and a rebalance on a busy machine.
const REBALANCE_LIMIT: Duration = Duration::from_secs(40);
const PARTITIONS: usize = 6;

fn with_topic() -> (Broker, Raw) {
    let broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    requests::create_topic(&mut raw, "shared", PARTITIONS as i32, &[]);
    (broker, raw)
}

/// The partitions that a member last said it holds.
fn held(member: &Running) -> BTreeSet<i32> {
    let lines = member.lines();
    let last = lines.iter().rev().find(|line| line.starts_with("assigned"));
    last.into_iter().flat_map(|line| line.split(' ').skip(1)).map(|partition| partition.parse().unwrap()).collect()
}

/// Waits until the members hold as many partitions each as `expected` says, and all of them together.
#[track_caller]
fn wait_for_shares(members: &[&Running], expected: usize) {
    let end = Instant::now() + REBALANCE_LIMIT;
    loop {
        let shares: Vec<_> = members.iter().map(|member| held(member)).collect();
        let union: BTreeSet<i32> = shares.iter().flatten().copied().collect();
        if shares.iter().all(|share| share.len() == expected) && union.len() == PARTITIONS {
            return;
        }
        assert!(Instant::now() < end, "shares of {expected} expected, these are: {shares:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn join(broker: &Broker, group: &str) -> Running {
    python::spawn(broker, &["member", group, "shared"])
}

#[test]
fn processes_share_the_partitions_evenly_and_inherit_those_of_the_dead() {
    let (broker, _raw) = with_topic();
    let mut members = [join(&broker, "g"), join(&broker, "g"), join(&broker, "g")];
    wait_for_shares(&[&members[0], &members[1], &members[2]], 2);
    members[0].kill();
    wait_for_shares(&[&members[1], &members[2]], 3);
    members[1].terminate(REBALANCE_LIMIT);
    members[1].wait_for_line(Duration::from_secs(1), "left");
    wait_for_shares(&[&members[2]], 6);
    let seen = python::call(&broker, &["group", "g"], b"");
    assert_eq!((&seen["members"], &seen["state"], &seen["listed"]), (&1.into(), &"Stable".into(), &true.into()));
}

#[test]
fn a_static_member_that_returns_gets_its_partitions_without_a_rebalance() {
    let (broker, _raw) = with_topic();
    let first = python::spawn(&broker, &["member", "static", "shared", "one"]);
    let mut second = python::spawn(&broker, &["member", "static", "shared", "two"]);
    wait_for_shares(&[&first, &second], 3);
    let (before, rebalances) = (held(&second), first.lines().len());
    second.kill();
    let back = python::spawn(&broker, &["member", "static", "shared", "two"]);
    wait_for_shares(&[&first, &back], 3);
    assert_eq!(held(&back), before);
    assert_eq!(first.lines().len(), rebalances, "the other was not disturbed: {:?}", first.lines());
}

#[test]
fn a_group_goes_on_from_its_committed_offsets_after_a_restart_and_after_kill_9() {
    let (mut broker, _raw) = with_topic();
    let mut read = 0;
    for round in ["first", "after a restart", "after kill -9"] {
        kcat::produce(&broker, "shared", &["-p", "2"], &"record\n".repeat(100));
        let mut member = join(&broker, "g");
        let last = format!("record 2 {}", read + 99);
        member.wait_for_line(REBALANCE_LIMIT, &last);
        let records = member.lines().iter().filter(|line| line.starts_with("record")).count();
        assert_eq!(records, 100, "{round}: from the committed offset on, nothing twice");
        member.terminate(REBALANCE_LIMIT);
        read += 100;
        if round == "first" {
            broker.restart();
        } else {
            broker.kill();
            broker.start_again();
        }
        requests::wait_for_leaders(&mut Raw::connect(&broker), "shared", PARTITIONS);
    }
    assert_eq!(committed_in(&broker, 2), 300);
}

fn committed_in(broker: &Broker, partition: i32) -> i64 {
    let seen = python::call(broker, &["group", "g"], b"");
    seen["offsets"][format!("shared-{partition}")].as_i64().unwrap()
}

#[test]
fn members_live_through_a_restart_of_the_broker() {
    let (mut broker, _raw) = with_topic();
    let members = [join(&broker, "g"), join(&broker, "g")];
    wait_for_shares(&[&members[0], &members[1]], 3);
    broker.kill();
    broker.start_again();
    kcat::produce(&broker, "shared", &["-p", "0"], "after\n");
    kcat::produce(&broker, "shared", &["-p", "5"], "after\n");
    let read = |wanted: &str| members.iter().any(|member| member.lines().iter().any(|line| line == wanted));
    let end = Instant::now() + REBALANCE_LIMIT;
    while !(read("record 0 0") && read("record 5 0")) {
        assert!(Instant::now() < end, "the members do not read on");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn kcat_reads_as_members_of_a_group() {
    let (broker, mut raw) = with_topic();
    kcat::produce(&broker, "shared", &[], &(0..300).map(|at| format!("{at}\n")).collect::<String>());
    let arguments = ["-q", "-e", "-X", "auto.offset.reset=earliest", "-G", "g", "shared"];
    let read = kcat::kcat(&broker, &arguments, b"").ok().text();
    let numbers: BTreeSet<u32> = read.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!((read.lines().count(), numbers.len()), (300, 300));
    ready(&mut raw, "g");
    let again = kcat::kcat(&broker, &arguments, b"").ok().text();
    assert_eq!(again, "", "all of it was committed");
}

#[test]
fn the_group_tool_tells_the_lag_rewinds_and_deletes() {
    let (broker, mut raw) = with_topic();
    let stamps: Vec<i64> = (1..=10).map(|at| at * 1000).collect();
    requests::create_topic(&mut raw, "timed", 1, &[("retention.ms", "-1")]);
    requests::produce(&mut raw, "timed", &ringlog_e2e::batch::Batch::stamped(&stamps));
    ready(&mut raw, "lagging");
    assert_eq!(Commit::new("lagging", "timed", 4).send(&mut raw), 0);
    let described = Tool::ConsumerGroups.run(&broker, &["--describe", "--group", "lagging"]).ok().text();
    let row: Vec<&str> = described.lines().find(|line| line.contains("timed")).unwrap().split_whitespace().collect();
    assert_eq!(row[1..6], ["timed", "0", "4", "10", "6"], "{described}");

    let reset = ["--reset-offsets", "--execute", "--group", "lagging", "--topic", "timed"];
    for (how, expected) in [
        (&["--to-datetime", "1970-01-01T00:00:07.500Z"][..], 7),
        (&["--shift-by", "-2"], 5),
        (&["--to-earliest"], 0),
        (&["--to-offset", "9"], 9),
    ] {
        Tool::ConsumerGroups.run(&broker, &[&reset[..], how].concat()).ok();
        assert_eq!(committed(&mut raw, "lagging", "timed").0, expected, "{how:?}");
    }
    let listed = Tool::ConsumerGroups.run(&broker, &["--list", "--state"]).ok().text();
    assert!(listed.lines().any(|line| line.contains("lagging") && line.contains("Empty")), "{listed}");

    let member = join(&broker, "busy");
    wait_for_shares(&[&member], 6);
    let described =
        Tool::ConsumerGroups.run(&broker, &["--describe", "--group", "busy", "--members", "--verbose"]).ok();
    assert!(described.text().contains("shared:0,1,2,3,4,5"), "{}", described.text());
    let refused = Tool::ConsumerGroups.run(&broker, &["--delete", "--group", "busy", "--group", "lagging"]);
    assert!(refused.all().contains("GroupNotEmptyException"), "{}", refused.all());
    let left = Tool::ConsumerGroups.run(&broker, &["--list"]).ok().text();
    assert!(left.contains("busy") && !left.contains("lagging"), "{left}");
}

#[test]
fn the_java_consumers_and_others_share_a_group() {
    let (broker, _raw) = with_topic();
    let arguments = ["--topic", "shared", "--group-id", "mixed", "--reset-policy", "earliest"];
    let mut java = Tool::VerifiableConsumer.spawn(&broker, &arguments);
    java.wait_for_line(REBALANCE_LIMIT, "partitions_assigned");
    kcat::produce(&broker, "shared", &[], &"record\n".repeat(1000));
    java.wait_for_line(REBALANCE_LIMIT, "offsets_committed");
    java.terminate(REBALANCE_LIMIT);
    let member = join(&broker, "mixed");
    wait_for_shares(&[&member], 6);
    // The Java member may have been ended between two commits: who takes over reads and commits the rest.
    requests::until("all records are committed", || {
        let seen = python::call(&broker, &["group", "mixed"], b"");
        let offsets: i64 = seen["offsets"].as_object()?.values().filter_map(|offset| offset.as_i64()).sum();
        (offsets == 1000).then_some(())
    });
}
