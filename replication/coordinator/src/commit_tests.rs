#![allow(clippy::unwrap_used)]

use crate::test_support::*;
use crate::*;
use model::ErrorCode;

use model::{LeaderEpoch, TopicId};

#[test]
fn a_simple_consumer_commits_without_a_group() {
    let mut h = Harness::new();
    assert_eq!(h.committed("g"), -1);
    assert_eq!(h.commit("g", "", -1, 42), ErrorCode::None);
    assert_eq!(h.committed("g"), 42);
    let description = h.c.describe("g").unwrap().unwrap();
    assert_eq!((description.state, description.protocol_type.as_str()), (GroupState::Empty, ""));
}

#[test]
fn a_commit_is_visible_and_answered_when_it_is_durable() {
    let mut h = Harness::new();
    h.auto = false;
    let ticket = h.commit_with(commit("g", "", -1, 42));
    assert!(!h.replies.contains_key(&ticket));
    assert_eq!(h.committed("g"), -1);
    h.finish_append(Ok(()));
    assert_eq!((h.commit_error(ticket), h.committed("g")), (ErrorCode::None, 42));
}

#[test]
fn results_out_of_order_apply_in_the_order_of_the_log() {
    let mut h = Harness::new();
    h.auto = false;
    let first = h.commit_with(commit("g", "", -1, 1));
    let second = h.commit_with(commit("g", "", -1, 2));
    let (one, two) = (h.appends[0].0, h.appends[1].0);
    h.c.append_done(h.now(), two, Ok(()));
    h.pump();
    assert!(!h.replies.contains_key(&second));
    h.c.append_done(h.now(), one, Ok(()));
    h.pump();
    assert_eq!(
        (h.commit_error(first), h.commit_error(second), h.committed("g")),
        (ErrorCode::None, ErrorCode::None, 2)
    );
}

#[test]
fn refusals_have_their_codes() {
    let mut h = Harness::new();
    let ids = h.stable("g", 1);
    assert_eq!(h.commit("g", "", -1, 1), ErrorCode::UnknownMemberId, "generation -1 into an active group");
    assert_eq!(h.commit("g", "stranger", 1, 1), ErrorCode::UnknownMemberId);
    assert_eq!(h.commit("g", &ids[0], 2, 1), ErrorCode::IllegalGeneration);
    assert_eq!(h.commit("g", &ids[0], -1, 1), ErrorCode::IllegalGeneration);
    assert_eq!(h.commit("nowhere", "m", 1, 1), ErrorCode::GroupIdNotFound);
    let long = CommitRequest { group_id: "g".repeat(40_000), ..commit("g", "", -1, 1) };
    let ticket = h.commit_with(long);
    assert_eq!(h.commit_error(ticket), ErrorCode::InvalidGroupId);
    assert_eq!(h.committed("g"), -1);
    assert_eq!(h.commit("g", &ids[0], 1, 9), ErrorCode::None);
    assert_eq!(h.committed("g"), 9);
}

#[test]
fn an_evicted_member_changes_nothing() {
    let mut h = Harness::new();
    let ids = h.stable("g", 1);
    h.commit("g", &ids[0], 1, 5);
    h.advance(10_000);
    assert_eq!(h.commit("g", &ids[0], 1, 6), ErrorCode::UnknownMemberId);
    assert_eq!(h.committed("g"), 5);
}

#[test]
fn while_preparing_members_commit_and_while_completing_they_wait() {
    let mut h = Harness::new();
    let ids = h.stable("g", 2);
    h.join_with(join("g", "c0", &ids[0]));
    assert_eq!(h.state("g"), Some(GroupState::PreparingRebalance));
    assert_eq!(h.commit("g", &ids[1], 1, 5), ErrorCode::None);
    h.join_with(join("g", "c1", &ids[1]));
    assert_eq!(h.state("g"), Some(GroupState::CompletingRebalance));
    assert_eq!(h.commit("g", &ids[1], 2, 6), ErrorCode::RebalanceInProgress);
    assert_eq!(h.committed("g"), 5);
}

#[test]
fn a_commit_counts_as_a_heartbeat() {
    let mut h = Harness::new();
    let ids = h.stable("g", 1);
    for offset in 0..5 {
        h.advance(9_000);
        assert_eq!(h.commit("g", &ids[0], 1, offset), ErrorCode::None);
    }
    assert_eq!(h.state("g"), Some(GroupState::Stable));
}

