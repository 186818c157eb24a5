//! Apache Kafka's own Java clients and console tools, unchanged, with their default settings.

#![allow(clippy::unwrap_used)]

use std::process::Command;

use ringlog_e2e::batch::Batch;
use ringlog_e2e::java::{self, Tool};
use ringlog_e2e::raw::Raw;
use ringlog_e2e::requests::Produce;
use ringlog_e2e::sample::CODECS;
use ringlog_e2e::{Broker, kcat, librdkafka, place, process, requests, sample};

#[test]
fn topics_and_configs_live_their_life() {
    let broker = Broker::start();
    let create = ["--create", "--topic", "life", "--partitions", "3", "--config", "retention.ms=600000"];
    let made = Tool::Topics.run(&broker, &create).ok();
    assert!(made.text().contains("Created topic life."), "{}", made.all());
    Tool::Topics.run(&broker, &["--alter", "--topic", "life", "--partitions", "5"]).ok();
    let described = Tool::Topics.run(&broker, &["--describe", "--topic", "life"]).ok().text();
    assert!(described.contains("PartitionCount: 5"), "{described}");
    assert!(described.contains("ReplicationFactor: 1"), "{described}");
    assert!(described.contains("retention.ms=600000"), "{described}");
    assert_eq!(described.matches("Leader: 1").count(), 5, "{described}");

    let entity = ["--entity-type", "topics", "--entity-name", "life"];
    Tool::Configs.run(&broker, &[&["--alter", "--add-config", "max.message.bytes=123456"], &entity[..]].concat()).ok();
    Tool::Configs.run(&broker, &[&["--alter", "--delete-config", "retention.ms"], &entity[..]].concat()).ok();
    let configs = Tool::Configs.run(&broker, &[&["--describe"], &entity[..]].concat()).ok().text();
    assert!(configs.contains("max.message.bytes=123456") && !configs.contains("retention.ms=6"), "{configs}");
    let unknown = Tool::Configs.run(&broker, &[&["--alter", "--add-config", "no.such=1"], &entity[..]].concat());
    assert!(!unknown.status.success() && unknown.all().contains("InvalidConfig"), "{}", unknown.all());

    Tool::Topics.run(&broker, &["--delete", "--topic", "life"]).ok();
    let listed = Tool::Topics.run(&broker, &["--list"]).ok().text();
    assert!(!listed.contains("life"), "{listed}");
}

#[test]
fn the_console_producer_and_consumer_in_every_codec() {
    let broker = Broker::start();
    requests::create_topic(&mut Raw::connect(&broker), "console", 1, &[]);
    let properties = ["parse.key=true", "parse.headers=true", "null.marker=NULL"];
    let properties: Vec<&str> = properties.iter().flat_map(|property| ["--reader-property", property]).collect();
    for codec in CODECS {
        let input =
            format!("h:1,h:2\tkey\t{codec}\nh:NULL\tNULL\tnull key\nNULL\t\tempty key\nNULL\tnull value\tNULL\n");
        let arguments = [&["--topic", "console", "--compression-codec", codec], &properties[..]].concat();
        Tool::ConsoleProducer.run_with_input(&broker, &arguments, input.as_bytes()).ok();
    }
    let shown = ["print.key=true", "print.headers=true", "print.offset=true", "null.literal=NULL"];
    let shown: Vec<&str> = shown.iter().flat_map(|property| ["--formatter-property", property]).collect();
    let arguments = [&["--topic", "console", "--from-beginning", "--max-messages", "20"], &shown[..]].concat();
    let read = Tool::ConsoleConsumer.run(&broker, &arguments).ok().text();
    let expected = CODECS.iter().enumerate().map(|(at, codec)| {
        let at = at * 4;
        format!(
            "Offset:{at}\th:1,h:2\tkey\t{codec}\nOffset:{}\th:NULL\tNULL\tnull key\n\
             Offset:{}\tNO_HEADERS\t\tempty key\nOffset:{}\tNO_HEADERS\tnull value\tNULL\n",
            at + 1,
            at + 2,
            at + 3
        )
    });
    assert_eq!(read, expected.collect::<String>());
    let by_kcat = kcat::consume(&broker, "console", "%o %K %S\n");
    assert_eq!(by_kcat.lines().nth(3), Some("3 10 -1"), "{by_kcat}");
}

