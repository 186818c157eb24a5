#![allow(clippy::unwrap_used)]

use super::*;
use bytes::Bytes;
use group_metadata::MemberMetadata;
use model::{LeaderEpoch, Offset, TopicId};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap()).collect()
}

fn committed() -> CommittedOffset {
    CommittedOffset {
        offset: Offset(0x0102),
        leader_epoch: LeaderEpoch(5),
        metadata: "ab".into(),
        commit_timestamp_ms: 0x1234,
        expire_timestamp_ms: None,
        topic_id: TopicId([0xee; 16]),
    }
}

#[test]
fn an_offset_is_written_as_kafka_4_4_does() {
    let key = offset_commit::encode_key("g", "tt", 7);
    assert_eq!(key, hex("0001 0001 67 0002 7474 00000007"));
    let value = offset_commit::encode_value(&committed());
    let start = "0004 0000000000000102 00000005 03 6162 0000000000001234";
    assert_eq!(value, hex(&format!("{start} 01 00 10 {}", "ee".repeat(16))));
    let without_id = CommittedOffset { topic_id: TopicId::ZERO, ..committed() };
    assert_eq!(offset_commit::encode_value(&without_id), hex(&format!("{start} 00")));
}

#[test]
fn an_offset_with_an_expiry_of_its_own_is_version_1() {
    let value = CommittedOffset { expire_timestamp_ms: Some(0x5678), ..committed() };
    let bytes = offset_commit::encode_value(&value);
    assert_eq!(bytes, hex("0001 0000000000000102 0002 6162 0000000000001234 0000000000005678"));
}

#[test]
fn every_version_of_an_offset_is_read() {
    let versions = [
        ("0000 0000000000000102 0002 6162 0000000000001234", -1, None),
        ("0001 0000000000000102 0002 6162 0000000000001234 0000000000005678", -1, Some(0x5678)),
        ("0001 0000000000000102 0002 6162 0000000000001234 ffffffffffffffff", -1, None),
        ("0002 0000000000000102 0002 6162 0000000000001234", -1, None),
        ("0003 0000000000000102 00000005 0002 6162 0000000000001234", 5, None),
        ("0004 0000000000000102 00000005 03 6162 0000000000001234 00", 5, None),
        ("0004 0000000000000102 00000005 03 6162 0000000000001234 01 09 02 ffff", 5, None),
    ];
    for (text, epoch, expire_timestamp_ms) in versions {
        let expected = CommittedOffset {
            leader_epoch: LeaderEpoch(epoch),
            expire_timestamp_ms,
            topic_id: TopicId::ZERO,
            ..committed()
        };
        assert_eq!(offset_commit::decode_value(&hex(text)), Ok(expected), "{text}");
    }
    assert_eq!(offset_commit::decode_value(&hex("0005 00")), Err(RecordError::UnknownValueVersion(5)));
    assert_eq!(offset_commit::decode_value(&hex("ffff 00")), Err(RecordError::UnknownValueVersion(-1)));
}

#[test]
fn both_kinds_of_offset_keys_are_read() {
    for kind in ["0000", "0001"] {
        let key = hex(&format!("{kind} 0001 67 0002 7474 00000007"));
        let expected = Record::Offset { group: "g".into(), topic: "tt".into(), partition: 7, value: None };
        assert_eq!(decode(&key, None), Ok(expected));
    }
}

fn metadata() -> GroupMetadata {
    GroupMetadata {
        protocol_type: "consumer".into(),
        generation_id: 3,
        protocol_name: Some("range".into()),
        leader: Some("m".into()),
        state_timestamp_ms: 0x99,
        members: vec![MemberMetadata {
            member_id: "m".into(),
            instance_id: None,
            client_id: "c".into(),
            client_host: "/h".into(),
            rebalance_timeout_ms: 0x10,
            session_timeout_ms: 0x20,
            subscription: Bytes::from_static(b"\x01\x02"),
            assignment: Bytes::from_static(b"\x03"),
        }],
    }
}

