//! Topics and their configuration: made, grown, made by asking, described.

use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::{CreatePartitionsRequest, DescribeConfigsRequest};
use ringlog_e2e::Broker;
use ringlog_e2e::batch::{Batch, Codec};
use ringlog_e2e::broker::skip_on_kafka;
use ringlog_e2e::raw::Raw;
use ringlog_e2e::requests::{
    self, Produce, TOPIC_RESOURCE, alter_config, create_topic, create_topics, describe_config, fetch_batches, metadata,
    new_topic, text, topic_name, until,
};

const UNKNOWN_TOPIC: i16 = 3;
const INVALID_TOPIC: i16 = 17;
const TOPIC_ALREADY_EXISTS: i16 = 36;
const INVALID_PARTITIONS: i16 = 37;
const INVALID_REPLICATION_FACTOR: i16 = 38;
const INVALID_CONFIG: i16 = 40;
/// Every property of a topic in Kafka 4.4.
const PROPERTIES: [&str; 33] = [
    "cleanup.policy",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
    "unclean.leader.election.enable",
];

#[test]
fn auto_create_answers_unknown_first_and_the_leader_next_and_survives_kill_9() {
    let mut broker = Broker::with(&[("num.partitions", "3")]);
    let mut raw = Raw::connect(&broker);
    assert_eq!(metadata(&mut raw, &["made"], false).topics[0].error_code, UNKNOWN_TOPIC);
    assert_eq!(metadata(&mut raw, &["made"], true).topics[0].error_code, UNKNOWN_TOPIC, "the first to ask makes it");
    let made = |raw: &mut Raw| {
        let topic = metadata(raw, &["made"], true).topics.remove(0);
        let led = topic.partitions.iter().filter(|partition| partition.leader_id.0 >= 0).count();
        (topic.error_code == 0 && led == 3).then_some(topic.topic_id)
    };
    let id = until("the topic has leaders", || made(&mut raw));
    broker.kill();
    broker.start_again();
    let mut raw = Raw::connect(&broker);
    assert_eq!(until("the topic is still there", || made(&mut raw)), id);
    assert_eq!(metadata(&mut raw, &["no/name"], true).topics[0].error_code, INVALID_TOPIC);
}

#[test]
fn auto_create_can_be_switched_off() {
    let broker = Broker::with(&[("auto.create.topics.enable", "false")]);
    let mut raw = Raw::connect(&broker);
    for _ in 0..3 {
        assert_eq!(metadata(&mut raw, &["never"], true).topics[0].error_code, UNKNOWN_TOPIC);
    }
}

#[test]
fn create_topics_answers_for_each_topic() {
    let broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    create_topic(&mut raw, "there", 1, &[]);
    let mut replicated = new_topic("replicated", 1, &[]);
    replicated.replication_factor = 3;
    let topics = vec![
        new_topic("fine", 2, &[("retention.ms", "1000")]),
        new_topic("there", 1, &[]),
        new_topic("none", 0, &[]),
        new_topic("bad name", 1, &[]),
        new_topic("..", 1, &[]),
        replicated,
        new_topic("unknown-property", 1, &[("no.such.property", "1")]),
        new_topic("unusable-value", 1, &[("retention.ms", "soon")]),
        new_topic("remote", 1, &[("remote.storage.enable", "true")]),
    ];
    let mut expected = [
        ("fine", 0),
        ("there", TOPIC_ALREADY_EXISTS),
        ("none", INVALID_PARTITIONS),
        ("bad name", INVALID_TOPIC),
        ("..", INVALID_TOPIC),
        ("replicated", INVALID_REPLICATION_FACTOR),
        ("unknown-property", INVALID_CONFIG),
        ("unusable-value", INVALID_CONFIG),
        ("remote", INVALID_CONFIG),
    ]
    .map(|(name, code)| (name.to_owned(), code));
    expected.sort();
    assert_eq!(create_topics(&mut raw, topics.clone(), true), expected, "validate_only");
    assert_eq!(metadata(&mut raw, &["fine"], false).topics[0].error_code, UNKNOWN_TOPIC, "nothing was made");
    assert_eq!(create_topics(&mut raw, topics, false), expected);
    until("the one is there", || (metadata(&mut raw, &["fine"], false).topics[0].error_code == 0).then_some(()));
}

#[test]
fn create_topics_is_answered_when_every_shard_knows() {
    if skip_on_kafka("Kafka answers before its own metadata cache has caught up") {
        return;
    }
    let broker = Broker::start();
    let mut connections: Vec<Raw> = (0..8).map(|_| Raw::connect(&broker)).collect();
    for round in 0..5 {
        let name = format!("round-{round}");
        assert_eq!(create_topics(&mut connections[0], vec![new_topic(&name, 4, &[])], false)[0].1, 0);
        for raw in &mut connections {
            for partition in 0..4 {
                let send = Produce { partition, ..Produce::new(&name, &Batch::of(&["at once"])) };
                assert_eq!(send.code(raw), 0, "{name}-{partition}");
            }
        }
    }
}

