#![allow(clippy::unwrap_used)]

use std::borrow::Cow;

use wire::generated::offset_commit::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use wire::generated::offset_fetch::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartitions, OffsetFetchResponseTopics,
};
use wire::{Encode, Writer};

use super::super::config::ConsumerConfig;
use super::*;

fn tp(index: i32) -> TopicPartition {
    TopicPartition::new("t", index)
}

fn offsets(of: &[(i32, i64)]) -> Offsets {
    of.iter().map(|(index, offset)| (tp(*index), OffsetAndMetadata::new(*offset))).collect()
}

fn error(code: ErrorCode) -> ClientError {
    ClientError::Broker { code, what: "test".into(), message: None }
}

fn me(generation: i32) -> Committer {
    (generation, "m".to_string())
}

fn commit(generation: i32, of: &[(i32, i64)]) -> Commit {
    Commit { committer: me(generation), offsets: offsets(of) }
}

#[test]
fn of_commits_that_wait_the_latest_offset_wins() {
    let mut state = CommitState::new(5000, 0);
    state.push(me(1), offsets(&[(0, 1)]));
    assert_eq!(state.begin_waiting(), Some(commit(1, &[(0, 1)])));
    state.push(me(1), offsets(&[(0, 2), (1, 7)]));
    state.push(me(1), offsets(&[(0, 3)]));
    assert_eq!(state.begin_waiting(), None, "one at a time");
    assert!(!state.is_idle());
    state.end(Ok(()));
    assert_eq!(state.begin_waiting(), Some(commit(1, &[(0, 3), (1, 7)])));
    state.end(Err(error(ErrorCode::RebalanceInProgress)));
    assert!(state.is_idle());
    assert_eq!(state.take_error().and_then(|error| error.code()), Some(ErrorCode::RebalanceInProgress));
    assert_eq!(state.take_error(), None);
}

#[test]
fn a_synchronous_commit_takes_what_waits_with_it_and_wins() {
    let mut state = CommitState::new(5000, 0);
    state.push(me(1), offsets(&[(0, 9), (1, 7)]));
    assert_eq!(state.begin(&me(1), &offsets(&[(0, 4)])), Some(commit(1, &[(0, 4), (1, 7)])));
    assert_eq!(state.begin(&me(1), &offsets(&[(0, 5)])), None);
}

#[test]
fn what_waits_from_an_older_generation_is_not_carried_into_a_new_one() {
    let mut state = CommitState::new(5000, 0);
    state.push(me(1), offsets(&[(0, 9)]));
    state.push(me(2), offsets(&[(1, 7)]));
    assert_eq!(state.take_error(), Some(outlived()));
    assert_eq!(state.begin(&me(3), &offsets(&[(2, 4)])), Some(commit(3, &[(2, 4)])));
    assert_eq!(state.take_error(), Some(outlived()));
    state.end(Ok(()));
    assert!(state.is_idle());
}

#[test]
fn an_answer_that_leaves_a_partition_out_is_not_one_without_offsets() {
    let found = |index| (tp(index), Ok(Some(OffsetAndMetadata::new(5))));
    assert_eq!(offsets_of([found(0), (tp(1), Ok(None))].into(), &[tp(0), tp(1)]), Ok(Some(offsets(&[(0, 5)]))));
    assert_eq!(offsets_of([found(0)].into(), &[tp(0), tp(1)]), Ok(None));
    let failed = (tp(1), Err(error(ErrorCode::GroupAuthorizationFailed)));
    assert!(offsets_of([found(0), failed].into(), &[tp(0), tp(1)]).is_err());
}

#[test]
fn automatic_commits_come_by_interval_and_only_when_something_moved() {
    let mut state = CommitState::new(5000, 0);
    assert!(!state.auto_due(4999));
    assert!(state.auto_due(5000));
    assert!(!state.auto_due(5001));
    assert_eq!(state.next_auto_ms(), 10_000);
    assert!(state.auto_changed(&offsets(&[(0, 1)])));
    assert!(!state.auto_changed(&offsets(&[(0, 1)])));
    state.auto_failed();
    assert!(state.auto_changed(&offsets(&[(0, 1)])));
    assert!(!state.auto_changed(&Offsets::new()));
}

