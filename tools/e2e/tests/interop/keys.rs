//! A key decides the partition, the same one whoever writes.

use std::collections::BTreeMap;

use ringlog_e2e::java::Tool;
use ringlog_e2e::{Broker, cli, kcat};

/// Seven, so that a hash taken wrongly does not fall right by its low bits.
const PARTITIONS: usize = 7;
const KEYS: usize = 200;

/// Keys of every length modulo four, text and not.
fn lines() -> String {
    (0..KEYS).map(|at| format!("{}-ключ-{at}:value\n", "k".repeat(at % 9))).collect()
}

fn homes(broker: &Broker, topic: &str) -> BTreeMap<String, String> {
    let read = cli::consume(broker, topic, &["-f", "%k\\t%p\\n"]);
    let pair = |line: &str| line.split_once('\t').map(|(key, partition)| (key.to_owned(), partition.to_owned()));
    let homes: BTreeMap<_, _> = read.lines().filter_map(pair).collect();
    assert_eq!((read.lines().count(), homes.len()), (KEYS, KEYS), "{topic}");
    homes
}

#[test]
fn java_librdkafka_and_we_agree() {
    let broker = Broker::start();
    for topic in ["ours", "java", "librdkafka"] {
        cli::create_topic(&broker, topic, PARTITIONS);
    }
    cli::produce(&broker, "ours", &["-K:"], lines());
    let properties = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"];
    Tool::ConsoleProducer
        .run_with_input(&broker, &[&["--topic", "java"], &properties[..]].concat(), lines().as_bytes())
        .ok();
    kcat::produce(&broker, "librdkafka", &["-K:", "-X", "topic.partitioner=murmur2_random"], &lines());
    let ours = homes(&broker, "ours");
    assert_eq!(ours, homes(&broker, "java"), "Java");
    assert_eq!(ours, homes(&broker, "librdkafka"), "librdkafka");
    let used: std::collections::BTreeSet<&String> = ours.values().collect();
    assert_eq!(used.len(), PARTITIONS, "all partitions are used");
}
