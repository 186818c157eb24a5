#![allow(clippy::unwrap_used)]

use crate::test_support::*;
use crate::*;
use model::ErrorCode;

/// A stable group of static members with instance ids `i0`, `i1`, ...; the first leads.
fn stable_static(h: &mut Harness, count: u128) -> Vec<String> {
    let tickets: Vec<Ticket> = (0..count).map(|i| h.join_with(static_join("g", &format!("i{i}"), "", i + 1))).collect();
    h.settle();
    let ids: Vec<String> = tickets.iter().map(|t| h.join_reply(*t).member_id.to_string()).collect();
    let generation = h.join_reply(tickets[0]).generation_id;
    h.sync_all("g", generation, &ids);
    assert_eq!(h.state("g"), Some(GroupState::Stable));
    ids
}

#[test]
fn a_static_member_needs_no_second_step() {
    let mut h = Harness::new();
    let ticket = h.join_with(static_join("g", "inst", "", 7));
    h.advance(3_000);
    assert!(h.join_reply(ticket).member_id.starts_with("inst-"));
}

#[test]
fn a_follower_that_returns_takes_its_place_without_a_rebalance() {
    let mut h = Harness::new();
    let ids = stable_static(&mut h, 2);
    let records = h.log.len();
    h.auto = false;
    let ticket = h.join_with(static_join("g", "i1", "", 50));
    assert!(!h.replies.contains_key(&ticket), "answered when it is durable");
    h.finish_append(Ok(()));
    let reply = h.join_reply(ticket);
    assert_eq!((reply.error, reply.generation_id, reply.skip_assignment), (ErrorCode::None, 1, false));
    assert_ne!(&*reply.member_id, ids[1]);
    assert_eq!(h.state("g"), Some(GroupState::Stable));
    assert_eq!(h.log.len(), records + 1);
    let again = h.sync_with(sync("g", &reply.member_id, 1, &[]));
    assert_eq!(h.sync_reply(again).assignment, format!("assigned-{}", ids[1]), "keeps the assignment");
}

#[test]
fn the_old_member_id_is_fenced() {
    let mut h = Harness::new();
    let ids = stable_static(&mut h, 2);
    h.join_with(static_join("g", "i1", "", 50));
    let heartbeat =
        HeartbeatRequest { group_id: "g", generation_id: 1, member_id: &ids[1], group_instance_id: Some("i1") };
    assert_eq!(h.c.heartbeat(h.now(), heartbeat), ErrorCode::FencedInstanceId);
    let commit = CommitRequest { group_instance_id: Some("i1".into()), ..commit("g", &ids[1], 1, 5) };
    let ticket = h.commit_with(commit);
    assert_eq!(h.commit_error(ticket), ErrorCode::FencedInstanceId);
    let ticket = h.sync_with(SyncRequest { group_instance_id: Some("i1".into()), ..sync("g", &ids[1], 1, &[]) });
    assert_eq!(h.sync_reply(ticket).error, ErrorCode::FencedInstanceId);
    let ticket = h.join_with(static_join("g", "i1", &ids[1], 0));
    assert_eq!(h.join_reply(ticket).error, ErrorCode::FencedInstanceId);
    let ticket = h.leave("g", &[(&ids[1], Some("i1"))]);
    assert_eq!(h.leave_errors(ticket), vec![ErrorCode::FencedInstanceId]);
}

#[test]
fn a_leader_that_returns_is_told_to_skip_the_assignment() {
    let mut h = Harness::new();
    stable_static(&mut h, 2);
    let ticket = h.join_with(static_join("g", "i0", "", 50));
    let reply = h.join_reply(ticket);
    assert!(reply.skip_assignment);
    assert_eq!(reply.leader, reply.member_id);
    assert_eq!(reply.members.len(), 2);
}

#[test]
fn an_old_leader_client_is_not_told_that_it_leads() {
    let mut h = Harness::new();
    let ids = stable_static(&mut h, 2);
    let request = JoinRequest { supports_skip_assignment: false, ..static_join("g", "i0", "", 50) };
    let ticket = h.join_with(request);
    let reply = h.join_reply(ticket);
    assert!(!reply.skip_assignment && reply.members.is_empty());
    assert_eq!(&*reply.leader, ids[0], "the old id leads, as far as it knows");
}

#[test]
fn another_protocol_choice_starts_a_rebalance() {
    let mut h = Harness::new();
    let both = |instance: &str, random: u128, names: [&str; 2]| JoinRequest {
        protocols: names.map(|n| protocol(n, subscription(&["t"]))).to_vec(),
        ..static_join("g", instance, "", random)
    };
    let first = h.join_with(both("i0", 1, ["range", "sticky"]));
    h.advance(3_000);
    let id = h.join_reply(first).member_id.to_string();
    h.sync_with(sync("g", &id, 1, &[&id]));
    let ticket = h.join_with(both("i0", 2, ["sticky", "range"]));
    let reply = h.join_reply(ticket);
    assert_eq!((reply.generation_id, reply.protocol_name.as_deref()), (2, Some("sticky")));
}

#[test]
fn a_waiting_join_of_the_old_one_is_fenced() {
    let mut h = Harness::new();
    let first = h.join_with(static_join("g", "i", "", 1));
    let second = h.join_with(static_join("g", "i", "", 2));
    assert_eq!(h.join_reply(first).error, ErrorCode::FencedInstanceId);
    h.settle();
    assert_eq!(h.join_reply(second).error, ErrorCode::None);
    assert_eq!(h.c.describe("g").unwrap().unwrap().members.len(), 1);
}

#[test]
fn a_return_while_completing_starts_a_rebalance() {
    let mut h = Harness::new();
    let first = h.join_with(static_join("g", "i0", "", 1));
    let second = h.join_with(static_join("g", "i1", "", 2));
    h.settle();
    let (leader, follower) = (h.join_reply(first).member_id, h.join_reply(second).member_id);
    let waiting = h.sync_with(sync("g", &follower, 1, &[]));
    let back = h.join_with(static_join("g", "i0", "", 9));
    assert_eq!(h.sync_reply(waiting).error, ErrorCode::RebalanceInProgress);
    h.join_with(static_join("g", "i1", &follower, 0));
    let reply = h.join_reply(back);
    assert_eq!((reply.generation_id, &reply.leader), (2, &reply.member_id));
    assert_ne!(reply.member_id, leader);
}

#[test]
fn a_replacement_that_cannot_be_written_is_taken_back() {
    let mut h = Harness::new();
    let ids = stable_static(&mut h, 2);
    h.auto = false;
    let ticket = h.join_with(static_join("g", "i0", "", 50));
    h.finish_append(Err(ErrorCode::NotEnoughReplicas));
    assert_eq!(h.join_reply(ticket).error, ErrorCode::CoordinatorNotAvailable);
    assert_eq!(h.heartbeat("g", &ids[0], 1), ErrorCode::None);
    assert!(h.c.groups["g"].is_leader(&ids[0]));
}

#[test]
fn static_members_survive_a_rebalance_that_they_miss_until_their_session_ends() {
    let mut h = Harness::new();
    let ids = stable_static(&mut h, 2);
    h.advance(9_000);
    h.heartbeat("g", &ids[1], 1);
    h.heartbeat("g", &ids[0], 1);
    let leader = h.join_with(static_join("g", "i0", &ids[0], 0));
    h.advance(9_999);
    assert!(!h.replies.contains_key(&leader));
    h.advance(1);
    let reply = h.join_reply(leader);
    assert_eq!((reply.generation_id, reply.members.len()), (2, 1), "the session of the other is over");
}
