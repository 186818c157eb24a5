#![allow(clippy::unwrap_used)]

use crate::test_support::*;
use crate::*;
use model::ErrorCode;

#[test]
fn heartbeats_keep_a_session_alive() {
    let mut h = Harness::new();
    let ids = h.stable("g", 1);
    for _ in 0..20 {
        h.advance(9_000);
        assert_eq!(h.heartbeat("g", &ids[0], 1), ErrorCode::None);
    }
    h.advance(9_999);
    assert_eq!(h.state("g"), Some(GroupState::Stable));
    h.advance(1);
    assert_eq!(h.state("g"), Some(GroupState::Empty));
    assert_eq!(h.heartbeat("g", &ids[0], 1), ErrorCode::UnknownMemberId);
}

#[test]
fn refusals_have_their_codes() {
    let mut h = Harness::new();
    let ids = h.stable("g", 2);
    assert_eq!(h.heartbeat("", "m", 1), ErrorCode::InvalidGroupId);
    assert_eq!(h.heartbeat("nowhere", "m", 1), ErrorCode::UnknownMemberId);
    assert_eq!(h.heartbeat("g", "m", 1), ErrorCode::UnknownMemberId);
    assert_eq!(h.heartbeat("g", &ids[0], 0), ErrorCode::IllegalGeneration);
    let unknown_instance =
        HeartbeatRequest { group_id: "g", generation_id: 1, member_id: &ids[0], group_instance_id: Some("i") };
    assert_eq!(h.c.heartbeat(h.now(), unknown_instance), ErrorCode::UnknownMemberId);
    h.join_with(join("g", "c0", &ids[0]));
    assert_eq!(h.heartbeat("g", &ids[1], 1), ErrorCode::RebalanceInProgress);
}

#[test]
fn a_heartbeat_touches_no_timer() {
    let mut h = Harness::new();
    let ids = h.stable("g", 1);
    let (timers, first) = (h.c.cx.timers.len(), h.c.next_deadline_ms());
    h.mono_ms += 100;
    for _ in 0..1000 {
        h.heartbeat("g", &ids[0], 1);
    }
    assert_eq!((h.c.cx.timers.len(), h.c.next_deadline_ms()), (timers, first));
}

#[test]
fn heartbeats_while_completing_are_fine() {
    let mut h = Harness::new();
    let (id, _) = h.join_new("g", "c");
    h.advance(3_000);
    assert_eq!(h.heartbeat("g", &id, 1), ErrorCode::None);
}
