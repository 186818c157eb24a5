//! `ringlog config`.

use ringlog_e2e::Broker;
use ringlog_e2e::cli::{self, REFUSED, USAGE};
use ringlog_e2e::requests::until;
use serde_json::{Value, json};

fn value(broker: &Broker, target: &str, key: &str) -> Value {
    cli::json(broker, &["config", "get", target, key])[0].clone()
}

#[test]
fn a_topics_keys_are_set_shown_and_unset() {
    let broker = Broker::start();
    cli::create_topic(&broker, "clicks", 1);
    // A broker may have something set for all of its topics.
    let own = || {
        let shown = cli::json(&broker, &["config", "get", "topic:clicks"]);
        let own = shown.as_array().unwrap().iter().filter(|one| one["source"] == "topic");
        own.map(|one| json!([one["key"], one["value"]])).collect::<Vec<_>>()
    };
    assert_eq!(own(), [] as [Value; 0]);
    let unset = cli::run(&broker, &["config", "get", "topic:clicks"]).ok();
    assert!(!unset.text().is_empty() || unset.errors().contains("--all"), "{}", unset.all());
    let set = ["config", "set", "topic:clicks", "retention.ms=3600000", "cleanup.policy=compact"];
    assert_eq!(cli::text(&broker, &set), "topic:clicks changed\n");
    let both = [json!(["cleanup.policy", "compact"]), json!(["retention.ms", "3600000"])];
    until("both are set", || (own() == both).then_some(()));
    let table = cli::text(&broker, &["config", "get", "topic:clicks", "retention.ms", "max.message.bytes"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["key", "value", "set", "by", "may", "change"], "{table}");
    assert_eq!(rows[1], ["max.message.bytes", "1048588", "default", "any", "time"], "{table}");
    assert_eq!(rows[2], ["retention.ms", "3600000", "topic", "any", "time"], "{table}");
    let all = cli::json(&broker, &["config", "get", "topic:clicks", "--all"]);
    assert!(all.as_array().unwrap().len() > 20, "{all:#}");

    let unset = ["config", "unset", "topic:clicks", "retention.ms"];
    assert_eq!(cli::text(&broker, &[&unset[..], &["--validate-only"]].concat()), "topic:clicks could be changed\n");
    assert_eq!(value(&broker, "topic:clicks", "retention.ms")["value"], "3600000");
    assert_eq!(cli::text(&broker, &unset), "topic:clicks changed\n");
    until("it is at its default", || {
        let now = value(&broker, "topic:clicks", "retention.ms");
        (now["value"] == "604800000" && now["default"] == true).then_some(())
    });
}

#[test]
fn a_brokers_keys_are_set_on_one_and_on_all() {
    let broker = Broker::start();
    let source = |key: &str| value(&broker, "broker:1", key);
    assert_eq!(source("message.max.bytes")["default"], true);
    cli::run(&broker, &["config", "set", "brokers", "message.max.bytes=2000000"]).ok();
    until("all brokers have it", || {
        let now = source("message.max.bytes");
        (now["value"] == "2000000" && now["source"] == "all brokers, while running").then_some(())
    });
    cli::run(&broker, &["config", "set", "broker:1", "message.max.bytes=3000000"]).ok();
    until("the one has its own", || {
        let now = source("message.max.bytes");
        (now["value"] == "3000000" && now["source"] == "broker, while running").then_some(())
    });
    cli::run(&broker, &["config", "unset", "broker:1", "message.max.bytes"]).ok();
    cli::run(&broker, &["config", "unset", "brokers", "message.max.bytes"]).ok();
    until("it is at its default", || (source("message.max.bytes")["default"] == true).then_some(()));
    let fixed = source("node.id");
    assert_eq!((&fixed["value"], &fixed["read_only"]), (&json!("1"), &json!(true)), "{fixed:#}");
}

#[test]
fn a_wrong_key_value_or_target_is_refused() {
    let broker = Broker::start();
    cli::create_topic(&broker, "t", 1);
    for (arguments, code, word) in [
        (&["config", "get", "topic:t", "no.such"][..], REFUSED, "ringlog config get topic:t --all"),
        (&["config", "get", "topic:missing"], REFUSED, "missing"),
        (&["config", "get", "client:x"], USAGE, "topic:NAME"),
        (&["config", "set", "topic:t", "no.such=1"], REFUSED, "no.such"),
        (&["config", "set", "topic:t", "retention.ms=soon"], REFUSED, "retention.ms"),
        (&["config", "set", "topic:t", "retention.ms"], USAGE, "key=value"),
        (&["config", "set", "topic:t"], USAGE, "KEY=VALUE"),
        (&["config", "set", "broker:1", "node.id=7"], REFUSED, "node.id"),
        (&["config", "unset", "topic:missing", "retention.ms"], REFUSED, "missing"),
    ] {
        let said = cli::fails(&broker, arguments, code);
        assert!(said.contains(word), "{arguments:?}: {word:?} is not in\n{said}");
    }
}