#[test]
fn the_performance_and_the_verifiable_clients() {
    let broker = Broker::start();
    requests::create_topic(&mut Raw::connect(&broker), "load", 4, &[]);
    let server = format!("bootstrap.servers={}", broker.bootstrap());
    let mut perf = Tool::ProducerPerformance.command();
    perf.args(["--topic", "load", "--num-records", "50000", "--record-size", "200", "--throughput", "-1"]);
    perf.args(["--producer-props", &server, "compression.type=lz4"]);
    let produced = process::run(&mut perf, b"", java::LIMIT).ok().text();
    assert!(produced.contains("50000 records sent"), "{produced}");
    let arguments = ["--topic", "load", "--num-records", "50000", "--timeout", "30000"];
    let consumed = Tool::ConsumerPerformance.run(&broker, &arguments).ok().all();
    assert!(consumed.contains(", 50000,"), "{consumed}");

    let arguments = ["--topic", "verified", "--max-messages", "2000", "--acks", "-1"];
    let produced = Tool::VerifiableProducer.run(&broker, &arguments).ok().text();
    assert_eq!(produced.matches("producer_send_success").count(), 2000);
    let arguments = ["--topic", "verified", "--group-id", "verifiers", "--max-messages", "2000"];
    let consumed =
        Tool::VerifiableConsumer.run(&broker, &[&arguments[..], &["--reset-policy", "earliest"]].concat()).ok();
    assert!(consumed.text().contains("offsets_committed"), "{}", consumed.text());
    let arguments = ["--describe", "--group", "verifiers"];
    let described = Tool::ConsumerGroups.run(&broker, &arguments).ok().text();
    let row: Vec<&str> = described.lines().find(|line| line.contains("verified")).unwrap().split_whitespace().collect();
    assert_eq!(row[3..6], ["2000", "2000", "0"], "{described}");
}

