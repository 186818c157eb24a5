//! Each client does its daily work: produces in every codec, consumes byte for byte, administers, looks up times.
//!
//! What one client writes another reads, so that an error in one of them cannot hide one in the broker.

#![allow(clippy::unwrap_used)]

use ringlog_e2e::raw::Raw;
use ringlog_e2e::sample::{self, CODECS, Sample};
use ringlog_e2e::{Broker, kcat, librdkafka, python, requests};

/// A broker with a topic for each codec, named after it.
fn with_codec_topics() -> Broker {
    let broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    for codec in CODECS {
        requests::create_topic(&mut raw, codec, 1, &[]);
    }
    broker
}

#[track_caller]
fn assert_same(read: &[Sample], written: &[Sample], what: &str) {
    for (at, (read, written)) in read.iter().zip(written).enumerate() {
        assert_eq!(read, written, "{what}: record {at}");
    }
    assert_eq!(read.len(), written.len(), "{what}");
}

#[test]
fn librdkafka_writes_every_shape_and_each_client_reads_it_before_and_after_a_restart() {
    let mut broker = with_codec_topics();
    let written = sample::every_shape();
    for codec in CODECS {
        librdkafka::produce(&broker, codec, codec, &written);
    }
    for when in ["at once", "after a restart"] {
        for codec in CODECS {
            assert_same(&librdkafka::consume(&broker, codec), &written, &format!("librdkafka, {codec}, {when}"));
            assert_same(&python::consume(&broker, codec), &written, &format!("kafka-python, {codec}, {when}"));
        }
        broker.restart();
    }
}

#[test]
fn kafka_python_writes_every_shape_and_each_client_reads_it() {
    let broker = with_codec_topics();
    // kafka-python itself refuses to send records without both key and value, and null as a header's value.
    let mut written = sample::every_shape();
    written.retain(|sample| sample.key.is_some() || sample.value.is_some());
    for sample in &mut written {
        sample.headers.retain(|(_, value)| value.is_some());
    }
    for codec in CODECS {
        python::produce(&broker, codec, codec, &written);
        assert_same(&librdkafka::consume(&broker, codec), &written, &format!("librdkafka, {codec}"));
        assert_same(&python::consume(&broker, codec), &written, &format!("kafka-python, {codec}"));
    }
}

#[test]
fn kcat_produces_and_consumes_in_every_codec() {
    let broker = with_codec_topics();
    for codec in CODECS {
        let compress = if codec == "none" { vec![] } else { vec!["-z", codec] };
        kcat::produce(&broker, codec, &[&compress[..], &["-K:"]].concat(), "k1:v1\nk2:v2\n:no key\n");
        kcat::produce(
            &broker,
            codec,
            &[&compress[..], &["-H", "h=1", "-H", "h=2", "-H", "empty="]].concat(),
            "plain\n",
        );
        kcat::produce(&broker, codec, &[&compress[..], &["-Z", "-K:"]].concat(), "null:\n");
        let read = kcat::consume(&broker, codec, "%o %K %S [%k|%s|%h]\n");
        let expected =
            "0 2 2 [k1|v1|]\n1 2 2 [k2|v2|]\n2 0 6 [|no key|]\n3 -1 5 [|plain|h=1,h=2,empty=]\n4 4 -1 [null||]\n";
        assert_eq!(read, expected, "{codec}");
    }
}

#[test]
fn kcat_reads_exact_bytes_of_a_large_record() {
    let broker = with_codec_topics();
    let large: String = (0..900_000).map(|at| char::from(b'a' + (at % 26) as u8)).collect();
    for codec in ["none", "zstd"] {
        let compress = if codec == "none" { vec![] } else { vec!["-z", codec] };
        kcat::produce(&broker, codec, &compress, &large);
        assert!(kcat::consume(&broker, codec, "%s") == large, "{codec}");
    }
}

#[test]
fn kcat_ends_at_every_partitions_end_an_empty_one_too() {
    let broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    requests::create_topic(&mut raw, "empty", 3, &[]);
    requests::create_topic(&mut raw, "partly", 3, &[]);
    kcat::produce(&broker, "partly", &["-p", "1"], "only here\n");
    assert_eq!(kcat::consume(&broker, "empty", "%s\n"), "");
    assert_eq!(kcat::consume(&broker, "partly", "%p %s\n"), "1 only here\n");
    let from_the_end = kcat::kcat(&broker, &["-C", "-q", "-e", "-o", "end", "-t", "partly"], b"").ok();
    assert_eq!(from_the_end.text(), "");
    let last = kcat::kcat(&broker, &["-C", "-q", "-e", "-o", "-1", "-p", "1", "-t", "partly"], b"").ok();
    assert_eq!(last.text(), "only here\n");
}

