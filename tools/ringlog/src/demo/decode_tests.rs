#![allow(clippy::unwrap_used)]

use super::*;
use crate::demo::event::{Dressing, Encoding};
use crate::demo::random::Rng;
use crate::demo::sessions::{Generator, GeneratorConfig};

fn event() -> Event {
    Event {
        session_key: 0x0123_4567_89ab_cdef,
        visitor: 0x0a01_02ff,
        kind: Kind::Cart,
        item: 10_389,
        at_ms: 1_431_857_103_000,
        status: 200,
        bytes: 4_711,
        duration_ms: 12,
    }
}

fn json(line_bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    event().write_json(&Dressing { agent: "Firefox", line_bytes, words_from: 3 }, &mut out);
    out
}

fn compact() -> Vec<u8> {
    let mut out = Vec::new();
    event().write_compact(&mut out);
    out
}

#[test]
fn json_has_its_documented_form() {
    let expected = concat!(
        r#"{"session":"0123456789abcdef","visitor":"10.1.2.255","ts":1431857103000,"type":"cart","item":10389,"#,
        r#""path":"/cart/add/10389","agent":"Firefox","status":200,"bytes":4711,"duration_ms":12}"#
    );
    assert_eq!(String::from_utf8(json(0)).unwrap(), expected);
}

#[test]
fn json_is_filled_to_its_size() {
    for size in [230, 300, 445, 1_363] {
        let value: serde_json::Value = serde_json::from_slice(&json(size)).unwrap();
        assert!(value["referrer"].as_str().unwrap().contains(['=', '/']));
        assert_eq!(json(size).len(), size);
    }
}

#[test]
fn compact_has_its_documented_form() {
    let bytes = compact();
    assert_eq!(bytes.len(), 36);
    assert_eq!(&bytes[..8], [1, 1, 0, 200, 0, 0, 0x28, 0x95]);
    assert_eq!(&bytes[24..28], [10, 1, 2, 255]);
}

#[test]
fn both_encodings_read_back() {
    assert_eq!(decode(&json(230)), Ok(event()));
    assert_eq!(decode(&compact()), Ok(event()));
}

#[test]
fn generated_events_read_back() {
    for encoding in [Encoding::Json, Encoding::Compact] {
        let config = GeneratorConfig { encoding, rate: None, start_ms: 1_700_000_000_000, active_sessions: 50 };
        let mut generator = Generator::new(9, config);
        let mut out = Vec::new();
        for _ in 0..5_000 {
            out.clear();
            let event = generator.next(&mut out);
            assert_eq!(decode(&out), Ok(event));
        }
    }
}

#[test]
fn the_key_is_the_session_of_the_json() {
    assert_eq!(&event().key(), b"0123456789abcdef");
}

#[test]
fn other_bytes_are_refused_by_name() {
    assert_eq!(decode(b""), Err(DecodeError::Empty));
    assert_eq!(decode(&[2; 36]), Err(DecodeError::UnknownVersion(2)));
    assert_eq!(decode(&[1; 35]), Err(DecodeError::WrongLength { bytes: 35 }));
    assert_eq!(decode(&vec![b'{'; MAX_EVENT_BYTES + 1]), Err(DecodeError::TooLong { bytes: MAX_EVENT_BYTES + 1 }));
    let mut bytes = compact();
    bytes[1] = 3;
    assert_eq!(decode(&bytes), Err(DecodeError::UnknownKind(3)));
    bytes[1] = 0;
    bytes[16] = 0x80;
    assert!(matches!(decode(&bytes), Err(DecodeError::TimeOutOfRange(_))));
}

#[test]
fn json_of_another_shape_is_refused() {
    let good = String::from_utf8(json(0)).unwrap();
    let bad = |from: &str, to: &str| {
        assert!(good.contains(from));
        decode(good.replace(from, to).as_bytes())
    };
    assert_eq!(bad("0123456789abcdef", "+123456789abcdef"), Err(DecodeError::BadSession));
    assert_eq!(bad("10.1.2.255", "10.1.2.256"), Err(DecodeError::BadVisitor));
    assert!(matches!(bad("\"cart\"", "\"gift\""), Err(DecodeError::NotJson(_))));
    assert!(matches!(bad(",\"item\":10389", ""), Err(DecodeError::NotJson(_))));
    assert_eq!(bad(":1431857103000", ":-1"), Err(DecodeError::TimeOutOfRange(-1)));
    assert!(matches!(decode(format!("{good}x").as_bytes()), Err(DecodeError::NotJson(_))));
    let deep = format!("{{\"x\":{}", "[".repeat(60_000));
    assert!(matches!(decode(deep.as_bytes()), Err(DecodeError::NotJson(_))));
}

#[test]
fn unknown_fields_are_skipped() {
    let more = String::from_utf8(json(0)).unwrap().replace('}', ",\"cart\":{\"of\":[1,2]}}");
    assert_eq!(decode(more.as_bytes()), Ok(event()));
}

#[test]
fn damaged_bytes_never_panic() {
    let mut rng = Rng::new(5);
    let mut refused = 0;
    for round in 0..20_000 {
        let mut bytes = if round % 2 == 0 { json(260) } else { compact() };
        for _ in 0..=rng.below(3) {
            let at = rng.below(bytes.len() as u32) as usize;
            bytes[at] = rng.next_u64() as u8;
        }
        bytes.truncate(bytes.len() - rng.below(2) as usize);
        match decode(&bytes) {
            Ok(event) => assert!((0..=MAX_AT_MS).contains(&event.at_ms)),
            Err(error) => {
                refused += 1;
                assert!(error.to_string().starts_with("the "), "{error}");
            }
        }
    }
    assert!(refused > 10_000, "{refused}");
}
