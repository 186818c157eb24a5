//! What `ringlog produce` writes, read byte for byte by kcat, librdkafka, kafka-python and Java.

use ringlog_e2e::java::Tool;
use ringlog_e2e::sample::{CODECS, Sample};
use ringlog_e2e::{Broker, cli, kcat, librdkafka, python};

/// Every shape that the command can write, with what it has to be given for it. Separators are bytes that no field has.
fn shapes() -> Vec<(&'static [&'static str], &'static [u8], Vec<Sample>)> {
    let record = |key: Option<&[u8]>, value: Option<&[u8]>, headers: &[(&str, &str)]| {
        let mut sample = Sample::new(key, value);
        sample.headers = headers.iter().map(|(k, v)| ((*k).to_owned(), Some(v.as_bytes().to_vec()))).collect();
        sample
    };
    vec![
        (
            &[],
            b"no key\n\nlast",
            vec![record(None, Some(b"no key"), &[]), record(None, Some(b""), &[]), record(None, Some(b"last"), &[])],
        ),
        (
            &["-Z", "-f", "%k\\x01%h\\x02%v\\x03"],
            b"k\x01\x02v\x03\x01\x02empty key\x03null\x01\x02\x03h\x01h=1,h=2,empty=\x02\xff\x00\n\x03",
            vec![
                record(Some(b"k"), Some(b"v"), &[]),
                record(Some(b""), Some(b"empty key"), &[]),
                record(Some(b"null"), None, &[]),
                record(Some(b"h"), Some(b"\xff\x00\n"), &[("h", "1"), ("h", "2"), ("empty", "")]),
            ],
        ),
        (
            &["-H", "名=値", "--key", "ключ"],
            "значение\n".as_bytes(),
            vec![record(Some("ключ".as_bytes()), Some("значение".as_bytes()), &[("名", "値")])],
        ),
        (&["-Z"], b"\n", vec![record(None, None, &[])]),
    ]
}

/// A topic with every shape in every codec, and what lies in it.
fn written() -> (Broker, Vec<Sample>) {
    let broker = Broker::start();
    cli::create_topic(&broker, "ours", 1);
    let mut all = Vec::new();
    for codec in CODECS {
        for (arguments, input, samples) in shapes() {
            cli::produce(&broker, "ours", &[&["-z", codec], arguments].concat(), input);
            all.extend(samples);
        }
    }
    (broker, all)
}

#[test]
fn librdkafka_kafka_python_and_kcat_read_it() {
    let (broker, written) = written();
    assert_eq!(librdkafka::consume(&broker, "ours"), written, "librdkafka");
    assert_eq!(python::consume(&broker, "ours"), written, "kafka-python");
    // kcat's %h cannot tell everything; the lengths and the bytes can be told.
    let read =
        kcat::kcat(&broker, &["-C", "-q", "-e", "-o", "beginning", "-t", "ours", "-f", "%K|%k|%S|%s|%h\x04"], b"").ok();
    let mut expected = Vec::new();
    for sample in &written {
        let length = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(-1, |bytes| bytes.len() as i64);
        let headers: Vec<String> = sample
            .headers
            .iter()
            .map(|(key, value)| format!("{key}={}", String::from_utf8_lossy(value.as_deref().unwrap_or_default())))
            .collect();
        expected.extend_from_slice(format!("{}|", length(&sample.key)).as_bytes());
        expected.extend_from_slice(sample.key.as_deref().unwrap_or_default());
        expected.extend_from_slice(format!("|{}|", length(&sample.value)).as_bytes());
        expected.extend_from_slice(sample.value.as_deref().unwrap_or_default());
        expected.extend_from_slice(format!("|{}\x04", headers.join(",")).as_bytes());
    }
    assert_eq!(String::from_utf8_lossy(&read.stdout), String::from_utf8_lossy(&expected), "kcat");
}

#[test]
fn the_java_consumer_reads_it() {
    let (broker, written) = written();
    let shown = [
        "print.key=true",
        "print.headers=true",
        "null.literal=NULL",
        "headers.deserializer=org.apache.kafka.common.serialization.StringDeserializer",
        "line.separator=\u{4}",
    ];
    let shown: Vec<&str> = shown.iter().flat_map(|property| ["--formatter-property", property]).collect();
    let count = written.len().to_string();
    let arguments = [&["--topic", "ours", "--from-beginning", "--max-messages", &count], &shown[..]].concat();
    let read = Tool::ConsoleConsumer.run(&broker, &arguments).ok().stdout;
    let text = |bytes: &Option<Vec<u8>>| bytes.clone().unwrap_or_else(|| b"NULL".to_vec());
    let mut expected = Vec::new();
    for sample in &written {
        let headers: Vec<String> = sample
            .headers
            .iter()
            .map(|(key, value)| format!("{key}:{}", String::from_utf8_lossy(value.as_deref().unwrap_or_default())))
            .collect();
        let headers = if headers.is_empty() { "NO_HEADERS".to_owned() } else { headers.join(",") };
        expected.extend_from_slice(headers.as_bytes());
        expected.push(b'\t');
        expected.extend_from_slice(&text(&sample.key));
        expected.push(b'\t');
        expected.extend_from_slice(&text(&sample.value));
        expected.push(4);
    }
    assert_eq!(String::from_utf8_lossy(&read), String::from_utf8_lossy(&expected));
}
