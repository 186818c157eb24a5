//! What the others write, read byte for byte by `ringlog consume`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringlog_e2e::java::Tool;
use ringlog_e2e::sample::{self, CODECS, Sample};
use ringlog_e2e::{Broker, cli, kcat, librdkafka, python};
use serde_json::Value;

fn bytes(json: &Value) -> Option<Vec<u8>> {
    match json {
        Value::Null => None,
        Value::String(text) => Some(text.clone().into_bytes()),
        other => Some(STANDARD.decode(other["base64"].as_str().expect("text or base64")).unwrap()),
    }
}

/// `ringlog consume TOPIC --exit --json`.
fn read(broker: &Broker, topic: &str) -> Vec<Sample> {
    let sample = |line: &str| {
        let record = cli::parsed(line);
        let header = |pair: &Value| (String::from_utf8(bytes(&pair[0]).unwrap()).unwrap(), bytes(&pair[1]));
        let headers = record["headers"].as_array().map(|list| list.iter().map(header).collect()).unwrap_or_default();
        Sample { key: bytes(&record["key"]), value: bytes(&record["value"]), headers }
    };
    cli::consume(broker, topic, &["--json"]).lines().map(sample).collect()
}

#[track_caller]
fn assert_same(read: &[Sample], written: &[Sample], what: &str) {
    for (at, (read, written)) in read.iter().zip(written).enumerate() {
        assert_eq!(read, written, "{what}: record {at}");
    }
    assert_eq!(read.len(), written.len(), "{what}");
}

fn with_codec_topics() -> Broker {
    let broker = Broker::start();
    for codec in CODECS {
        cli::create_topic(&broker, codec, 1);
    }
    broker
}

#[test]
fn librdkafka_wrote_it() {
    let broker = with_codec_topics();
    let written = sample::every_shape();
    for codec in CODECS {
        librdkafka::produce(&broker, codec, codec, &written);
        assert_same(&read(&broker, codec), &written, codec);
    }
}

#[test]
fn kafka_python_wrote_it() {
    let broker = with_codec_topics();
    // kafka-python itself refuses to send records without both key and value, and null as a header's value.
    let mut written = sample::every_shape();
    written.retain(|sample| sample.key.is_some() || sample.value.is_some());
    for sample in &mut written {
        sample.headers.retain(|(_, value)| value.is_some());
    }
    for codec in CODECS {
        python::produce(&broker, codec, codec, &written);
        assert_same(&read(&broker, codec), &written, codec);
    }
}

#[test]
fn kcat_wrote_it() {
    let broker = with_codec_topics();
    let large = "x".repeat(900_000);
    for codec in CODECS {
        let compress = if codec == "none" { vec![] } else { vec!["-z", codec] };
        kcat::produce(&broker, codec, &[&compress[..], &["-K:"]].concat(), &format!("k1:v1\n:no key\nlarge:{large}\n"));
        kcat::produce(
            &broker,
            codec,
            &[&compress[..], &["-H", "h=1", "-H", "h=2", "-H", "empty="]].concat(),
            "plain\n",
        );
        kcat::produce(&broker, codec, &[&compress[..], &["-Z", "-K:"]].concat(), "null:\n");
        let lines = cli::consume(&broker, codec, &["-f", "%o [%k|%V|%h]\\n"]);
        let expected = "0 [k1|2|]\n1 [|6|]\n2 [large|900000|]\n3 [|5|h=1,h=2,empty=]\n4 [null|-1|]\n";
        assert_eq!(lines, expected, "{codec}");
        assert!(cli::text(&broker, &["consume", codec, "-o", "2", "-n", "1", "-f", "%v"]) == large, "{codec}");
    }
}

#[test]
fn java_wrote_it() {
    let broker = Broker::start();
    cli::create_topic(&broker, "java", 1);
    let properties = ["parse.key=true", "parse.headers=true", "null.marker=NULL"];
    let properties: Vec<&str> = properties.iter().flat_map(|property| ["--reader-property", property]).collect();
    let mut expected = String::new();
    for (at, codec) in CODECS.iter().enumerate() {
        let input =
            format!("h:1,h:2\tkey\t{codec}\nh:NULL\tNULL\tnull key\nNULL\t\tempty key\nNULL\tnull value\tNULL\n");
        let arguments = [&["--topic", "java", "--compression-codec", codec], &properties[..]].concat();
        Tool::ConsoleProducer.run_with_input(&broker, &arguments, input.as_bytes()).ok();
        let at = at * 4;
        expected += &format!(
            "{at} 3 [key|{codec}|h=1,h=2]\n{} -1 [|null key|h=]\n{} 0 [|empty key|]\n{} 10 [null value||]\n",
            at + 1,
            at + 2,
            at + 3
        );
    }
    assert_eq!(cli::consume(&broker, "java", &["-f", "%o %K [%k|%v|%h]\\n"]), expected);
    let read = read(&broker, "java");
    assert_eq!((&read[1].headers[0].1, &read[3].value), (&None, &None));
}
