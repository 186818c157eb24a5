//! `ringlog topic` and `ringlog cluster`.

use ringlog_e2e::cli::{self, REFUSED, USAGE};
use ringlog_e2e::requests::until;
use ringlog_e2e::{Broker, broker};
use serde_json::{Value, json};

fn listed(broker: &Broker) -> Vec<String> {
    let topics = cli::json(broker, &["topic", "list"]);
    topics.as_array().unwrap().iter().map(|topic| topic["topic"].as_str().unwrap().to_owned()).collect()
}

fn described(broker: &Broker, name: &str) -> Option<Value> {
    Some(cli::try_json(broker, &["topic", "describe", name])?[0].clone())
}

#[test]
fn topics_are_made_listed_and_described() {
    let broker = Broker::start();
    let none = cli::run(&broker, &["topic", "list"]).ok();
    assert_eq!((none.text().as_str(), none.errors().contains("ringlog topic create")), ("", true));
    assert_eq!(cli::json(&broker, &["topic", "list"]), json!([]));

    let create = ["topic", "create", "clicks", "--partitions", "4", "--config", "retention.ms=86400000"];
    assert_eq!(cli::text(&broker, &create), "topic clicks made, 4 partitions of 1 replica\n");
    let described = until("the topic is described", || described(&broker, "clicks"));
    assert_eq!(
        (&described["topic"], &described["internal"], &described["replicas"]),
        (&json!("clicks"), &json!(false), &json!(1))
    );
    assert_eq!(described["configs"]["retention.ms"], "86400000");
    let partitions = described["partitions"].as_array().unwrap();
    assert_eq!(partitions.len(), 4);
    for (at, partition) in partitions.iter().enumerate() {
        assert_eq!((&partition["partition"], &partition["leader"]), (&json!(at), &json!(1)), "{described:#}");
        assert_eq!((&partition["replicas"], &partition["isr"]), (&json!([1]), &json!([1])), "{described:#}");
        assert_eq!(partition["offline"], json!([]), "{described:#}");
    }

    let shown = cli::text(&broker, &["topic", "describe", "clicks"]);
    let mut lines = shown.lines();
    let head = lines.next().unwrap();
    assert!(
        head.starts_with("clicks  4 partitions  id ") && head.ends_with(described["id"].as_str().unwrap()),
        "{shown}"
    );
    assert!(shown.contains("\n  retention.ms=86400000\n"), "{shown}");
    let last: Vec<&str> = lines.next_back().unwrap().split_whitespace().collect();
    assert_eq!(last, ["3", "1", "0", "1", "1", "-"], "{shown}");

    let list = cli::text(&broker, &["topic", "list"]);
    let rows: Vec<Vec<&str>> = list.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["topic", "partitions", "replicas", "id"], "{list}");
    assert_eq!(rows[1], ["clicks", "4", "1", described["id"].as_str().unwrap()], "{list}");
    assert_eq!(rows.len(), 2, "{list}");
}

#[test]
fn what_is_there_already_is_refused_unless_that_is_said() {
    let broker = Broker::with(&[("num.partitions", "3")]);
    assert_eq!(
        cli::text(&broker, &["topic", "create", "a", "b"]),
        "topic a made, 3 partitions of 1 replica\ntopic b made, 3 partitions of 1 replica\n"
    );
    let said = cli::fails(&broker, &["topic", "create", "a"], REFUSED);
    assert!(said.contains('a') && said.contains("exist"), "{said}");
    let some = cli::run(&broker, &["topic", "create", "a", "c"]);
    cli::ends_with(&some, REFUSED);
    assert_eq!(some.text(), "topic c made, 3 partitions of 1 replica\n", "what could be made is made");
    let again = cli::text(&broker, &["topic", "create", "a", "d", "--if-not-exists"]);
    assert_eq!(again, "topic d made, 3 partitions of 1 replica\n");
    until("all four are listed", || (listed(&broker) == ["a", "b", "c", "d"]).then_some(()));
}

#[test]
fn validating_changes_nothing() {
    let broker = Broker::start();
    let only = |arguments: &[&str]| cli::text(&broker, &[arguments, &["--validate-only"]].concat());
    let said = only(&["topic", "create", "maybe", "-p", "2"]);
    assert!(said.starts_with("topic maybe could be made"), "{said}");
    cli::create_topic(&broker, "real", 2);
    assert_eq!(listed(&broker), ["real"]);
    assert_eq!(only(&["topic", "add-partitions", "real", "--total", "5"]), "topic real could have 5 partitions\n");
    assert_eq!(only(&["topic", "alter", "real", "--set", "retention.ms=1000"]), "topic real could be changed\n");
    let after = described(&broker, "real").unwrap();
    assert_eq!((after["partitions"].as_array().unwrap().len(), &after["configs"]), (2, &json!({})), "{after:#}");
    let refused = ["topic", "alter", "real", "--set", "retention.ms=soon", "--validate-only"];
    assert!(cli::fails(&broker, &refused, REFUSED).contains("retention.ms"));
    cli::fails(&broker, &["topic", "create", "real", "--validate-only"], REFUSED);
}

