#![allow(clippy::unwrap_used)]

use crate::test_support::*;
use crate::*;
use model::ErrorCode;

#[test]
fn a_new_dynamic_member_is_given_an_id_and_comes_back_with_it() {
    let mut h = Harness::new();
    let first = h.join_with(join("g", "client", ""));
    let reply = h.join_reply(first);
    assert_eq!(reply.error, ErrorCode::MemberIdRequired);
    assert!(reply.member_id.starts_with("client-"));
    assert_eq!(h.state("g"), Some(GroupState::Empty));
    let second = h.join_with(join("g", "client", &reply.member_id));
    assert!(!h.replies.contains_key(&second), "waits for the initial delay");
    assert_eq!(h.state("g"), Some(GroupState::PreparingRebalance));
}

#[test]
fn a_lone_member_of_a_new_group_has_its_generation_as_soon_as_the_initial_delay_is_over() {
    let mut h = Harness::new();
    let (id, ticket) = h.join_new("g", "c");
    h.advance(2_999);
    assert!(!h.replies.contains_key(&ticket));
    h.advance(1);
    let reply = h.join_reply(ticket);
    assert_eq!((reply.error, reply.generation_id, &*reply.leader), (ErrorCode::None, 1, id.as_str()));
    assert_eq!(reply.protocol_name.as_deref(), Some("range"));
    assert_eq!(reply.members.len(), 1);
    assert_eq!(reply.members[0].metadata, subscription(&["t"]));
}

#[test]
fn joins_during_the_initial_delay_extend_it_up_to_the_rebalance_timeout() {
    let mut h = Harness::new();
    let (_, first) = h.join_new("g", "c0");
    let mut last = first;
    for i in 1..20 {
        h.advance(2_000);
        if h.replies.contains_key(&first) {
            break;
        }
        last = h.join_new("g", &format!("c{i}")).1;
    }
    let waited_ms = h.mono_ms;
    assert!((28_000..=32_000).contains(&waited_ms), "rebalance timeout is 30 s, waited {waited_ms}");
    assert_eq!(h.join_reply(first).generation_id, 1);
    assert_eq!(h.join_reply(last).generation_id, 1);
}

#[test]
fn no_initial_delay_answers_with_the_next_tick() {
    let mut h =
        Harness::with(CoordinatorConfig { group_initial_rebalance_delay_ms: 0, ..CoordinatorConfig::default() });
    let (_, ticket) = h.join_new("g", "c");
    assert_eq!(h.c.next_deadline_ms(), Some(h.mono_ms));
    h.advance(0);
    assert_eq!(h.join_reply(ticket).generation_id, 1);
}

#[test]
fn old_clients_join_in_one_step() {
    let mut h = Harness::new();
    let request = JoinRequest { requires_known_member_id: false, rebalance_timeout_ms: -1, ..join("g", "c", "") };
    let ticket = h.join_with(request);
    h.advance(3_000);
    assert_eq!(h.join_reply(ticket).error, ErrorCode::None);
    assert_eq!(h.c.groups["g"].rebalance_timeout_ms(), 10_000, "the session timeout stands in");
}

#[test]
fn refusals_have_their_codes() {
    let mut h = Harness::new();
    let cases = [
        (join("", "c", ""), ErrorCode::InvalidGroupId),
        (JoinRequest { session_timeout_ms: 5_999, ..join("g", "c", "") }, ErrorCode::InvalidSessionTimeout),
        (JoinRequest { session_timeout_ms: 1_800_001, ..join("g", "c", "") }, ErrorCode::InvalidSessionTimeout),
        (join("g", "c", "stranger"), ErrorCode::UnknownMemberId),
        (JoinRequest { protocols: vec![], ..join("g", "c", "") }, ErrorCode::InconsistentGroupProtocol),
        (JoinRequest { protocol_type: String::new(), ..join("g", "c", "") }, ErrorCode::InconsistentGroupProtocol),
        (JoinRequest { client_id: "x".repeat(40_000), ..join("g", "c", "") }, ErrorCode::InvalidRequest),
    ];
    for (request, error) in cases {
        let ticket = h.join_with(request);
        assert_eq!(h.join_reply(ticket).error, error);
    }
    assert_eq!(h.c.group_count(), 0, "a refused join makes no group");
    assert!(h.log.is_empty());
}

