#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn topic_id_text_round_trips() {
    for seed in 0u8..=255 {
        let id = TopicId::from_random(std::array::from_fn(|i| seed.wrapping_mul(31).wrapping_add(i as u8 * 7)));
        let text = id.to_string();
        assert_eq!(text.len(), 22);
        assert!(!text.starts_with('-'), "{text}");
        assert_eq!(TopicId::parse(&text).unwrap(), id);
    }
}

#[test]
fn topic_id_text_is_kafkas() {
    // Kafka's Uuid.METADATA_TOPIC_ID and ZERO_UUID.
    let mut one = [0; 16];
    one[15] = 1;
    assert_eq!(TopicId(one).to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
    assert_eq!(TopicId::ZERO.to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
}

#[test]
fn bad_topic_id_text_is_none() {
    for text in ["", "AAAA", "AAAAAAAAAAAAAAAAAAAA+A", "AAAAAAAAAAAAAAAAAAAAAB", "AAAAAAAAAAAAAAAAAAAAAAA"] {
        assert_eq!(TopicId::parse(text), None, "{text}");
    }
}
