#![allow(clippy::unwrap_used)]

use super::*;
use crate::{Broker, Partition, Topic};

fn tp(index: i32) -> TopicPartition {
    TopicPartition::new("t", index)
}

pub(crate) fn cluster(version: u64, leader: i32, epoch: i32, partitions: usize) -> Cluster {
    let partition = Partition { leader, leader_epoch: epoch, replicas: vec![1, 2], isr: vec![1, 2], offline: vec![] };
    let topic = Topic { name: "t".into(), id: [7; 16], is_internal: false, partitions: vec![partition; partitions] };
    let broker = |id| (id, Broker { id, host: "h".into(), port: 1, rack: None });
    Cluster {
        brokers: [broker(1), broker(2)].into(),
        topics: [("t".into(), topic)].into(),
        version,
        ..Cluster::default()
    }
}

fn one(state: State) -> Positions {
    let mut positions = Positions::default();
    positions.assign([tp(0)], state);
    positions.observe(&cluster(1, 1, 3, 1));
    positions
}

#[test]
fn what_stays_assigned_keeps_its_position() {
    let mut positions = one(State::AwaitsCommitted);
    positions.seek(&tp(0), 5, -1);
    positions.assign([tp(0), tp(1)], State::AwaitsCommitted);
    assert_eq!(positions.get(&tp(0)).unwrap().offset, 5);
    assert_eq!(positions.get(&tp(1)).unwrap().state, State::AwaitsCommitted);
    positions.assign([tp(1)], State::AwaitsCommitted);
    assert!(positions.get(&tp(0)).is_none());
}

#[test]
fn a_lookup_is_asked_once_until_it_fails() {
    let mut positions = one(State::AwaitsReset(ResetTo::Earliest));
    let due = positions.due_lookups(0);
    assert_eq!(due[0].kind, LookupKind::Reset(ResetTo::Earliest));
    assert!(positions.due_lookups(0).is_empty());
    positions.lookup_failed(&due[0], 100);
    assert!(positions.due_lookups(99).is_empty());
    assert_eq!(positions.next_retry_ms(0), Some(100));
    assert_eq!(positions.due_lookups(100).len(), 1);
}

#[test]
fn committed_offsets_lead_on_or_to_the_policy() {
    let mut positions = one(State::AwaitsCommitted);
    let due = positions.due_lookups(0);
    assert!(positions.committed_found(&due[0], Some((8, -1)), AutoOffsetReset::None));
    assert_eq!((positions.get(&tp(0)).unwrap().offset, positions.get(&tp(0)).unwrap().state), (8, State::Fetching));
    let mut positions = one(State::AwaitsCommitted);
    let due = positions.due_lookups(0);
    positions.committed_found(&due[0], None, AutoOffsetReset::Latest);
    assert_eq!(positions.get(&tp(0)).unwrap().state, State::AwaitsReset(ResetTo::Latest));
    let mut positions = one(State::AwaitsCommitted);
    let due = positions.due_lookups(0);
    assert!(!positions.committed_found(&due[0], None, AutoOffsetReset::None));
    assert_eq!(positions.get(&tp(0)).unwrap().state, State::Lost);
    assert!(positions.due_lookups(0).is_empty());
}

#[test]
fn an_answer_from_before_a_seek_changes_nothing() {
    let mut positions = one(State::AwaitsReset(ResetTo::Latest));
    let due = positions.due_lookups(0);
    positions.seek(&tp(0), 3, -1);
    positions.reset_found(&due[0], 99);
    positions.lookup_failed(&due[0], 1000);
    let assigned = positions.get(&tp(0)).unwrap();
    assert_eq!((assigned.offset, assigned.state, assigned.retry_at_ms), (3, State::Fetching, 0));
}

#[test]
fn a_committed_epoch_is_validated() {
    let mut positions = one(State::AwaitsCommitted);
    let due = positions.due_lookups(0);
    positions.committed_found(&due[0], Some((8, 2)), AutoOffsetReset::None);
    let due = positions.due_lookups(0);
    assert_eq!((due[0].kind, due[0].leader, due[0].leader_epoch), (LookupKind::Validation { offset_epoch: 2 }, 1, 3));
    assert_eq!(positions.validated(&due[0], (2, 8), AutoOffsetReset::None), Validated::Fine);
    assert_eq!(positions.get(&tp(0)).unwrap().state, State::Fetching);
}