#[test]
fn a_stranger_is_unknown_in_an_existing_group() {
    let mut h = Harness::new();
    h.stable("g", 1);
    let ticket = h.join_with(join("g", "c", "stranger"));
    assert_eq!(h.join_reply(ticket).error, ErrorCode::UnknownMemberId);
}

#[test]
fn a_member_without_a_common_protocol_or_of_another_type_is_inconsistent() {
    let mut h = Harness::new();
    h.stable("g", 1);
    let other = JoinRequest { protocols: vec![protocol("sticky", subscription(&["t"]))], ..join("g", "c", "") };
    let ticket = h.join_with(other);
    assert_eq!(h.join_reply(ticket).error, ErrorCode::InconsistentGroupProtocol);
    let connect = JoinRequest { protocol_type: "connect".into(), ..join("g", "c", "") };
    let ticket = h.join_with(connect);
    assert_eq!(h.join_reply(ticket).error, ErrorCode::InconsistentGroupProtocol);
}

#[test]
fn the_protocol_with_most_votes_among_the_common_ones_is_chosen() {
    let mut h = Harness::new();
    let lists = [&["sticky", "range", "own"][..], &["range", "sticky"], &["range", "sticky"]];
    let tickets: Vec<Ticket> = lists
        .iter()
        .map(|names| {
            let protocols = names.iter().map(|n| protocol(n, subscription(&["t"]))).collect();
            h.join_new_with(JoinRequest { protocols, ..join("g", "c", "") }).1
        })
        .collect();
    h.settle();
    for ticket in tickets {
        assert_eq!(h.join_reply(ticket).protocol_name.as_deref(), Some("range"));
    }
}

#[test]
fn only_the_leader_hears_of_the_members() {
    let mut h = Harness::new();
    let (leader, a) = h.join_new("g", "a");
    let (_, b) = h.join_new("g", "b");
    h.settle();
    assert_eq!(h.join_reply(a).members.len(), 2);
    assert_eq!(h.join_reply(b).members.len(), 0);
    assert_eq!(&*h.join_reply(b).leader, leader);
}

#[test]
fn a_follower_that_says_nothing_new_gets_the_current_generation() {
    let mut h = Harness::new();
    let ids = h.stable("g", 2);
    let ticket = h.join_with(join("g", "c1", &ids[1]));
    assert_eq!(h.join_reply(ticket).generation_id, 1);
    assert_eq!(h.state("g"), Some(GroupState::Stable));
}

#[test]
fn a_follower_with_other_metadata_starts_a_rebalance() {
    let mut h = Harness::new();
    let ids = h.stable("g", 2);
    let protocols = vec![protocol("range", subscription(&["t", "u"]))];
    let ticket = h.join_with(JoinRequest { protocols, ..join("g", "c1", &ids[1]) });
    assert!(!h.replies.contains_key(&ticket));
    assert_eq!(h.state("g"), Some(GroupState::PreparingRebalance));
}

#[test]
fn a_leader_that_joins_again_starts_a_rebalance() {
    let mut h = Harness::new();
    let ids = h.stable("g", 2);
    let leader = h.join_with(join("g", "c0", &ids[0]));
    assert_eq!(h.state("g"), Some(GroupState::PreparingRebalance));
    assert_eq!(h.heartbeat("g", &ids[1], 1), ErrorCode::RebalanceInProgress);
    let follower = h.join_with(join("g", "c1", &ids[1]));
    assert_eq!(h.join_reply(leader).generation_id, 2);
    assert_eq!(h.join_reply(follower).generation_id, 2);
}

#[test]
fn a_join_repeated_while_completing_is_answered_at_once() {
    let mut h = Harness::new();
    let (id, _) = h.join_new("g", "c");
    h.advance(3_000);
    let again = h.join_with(join("g", "c", &id));
    let reply = h.join_reply(again);
    assert_eq!((reply.generation_id, reply.members.len()), (1, 1));
    assert_eq!(h.state("g"), Some(GroupState::CompletingRebalance));
}

