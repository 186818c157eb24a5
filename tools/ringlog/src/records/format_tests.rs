#![allow(clippy::unwrap_used)]

use bytes::Bytes;

use super::*;

fn record(key: Option<&'static [u8]>, value: Option<&'static [u8]>) -> ConsumerRecord {
    ConsumerRecord {
        topic: "t".into(),
        partition: 3,
        offset: 17,
        leader_epoch: 2,
        timestamp_ms: 1_700_000_000_123,
        is_log_append_time: false,
        key: key.map(Bytes::from_static),
        value: value.map(Bytes::from_static),
        headers: vec![
            Header { key: Bytes::from_static(b"a"), value: Some(Bytes::from_static(b"1")) },
            Header { key: Bytes::from_static(b"b"), value: None },
        ],
    }
}

fn written(format: &str, record: &ConsumerRecord) -> Vec<u8> {
    let mut out = Vec::new();
    OutputFormat::parse(format).unwrap().write(record, 5, &mut out);
    out
}

fn record_of(format: &str, bytes: &[u8], at_end: bool) -> Taken {
    InputFormat::parse(format).unwrap().take(bytes, at_end)
}

fn input(key: Option<&[u8]>, value: &[u8]) -> Input {
    Input { key: key.map(<[u8]>::to_vec), value: Some(value.to_vec()), headers: Vec::new() }
}

#[test]
fn every_letter_prints_its_field() {
    let full = record(Some(b"k"), Some(b"value"));
    assert_eq!(
        written("%t/%p/%o/%T/%e/%n %k:%K %v:%V %s:%S [%h]\\n", &full),
        b"t/3/17/1700000000123/2/5 k:1 value:5 value:5 [a=1,b=]\n"
    );
}

#[test]
fn a_timestamp_is_a_date_too() {
    assert_eq!(written("%D", &record(None, None)), b"2023-11-14T22:13:20.123Z");
}

#[test]
fn null_is_nothing_and_its_length_is_minus_one() {
    assert_eq!(written("%k|%K|%v|%V", &record(None, None)), b"|-1||-1");
    assert_eq!(written("%k|%K", &record(Some(b""), None)), b"|0");
}

#[test]
fn escapes_give_bytes() {
    assert_eq!(written("%%\\t\\r\\0\\\\\\xff\\n", &record(None, None)), b"%\t\r\0\\\xff\n");
}

#[test]
fn unusable_formats_are_refused() {
    assert_eq!(OutputFormat::parse("%q"), Err(FormatError::UnknownLetter('q')));
    assert_eq!(OutputFormat::parse("a%"), Err(FormatError::Unfinished));
    assert_eq!(OutputFormat::parse("\\q"), Err(FormatError::BadEscape('q')));
    assert_eq!(OutputFormat::parse("\\xf"), Err(FormatError::BadEscape('x')));
    assert_eq!(OutputFormat::parse(&"%k".repeat(257)), Err(FormatError::TooLong));
    assert_eq!(InputFormat::parse("%k%v\\n"), Err(FormatError::NothingBetween));
    assert_eq!(InputFormat::parse("%k %v"), Err(FormatError::OpenEnd));
    assert_eq!(InputFormat::parse("%o %v\\n"), Err(FormatError::NotAnInput('o')));
    assert!(matches!(InputFormat::parse("x\\n"), Err(FormatError::Fields(_))));
    assert!(matches!(InputFormat::parse("%v %s\\n"), Err(FormatError::Fields(_))));
}

#[test]
fn fields_end_where_the_format_says() {
    assert_eq!(record_of("%k:%v\\n", b"a:b:c\nd", false), Taken::Record(input(Some(b"a"), b"b:c"), 6));
    assert_eq!(record_of("%v\\n", b"\nx", false), Taken::Record(input(None, b""), 1));
    assert_eq!(record_of("<%k, %v>", b"<a, b>", false), Taken::Record(input(Some(b"a"), b"b"), 6));
}

#[test]
fn a_part_waits_for_more_unless_it_is_the_last() {
    assert_eq!(record_of("%v\\n", b"abc", false), Taken::More);
    assert_eq!(record_of("%v\\n", b"abc", true), Taken::Record(input(None, b"abc"), 3));
    assert_eq!(record_of("%k %v\\n", b"abc", false), Taken::More);
    assert!(matches!(record_of("%k %v\\n", b"abc", true), Taken::Unusable(_)));
    assert!(matches!(record_of("<%v>", b"abc>", false), Taken::Unusable(_)));
}

#[test]
fn headers_are_pairs() {
    let Taken::Record(input, 10) = record_of("%h|%v\\n", b"a=1,b=x|v\n", false) else { panic!("a record") };
    assert_eq!(input.headers, [(b"a".to_vec(), b"1".to_vec()), (b"b".to_vec(), b"x".to_vec())]);
    assert!(matches!(record_of("%h|%v\\n", b"a|v\n", false), Taken::Unusable(_)));
}