fn moved() -> (Positions, Lookup) {
    let mut positions = one(State::Fetching);
    let assigned = positions.get_mut(&tp(0)).unwrap();
    (assigned.offset, assigned.fetch_offset, assigned.offset_epoch) = (10, 20, 3);
    positions.observe(&cluster(2, 2, 4, 1));
    let assigned = positions.get(&tp(0)).unwrap();
    assert_eq!((assigned.state, assigned.fetch_offset, assigned.leader), (State::AwaitsValidation, 10, 2));
    let due = positions.due_lookups(0).remove(0);
    (positions, due)
}

#[test]
fn a_new_leader_epoch_has_to_be_validated() {
    let (mut positions, due) = moved();
    assert_eq!(due.leader_epoch, 4);
    assert_eq!(positions.validated(&due, (3, 10), AutoOffsetReset::Latest), Validated::Fine);
    let (mut positions, due) = moved();
    positions.validation_skipped(&due);
    assert_eq!(positions.get(&tp(0)).unwrap().state, State::Fetching);
}

#[test]
fn truncation_goes_back_to_where_the_logs_part() {
    let (mut positions, due) = moved();
    let found = positions.validated(&due, (2, 7), AutoOffsetReset::Latest);
    assert_eq!(found, Validated::WentBack { from: 10, to: 7 });
    let assigned = positions.get(&tp(0)).unwrap();
    assert_eq!((assigned.offset, assigned.offset_epoch, assigned.state), (7, 2, State::Fetching));
}

#[test]
fn truncation_to_an_unknown_place_resets_by_policy() {
    let (mut positions, due) = moved();
    assert_eq!(positions.validated(&due, (-1, -1), AutoOffsetReset::Earliest), Validated::Reset { from: 10 });
    assert_eq!(positions.get(&tp(0)).unwrap().state, State::AwaitsReset(ResetTo::Earliest));
}

#[test]
fn truncation_without_a_policy_is_told_and_waits_for_a_seek() {
    let (mut positions, due) = moved();
    let found = positions.validated(&due, (2, 7), AutoOffsetReset::None);
    assert_eq!(found, Validated::Lost { from: 10, diverged_at: Some(7) });
    assert_eq!(positions.get(&tp(0)).unwrap().state, State::Lost);
    assert_eq!(positions.validated(&due, (3, 10), AutoOffsetReset::None), Validated::Stale);
    assert!(positions.seek(&tp(0), 7, -1));
    assert!(positions.get(&tp(0)).unwrap().is_settled());
}

#[test]
fn a_follower_that_left_the_cluster_is_not_preferred() {
    let mut positions = one(State::Fetching);
    positions.get_mut(&tp(0)).unwrap().preferred = Some((2, i64::MAX));
    positions.observe(&cluster(2, 1, 3, 1));
    assert!(positions.get(&tp(0)).unwrap().preferred.is_some());
    let mut without = cluster(3, 1, 3, 1);
    without.brokers.remove(&2);
    positions.observe(&without);
    assert_eq!(positions.get(&tp(0)).unwrap().preferred, None);
}

#[test]
fn an_old_epoch_in_the_metadata_is_not_believed() {
    let mut positions = one(State::Fetching);
    positions.observe(&cluster(2, 2, 1, 1));
    assert_eq!(positions.get(&tp(0)).unwrap().leader_epoch, 3);
}

#[test]
fn a_leader_that_is_not_known_is_noticed() {
    let mut positions = one(State::Fetching);
    assert!(!positions.observe(&cluster(1, 1, 3, 1)));
    assert!(positions.observe(&cluster(2, 9, 3, 1)));
    assert_eq!(positions.get(&tp(0)).unwrap().leader, -1);
}

#[test]
fn a_topic_made_anew_begins_with_its_own_epochs() {
    let mut positions = one(State::Fetching);
    let assigned = positions.get_mut(&tp(0)).unwrap();
    (assigned.offset, assigned.fetch_offset, assigned.offset_epoch) = (10, 20, 3);
    let generation = assigned.generation;
    let mut anew = cluster(2, 1, 0, 1);
    anew.topics.get_mut("t").unwrap().id = [8; 16];
    positions.observe(&anew);
    let assigned = positions.get(&tp(0)).unwrap();
    assert_eq!((assigned.leader_epoch, assigned.offset_epoch, assigned.topic_id), (0, -1, [8; 16]));
    assert_eq!((assigned.state, assigned.fetch_offset), (State::Fetching, 10));
    assert!(assigned.generation > generation);
}
