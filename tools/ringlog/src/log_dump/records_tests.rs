#![allow(clippy::unwrap_used)]
use coordinator::records::offset_commit;
use model::builder::BatchBuilder;
use model::{LeaderEpoch, Offset, TopicId};

use super::*;

fn shown_of(bytes: &[u8], dialect: Dialect) -> (Vec<Shown>, Result<(), String>) {
    let mut out = Vec::new();
    let batch = BatchView::parse(bytes).unwrap();
    let end = each(&batch, dialect, &mut Vec::new(), |shown| {
        out.push(shown);
        Ok(())
    });
    (out, end.unwrap())
}

#[test]
fn text_bytes_and_headers_are_shown() {
    let batch = BatchBuilder::new()
        .base_offset(Offset(7))
        .record_with_headers(50, Some(b"k"), Some("v\u{e4}\n".as_bytes()), &[(b"h", None)])
        .record(60, None, Some(&[0xFF, 0x00]))
        .finish();
    let (records, end) = shown_of(&batch, Dialect::Plain);
    assert_eq!(end, Ok(()));
    assert_eq!(records[0].text, "    7 @50  \"k\" = \"v\u{e4}\\n\"  [\"h\": null]");
    assert_eq!(records[1].text, "    8 @60  null = 0xff00");
    assert_eq!(records[1].json["value"]["hex"], "ff00");
    assert_eq!(records[0].json["headers"][0][0], "h");
}

#[test]
fn compressed_records_are_inflated() {
    let mut builder = BatchBuilder::new().attributes(Codec::Zstd as i16);
    builder.push(1, None, Some(b"hello"), &[]);
    let mut payload = Vec::new();
    compression::deflate(Codec::Zstd, builder.payload(), &mut payload).unwrap();
    let (records, end) = shown_of(&builder.finish_with_payload(&payload), Dialect::Plain);
    assert_eq!((records.len(), end), (1, Ok(())));
    assert!(records[0].text.contains("hello"));
    // A payload that is no zstd at all is told, not shown.
    let (records, end) = shown_of(&builder.finish_with_payload(b"nonsense"), Dialect::Plain);
    assert!(records.is_empty() && end.unwrap_err().contains("damaged"));
}

#[test]
fn malformed_records_are_told() {
    let mut builder = BatchBuilder::new();
    builder.push(1, None, Some(b"hello"), &[]);
    let cut = builder.finish_with_payload(&builder.payload()[..4]);
    assert!(shown_of(&cut, Dialect::Plain).1.unwrap_err().contains("malformed"));
    let long = builder.finish_with_payload(&[builder.payload(), b"xx"].concat());
    assert!(shown_of(&long, Dialect::Plain).1.unwrap_err().contains("2 bytes are left over"));
}

#[test]
fn committed_offsets_are_words() {
    let value = coordinator::CommittedOffset {
        offset: Offset(42),
        leader_epoch: LeaderEpoch(3),
        metadata: String::new(),
        commit_timestamp_ms: 9,
        expire_timestamp_ms: None,
        topic_id: TopicId::ZERO,
    };
    let key = offset_commit::encode_key("g", "orders", 5);
    let batch = BatchBuilder::new()
        .record(1, Some(&key), Some(&offset_commit::encode_value(&value)))
        .record(2, Some(&key), None)
        .record(3, Some(b"?"), None)
        .finish();
    let (records, _) = shown_of(&batch, Dialect::of_topic("__consumer_offsets"));
    assert!(records[0].text.contains("group \"g\" committed orders-5 at 42 (epoch 3"), "{}", records[0].text);
    assert_eq!(records[0].json["meaning"]["offset"], 42);
    assert!(records[1].text.contains("forgets orders-5"));
    assert!(records[2].text.contains("not understood"));
    assert!(!shown_of(&batch, Dialect::of_topic("orders")).0[0].text.contains("committed"));
}

#[test]
fn control_records_are_words() {
    let batch = BatchBuilder::new().attributes(0x30).record(1, Some(&[0, 0, 0, 1]), Some(&[0; 6])).finish();
    assert!(shown_of(&batch, Dialect::Plain).0[0].text.ends_with("commit"));
}

#[test]
fn long_values_are_cut_for_people_only() {
    let value = "\u{e4}".repeat(5000);
    let batch = BatchBuilder::new().record(1, None, Some(format!("x{value}").as_bytes())).finish();
    let record = &shown_of(&batch, Dialect::Plain).0[0];
    assert!(record.text.len() < 2000 && record.text.ends_with("... (10001 bytes)"), "{}", record.text);
    assert_eq!(record.json["value"].as_str().unwrap().len(), 10_001);
}
