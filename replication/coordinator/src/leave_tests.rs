#![allow(clippy::unwrap_used)]

use crate::test_support::*;
use crate::*;
use model::ErrorCode;

#[test]
fn a_member_that_leaves_starts_a_rebalance_for_the_others() {
    let mut h = Harness::new();
    let ids = h.stable("g", 2);
    let ticket = h.leave("g", &[(&ids[1], None)]);
    assert_eq!(h.leave_errors(ticket), vec![ErrorCode::None]);
    assert_eq!(h.heartbeat("g", &ids[0], 1), ErrorCode::RebalanceInProgress);
}

#[test]
fn several_leave_at_once_each_with_its_own_result() {
    let mut h = Harness::new();
    let ids = h.stable("g", 3);
    let ticket = h.leave("g", &[(&ids[1], None), ("stranger", None), (&ids[2], None), ("", Some("none"))]);
    use ErrorCode::{None as Ok, UnknownMemberId as Unknown};
    assert_eq!(h.leave_errors(ticket), vec![Ok, Unknown, Ok, Unknown]);
    assert_eq!(h.c.describe("g").unwrap().unwrap().members.len(), 1);
}

#[test]
fn a_static_member_leaves_by_its_instance_id() {
    let mut h = Harness::new();
    h.join_with(static_join("g", "i", "", 1));
    h.advance(3_000);
    let ticket = h.leave("g", &[("", Some("i"))]);
    assert_eq!(h.leave_errors(ticket), vec![ErrorCode::None]);
    assert_eq!(h.state("g"), Some(GroupState::Empty));
}

#[test]
fn the_answer_to_the_last_one_waits_for_the_log() {
    let mut h = Harness::new();
    let ids = h.stable("g", 1);
    h.auto = false;
    let ticket = h.leave("g", &[(&ids[0], None)]);
    assert!(!h.replies.contains_key(&ticket));
    h.finish_append(Ok(()));
    assert_eq!(h.leave_errors(ticket), vec![ErrorCode::None]);
    let again = h.leave("g", &[(&ids[0], None)]);
    assert_eq!(h.leave_errors(again), vec![ErrorCode::UnknownMemberId]);
}

#[test]
fn what_a_leaving_member_waits_for_is_answered() {
    let mut h = Harness::new();
    let (a, first) = h.join_new("g", "a");
    let (b, _) = h.join_new("g", "b");
    h.leave("g", &[(&a, None)]);
    assert_eq!(h.join_reply(first).error, ErrorCode::UnknownMemberId);
    h.settle();
    h.auto = false;
    let waiting = h.sync_with(sync("g", &b, 1, &[]));
    h.leave("g", &[(&b, None)]);
    assert_eq!(h.sync_reply(waiting).error, ErrorCode::UnknownMemberId);
}

#[test]
fn a_pending_member_may_leave_without_a_rebalance() {
    let mut h = Harness::new();
    let ids = h.stable("g", 1);
    let ticket = h.join_with(join("g", "c", ""));
    let pending = h.join_reply(ticket).member_id.to_string();
    let ticket = h.leave("g", &[(&pending, None)]);
    assert_eq!(h.leave_errors(ticket), vec![ErrorCode::None]);
    assert_eq!(h.heartbeat("g", &ids[0], 1), ErrorCode::None);
}

#[test]
fn an_unknown_group_answers_each_member() {
    let mut h = Harness::new();
    let ticket = h.leave("nowhere", &[("a", None), ("b", None)]);
    assert_eq!(h.leave_errors(ticket), vec![ErrorCode::UnknownMemberId; 2]);
    let ticket = h.leave("", &[("a", None)]);
    assert_eq!(h.leave_errors(ticket), vec![ErrorCode::InvalidGroupId]);
}