#[test]
fn metadata_may_be_null_or_4096_units_but_not_more() {
    let mut h = Harness::new();
    let with = |metadata: Option<String>| {
        let mut request = commit("g", "", -1, 1);
        request.topics[0].partitions[0].metadata = metadata;
        request
    };
    let cases = [
        (None, ErrorCode::None),
        (Some("x".repeat(4096)), ErrorCode::None),
        (Some("\u{20ac}".repeat(4096)), ErrorCode::None),
        (Some("x".repeat(4097)), ErrorCode::OffsetMetadataTooLarge),
        (Some("\u{1f600}".repeat(2049)), ErrorCode::OffsetMetadataTooLarge),
    ];
    for (metadata, error) in cases {
        let ticket = h.commit_with(with(metadata));
        assert_eq!(h.commit_error(ticket), error);
    }
    let ticket = h.commit_with(with(None));
    assert_eq!(h.commit_error(ticket), ErrorCode::None);
    assert_eq!(h.c.fetch_offsets("g", None).unwrap()[0].partitions[0].metadata, "");
}

#[test]
fn one_bad_partition_does_not_hold_up_the_others() {
    let mut h = Harness::new();
    let mut request = commit_topic("g", "", -1, "t", TopicId::ZERO, &[(0, 10), (1, 11)]);
    request.topics[0].partitions[0].metadata = Some("x".repeat(5000));
    let ticket = h.commit_with(request);
    let Some(Response::Commit(topics)) = h.replies.get(&ticket) else { panic!("no commit") };
    assert_eq!(topics[0].partitions, vec![(0, ErrorCode::OffsetMetadataTooLarge), (1, ErrorCode::None)]);
    assert_eq!(h.c.fetch_offsets("g", None).unwrap()[0].partitions.len(), 1);
}

#[test]
fn a_commit_of_which_nothing_is_left_makes_no_group() {
    let mut h = Harness::new();
    let mut request = commit("g", "", -1, 1);
    request.topics[0].partitions[0].metadata = Some("x".repeat(5000));
    h.commit_with(request);
    assert_eq!(h.c.group_count(), 0);
    h.auto = false;
    let ticket = h.commit_with(commit("g", "", -1, 1));
    h.finish_append(Err(ErrorCode::KafkaStorageError));
    assert_eq!(h.commit_error(ticket), ErrorCode::NotCoordinator);
    assert_eq!(h.c.group_count(), 0);
}

#[test]
fn everything_of_a_commit_is_kept() {
    let mut h = Harness::new();
    let id = TopicId([7; 16]);
    h.commit_with(commit_topic("g", "", -1, "t", id, &[(3, 30), (1, 10)]));
    for h in [&h, &h.restarted()] {
        let fetched = h.c.fetch_offsets("g", None).unwrap();
        assert_eq!((fetched[0].name.as_str(), fetched[0].topic_id), ("t", id));
        let first = &fetched[0].partitions[0];
        assert_eq!((first.partition, first.offset.0, first.leader_epoch), (1, 10, LeaderEpoch(3)));
        assert_eq!((fetched[0].partitions[1].partition, first.metadata.as_str()), (3, "note"));
    }
}

#[test]
fn what_was_committed_to_a_deleted_topic_of_the_same_name_is_not_found() {
    let mut h = Harness::new();
    let (old, new) = (TopicId([1; 16]), TopicId([2; 16]));
    h.commit_with(commit_topic("g", "", -1, "t", old, &[(0, 30)]));
    let ask = |topic_id| [FetchTopic { name: "t".into(), topic_id, partitions: vec![0, 5] }];
    let fetch = |topic_id| h.c.fetch_offsets("g", Some(&ask(topic_id))).unwrap()[0].partitions[0].offset.0;
    assert_eq!((fetch(old), fetch(TopicId::ZERO), fetch(new)), (30, 30, -1));
    assert_eq!(h.c.fetch_offsets("nowhere", Some(&ask(old))).unwrap()[0].partitions[1].offset.0, -1);
    assert!(h.c.fetch_offsets("nowhere", None).unwrap().is_empty());
}

#[test]
fn the_number_of_offsets_is_bounded() {
    let mut h = Harness::with(CoordinatorConfig { max_offsets: 2, ..CoordinatorConfig::default() });
    let ticket = h.commit_with(commit_topic("g", "", -1, "t", TopicId::ZERO, &[(0, 1), (1, 1), (2, 1)]));
    let Some(Response::Commit(topics)) = h.replies.get(&ticket) else { panic!("no commit") };
    let errors: Vec<ErrorCode> = topics[0].partitions.iter().map(|p| p.1).collect();
    assert_eq!(errors, vec![ErrorCode::None, ErrorCode::None, ErrorCode::PolicyViolation]);
    assert_eq!(h.commit("g", "", -1, 7), ErrorCode::None, "what is there may move");
}

#[test]
fn appends_in_flight_are_bounded() {
    let mut h = Harness::new();
    h.auto = false;
    for offset in 0..limits::MAX_APPENDS_IN_FLIGHT as i64 {
        let ticket = h.ticket();
        h.c.commit(h.now(), ticket, commit("g", "", -1, offset));
    }
    let ticket = h.ticket();
    h.c.commit(h.now(), ticket, commit("g", "", -1, 1));
    h.pump();
    assert_eq!(h.commit_error(ticket), ErrorCode::CoordinatorNotAvailable);
}
