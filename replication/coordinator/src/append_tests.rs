#![allow(clippy::unwrap_used)]

use crate::test_support::*;
use crate::*;
use model::ErrorCode;

#[test]
fn a_commit_that_cannot_be_written_is_dropped_and_answered_as_kafka_does() {
    use ErrorCode::*;
    let cases = [
        (NotEnoughReplicas, CoordinatorNotAvailable),
        (NotEnoughReplicasAfterAppend, CoordinatorNotAvailable),
        (RequestTimedOut, CoordinatorNotAvailable),
        (UnknownTopicOrPartition, CoordinatorNotAvailable),
        (NotLeaderOrFollower, NotCoordinator),
        (KafkaStorageError, NotCoordinator),
        (MessageTooLarge, UnknownServerError),
        (RecordListTooLarge, UnknownServerError),
        (InvalidRequest, InvalidRequest),
    ];
    let mut h = Harness::new();
    h.commit("g", "", -1, 1);
    h.auto = false;
    for (append, answer) in cases {
        let ticket = h.commit_with(commit("g", "", -1, 99));
        h.finish_append(Err(append));
        assert_eq!((h.commit_error(ticket), h.committed("g")), (answer, 1));
    }
}

#[test]
fn a_group_that_could_not_be_made_never_was() {
    let mut h = Harness::new();
    h.auto = false;
    let ticket = h.join_with(static_join("g", "i", "", 1));
    h.finish_append(Err(ErrorCode::NotEnoughReplicas));
    assert_eq!(h.join_reply(ticket).error, ErrorCode::CoordinatorNotAvailable);
    assert_eq!(h.c.group_count(), 0);
    assert_eq!(h.c.cx.timers.len(), 1, "only expiry is left");
}

#[test]
fn an_assignment_that_could_not_be_kept_starts_a_rebalance() {
    let mut h = Harness::new();
    let (a, first) = h.join_new("g", "a");
    let (b, _) = h.join_new("g", "b");
    h.settle();
    let generation = h.join_reply(first).generation_id;
    h.auto = false;
    let follower = h.sync_with(sync("g", &b, generation, &[]));
    let leader = h.sync_with(sync("g", &a, generation, &[&a, &b]));
    h.finish_append(Err(ErrorCode::RequestTimedOut));
    for ticket in [leader, follower] {
        assert_eq!(h.sync_reply(ticket).error, ErrorCode::CoordinatorNotAvailable);
        assert!(h.sync_reply(ticket).assignment.is_empty());
    }
    assert_eq!(h.state("g"), Some(GroupState::PreparingRebalance));
}

#[test]
fn an_assignment_that_arrives_after_the_group_moved_on_is_ignored() {
    let mut h = Harness::new();
    let (a, first) = h.join_new("g", "a");
    h.advance(3_000);
    let generation = h.join_reply(first).generation_id;
    h.auto = false;
    let sync_ticket = h.sync_with(sync("g", &a, generation, &[&a]));
    let (_, _) = h.join_new("g", "b");
    assert_eq!(h.sync_reply(sync_ticket).error, ErrorCode::RebalanceInProgress);
    h.finish_append(Ok(()));
    assert_eq!(h.state("g"), Some(GroupState::PreparingRebalance));
}

#[test]
fn a_group_that_could_not_be_deleted_is_back() {
    let mut h = Harness::new();
    h.commit("g", "", -1, 7);
    h.auto = false;
    let ticket = h.delete_groups(&["g"]);
    h.finish_append(Err(ErrorCode::NotEnoughReplicas));
    h.finish_append(Err(ErrorCode::NotEnoughReplicas));
    assert_eq!(h.delete_errors(ticket), vec![ErrorCode::CoordinatorNotAvailable]);
    assert_eq!((h.state("g"), h.committed("g")), (Some(GroupState::Empty), 7));
}

#[test]
fn resigning_answers_everything_with_16() {
    let mut h = Harness::new();
    let ids = h.stable("g", 2);
    h.auto = false;
    let join_ticket = h.join_with(join("g", "c0", &ids[0]));
    let commit_ticket = h.commit_with(commit("g", &ids[1], 1, 4));
    let delete_ticket = {
        h.commit_with(commit("other", "", -1, 4));
        h.finish_append(Ok(()));
        h.finish_append(Ok(()));
        h.delete_groups(&["other"])
    };
    assert_eq!(h.commit_error(commit_ticket), ErrorCode::None);
    h.c.resign();
    h.pump();
    assert_eq!(h.join_reply(join_ticket).error, ErrorCode::NotCoordinator);
    assert_eq!(h.delete_errors(delete_ticket), vec![ErrorCode::NotCoordinator]);
    assert_eq!((h.c.group_count(), h.c.offset_count(), h.c.next_deadline_ms()), (0, 0, None));
    assert!(h.c.is_loading());
}