#[test]
fn topics_are_made_when_first_produced_to() {
    let broker = Broker::with(&[("num.partitions", "2")]);
    kcat::produce(&broker, "by-kcat", &[], "hello\n");
    assert_eq!(kcat::consume(&broker, "by-kcat", "%s\n"), "hello\n");
    let hello = [Sample::new(None, Some(b"hello"))];
    librdkafka::produce(&broker, "by-librdkafka", "none", &hello);
    assert_same(&librdkafka::consume(&broker, "by-librdkafka"), &hello, "librdkafka");
    python::produce(&broker, "by-python", "none", &hello);
    assert_same(&python::consume(&broker, "by-python"), &hello, "kafka-python");
    let topics = requests::all_topics(&mut Raw::connect(&broker));
    for name in ["by-kcat", "by-librdkafka", "by-python"] {
        let made = topics.iter().find(|topic| topic.name.as_ref().is_some_and(|known| known.as_str() == name));
        assert_eq!(made.unwrap().partitions.len(), 2, "{name}");
    }
}

#[test]
fn keys_decide_the_partition_and_order_holds_within_it() {
    let broker = Broker::start();
    requests::create_topic(&mut Raw::connect(&broker), "keyed", 6, &[]);
    let lines: String = (0..600).map(|at| format!("key{}:{at}\n", at % 20)).collect();
    kcat::produce(&broker, "keyed", &["-K:"], &lines);
    let read = kcat::consume(&broker, "keyed", "%k %p %s\n");
    let mut last = std::collections::BTreeMap::<&str, (&str, u32)>::new();
    for line in read.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let number: u32 = fields[2].parse().unwrap();
        if let Some((partition, before)) = last.insert(fields[0], (fields[1], number)) {
            assert!(partition == fields[1] && before < number, "{line} after {before} in {partition}");
        }
    }
    assert_eq!((read.lines().count(), last.len()), (600, 20));
}

#[test]
fn offsets_are_found_by_time() {
    let broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    requests::create_topic(&mut raw, "times", 1, &[("retention.ms", "-1")]);
    for stamps in [[1000, 2000], [3000, 4000]] {
        requests::produce(&mut raw, "times", &ringlog_e2e::batch::Batch::stamped(&stamps));
    }
    let query = kcat::kcat(&broker, &["-Q", "-t", "times:0:2500"], b"").ok();
    assert!(query.text().contains("offset 2"), "{}", query.text());
    let seen = python::call(&broker, &["offsets", "times", "0", "1000", "1001", "4000", "4001"], b"");
    let expected = serde_json::json!({"beginning": 0, "end": 4, "times": [0, 0, 1, 3, null]});
    assert_eq!(seen, expected);
    let from_time = kcat::kcat(&broker, &["-C", "-q", "-e", "-o", "s@2001", "-t", "times", "-f", "%s\n"], b"").ok();
    assert_eq!(from_time.text(), "value-0\nvalue-1\n");
}

#[test]
fn kcat_lists_brokers_topics_and_partitions() {
    let broker = Broker::start();
    requests::create_topic(&mut Raw::connect(&broker), "listed", 3, &[]);
    let listed = kcat::kcat(&broker, &["-L"], b"").ok().text();
    assert!(listed.contains(&format!("at {}", broker.bootstrap())), "{listed}");
    assert!(listed.contains("topic \"listed\" with 3 partitions"), "{listed}");
}

#[test]
fn kafka_python_administers_a_topic() {
    let broker = Broker::start();
    let seen = python::call(&broker, &["administer", "life"], b"");
    assert_eq!(seen["partitions"], serde_json::json!([2, 5]));
    let configs =
        serde_json::json!({"retention.ms": "600000", "max.message.bytes": "123456", "cleanup.policy": "delete"});
    assert_eq!(seen["configs"], configs);
    assert_eq!(seen["offsets"], serde_json::json!([4, 10]));
    assert_eq!((&seen["listed"], &seen["brokers"]), (&true.into(), &1.into()));
    let mut raw = Raw::connect(&broker);
    requests::until("the topic is gone", || {
        (requests::metadata(&mut raw, &["life"], false).topics[0].error_code == 3).then_some(())
    });
}

#[test]
fn librdkafka_makes_and_deletes_topics() {
    let broker = Broker::start();
    let hello = [Sample::new(Some(b"k"), Some(b"hello"))];
    for round in 0..3 {
        librdkafka::create_topic(&broker, "again", 2, &[("retention.ms", "1000000")]);
        librdkafka::produce(&broker, "again", "lz4", &hello);
        assert_same(&librdkafka::consume(&broker, "again"), &hello, &format!("round {round}"));
        librdkafka::delete_topic(&broker, "again");
        let mut raw = Raw::connect(&broker);
        requests::until("the topic is gone", || {
            (requests::metadata(&mut raw, &["again"], false).topics[0].error_code == 3).then_some(())
        });
    }
}