#[test]
fn offsets_are_listed_and_records_deleted() {
    let broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    requests::create_topic(&mut raw, "cut", 2, &[("retention.ms", "-1")]);
    requests::produce(&mut raw, "cut", &ringlog_e2e::batch::Batch::stamped(&[1000, 3000, 2000]));
    let list = |time: &str| {
        let listed = Tool::GetOffsets.run(&broker, &["--topic", "cut", "--time", time]).ok().text();
        listed.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(list("latest"), ["cut:0:3", "cut:1:0"]);
    assert_eq!(list("1500")[0], "cut:0:1");
    assert_eq!(list("max-timestamp")[0], "cut:0:1");
    let wanted = r#"{"partitions": [{"topic": "cut", "partition": 0, "offset": 2}], "version": 1}"#;
    let file = place::TempDir::new();
    let path = file.path().join("offsets.json");
    std::fs::write(&path, wanted).unwrap();
    Tool::DeleteRecords.run(&broker, &["--offset-json-file", path.to_str().unwrap()]).ok();
    assert_eq!(list("earliest"), ["cut:0:2", "cut:1:0"]);
}

#[test]
fn the_clusters_state_is_told() {
    let broker = Broker::start();
    requests::create_topic(&mut Raw::connect(&broker), "here", 2, &[]);
    kcat::produce(&broker, "here", &["-p", "0"], "some bytes\n");
    let dirs = Tool::LogDirs.run(&broker, &["--describe", "--topic-list", "here"]).ok().text();
    assert!(dirs.contains("here-0") && dirs.contains("here-1"), "{dirs}");
    let quorum = Tool::MetadataQuorum.run(&broker, &["describe", "--status"]).ok().text();
    assert!(quorum.contains("LeaderId:") && quorum.contains("CurrentVoters:"), "{quorum}");
    let arguments = ["--election-type", "preferred", "--all-topic-partitions"];
    Tool::LeaderElection.run(&broker, &arguments).ok();
}

#[test]
fn dump_log_reads_the_files_after_a_clean_stop() {
    let mut broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    for topic in ["dumped", "rolled"] {
        requests::create_topic(&mut raw, topic, 1, &[("segment.bytes", "1048576"), ("index.interval.bytes", "1000")]);
    }
    for codec in CODECS {
        librdkafka::produce(&broker, "dumped", codec, &sample::every_shape());
    }
    kcat::produce(&broker, "rolled", &["-K:"], &format!("k:{}\n", "x".repeat(3000)).repeat(1000));
    let mut member = ringlog_e2e::groups::Member::new(&broker, "dumpers", "dumped");
    member.settle();
    assert_eq!(member.commit("dumped", 7), 0);
    broker.stop();

    let dumped = dump(&broker, "dumped", &["log"], &["--deep-iteration"]);
    assert_eq!(dumped.matches("isvalid: true").count(), dumped.matches("baseOffset:").count(), "{dumped}");
    assert_eq!(dumped.matches("| offset:").count(), 50, "{dumped}");
    for codec in CODECS {
        assert!(dumped.contains(&format!("compresscodec: {codec}")), "{codec}: {dumped}");
    }
    let snapshots = dump(&broker, "dumped", &["snapshot"], &[]);
    assert!(snapshots.contains("producerId: "), "{snapshots}");

    let rolled = dump(&broker, "rolled", &["log", "index", "timeindex"], &["--index-sanity-check"]);
    assert!(rolled.matches("passed sanity check").count() >= 4, "{rolled}");
    let rolled = dump(&broker, "rolled", &["index", "timeindex"], &["--verify-index-only"]);
    for damage in ["Mismatches", "isn't", "out of order", "Exception"] {
        assert!(!rolled.contains(damage), "{damage}: {rolled}");
    }
    let groups = (0..4).map(|at| dump(&broker, &format!("__consumer_offsets-{at}"), &["log"], &["--offsets-decoder"]));
    let groups: String = groups.collect();
    assert!(groups.contains("dumpers") && groups.contains("\"offset\":7"), "{groups}");
}

#[test]
fn dump_log_reads_what_went_through_the_journal() {
    const EACH: usize = 200;
    let mut broker = Broker::with(&[("ringlog.shards", "1")]);
    let mut raw = Raw::connect(&broker);
    requests::create_topic(&mut raw, "small", 3, &[("index.interval.bytes", "1000")]);
    for number in 0..EACH {
        for partition in 0..3 {
            let batch = Batch::of(&[&format!("{number} {}", "x".repeat(number * 7))]);
            assert_eq!(Produce { partition, ..Produce::new("small", &batch) }.code(&mut raw), 0);
        }
    }
    let is_ring = |path: &std::path::Path| path.extension().is_some_and(|extension| extension == "ring");
    assert!(
        !place::files_below(&broker.data_dir(), is_ring).is_empty(),
        "the journal was not used: this tells nothing"
    );
    broker.stop();
    for partition in 0..3 {
        let name = format!("small-{partition}");
        let dumped = dump(&broker, &name, &["log"], &["--deep-iteration"]);
        assert_eq!(dumped.matches("isvalid: true").count(), EACH, "{dumped}");
        assert_eq!(dumped.matches("| offset:").count(), EACH, "{dumped}");
        let indexes = dump(&broker, &name, &["index", "timeindex"], &["--verify-index-only"]);
        for damage in ["Mismatches", "isn't", "out of order", "Exception"] {
            assert!(!indexes.contains(damage), "{damage}: {indexes}");
        }
    }
}

/// What dump-log says of a partition's files with the given extensions.
fn dump(broker: &Broker, partition: &str, extensions: &[&str], more: &[&str]) -> String {
    let partition = if partition.contains('-') { partition.to_owned() } else { format!("{partition}-0") };
    let wanted = |path: &std::path::Path| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        path.parent().and_then(std::path::Path::file_name).is_some_and(|name| *name == *partition)
            && extension.is_some_and(|extension| extensions.contains(&extension))
    };
    let files = place::files_below(&broker.data_dir(), wanted);
    if files.is_empty() {
        return String::new();
    }
    let files: Vec<&str> = files.iter().map(|path| path.to_str().unwrap()).collect();
    let mut command: Command = Tool::DumpLog.command();
    command.args(["--files", &files.join(",")]).args(more);
    process::run(&mut command, b"", java::LIMIT).ok().all()
}
