#![allow(clippy::unwrap_used)]

use crate::test_support::*;
use crate::*;
use model::ErrorCode;

use model::TopicId;

const HOUR_MS: i64 = 3_600_000;

fn short_retention() -> CoordinatorConfig {
    CoordinatorConfig { offsets_retention_ms: HOUR_MS, ..CoordinatorConfig::default() }
}

#[test]
fn offsets_of_a_simple_group_expire_after_their_commit_and_the_group_with_them() {
    let mut h = Harness::with(short_retention());
    h.commit("g", "", -1, 1);
    h.advance(HOUR_MS - 1);
    assert_eq!(h.committed("g"), 1);
    h.advance(600_000);
    for h in [&h, &h.restarted()] {
        assert_eq!((h.committed("g"), h.state("g")), (-1, None));
    }
}

#[test]
fn offsets_of_an_empty_group_expire_from_when_it_became_empty() {
    let mut h = Harness::with(short_retention());
    let ids = h.stable("g", 1);
    h.commit("g", &ids[0], 1, 1);
    for _ in 0..400 {
        h.advance(9_000);
        h.heartbeat("g", &ids[0], 1);
    }
    assert!(h.mono_ms > HOUR_MS, "the commit is old");
    h.leave("g", &[(&ids[0], None)]);
    h.advance(HOUR_MS - 600_000);
    assert_eq!(h.committed("g"), 1);
    h.advance(1_300_000);
    assert_eq!((h.committed("g"), h.state("g")), (-1, None));
}

#[test]
fn an_active_group_loses_only_topics_that_it_does_not_read() {
    let mut h = Harness::with(short_retention());
    let ids = h.stable("g", 1);
    h.commit("g", &ids[0], 1, 1);
    h.commit_with(commit_topic("g", &ids[0], 1, "other", TopicId::ZERO, &[(0, 2)]));
    for _ in 0..600 {
        h.advance(9_000);
        h.heartbeat("g", &ids[0], 1);
    }
    assert_eq!((h.committed("g"), h.c.offset_count()), (1, 1));
    assert_eq!(h.state("g"), Some(GroupState::Stable));
}

#[test]
fn a_retention_asked_for_by_an_old_client_counts() {
    let mut h = Harness::new();
    let request = CommitRequest { retention_time_ms: 1000, ..commit("g", "", -1, 1) };
    h.commit_with(request);
    h.advance(600_000);
    assert_eq!(h.committed("g"), -1);
}

#[test]
fn a_partition_that_is_just_being_committed_does_not_expire() {
    let mut h = Harness::with(short_retention());
    h.commit("g", "", -1, 1);
    h.advance(HOUR_MS - 1);
    h.auto = false;
    h.commit_with(commit("g", "", -1, 2));
    h.advance(600_000);
    assert_eq!(h.appends.len(), 1, "no tombstone");
    h.finish_append(Ok(()));
    assert_eq!(h.committed("g"), 2);
}

#[test]
fn a_wall_clock_that_goes_back_expires_nothing() {
    let mut h = Harness::with(short_retention());
    h.commit("g", "", -1, 1);
    let now = Now { monotonic_ms: 10 * HOUR_MS, wall_ms: WALL_START_MS - 10 * HOUR_MS };
    h.c.on_timer(now);
    h.pump();
    assert_eq!(h.committed("g"), 1);
}

#[test]
fn the_check_runs_in_slices() {
    let mut h = Harness::with(short_retention());
    for i in 0..3 * limits::EXPIRY_VISITS_PER_SLICE / 2 {
        let ticket = h.ticket();
        h.c.commit(h.now(), ticket, commit(&format!("g{i}"), "", -1, 1));
        while let Some(effect) = h.c.poll_effect() {
            if let Effect::Append { append_id, .. } = effect {
                h.c.append_done(h.now(), append_id, Ok(()));
            }
        }
    }
    let total = h.c.group_count();
    h.mono_ms = 2 * HOUR_MS;
    h.c.on_timer(h.now());
    h.pump();
    let after_one = h.c.group_count();
    assert!(after_one > 0 && after_one < total, "{after_one} of {total}");
    assert_eq!(h.c.next_deadline_ms(), Some(h.mono_ms + 1));
    h.advance(10);
    assert_eq!(h.c.group_count(), 0);
}

#[test]
fn sessions_end_in_every_state() {
    // Preparing: one that does not come back ends the wait of the others before the rebalance timeout.
    let mut h = Harness::new();
    let ids = h.stable("g", 2);
    let leader = h.join_with(join("g", "c0", &ids[0]));
    h.advance(10_000);
    assert_eq!(h.join_reply(leader).members.len(), 1);
    // Completing: the leader itself falls silent.
    h.advance(10_000);
    assert_eq!(h.state("g"), Some(GroupState::Empty));
}

#[test]
fn a_member_that_waits_is_alive_without_heartbeats() {
    let mut h = Harness::new();
    let long = JoinRequest { rebalance_timeout_ms: 200_000, ..join("g", "c", "") };
    let (a, first) = h.join_new_with(long.clone());
    let (b, _) = h.join_new_with(long);
    h.advance(6_000);
    let generation = h.join_reply(first).generation_id;
    let waiting = h.sync_with(sync("g", &b, generation, &[]));
    for _ in 0..15 {
        h.advance(5_000);
        assert_eq!(h.heartbeat("g", &a, generation), ErrorCode::None);
    }
    h.sync_with(sync("g", &a, generation, &[&a, &b]));
    assert_eq!(h.sync_reply(waiting).error, ErrorCode::None);
    h.advance(9_999);
    assert_eq!(h.state("g"), Some(GroupState::Stable));
}

#[test]
fn a_new_member_is_given_five_minutes_even_if_the_rebalance_takes_longer() {
    let mut h = Harness::new();
    let slow = |client: &str| JoinRequest { rebalance_timeout_ms: 1_000_000, ..join("g", client, "") };
    let (old, first) = h.join_new_with(slow("old"));
    h.advance(3_000);
    let generation = h.join_reply(first).generation_id;
    h.sync_with(sync("g", &old, generation, &[&old]));
    let (_, new) = h.join_new_with(slow("new"));
    for _ in 0..60 {
        h.advance(5_000);
        h.heartbeat("g", &old, generation);
    }
    assert_eq!(h.join_reply(new).error, ErrorCode::UnknownMemberId);
}
