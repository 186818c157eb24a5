#![allow(clippy::unwrap_used)]

use crate::test_support::*;
use crate::*;
use model::ErrorCode;

use model::TopicId;

#[test]
fn a_deleted_group_stays_deleted_after_a_restart() {
    let mut h = Harness::new();
    let ids = h.stable("g", 1);
    h.commit("g", &ids[0], 1, 5);
    h.leave("g", &[(&ids[0], None)]);
    let ticket = h.delete_groups(&["g"]);
    assert_eq!(h.delete_errors(ticket), vec![ErrorCode::None]);
    for h in [&h, &h.restarted()] {
        assert_eq!((h.state("g"), h.committed("g"), h.c.offset_count()), (None, -1, 0));
    }
    let tombstones = h.log.iter().filter(|(_, value)| value.is_none()).count();
    assert_eq!(tombstones, 2, "one for the offset, one for the group");
}

#[test]
fn groups_in_use_and_unknown_ones_are_refused_each_for_itself() {
    let mut h = Harness::new();
    h.stable("busy", 1);
    h.commit("idle", "", -1, 1);
    let ticket = h.delete_groups(&["busy", "idle", "nowhere"]);
    let expected = vec![ErrorCode::NonEmptyGroup, ErrorCode::None, ErrorCode::GroupIdNotFound];
    assert_eq!(h.delete_errors(ticket), expected);
}

#[test]
fn while_a_deletion_is_on_its_way_clients_try_again() {
    let mut h = Harness::new();
    h.commit("g", "", -1, 1);
    h.auto = false;
    let ticket = h.delete_groups(&["g"]);
    let join_ticket = h.join_with(join("g", "c", ""));
    assert_eq!(h.join_reply(join_ticket).error, ErrorCode::CoordinatorNotAvailable);
    assert_eq!(h.commit("g", "", -1, 2), ErrorCode::CoordinatorNotAvailable);
    assert_eq!(h.heartbeat("g", "m", 1), ErrorCode::CoordinatorNotAvailable);
    assert!(!h.replies.contains_key(&ticket));
    h.finish_append(Ok(()));
    h.finish_append(Ok(()));
    assert_eq!(h.delete_errors(ticket), vec![ErrorCode::None]);
    assert_eq!(h.state("g"), None);
}

#[test]
fn a_deletion_reaches_commits_on_their_way() {
    let mut h = Harness::new();
    h.auto = false;
    h.commit_with(commit("g", "", -1, 1));
    h.delete_groups(&["g"]);
    h.auto = true;
    while !h.appends.is_empty() {
        h.finish_append(Ok(()));
    }
    assert_eq!((h.committed("g"), h.restarted().committed("g")), (-1, -1));
}

#[test]
fn large_deletions_are_cut_into_bounded_appends() {
    let mut h = Harness::new();
    let partitions: Vec<(i32, i64)> = (0..2500).map(|p| (p, 1)).collect();
    h.commit_with(commit_topic("g", "", -1, "t", TopicId::ZERO, &partitions));
    h.auto = false;
    h.delete_groups(&["g"]);
    let sizes: Vec<usize> = h.appends.iter().map(|(_, records)| records.len()).collect();
    assert_eq!(sizes, vec![1000, 1000, 500, 1]);
}

#[test]
fn offsets_of_subscribed_topics_are_not_deleted() {
    let mut h = Harness::new();
    let ids = h.stable("g", 1);
    h.commit("g", &ids[0], 1, 5);
    h.commit_with(commit_topic("g", &ids[0], 1, "other", TopicId::ZERO, &[(0, 9)]));
    let ticket = h.delete_offsets("g", &[("t", &[0]), ("other", &[0, 1])]);
    let Some(Response::DeleteOffsets { error, topics }) = h.replies.get(&ticket) else { panic!("no answer") };
    assert_eq!(*error, ErrorCode::None);
    assert_eq!(topics[0].1, vec![(0, ErrorCode::GroupSubscribedToTopic)]);
    assert_eq!(topics[1].1, vec![(0, ErrorCode::None), (1, ErrorCode::None)]);
    assert_eq!((h.committed("g"), h.c.offset_count()), (5, 1));
}

#[test]
fn offset_deletion_of_other_groups_has_its_codes() {
    let mut h = Harness::new();
    let connect = JoinRequest { protocol_type: "connect".into(), ..join("connect", "c", "") };
    h.join_new_with(connect);
    for (group, expected) in [
        ("connect", ErrorCode::NonEmptyGroup),
        ("nowhere", ErrorCode::GroupIdNotFound),
        ("", ErrorCode::InvalidGroupId),
    ] {
        let ticket = h.delete_offsets(group, &[("t", &[0])]);
        let Some(Response::DeleteOffsets { error, .. }) = h.replies.get(&ticket) else { panic!("no answer") };
        assert_eq!(*error, expected, "{group}");
    }
}

#[test]
fn a_deleted_topic_takes_its_offsets_along() {
    let mut h = Harness::new();
    let (old, new) = (TopicId([1; 16]), TopicId([2; 16]));
    h.commit_with(commit_topic("a", "", -1, "t", old, &[(0, 1), (1, 1)]));
    h.commit_with(commit_topic("b", "", -1, "t", TopicId::ZERO, &[(0, 1)]));
    h.commit_with(commit_topic("c", "", -1, "t", new, &[(0, 1)]));
    h.commit_with(commit_topic("d", "", -1, "u", old, &[(0, 1)]));
    let now = h.now();
    h.c.topic_deleted(now, "t", old);
    h.pump();
    for h in [&h, &h.restarted()] {
        assert_eq!((h.committed("a"), h.committed("b"), h.committed("c")), (-1, -1, 1));
        assert_eq!(h.c.offset_count(), 2);
    }
}

#[test]
fn offsets_of_topics_that_went_while_the_coordinator_was_down_are_deleted_after_loading() {
    let mut h = Harness::new();
    h.commit_with(commit_topic("g", "", -1, "gone", TopicId([1; 16]), &[(0, 1)]));
    h.commit_with(commit_topic("g", "", -1, "t", TopicId([2; 16]), &[(0, 2)]));
    let mut h = h.restarted();
    let now = h.now();
    h.c.retain_topics(now, |name, id| name == "t" && id == TopicId([2; 16]));
    h.pump();
    assert_eq!((h.committed("g"), h.c.offset_count()), (2, 1));
}
