#![allow(clippy::unwrap_used)]

use crate::test_support::*;
use crate::*;
use model::ErrorCode;

#[test]
fn a_stable_group_comes_back_with_fresh_sessions() {
    let mut h = Harness::new();
    let ids = h.stable("g", 2);
    h.commit("g", &ids[0], 1, 5);
    let before = h.c.describe("g").unwrap();
    let mut h = h.restarted();
    assert_eq!(h.c.describe("g").unwrap(), before);
    assert_eq!(h.committed("g"), 5);
    h.advance(9_999);
    assert_eq!(h.heartbeat("g", &ids[0], 1), ErrorCode::None);
    h.advance(1);
    assert_eq!(h.heartbeat("g", &ids[0], 1), ErrorCode::RebalanceInProgress, "the other did not come back");
}

#[test]
fn the_leader_is_remembered() {
    let mut h = Harness::new();
    let ids = h.stable("g", 3);
    let h2 = h.restarted();
    assert!(h2.c.groups["g"].is_leader(&ids[0]));
    h = h2;
    let follower = h.join_with(join("g", "c1", &ids[1]));
    assert_eq!(&*h.join_reply(follower).leader, ids[0]);
}

#[test]
fn static_members_are_remembered() {
    let mut h = Harness::new();
    let first = h.join_with(static_join("g", "i", "", 1));
    h.advance(3_000);
    let id = h.join_reply(first).member_id.to_string();
    h.sync_with(sync("g", &id, 1, &[&id]));
    let mut h = h.restarted();
    let again = h.join_with(static_join("g", "i", "", 2));
    assert_eq!(h.join_reply(again).generation_id, 1, "no rebalance");
}

#[test]
fn a_rebalance_under_way_is_not_in_the_log_and_members_join_again() {
    let mut h = Harness::new();
    let ids = h.stable("g", 2);
    h.join_with(join("g", "c0", &ids[0]));
    assert_eq!(h.state("g"), Some(GroupState::PreparingRebalance));
    let mut h = h.restarted();
    assert_eq!(h.state("g"), Some(GroupState::Stable));
    assert_eq!(h.heartbeat("g", &ids[1], 1), ErrorCode::None);
}

#[test]
fn a_group_made_by_its_first_join_exists_after_a_restart() {
    let mut h = Harness::new();
    h.join_with(join("g", "c", ""));
    let h = h.restarted();
    assert_eq!(h.state("g"), Some(GroupState::Empty));
}

#[test]
fn a_group_over_its_size_shrinks_to_those_who_come_back_first() {
    let mut h = Harness::new();
    let ids = h.stable("g", 3);
    let config = CoordinatorConfig { group_max_size: 2, ..CoordinatorConfig::default() };
    let mut h = Harness::load(config, h.log.clone(), h.mono_ms);
    assert_eq!(h.state("g"), Some(GroupState::PreparingRebalance));
    let first = h.join_with(join("g", "c0", &ids[0]));
    h.join_with(join("g", "c1", &ids[1]));
    let third = h.join_with(join("g", "c2", &ids[2]));
    assert_eq!(h.join_reply(third).error, ErrorCode::GroupMaxSizeReached);
    h.advance(30_000);
    assert_eq!(h.join_reply(first).members.len(), 2);
}

#[test]
fn what_is_not_understood_is_skipped_and_counted() {
    let mut c = GroupCoordinator::new(CoordinatorConfig::default());
    assert_eq!(c.replay(&[0, 3, 0, 1, b'g'], Some(&[0, 0])), Ok(Replayed::Skipped));
    assert_eq!(c.replay(&[0, 9], None), Ok(Replayed::Skipped));
    assert_eq!(c.skipped_records(), 2);
    assert_eq!(c.replay(&[], None), Err(RecordError::MissingKey));
    assert_eq!(c.replay(&[0], None), Err(RecordError::Truncated));
    assert_eq!(c.group_count(), 0);
}

#[test]
fn a_damaged_record_leaves_the_state_as_it_was() {
    let mut h = Harness::new();
    h.stable("g", 2);
    let (key, value) = h.log.last().unwrap().clone();
    let value = value.unwrap();
    let mut c = GroupCoordinator::new(CoordinatorConfig::default());
    c.replay(&key, Some(&value)).unwrap();
    for cut in 0..value.len() {
        assert!(c.replay(&key, Some(&value[..cut])).is_err(), "cut at {cut}");
    }
    c.finish_loading(h.now());
    assert_eq!(c.describe("g").unwrap().unwrap().members.len(), 2);
}

#[test]
fn a_simple_group_without_offsets_goes_at_the_next_check() {
    let mut h = Harness::new();
    h.commit("g", "", -1, 1);
    h.delete_offsets("g", &[("t", &[0])]);
    let empty = Some(GroupState::Empty);
    assert_eq!((h.state("g"), h.restarted().state("g")), (empty, empty));
    h.advance(600_000);
    assert_eq!((h.state("g"), h.restarted().state("g")), (None, None));
}
