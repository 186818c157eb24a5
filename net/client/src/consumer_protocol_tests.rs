#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn subscription() -> Subscription {
    Subscription {
        topics: vec!["a".into(), "b".into()],
        user_data: Some(Bytes::from_static(b"xy")),
        owned_partitions: vec![TopicPartition::new("a", 1), TopicPartition::new("a", 0), TopicPartition::new("b", 7)],
        generation_id: 5,
        rack_id: Some("r1".into()),
    }
}

#[test]
fn a_subscription_comes_back_as_it_went() {
    let value = subscription();
    assert_eq!(Subscription::decode(&value.encode()).unwrap(), value);
    let none = Subscription::default();
    assert_eq!(Subscription::decode(&none.encode()).unwrap(), none);
}

#[test]
fn an_assignment_comes_back_as_it_went() {
    let value = Assignment { partitions: vec![TopicPartition::new("t", 3)], user_data: None };
    assert_eq!(Assignment::decode(&value.encode()).unwrap(), value);
}

#[test]
fn the_bytes_are_those_of_java() {
    let value = Assignment { partitions: vec![TopicPartition::new("t", 3)], user_data: None };
    let expected = [0, 3, 0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1, 0, 0, 0, 3, 255, 255, 255, 255];
    assert_eq!(&value.encode()[..], expected);
}

#[test]
fn version_zero_has_topics_and_user_data_only() {
    let bytes = [0, 0, 0, 0, 0, 1, 0, 1, b't', 255, 255, 255, 255];
    let value = Subscription::decode(&bytes).unwrap();
    assert_eq!(value, Subscription { topics: vec!["t".into()], ..Subscription::default() });
}

#[test]
fn a_newer_version_is_read_as_the_newest_known() {
    let mut bytes = subscription().encode().to_vec();
    bytes[1] = 9;
    bytes.extend_from_slice(b"whatever comes later");
    assert_eq!(Subscription::decode(&bytes).unwrap(), subscription());
}

#[test]
fn no_bytes_are_no_assignment_and_a_cut_one_is_an_error() {
    assert_eq!(Assignment::decode(&[]).unwrap(), Assignment::default());
    let whole = subscription().encode();
    for len in 0..whole.len() {
        assert!(Subscription::decode(&whole[..len]).is_err(), "cut at {len}");
    }
}

#[test]
fn a_count_beyond_the_bytes_is_refused() {
    let bytes = [0, 1, 0x7f, 0xff, 0xff, 0xff, 0, 1, b't'];
    assert!(Assignment::decode(&bytes).is_err());
    assert!(Subscription::decode(&bytes).is_err());
    assert!(Subscription::decode(&[255, 255, 0, 0]).is_err());
}

proptest! {
    #[test]
    fn any_bytes_end_in_a_value_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Subscription::decode(&bytes);
        if let Ok(value) = Assignment::decode(&bytes) {
            prop_assert!(value.partitions.len() <= bytes.len() / 4);
        }
    }
}