#[test]
fn a_group_is_written_as_kafka_4_4_does() {
    assert_eq!(group_metadata::encode_key("g"), hex("0002 0001 67"));
    let expected = "0003 0008 636f6e73756d6572 00000003 0005 72616e6765 0001 6d 0000000000000099 00000001 \
                    0001 6d ffff 0001 63 0002 2f68 00000010 00000020 00000002 0102 00000001 03";
    assert_eq!(group_metadata::encode_value(&metadata()), hex(expected));
}

#[test]
fn every_version_of_a_group_is_read() {
    let head = "0008 636f6e73756d6572 00000003 0005 72616e6765 0001 6d";
    let tail = "00000020 00000002 0102 00000001 03";
    let versions = [
        (format!("0000 {head} 00000001 0001 6d 0001 63 0002 2f68 {tail}"), -1, -1),
        (format!("0001 {head} 00000001 0001 6d 0001 63 0002 2f68 00000010 {tail}"), -1, 0x10),
        (format!("0002 {head} 0000000000000099 00000001 0001 6d 0001 63 0002 2f68 00000010 {tail}"), 0x99, 0x10),
        (format!("0003 {head} 0000000000000099 00000001 0001 6d ffff 0001 63 0002 2f68 00000010 {tail}"), 0x99, 0x10),
        (
            "0004 09 636f6e73756d6572 00000003 06 72616e6765 02 6d 0000000000000099 02 \
             02 6d 00 02 63 03 2f68 00000010 00000020 03 0102 02 03 00 00"
                .to_owned(),
            0x99,
            0x10,
        ),
    ];
    for (text, state_timestamp_ms, rebalance_timeout_ms) in versions {
        let mut expected = GroupMetadata { state_timestamp_ms, ..metadata() };
        expected.members[0].rebalance_timeout_ms = rebalance_timeout_ms;
        assert_eq!(group_metadata::decode_value(&hex(&text)), Ok(expected), "{text}");
    }
    assert_eq!(group_metadata::decode_value(&hex("0005")), Err(RecordError::UnknownValueVersion(5)));
}

#[test]
fn counts_and_lengths_are_checked_before_anything_is_reserved() {
    let head = "0003 0000 00000003 ffff ffff 0000000000000099";
    let decode = |tail: &str| group_metadata::decode_value(&hex(&format!("{head} {tail}")));
    assert_eq!(decode("7fffffff"), Err(RecordError::CountTooLarge));
    assert_eq!(decode("fffffffe"), Err(RecordError::NegativeLength));
    assert_eq!(decode("00000001 7fff 00"), Err(RecordError::Truncated));
    assert_eq!(decode("00000001 ffff"), Err(RecordError::NullString));
    assert_eq!(decode("00000001 0001 ff"), Err(RecordError::NotUtf8));
    assert_eq!(decode("ffffffff").unwrap().members.len(), 0);
    assert_eq!(
        offset_commit::decode_value(&hex("0004 0000000000000102 00000005 ffffffffff")),
        Err(RecordError::BadVarint)
    );
    assert_eq!(
        offset_commit::decode_value(&hex("0004 0000000000000102 00000005 01 0000000000001234 01 00 01 ee")),
        Err(RecordError::BadTag)
    );
    let long = [hex("0004 0000000000000102 00000005 8180 04"), vec![b'x'; 70_000]].concat();
    assert_eq!(offset_commit::decode_value(&long), Err(RecordError::StringTooLong));
}

#[test]
fn groups_that_contradict_themselves_are_refused() {
    use crate::{CoordinatorConfig, GroupCoordinator};
    let mut c = GroupCoordinator::new(CoordinatorConfig::default());
    let key = group_metadata::encode_key("g");
    let mut twice = metadata();
    twice.members.push(twice.members[0].clone());
    let value = group_metadata::encode_value(&twice);
    assert_eq!(c.replay(&key, Some(&value)), Err(RecordError::DuplicateMember));
    let value = group_metadata::encode_value(&GroupMetadata { protocol_name: None, ..metadata() });
    assert_eq!(c.replay(&key, Some(&value)), Err(RecordError::MembersWithoutProtocol));
}

#[test]
fn every_error_is_a_sentence() {
    use RecordError::*;
    for error in [MissingKey, Truncated, NegativeLength, CountTooLarge, NullString, NotUtf8, BadVarint, BadTag] {
        let text = error.to_string();
        assert!(text.starts_with('A') && text.ends_with('.'), "{text}");
    }
}

