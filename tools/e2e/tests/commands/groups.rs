//! `ringlog consume --group` and `ringlog group`.

use ringlog_e2e::Broker;
use ringlog_e2e::cli::{self, LIMIT, Lag, REFUSED, USAGE};
use ringlog_e2e::requests::until;
use serde_json::json;

/// Twelve numbered records in one partition, or four in each of three.
fn with_records(partitions: usize) -> Broker {
    let broker = Broker::start();
    cli::create_topic(&broker, "t", partitions);
    for partition in 0..partitions {
        let lines: String = (0..12 / partitions).map(|at| format!("{partition}-{at}\n")).collect();
        cli::produce(&broker, "t", &["-p", &partition.to_string()], &lines);
    }
    broker
}

fn by_group(broker: &Broker, more: &[&str]) -> String {
    cli::consume(broker, "t", &[&["--group", "g", "-f", "%p-%o\\n"], more].concat())
}

fn lag(partition: i64, committed: i64, lag: i64) -> Lag {
    Lag { partition, committed: Some(committed), lag: Some(lag) }
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn it_goes_on_from_where_the_group_was() {
    let broker = with_records(3);
    let first = by_group(&broker, &[]);
    assert_eq!(sorted(&first).len(), 12, "{first}");
    assert_eq!(by_group(&broker, &[]), "", "all of it was committed");
    cli::produce(&broker, "t", &["-p", "1"], "more\nmore\n");
    assert_eq!(by_group(&broker, &[]), "1-4\n1-5\n");
    assert_eq!(cli::lag(&broker, "g"), Some(vec![lag(0, 4, 0), lag(1, 6, 0), lag(2, 4, 0)]));
    let late = ["--group", "late", "--offset", "latest"];
    assert_eq!(cli::consume(&broker, "t", &late), "", "a new group that begins at the end");
}

#[test]
fn it_commits_only_what_it_printed() {
    let broker = with_records(1);
    assert_eq!(by_group(&broker, &["-n", "3"]), "0-0\n0-1\n0-2\n");
    assert_eq!(cli::lag(&broker, "g"), Some(vec![lag(0, 3, 9)]));
    let table = cli::text(&broker, &["group", "lag", "g"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["topic", "partition", "committed", "end", "lag", "member"], "{table}");
    assert_eq!(rows[1], ["t", "0", "3", "12", "9", "-"], "{table}");
    assert_eq!(rows[2], ["total", "lag", "9"], "{table}");
    assert_eq!(by_group(&broker, &["-n", "4"]), "0-3\n0-4\n0-5\n0-6\n");
    assert_eq!(cli::lag(&broker, "g"), Some(vec![lag(0, 7, 5)]));
}

#[test]
fn groups_are_listed_and_described() {
    let broker = with_records(3);
    let none = cli::run(&broker, &["group", "list"]).ok();
    assert_eq!((none.text().as_str(), none.errors().contains("--group")), ("", true));
    let mut member =
        cli::spawn(&broker, &["consume", "t", "--group", "g", "--instance-id", "one", "--assignor", "range"]);
    cli::wait_for_shares(&broker, "g", 1, 3);
    until("all of it is committed", || {
        let group = cli::json(&broker, &["group", "describe", "g"]);
        (group["total_lag"] == 0 && group["offsets"].as_array()?.iter().all(|row| row["committed"] == 4)).then_some(())
    });
    let group = cli::json(&broker, &["group", "describe", "g"]);
    assert_eq!(
        (&group["group"], &group["state"], &group["assignor"]),
        (&json!("g"), &json!("Stable"), &json!("range")),
        "{group:#}"
    );
    let one = &group["members"][0];
    assert_eq!(
        (&one["static_id"], &one["topics"], &one["client"]),
        (&json!("one"), &json!(["t"]), &json!("ringlog-cli")),
        "{group:#}"
    );
    assert!(group["offsets"].as_array().unwrap().iter().all(|row| row["member"] == one["member"]), "{group:#}");
    let shown = cli::text(&broker, &["group", "describe", "g"]);
    assert!(shown.starts_with("g  Stable, 1 members, assignor range, coordinator 1, total lag 0\n"), "{shown}");
    assert!(shown.contains("t:0,1,2"), "{shown}");
    let list = cli::json(&broker, &["group", "list"]);
    let one = &list[0];
    assert_eq!(
        (list.as_array().unwrap().len(), &one["group"], &one["state"]),
        (1, &json!("g"), &json!("Stable")),
        "{list:#}"
    );
    assert_eq!((&one["protocol_type"], &one["coordinator"]), (&json!("consumer"), &json!(1)), "{list:#}");
    assert!(one["type"].as_str().unwrap().eq_ignore_ascii_case("classic"), "{list:#}");
    member.signal("INT");
    assert!(member.wait(LIMIT).is_some(), "{}", member.tail());
}

#[test]
fn a_groups_offsets_are_moved_when_nobody_is_there() {
    let broker = with_records(3);
    by_group(&broker, &[]);
    let committed = || {
        let rows = cli::lag(&broker, "g").unwrap();
        rows.into_iter().map(|row| row.committed.unwrap()).collect::<Vec<_>>()
    };
    for (arguments, expected) in [
        (&["--topic", "t", "--to", "earliest"][..], [0, 0, 0]),
        (&["--to", "latest"], [4, 4, 4]),
        (&["--topic", "t:0,2", "--to", "1"], [1, 4, 1]),
        (&["--topic", "t:1", "--to", "-3"], [1, 1, 1]),
        (&["--to", "@0"], [0, 0, 0]),
        (&["--to", "@2100-01-01T00:00:00Z"], [4, 4, 4]),
        (&["--to", "99", "--topic", "t:2"], [4, 4, 4]),
        (&["--to", "2"], [2, 2, 2]),
    ] {
        cli::run(&broker, &[&["group", "seek", "g"], arguments].concat()).ok();
        assert_eq!(committed(), expected, "{arguments:?}");
    }
    let dry = cli::json(&broker, &["group", "seek", "g", "--topic", "t:1", "--to", "0", "--dry-run"]);
    assert_eq!(dry, json!([{"topic": "t", "partition": 1, "from": 2, "to": 0}]));
    assert_eq!(committed(), [2, 2, 2], "a dry run moves nothing");
    assert_eq!(sorted(&by_group(&broker, &[])), ["0-2", "0-3", "1-2", "1-3", "2-2", "2-3"]);
    // A group that is not there yet is given offsets, so that its first member begins there.
    cli::run(&broker, &["group", "seek", "new", "--topic", "t", "--to", "3"]).ok();
    assert_eq!(sorted(&cli::consume(&broker, "t", &["-g", "new", "-f", "%p-%o\\n"])), ["0-3", "1-3", "2-3"]);
    assert!(cli::fails(&broker, &["group", "seek", "newer", "--to", "0"], USAGE).contains("--topic"));
    assert!(
        cli::fails(&broker, &["group", "seek", "g", "--topic", "t:7", "--to", "0"], USAGE).contains("no partition 7")
    );
}

#[test]
fn a_group_with_members_is_neither_moved_nor_deleted() {
    let broker = with_records(3);
    let mut members = [0, 1].map(|_| cli::spawn(&broker, &["consume", "t", "--group", "g"]));
    cli::wait_for_shares(&broker, "g", 2, 3);
    let said = cli::fails(&broker, &["group", "seek", "g", "--topic", "t", "--to", "earliest"], REFUSED);
    assert!(said.contains("ringlog group members g"), "{said}");
    cli::fails(&broker, &["group", "delete", "g"], REFUSED);
    let table = cli::text(&broker, &["group", "members", "g"]);
    assert_eq!(table.lines().count(), 3, "{table}");
    for member in &mut members {
        member.signal("TERM");
        assert!(member.wait(LIMIT).is_some_and(|status| status.success()), "{}", member.tail());
    }
    assert_eq!(cli::shares(&broker, "g"), Some(vec![]));
    let shown = cli::run(&broker, &["group", "members", "g"]).ok();
    assert!(shown.errors().contains("no members now"), "{}", shown.all());
    cli::run(&broker, &["group", "seek", "g", "--topic", "t", "--to", "earliest"]).ok();
    assert_eq!(cli::text(&broker, &["group", "delete", "g"]), "group g deleted\n");
    until("it is gone", || (cli::json(&broker, &["group", "list"]) == json!([])).then_some(()));
    for command in ["describe", "members", "lag", "delete"] {
        let said = cli::fails(&broker, &["group", command, "g"], REFUSED);
        assert!(said.contains('g'), "{command}: {said}");
    }
}

#[test]
fn members_share_the_partitions_and_each_record_is_printed_once() {
    let broker = Broker::start();
    for assignor in ["range", "round-robin", "sticky", "cooperative-sticky"] {
        cli::create_topic(&broker, assignor, 6);
        let arguments = ["consume", assignor, "--group", assignor, "--assignor", assignor, "-f", "%p %v\n"];
        let mut members = [0, 1, 2].map(|_| cli::spawn(&broker, &arguments));
        cli::wait_for_shares(&broker, assignor, 3, 6);
        let lines: String = (0..600).map(|at| format!("{assignor}{at}\n")).collect();
        cli::produce(&broker, assignor, &["--round-robin"], &lines);
        let all = || {
            let mut all: Vec<String> = members.iter().flat_map(|member| member.lines()).collect();
            all.sort_unstable();
            all
        };
        until("all records are printed", || (all().len() >= 600).then_some(()));
        for member in &members {
            let mut own: Vec<String> = member.lines().iter().map(|line| line[..1].to_owned()).collect();
            own.sort_unstable();
            own.dedup();
            assert_eq!(own.len(), 2, "{assignor}: a third of the partitions each, {own:?}");
        }
        let mut values: Vec<String> = all().iter().map(|line| line[2..].to_owned()).collect();
        values.sort_unstable();
        values.dedup();
        assert_eq!((values.len(), all().len()), (600, 600), "{assignor}: each once");
        for member in &mut members {
            member.signal("INT");
        }
        assert!(
            members.iter_mut().all(|member| member.wait(LIMIT).is_some_and(|status| status.success())),
            "{assignor}"
        );
    }
}
