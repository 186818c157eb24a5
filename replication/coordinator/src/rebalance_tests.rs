#![allow(clippy::unwrap_used)]

use crate::test_support::*;
use crate::*;
use model::ErrorCode;

#[test]
fn the_first_to_join_leads_and_the_next_takes_over_when_it_leaves() {
    let mut h = Harness::new();
    let ids = h.stable("g", 3);
    h.leave("g", &[(&ids[0], None)]);
    let b = h.join_with(join("g", "c1", &ids[1]));
    let c = h.join_with(join("g", "c2", &ids[2]));
    let (b, c) = (h.join_reply(b), h.join_reply(c));
    assert_eq!(b.leader, c.leader);
    assert!(ids[1..].contains(&b.leader.to_string()));
    assert_eq!([&b, &c].iter().filter(|r| r.members.len() == 2).count(), 1);
}

#[test]
fn a_leader_that_does_not_rejoin_in_time_is_replaced() {
    let mut h = Harness::new();
    let ids = h.stable("g", 2);
    let protocols = vec![protocol("range", subscription(&["u"]))];
    let follower = h.join_with(JoinRequest { protocols, ..join("g", "c1", &ids[1]) });
    for _ in 0..10 {
        h.advance(3_000);
        h.heartbeat("g", &ids[0], 1);
    }
    let reply = h.join_reply(follower);
    assert_eq!(&*reply.leader, ids[1]);
    assert_eq!(reply.members.len(), 1);
    assert_eq!(h.heartbeat("g", &ids[0], 1), ErrorCode::UnknownMemberId);
}

#[test]
fn a_rebalance_that_nobody_joins_keeps_static_members_and_tries_again() {
    let mut h = Harness::new();
    let first = h.join_with(static_join("g", "i", "", 1));
    h.advance(3_000);
    let id = h.join_reply(first).member_id.to_string();
    h.sync_with(sync("g", &id, 1, &[&id]));
    // A dynamic member comes, is counted, and goes while the static one keeps silent but alive.
    let (other, _) = h.join_new("g", "c");
    h.leave("g", &[(&other, None)]);
    for _ in 0..20 {
        h.advance(3_000);
        assert_eq!(h.heartbeat("g", &id, 1), ErrorCode::RebalanceInProgress);
    }
    assert_eq!(h.state("g"), Some(GroupState::PreparingRebalance));
    let again = h.join_with(static_join("g", "i", &id, 0));
    assert_eq!(h.join_reply(again).generation_id, 2);
}

#[test]
fn a_group_that_empties_says_so_in_the_log_with_a_new_generation() {
    let mut h = Harness::new();
    let ids = h.stable("g", 1);
    let ticket = h.leave("g", &[(&ids[0], None)]);
    assert_eq!(h.leave_errors(ticket), vec![ErrorCode::None]);
    assert_eq!(h.state("g"), Some(GroupState::Empty));
    let (key, value) = h.log.last().unwrap();
    let records::Record::Group { group, value: Some(value) } = records::decode(key, value.as_deref()).unwrap() else {
        panic!("not a group record")
    };
    assert_eq!((group.as_str(), value.generation_id, value.members.len()), ("g", 2, 0));
    assert_eq!((value.protocol_type.as_str(), value.protocol_name, value.leader), ("consumer", None, None));
    assert_eq!(value.state_timestamp_ms, h.now().wall_ms);
}

#[test]
fn generations_of_a_returning_group_go_on() {
    let mut h = Harness::new();
    let ids = h.stable("g", 1);
    h.leave("g", &[(&ids[0], None)]);
    let (_, ticket) = h.join_new("g", "c");
    h.advance(3_000);
    assert_eq!(h.join_reply(ticket).generation_id, 3);
}

#[test]
fn the_last_generation_wraps_to_zero() {
    let mut h = Harness::new();
    let ids = h.stable("g", 1);
    h.c.groups.get_mut("g").unwrap().generation_id = i32::MAX;
    let ticket = h.join_with(join("g", "c0", &ids[0]));
    assert_eq!(h.join_reply(ticket).generation_id, 0);
}

#[test]
fn a_rebalance_timeout_of_zero_does_not_spin() {
    let mut h = Harness::new();
    let request = JoinRequest { rebalance_timeout_ms: 0, ..static_join("g", "i", "", 1) };
    let first = h.join_with(request.clone());
    h.advance(3_000);
    let id = h.join_reply(first).member_id.to_string();
    h.sync_with(sync("g", &id, 1, &[&id]));
    let (other, _) = h.join_new_with(JoinRequest { rebalance_timeout_ms: 0, ..join("g", "c", "") });
    h.leave("g", &[(&other, None)]);
    let mut fired = 0;
    let end = h.mono_ms + 5_000;
    while let Some(deadline) = h.c.next_deadline_ms().filter(|d| *d <= end) {
        h.mono_ms = h.mono_ms.max(deadline);
        h.c.on_timer(h.now());
        h.pump();
        fired += 1;
    }
    assert!(fired <= 60, "{fired} timers in 5 s");
}

#[test]
fn subscribed_topics_are_those_of_all_members() {
    let mut h = Harness::new();
    let with =
        |topic: &str| JoinRequest { protocols: vec![protocol("range", subscription(&[topic]))], ..join("g", "c", "") };
    h.join_new_with(with("t"));
    h.join_new_with(with("u"));
    h.settle();
    let group = &h.c.groups["g"];
    assert!(group.is_subscribed_to("t") && group.is_subscribed_to("u") && !group.is_subscribed_to("v"));
}

#[test]
fn unreadable_subscriptions_count_as_subscribed_to_everything() {
    let mut h = Harness::new();
    let protocols = vec![protocol("range", bytes::Bytes::from_static(b"\x00"))];
    h.join_new_with(JoinRequest { protocols, ..join("g", "c", "") });
    h.settle();
    assert!(h.c.groups["g"].is_subscribed_to("anything"));
}