#[test]
fn a_second_join_while_the_first_waits_answers_the_first() {
    let mut h = Harness::new();
    let (id, first) = h.join_new("g", "c");
    let second = h.join_with(join("g", "c", &id));
    assert_eq!(h.join_reply(first).error, ErrorCode::RebalanceInProgress);
    h.advance(3_000);
    assert_eq!(h.join_reply(second).error, ErrorCode::None);
}

#[test]
fn a_full_group_refuses_with_81() {
    let mut h = Harness::with(CoordinatorConfig { group_max_size: 2, ..CoordinatorConfig::default() });
    let ids = h.stable("g", 2);
    let ticket = h.join_with(join("g", "c", ""));
    assert_eq!(h.join_reply(ticket).error, ErrorCode::GroupMaxSizeReached);
    let member = h.join_with(join("g", "c1", &ids[1]));
    assert_eq!(h.join_reply(member).error, ErrorCode::None, "members stay");
}

#[test]
fn a_full_group_refuses_pending_members_in_the_join_phase() {
    let mut h = Harness::with(CoordinatorConfig { group_max_size: 1, ..CoordinatorConfig::default() });
    let first = h.join_with(JoinRequest { random: 1, ..join("g", "a", "") });
    let second = h.join_with(JoinRequest { random: 2, ..join("g", "b", "") });
    let (a, b) = (h.join_reply(first).member_id, h.join_reply(second).member_id);
    h.join_with(join("g", "a", &a));
    let late = h.join_with(join("g", "b", &b));
    assert_eq!(h.join_reply(late).error, ErrorCode::GroupMaxSizeReached);
    assert!(h.c.groups["g"].pending_joins.is_empty());
}

#[test]
fn the_number_of_groups_is_bounded() {
    let mut h = Harness::with(CoordinatorConfig { max_groups: 1, ..CoordinatorConfig::default() });
    h.stable("g", 1);
    let ticket = h.join_with(join("other", "c", ""));
    assert_eq!(h.join_reply(ticket).error, ErrorCode::PolicyViolation);
    assert_eq!(h.commit("other", "", -1, 1), ErrorCode::PolicyViolation);
}

#[test]
fn a_pending_member_that_does_not_come_back_is_forgotten() {
    let mut h = Harness::new();
    let ticket = h.join_with(join("g", "c", ""));
    let id = h.join_reply(ticket).member_id;
    h.advance(10_000);
    let late = h.join_with(join("g", "c", &id));
    assert_eq!(h.join_reply(late).error, ErrorCode::UnknownMemberId);
}

#[test]
fn a_rebalance_waits_for_pending_members() {
    let mut h = Harness::new();
    let ids = h.stable("g", 1);
    let pending = h.join_with(JoinRequest { random: 99, ..join("g", "new", "") });
    let pending = h.join_reply(pending).member_id;
    let leader = h.join_with(join("g", "c0", &ids[0]));
    assert!(!h.replies.contains_key(&leader));
    let new = h.join_with(join("g", "new", &pending));
    assert_eq!(h.join_reply(new).generation_id, 2);
    assert_eq!(h.join_reply(leader).members.len(), 2);
}

#[test]
fn loading_answers_14() {
    let mut c = GroupCoordinator::new(CoordinatorConfig::default());
    c.join(Now::default(), Ticket(1), join("g", "c", ""));
    c.sync(Now::default(), Ticket(2), sync("g", "m", 1, &[]));
    let heartbeat = HeartbeatRequest { group_id: "g", generation_id: 1, member_id: "m", group_instance_id: None };
    assert_eq!(c.heartbeat(Now::default(), heartbeat), ErrorCode::None);
    assert_eq!(c.fetch_offsets("g", None), Err(ErrorCode::CoordinatorLoadInProgress));
    assert_eq!(c.list(&[], &[]), Err(ErrorCode::CoordinatorLoadInProgress));
    let mut answered = 0;
    while let Some(Effect::Reply { response, .. }) = c.poll_effect() {
        let error = match response {
            Response::Join(j) => j.error,
            Response::Sync(s) => s.error,
            other => panic!("{other:?}"),
        };
        assert_eq!(error, ErrorCode::CoordinatorLoadInProgress);
        answered += 1;
    }
    assert_eq!(answered, 2);
}