#[test]
fn topics_are_changed_grown_and_deleted() {
    let broker = Broker::start();
    cli::create_topic(&broker, "life", 1);
    let alter = ["topic", "alter", "life", "--set", "retention.ms=3600000", "--set", "segment.bytes=1048576"];
    assert_eq!(cli::text(&broker, &alter), "topic life changed\n");
    let configs = || described(&broker, "life").map(|topic| topic["configs"].clone());
    let both = json!({"retention.ms": "3600000", "segment.bytes": "1048576"});
    until("both are set", || (configs()? == both).then_some(()));
    cli::run(&broker, &["topic", "alter", "life", "--unset", "segment.bytes", "--set", "retention.ms=7200000"]).ok();
    until("one is left", || (configs()? == json!({"retention.ms": "7200000"})).then_some(()));

    assert_eq!(
        cli::text(&broker, &["topic", "add-partitions", "life", "--total", "6"]),
        "topic life has 6 partitions\n"
    );
    until("there are six", || (described(&broker, "life")?["partitions"].as_array()?.len() == 6).then_some(()));
    let said = cli::fails(&broker, &["topic", "add-partitions", "life", "--total", "2"], REFUSED);
    assert!(said.contains("life") && said.contains('6'), "{said}");

    assert_eq!(cli::text(&broker, &["topic", "delete", "life"]), "topic life deleted\n");
    until("it is gone", || listed(&broker).is_empty().then_some(()));
    let said = cli::fails(&broker, &["topic", "delete", "life"], REFUSED);
    assert!(said.contains("life does not exist"), "{said}");
    assert_eq!(cli::text(&broker, &["topic", "delete", "life", "--if-exists"]), "");
}

#[test]
fn a_wrong_topic_is_refused_with_a_sentence() {
    let broker = Broker::start();
    cli::create_topic(&broker, "here", 1);
    for (arguments, code, word) in [
        (&["topic", "create", "no good name"][..], REFUSED, "no good name"),
        (&["topic", "create", "x", "--config", "no.such.key=1"], REFUSED, "no.such.key"),
        (&["topic", "create", "x", "--config", "retention.ms=soon"], REFUSED, "retention.ms"),
        (&["topic", "create", "x", "--replication-factor", "3"], REFUSED, "replic"),
        (&["topic", "create", "x", "--config", "nothing"], USAGE, "key=value"),
        (&["topic", "create", "x", "--partitions", "0"], USAGE, "--partitions"),
        (&["topic", "create"], USAGE, "TOPIC"),
        (&["topic", "describe", "missing"], REFUSED, "ringlog topic create missing"),
        (&["topic", "alter", "here"], USAGE, "--set"),
        (&["topic", "alter", "missing", "--set", "retention.ms=1"], REFUSED, "missing"),
        (&["topic", "add-partitions", "missing", "--total", "3"], REFUSED, "missing"),
    ] {
        let said = cli::fails(&broker, arguments, code);
        assert!(said.to_lowercase().contains(&word.to_lowercase()), "{arguments:?}: {word:?} is not in\n{said}");
    }
    let some = cli::run(&broker, &["topic", "describe", "here", "missing"]);
    cli::ends_with(&some, REFUSED);
    assert!(some.text().starts_with("here  1 partition "), "what is there is shown: {}", some.text());
}

#[test]
fn internal_topics_are_shown_when_asked_for() {
    let broker = Broker::start();
    cli::create_topic(&broker, "t", 1);
    cli::produce(&broker, "t", &[], "one\n");
    assert_eq!(cli::consume(&broker, "t", &["--group", "g"]), "one\n");
    assert_eq!(listed(&broker), ["t"]);
    let all = cli::json(&broker, &["topic", "list", "--internal"]);
    let offsets = all.as_array().unwrap().iter().find(|topic| topic["topic"] == "__consumer_offsets");
    assert_eq!(
        offsets.map(|topic| (&topic["internal"], &topic["partitions"])),
        Some((&json!(true), &json!(4))),
        "{all:#}"
    );
}

#[test]
fn the_cluster_tells_its_brokers_and_what_they_hold() {
    let broker = Broker::start();
    cli::create_topic(&broker, "held", 3);
    cli::produce(&broker, "held", &[], "x\n".repeat(1000));
    let info = until("three partitions are counted", || {
        let info = cli::json(&broker, &["cluster", "info"]);
        (info["brokers"][0]["log_dirs"][0]["replicas"] == 3).then_some(info)
    });
    assert_eq!(
        (&info["topics"], &info["partitions"], &info["controller"]),
        (&json!(1), &json!(3), &json!(1)),
        "{info:#}"
    );
    let one = &info["brokers"][0];
    assert_eq!((&one["id"], &one["host"], &one["port"]), (&json!(1), &json!("127.0.0.1"), &json!(broker.port())));
    assert_eq!((&one["fenced"], info["brokers"].as_array().unwrap().len()), (&json!(false), 1), "{info:#}");
    let dir = &one["log_dirs"][0];
    assert!(dir["error"].is_null() && dir["bytes"].as_i64().unwrap() > 1000, "{info:#}");
    assert_eq!((&info["quorum"]["leader"], &info["quorum"]["voters"]), (&json!(1), &json!([1])), "{info:#}");
    let shown = cli::text(&broker, &["cluster", "info"]);
    let head = format!("cluster {}  1 topics, 3 partitions\n", info["cluster_id"].as_str().unwrap());
    assert!(shown.starts_with(&head), "{shown}");
    assert!(shown.contains(&broker.bootstrap()) && shown.contains("quorum led by 1"), "{shown}");
    assert!(!shown.contains("fenced"), "{shown} ({:?})", broker::kind());
}
