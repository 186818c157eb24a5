#![allow(clippy::unwrap_used)]

use crate::test_support::*;
use crate::*;
use model::ErrorCode;

#[test]
fn members_get_what_the_leader_assigned_when_it_is_durable() {
    let mut h = Harness::new();
    let (a, first) = h.join_new("g", "a");
    let (b, _) = h.join_new("g", "b");
    h.settle();
    let generation = h.join_reply(first).generation_id;
    h.auto = false;
    let follower = h.sync_with(sync("g", &b, generation, &[]));
    let leader = h.sync_with(sync("g", &a, generation, &[&a, &b]));
    assert!(!h.replies.contains_key(&leader) && !h.replies.contains_key(&follower));
    assert_eq!(h.state("g"), Some(GroupState::CompletingRebalance));
    h.finish_append(Ok(()));
    assert_eq!(h.sync_reply(leader).assignment, format!("assigned-{a}"));
    assert_eq!(h.sync_reply(follower).assignment, format!("assigned-{b}"));
    assert_eq!(h.sync_reply(follower).protocol_name.as_deref(), Some("range"));
    assert_eq!(h.state("g"), Some(GroupState::Stable));
}

#[test]
fn a_sync_in_a_stable_group_is_answered_at_once() {
    let mut h = Harness::new();
    let ids = h.stable("g", 2);
    let again = h.sync_with(sync("g", &ids[1], 1, &[]));
    assert_eq!(h.sync_reply(again).assignment, format!("assigned-{}", ids[1]));
}

#[test]
fn who_is_not_mentioned_has_nothing_and_strangers_are_left_out() {
    let mut h = Harness::new();
    let (a, first) = h.join_new("g", "a");
    let (b, _) = h.join_new("g", "b");
    h.settle();
    let generation = h.join_reply(first).generation_id;
    let follower = h.sync_with(sync("g", &b, generation, &[]));
    h.sync_with(sync("g", &a, generation, &[&a, "stranger"]));
    assert!(h.sync_reply(follower).assignment.is_empty());
    assert_eq!(h.c.describe("g").unwrap().unwrap().members.len(), 2);
}

#[test]
fn refusals_have_their_codes() {
    let mut h = Harness::new();
    let ids = h.stable("g", 1);
    let cases = [
        (sync("", "m", 1, &[]), ErrorCode::InvalidGroupId),
        (sync("nowhere", "m", 1, &[]), ErrorCode::UnknownMemberId),
        (sync("g", "m", 1, &[]), ErrorCode::UnknownMemberId),
        (sync("g", &ids[0], 2, &[]), ErrorCode::IllegalGeneration),
        (
            SyncRequest { protocol_type: Some("connect".into()), ..sync("g", &ids[0], 1, &[]) },
            ErrorCode::InconsistentGroupProtocol,
        ),
        (
            SyncRequest { protocol_name: Some("sticky".into()), ..sync("g", &ids[0], 1, &[]) },
            ErrorCode::InconsistentGroupProtocol,
        ),
    ];
    for (request, error) in cases {
        let ticket = h.sync_with(request);
        assert_eq!(h.sync_reply(ticket).error, error);
    }
    let without_names = SyncRequest { protocol_type: None, protocol_name: None, ..sync("g", &ids[0], 1, &[]) };
    let ticket = h.sync_with(without_names);
    assert_eq!(h.sync_reply(ticket).error, ErrorCode::None, "old clients do not name the protocol");
}

#[test]
fn a_sync_while_preparing_is_told_to_join() {
    let mut h = Harness::new();
    let ids = h.stable("g", 2);
    h.join_with(join("g", "c0", &ids[0]));
    let ticket = h.sync_with(sync("g", &ids[1], 1, &[]));
    assert_eq!(h.sync_reply(ticket).error, ErrorCode::RebalanceInProgress);
}

#[test]
fn a_join_while_completing_sends_the_waiting_syncs_back() {
    let mut h = Harness::new();
    let (_, first) = h.join_new("g", "a");
    let (b, _) = h.join_new("g", "b");
    h.settle();
    let generation = h.join_reply(first).generation_id;
    let waiting = h.sync_with(sync("g", &b, generation, &[]));
    h.join_new("g", "c");
    assert_eq!(h.sync_reply(waiting).error, ErrorCode::RebalanceInProgress);
    assert_eq!(h.state("g"), Some(GroupState::PreparingRebalance));
}

#[test]
fn members_that_do_not_sync_within_the_rebalance_timeout_are_out() {
    let mut h = Harness::new();
    let (a, first) = h.join_new("g", "a");
    let (b, _) = h.join_new("g", "b");
    h.advance(6_000);
    let generation = h.join_reply(first).generation_id;
    let leader = h.sync_with(sync("g", &a, generation, &[&a, &b]));
    assert_eq!(h.sync_reply(leader).error, ErrorCode::None);
    for _ in 0..10 {
        h.advance(3_000);
        h.heartbeat("g", &a, generation);
        h.heartbeat("g", &b, generation);
    }
    assert_eq!(h.heartbeat("g", &b, generation), ErrorCode::UnknownMemberId);
    assert_eq!(h.heartbeat("g", &a, generation), ErrorCode::RebalanceInProgress);
}

#[test]
fn a_leader_that_never_syncs_is_out_and_the_others_start_again() {
    let mut h = Harness::new();
    let (a, first) = h.join_new("g", "a");
    let (b, _) = h.join_new("g", "b");
    h.advance(6_000);
    let generation = h.join_reply(first).generation_id;
    let waiting = h.sync_with(sync("g", &b, generation, &[]));
    for _ in 0..10 {
        h.advance(3_000);
        h.heartbeat("g", &a, generation);
    }
    assert_eq!(h.sync_reply(waiting).error, ErrorCode::RebalanceInProgress);
    let again = h.join_with(join("g", "b", &b));
    assert_eq!(&*h.join_reply(again).leader, b);
    assert_eq!(h.join_reply(again).generation_id, generation + 1);
}

#[test]
fn a_second_sync_while_the_first_waits_answers_the_first() {
    let mut h = Harness::new();
    let (a, first) = h.join_new("g", "a");
    let (b, _) = h.join_new("g", "b");
    h.advance(6_000);
    let generation = h.join_reply(first).generation_id;
    let one = h.sync_with(sync("g", &b, generation, &[]));
    let two = h.sync_with(sync("g", &b, generation, &[]));
    assert_eq!(h.sync_reply(one).error, ErrorCode::RebalanceInProgress);
    h.sync_with(sync("g", &a, generation, &[&a, &b]));
    assert_eq!(h.sync_reply(two).assignment, format!("assigned-{b}"));
}
