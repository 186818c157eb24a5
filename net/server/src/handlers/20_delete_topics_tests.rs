#![allow(clippy::unwrap_used)]

use model::config::BrokerConfig;

use super::super::admin::test_support::{cluster, topic_id, view, with_topic};
use super::*;

fn two_topics() -> View {
    view(with_topic(&with_topic(&cluster(1), "a", 1, &[]), "__consumer_offsets", 1, &[]))
}

fn codes(view: &View, version: i16, asked: &[Asked<'_>]) -> Vec<ErrorCode> {
    let code = |(_, found): (Asked<'_>, Result<Found, Refusal>)| found.map_or_else(|r| r.code, |_| ErrorCode::None);
    judge(view, version, asked).into_iter().map(code).collect()
}

#[test]
fn a_topic_is_found_by_either() {
    let found = Ok(Found { id: topic_id("a"), name: "a".to_string() });
    for asked in [Asked::Name("a"), Asked::Id(topic_id("a"))] {
        assert_eq!(judge(&two_topics(), 6, &[asked]), [(asked, found.clone())]);
    }
}

#[test]
fn what_cannot_be_deleted_says_why() {
    let unknown = TopicId([9; 16]);
    let asked = [
        Asked::Name("none"),
        Asked::Id(unknown),
        Asked::Id(TopicId::ZERO),
        Asked::Both("a", unknown),
        Asked::Name("__consumer_offsets"),
        Asked::Id(topic_id("__consumer_offsets")),
    ];
    let expected = [
        ErrorCode::UnknownTopicOrPartition,
        ErrorCode::UnknownTopicId,
        ErrorCode::InvalidRequest,
        ErrorCode::InvalidRequest,
        ErrorCode::InvalidRequest,
        ErrorCode::InvalidRequest,
    ];
    assert_eq!(codes(&two_topics(), 6, &asked), expected);
}

#[test]
fn a_topic_named_twice_is_answered_once_and_stays() {
    let twice = [Asked::Name("a"), Asked::Name("none"), Asked::Name("a")];
    let expected = [ErrorCode::InvalidRequest, ErrorCode::UnknownTopicOrPartition];
    assert_eq!(codes(&two_topics(), 6, &twice), expected);
    let both_ways = [Asked::Name("a"), Asked::Id(topic_id("a"))];
    assert_eq!(codes(&two_topics(), 6, &both_ways), [ErrorCode::InvalidRequest; 2]);
}

#[test]
fn deletion_can_be_switched_off() {
    let mut view = two_topics();
    let config = BrokerConfig::from_pairs([("node.id", "1"), ("delete.topic.enable", "false")]).unwrap();
    view.config = config.into();
    assert_eq!(codes(&view, 2, &[Asked::Name("a")]), [ErrorCode::InvalidRequest]);
    assert_eq!(codes(&view, 3, &[Asked::Name("a")]), [ErrorCode::TopicDeletionDisabled]);
}

#[test]
fn a_name_and_an_id_are_told_apart() {
    let state = |name, topic_id| DeleteTopicState { name, topic_id };
    assert_eq!(Asked::of(&state(Some("a"), [0; 16])), Asked::Name("a"));
    assert_eq!(Asked::of(&state(None, [1; 16])), Asked::Id(TopicId([1; 16])));
    assert_eq!(Asked::of(&state(Some("a"), [1; 16])), Asked::Both("a", TopicId([1; 16])));
}