#[test]
fn only_what_was_given_out_counts_as_consumed() {
    let mut fetcher = Fetcher::new(ConsumerConfig { group_id: Some("g".into()), ..Default::default() }, 100);
    fetcher.assign([tp(0), tp(1)]);
    fetcher.positions.seek(&tp(0), 5, -1);
    fetcher.positions.get_mut(&tp(0)).unwrap().fetch_offset = 50;
    fetcher.positions.get_mut(&tp(0)).unwrap().offset_epoch = 3;
    let expected = OffsetAndMetadata { leader_epoch: 3, ..OffsetAndMetadata::new(5) };
    assert_eq!(consumed(&fetcher), [(tp(0), expected)].into());
}

fn answer(codes: &[i16]) -> OffsetCommitResponse<'static> {
    let partition = |(index, code): (usize, &i16)| OffsetCommitResponsePartition {
        partition_index: index as i32,
        error_code: *code,
    };
    let topic = OffsetCommitResponseTopic {
        name: Cow::Borrowed("t"),
        partitions: codes.iter().enumerate().map(partition).collect(),
        ..Default::default()
    };
    OffsetCommitResponse { topics: vec![topic], ..Default::default() }
}

#[test]
fn the_worst_of_a_commits_errors_decides() {
    assert_eq!(commit_outcome(&answer(&[0, 0])), Ok(()));
    assert_eq!(commit_outcome(&answer(&[16, 22, 0])).unwrap_err().code(), Some(ErrorCode::IllegalGeneration));
    assert_eq!(commit_outcome(&answer(&[0, 14])).unwrap_err().code(), Some(ErrorCode::CoordinatorLoadInProgress));
    let text = commit_outcome(&answer(&[0, 12])).unwrap_err().to_string();
    assert!(text.contains("partition 1 of t"), "{text}");
}

#[test]
fn fates_of_commits() {
    use ErrorCode::*;
    for code in [NotCoordinator, CoordinatorNotAvailable] {
        assert_eq!(commit_fate(&error(code)), CommitFate::RetryElsewhere);
    }
    assert_eq!(commit_fate(&ClientError::TimedOut { what: "x", after_ms: 1 }), CommitFate::RetryElsewhere);
    for code in [CoordinatorLoadInProgress, UnstableOffsetCommit, UnknownTopicOrPartition] {
        assert_eq!(commit_fate(&error(code)), CommitFate::Retry);
    }
    for code in [RebalanceInProgress, IllegalGeneration, UnknownMemberId, FencedInstanceId, OffsetMetadataTooLarge] {
        assert_eq!(commit_fate(&error(code)), CommitFate::Failed);
    }
}

#[test]
fn requests_encode_at_every_version_they_are_for() {
    let commit = commit(4, &[(0, 1), (2, 3)]);
    let request = commit_request("g", None, &commit);
    assert_eq!(request.topics[0].partitions.len(), 2);
    for version in COMMIT_VERSIONS {
        request.encode(&mut Writer::new(), version).unwrap();
    }
    let partitions = [tp(0), tp(2)];
    for version in FETCH_VERSIONS {
        fetch_request("g", &partitions, false, true).encode(&mut Writer::new(), version).unwrap();
    }
    for version in OLD_FETCH_VERSIONS {
        fetch_request("g", &partitions, true, false).encode(&mut Writer::new(), version).unwrap();
    }
}

#[test]
fn committed_offsets_are_read_and_their_absence_too() {
    let partition = |index, offset, code| OffsetFetchResponsePartitions {
        partition_index: index,
        committed_offset: offset,
        committed_leader_epoch: 2,
        error_code: code,
        ..Default::default()
    };
    let topic = OffsetFetchResponseTopics {
        name: Cow::Borrowed("t"),
        partitions: vec![partition(0, 5, 0), partition(1, -1, 0), partition(2, -1, 88)],
        ..Default::default()
    };
    let group = OffsetFetchResponseGroup { topics: vec![topic], ..Default::default() };
    let answer = OffsetFetchResponse { groups: vec![group], ..Default::default() };
    let fetched = fetch_outcome(&answer).unwrap();
    assert_eq!(fetched[&tp(0)].clone().unwrap().unwrap().offset, 5);
    assert_eq!(fetched[&tp(1)], Ok(None));
    assert_eq!(commit_fate(fetched[&tp(2)].as_ref().unwrap_err()), CommitFate::Retry);
}