/// What Apache Kafka 4.4.0 wrote: two groups (librdkafka's consumer, and Java's as a static member) joined, committed, the
/// first left and was deleted.
const FROM_KAFKA: &[(&str, &str)] = &[
    ("000200026731", "0003000000000000ffffffff000001a228370abe00000000"),
    (
        "000200026731",
        "00030008636f6e73756d657200000001000572616e6765002c72646b61666b612d35616565613364622d396138302d34\
         3165382d623532322d313065386533613965353039000001a228370eb900000001002c72646b61666b612d3561656561\
         3364622d396138302d343165382d623532322d313065386533613965353039ffff000772646b61666b61000a2f313237\
         2e302e302e31000493e00000afc800000011000100000001000174000000000000000000000019000000000001000174\
         00000002000000000000000100000000",
    ),
    (
        "00010002673100017400000000",
        "0004000000000000000affffffff01000001a228371a5e01001050447d9c8c9849e3b478e0c44e067bd1",
    ),
    (
        "00010002673100017400000000",
        "0004000000000000000affffffff01000001a2283735d901001050447d9c8c9849e3b478e0c44e067bd1",
    ),
    ("000200026731", "00030008636f6e73756d657200000002ffffffff000001a2283735dd00000000"),
    ("000200026732", "0003000000000000ffffffff000001a228373ac700000000"),
    (
        "000200026732",
        "00030008636f6e73756d657200000001000572616e6765002a696e7374312d33316437623762372d383362622d343635\
         662d396234312d373161333238646331336232000001a228373eb100000001002a696e7374312d33316437623762372d\
         383362622d343635662d396234312d3731613332386463313362320005696e7374310010636f6e736f6c652d636f6e73\
         756d6572000a2f3132372e302e302e31000493e00000afc800000017000300000001000174ffffffff00000000ffffff\
         ffffff00000019000300000001000174000000020000000000000001ffffffff",
    ),
    (
        "00010002673200017400000001",
        "00040000000000000000ffffffff01000001a228373f1f01001050447d9c8c9849e3b478e0c44e067bd1",
    ),
    (
        "00010002673200017400000000",
        "0004000000000000000a0000000001000001a228373f1f01001050447d9c8c9849e3b478e0c44e067bd1",
    ),
    ("00010002673100017400000000", ""),
    ("000200026731", ""),
];

#[test]
fn what_kafka_wrote_is_read_and_written_again_byte_for_byte() {
    use crate::{CoordinatorConfig, GroupCoordinator, GroupState, Now};
    let mut c = GroupCoordinator::new(CoordinatorConfig::default());
    for (key_text, value_text) in FROM_KAFKA {
        let (key, value) = (hex(key_text), hex(value_text));
        let value = (!value.is_empty()).then_some(value);
        let again = match decode(&key, value.as_deref()).unwrap() {
            Record::Offset { group, topic, partition, value } => {
                (offset_commit::encode_key(&group, &topic, partition), value.as_ref().map(offset_commit::encode_value))
            }
            Record::Group { group, value } => {
                (group_metadata::encode_key(&group), value.as_ref().map(group_metadata::encode_value))
            }
            Record::Unknown { kind } => panic!("kind {kind}"),
        };
        assert_eq!(again, (key.clone(), value.clone()));
        c.replay(&key, value.as_deref()).unwrap();
    }
    c.finish_loading(Now::default());
    assert_eq!(c.describe("g1").unwrap(), None);
    let d = c.describe("g2").unwrap().unwrap();
    assert_eq!((d.state, d.protocol.as_str(), d.members.len()), (GroupState::Stable, "range", 1));
    assert_eq!(d.members[0].group_instance_id.as_deref(), Some("inst1"));
    assert!(c.groups["g2"].is_subscribed_to("t") && !c.groups["g2"].is_subscribed_to("u"));
    let offsets = c.fetch_offsets("g2", None).unwrap();
    let found: Vec<(i32, i64)> = offsets[0].partitions.iter().map(|p| (p.partition, p.offset.0)).collect();
    assert_eq!(found, vec![(0, 10), (1, 0)]);
    assert_eq!(offsets[0].topic_id.to_string(), "UER9nIyYSeO0eODETgZ70Q");
}