fn grow(raw: &mut Raw, wanted: &[(&str, i32)], validate_only: bool) -> Vec<(String, i16)> {
    let topic = |(name, count): &(&str, i32)| {
        CreatePartitionsTopic::default().with_name(topic_name(name)).with_count(*count).with_assignments(None)
    };
    let topics = wanted.iter().map(topic).collect();
    let request =
        CreatePartitionsRequest::default().with_topics(topics).with_timeout_ms(5000).with_validate_only(validate_only);
    let answer = raw.call(3, &request);
    let mut codes: Vec<_> = answer.results.iter().map(|result| (result.name.to_string(), result.error_code)).collect();
    codes.sort();
    codes
}

#[test]
fn create_partitions_answers_for_each_topic() {
    let broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    create_topic(&mut raw, "grows", 1, &[]);
    create_topic(&mut raw, "shrinks", 2, &[]);
    let wanted = [("grows", 3), ("nowhere", 2), ("shrinks", 1)];
    let expected = [("grows", 0), ("nowhere", UNKNOWN_TOPIC), ("shrinks", INVALID_PARTITIONS)];
    let expected = expected.map(|(name, code)| (name.to_owned(), code));
    assert_eq!(grow(&mut raw, &wanted, true), expected, "validate_only");
    assert_eq!(metadata(&mut raw, &["grows"], false).topics[0].partitions.len(), 1, "nothing was made");
    assert_eq!(grow(&mut raw, &wanted, false), expected);
    until("three partitions", || (metadata(&mut raw, &["grows"], false).topics[0].partitions.len() == 3).then_some(()));
    let send = Produce { partition: 2, ..Produce::new("grows", &Batch::of(&["into the new one"])) };
    until("the new partition takes records", || (send.code(&mut raw) == 0).then_some(()));
}

#[test]
fn every_property_is_known_and_described() {
    let broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    create_topic(&mut raw, "t", 1, &[("retention.ms", "12345")]);
    let resource = DescribeConfigsResource::default().with_resource_type(TOPIC_RESOURCE).with_resource_name(text("t"));
    let resource = resource.with_configuration_keys(None);
    let answer = raw.call(4, &DescribeConfigsRequest::default().with_resources(vec![resource])).results.remove(0);
    let mut names: Vec<_> = answer.configs.iter().map(|config| config.name.to_string()).collect();
    names.sort();
    let missing: Vec<_> = PROPERTIES.iter().filter(|name| !names.iter().any(|known| known == *name)).collect();
    assert!(missing.is_empty(), "missing: {missing:?} in {names:?}");
    let retention = answer.configs.iter().find(|config| config.name.as_str() == "retention.ms").unwrap();
    assert_eq!((retention.value.as_deref(), retention.config_source), (Some("12345"), 1), "set on the topic");
}

#[test]
fn configuration_changes_take_effect_and_survive_kill_9() {
    let mut broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    create_topic(&mut raw, "t", 1, &[]);
    assert_eq!(alter_config(&mut raw, "t", "no.such.property", "1"), INVALID_CONFIG);
    assert_eq!(alter_config(&mut raw, "t", "max.message.bytes", "-7"), INVALID_CONFIG);
    assert_eq!(alter_config(&mut raw, "nowhere", "retention.ms", "1"), UNKNOWN_TOPIC);
    assert_eq!(alter_config(&mut raw, "t", "max.message.bytes", "1000"), 0);
    let large = Batch::of(&[&"x".repeat(2000)]);
    until("the new limit is obeyed", || (requests::refused(&mut raw, "t", &large) == 10).then_some(()));
    broker.kill();
    broker.start_again();
    let mut raw = Raw::connect(&broker);
    until("the topic is led", || (metadata(&mut raw, &["t"], false).topics[0].error_code == 0).then_some(()));
    assert_eq!(describe_config(&mut raw, "t", "max.message.bytes").as_deref(), Some("1000"));
}

#[test]
fn a_topics_own_compression_is_obeyed_or_refused() {
    let broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    match create_topics(&mut raw, vec![new_topic("gzipped", 1, &[("compression.type", "gzip")])], false)[0].1 {
        INVALID_CONFIG => {}
        0 => {
            let send = Produce::new("gzipped", &Batch::of(&["plain"]));
            until("the topic is led", || (send.code(&mut raw) == 0).then_some(()));
            let stored = fetch_batches(&mut raw, "gzipped", 0).remove(0);
            assert_eq!(stored.attributes & 7, Codec::Gzip as i16);
        }
        other => panic!("error {other}"),
    }
    let as_produced = new_topic("as-produced", 1, &[("compression.type", "producer")]);
    assert_eq!(create_topics(&mut raw, vec![as_produced], false)[0].1, 0);
}
