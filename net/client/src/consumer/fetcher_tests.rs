#![allow(clippy::unwrap_used)]

use model::Offset;
use model::builder::BatchBuilder;
use wire::Records;
use wire::generated::fetch::FetchableTopicResponse;

use super::super::config::AutoOffsetReset;
use super::super::positions::tests::cluster;
use super::*;

fn tp(index: i32) -> TopicPartition {
    TopicPartition::new("t", index)
}

fn batch(base: i64, count: i64) -> Vec<u8> {
    let mut batch = BatchBuilder::new().base_offset(Offset(base));
    for at in base..base + count {
        batch = batch.record(1, None, Some(at.to_string().as_bytes()));
    }
    batch.finish()
}

fn data(index: i32, records: Vec<u8>) -> PartitionData {
    PartitionData {
        partition_index: index,
        high_watermark: 100,
        last_stable_offset: 90,
        log_start_offset: 0,
        records: Records::from(Bytes::from(records)),
        ..PartitionData::default()
    }
}

fn failed(index: i32, code: ErrorCode) -> PartitionData {
    PartitionData { error_code: code.code(), ..data(index, vec![]) }
}

fn answer(partitions: Vec<PartitionData>) -> FetchResponse<'static> {
    FetchResponse {
        session_id: 9,
        responses: vec![FetchableTopicResponse { topic_id: [7; 16], partitions, ..Default::default() }],
        ..FetchResponse::default()
    }
}

fn with(config: ConsumerConfig, partitions: i32) -> Fetcher {
    let mut fetcher = Fetcher::new(config, 100);
    fetcher.assign((0..partitions).map(tp));
    fetcher.observe(&cluster(1, 1, 3, 4));
    for index in 0..partitions {
        fetcher.positions.seek(&tp(index), 0, -1);
    }
    fetcher
}

fn fetcher(partitions: i32) -> Fetcher {
    with(ConsumerConfig::default(), partitions)
}

/// Sends what is due to node 1 and gives it `partitions` as the answer.
fn fetch(fetcher: &mut Fetcher, partitions: Vec<PartitionData>, now_ms: i64) -> bool {
    fetcher.plan(1, 17, now_ms).unwrap();
    fetcher.answered(1, &answer(partitions), now_ms)
}

fn offsets(records: &[ConsumerRecord]) -> Vec<(i32, i64)> {
    records.iter().map(|record| (record.partition, record.offset)).collect()
}

#[test]
fn one_request_per_node_names_all_its_partitions() {
    let mut fetcher = fetcher(3);
    assert_eq!(fetcher.wanted_nodes(0), BTreeSet::from([1]));
    assert_eq!(fetcher.plan(1, 17, 0).unwrap().counts(), (3, 0));
    assert!(fetcher.wanted_nodes(0).is_empty(), "one is under way");
}

#[test]
fn reading_ahead_goes_on_behind_what_came() {
    let mut fetcher = fetcher(1);
    fetch(&mut fetcher, vec![data(0, batch(0, 3))], 0);
    assert_eq!(fetcher.positions.get(&tp(0)).unwrap().offset, 0);
    assert_eq!(fetcher.positions.get(&tp(0)).unwrap().fetch_offset, 3);
    fetch(&mut fetcher, vec![data(0, batch(3, 2))], 0);
    let records = fetcher.take_records(10, 0);
    assert_eq!(offsets(&records), [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4)]);
    assert_eq!((fetcher.positions.get(&tp(0)).unwrap().offset, fetcher.queued_bytes()), (5, 0));
    assert_eq!(fetcher.positions.get(&tp(0)).unwrap().high_watermark, 100);
}

#[test]
fn read_ahead_is_bounded() {
    let mut fetcher = fetcher(1);
    let value = vec![0u8; limits::READ_AHEAD_BYTES];
    fetch(&mut fetcher, vec![data(0, BatchBuilder::new().record(1, None, Some(&value)).finish())], 0);
    assert!(fetcher.wanted_nodes(0).is_empty());
    fetcher.take_records(1, 0);
    assert_eq!(fetcher.wanted_nodes(0), BTreeSet::from([1]));
}

#[test]
fn a_poll_gives_at_most_what_it_is_asked_for() {
    let mut fetcher = fetcher(2);
    fetch(&mut fetcher, vec![data(0, batch(0, 3)), data(1, batch(0, 3))], 0);
    assert_eq!(offsets(&fetcher.take_records(2, 0)), [(0, 0), (0, 1)]);
    assert_eq!(fetcher.positions.get(&tp(0)).unwrap().offset, 2);
    assert_eq!(offsets(&fetcher.take_records(2, 0)), [(0, 2), (1, 0)]);
    assert_eq!(offsets(&fetcher.take_records(9, 0)), [(1, 1), (1, 2)]);
    assert!(fetcher.take_records(9, 0).is_empty());
}

#[test]
fn a_pause_drops_nothing_and_lets_others_by() {
    let mut fetcher = fetcher(2);
    fetch(&mut fetcher, vec![data(0, batch(0, 2)), data(1, batch(0, 1))], 0);
    fetcher.pause(&tp(0), true);
    assert_eq!(offsets(&fetcher.take_records(9, 0)), [(1, 0)]);
    assert_eq!(fetcher.plan(1, 17, 0).unwrap().counts(), (1, 1), "a paused partition is not fetched");
    fetcher.answered(1, &answer(vec![]), 0);
    fetcher.pause(&tp(0), false);
    assert_eq!(offsets(&fetcher.take_records(9, 0)), [(0, 0), (0, 1)]);
}

#[test]
fn a_seek_drops_what_was_read_ahead_and_what_is_under_way() {
    let mut fetcher = fetcher(1);
    fetch(&mut fetcher, vec![data(0, batch(0, 2))], 0);
    fetcher.plan(1, 17, 0).unwrap();
    fetcher.positions.seek(&tp(0), 50, -1);
    fetcher.answered(1, &answer(vec![data(0, batch(2, 2))]), 0);
    assert!(fetcher.take_records(9, 0).is_empty());
    assert_eq!((fetcher.positions.get(&tp(0)).unwrap().offset, fetcher.queued_bytes()), (50, 0));
    assert_eq!(fetcher.plan(1, 17, 0).unwrap().counts(), (1, 0));
}

#[test]
fn out_of_range_follows_the_policy() {
    for (policy, state) in [
        (AutoOffsetReset::Earliest, State::AwaitsReset(ResetTo::Earliest)),
        (AutoOffsetReset::Latest, State::AwaitsReset(ResetTo::Latest)),
        (AutoOffsetReset::None, State::Fetching),
    ] {
        let mut fetcher = with(ConsumerConfig { auto_offset_reset: policy, ..ConsumerConfig::default() }, 1);
        fetch(&mut fetcher, vec![failed(0, ErrorCode::OffsetOutOfRange)], 0);
        assert_eq!(fetcher.positions.get(&tp(0)).unwrap().state, state);
        let fault = fetcher.take_fault();
        assert_eq!(fault.as_ref().and_then(ClientError::code).is_some(), policy == AutoOffsetReset::None, "{fault:?}");
    }
}

#[test]
fn out_of_range_waits_for_what_lies_read_ahead() {
    let mut fetcher = with(ConsumerConfig { auto_offset_reset: AutoOffsetReset::Earliest, ..Default::default() }, 1);
    fetch(&mut fetcher, vec![data(0, batch(0, 2))], 0);
    fetch(&mut fetcher, vec![failed(0, ErrorCode::OffsetOutOfRange)], 0);
    assert!(fetcher.wanted_nodes(1000).is_empty());
    assert_eq!(fetcher.take_records(9, 0).len(), 2);
    fetch(&mut fetcher, vec![failed(0, ErrorCode::OffsetOutOfRange)], 1000);
    assert_eq!(fetcher.positions.get(&tp(0)).unwrap().state, State::AwaitsReset(ResetTo::Earliest));
}

#[test]
fn a_moved_leader_is_looked_for_and_the_partition_waits() {
    for code in [ErrorCode::NotLeaderOrFollower, ErrorCode::FencedLeaderEpoch, ErrorCode::UnknownTopicId] {
        let mut fetcher = fetcher(1);
        assert!(fetch(&mut fetcher, vec![failed(0, code)], 0), "{code:?}");
        assert!(fetcher.wanted_nodes(99).is_empty());
        assert_eq!(fetcher.wanted_nodes(100).len(), 1);
        assert_eq!(fetcher.take_fault(), None);
    }
}

#[test]
fn what_no_retry_mends_is_told_once() {
    let mut fetcher = fetcher(1);
    fetch(&mut fetcher, vec![failed(0, ErrorCode::TopicAuthorizationFailed)], 0);
    assert_eq!(fetcher.take_fault().unwrap().code(), Some(ErrorCode::TopicAuthorizationFailed));
    assert_eq!(fetcher.take_fault(), None);
}

#[test]
fn a_damaged_batch_is_told_and_others_go_on() {
    let mut fetcher = fetcher(2);
    let mut bad = [batch(0, 2), batch(2, 1)].concat();
    *bad.last_mut().unwrap() ^= 1;
    fetch(&mut fetcher, vec![data(0, bad), data(1, batch(0, 2))], 0);
    assert_eq!(offsets(&fetcher.take_records(9, 0)), [(0, 0), (0, 1), (1, 0), (1, 1)]);
    let text = fetcher.take_fault().unwrap().to_string();
    assert!(text.contains("partition 0 of t at offset 2"), "{text}");
    let assigned = fetcher.positions.get(&tp(0)).unwrap();
    assert_eq!((assigned.offset, assigned.fetch_offset, assigned.retry_at_ms), (2, 2, 100));
}

#[test]
fn an_answer_that_is_no_batch_is_told_and_asked_for_again_later() {
    let mut fetcher = fetcher(1);
    fetch(&mut fetcher, vec![data(0, vec![1; 30])], 0);
    assert!(fetcher.wanted_nodes(0).is_empty(), "held until it is read");
    assert!(fetcher.take_records(9, 0).is_empty());
    assert!(fetcher.take_fault().is_some());
    assert!(fetcher.wanted_nodes(0).is_empty());
    assert_eq!(fetcher.wanted_nodes(100).len(), 1);
}

#[test]
fn session_errors_begin_again() {
    let cases = [
        (ErrorCode::FetchSessionIdNotFound, 0, false),
        (ErrorCode::InvalidFetchSessionEpoch, 9, false),
        (ErrorCode::FetchSessionTopicIdError, 9, true),
    ];
    for (code, session_id, is_stale) in cases {
        let mut fetcher = fetcher(1);
        fetch(&mut fetcher, vec![], 0);
        fetcher.plan(1, 17, 0).unwrap();
        let error = FetchResponse { error_code: code.code(), ..FetchResponse::default() };
        assert_eq!(fetcher.answered(1, &error, 0), is_stale);
        let again = fetcher.plan(1, 17, 200).unwrap();
        assert_eq!((again.session_id, again.session_epoch, again.counts()), (session_id, 0, (1, 0)), "{code:?}");
    }
}

#[test]
fn a_broken_connection_begins_again_after_a_while() {
    let mut fetcher = fetcher(1);
    fetcher.plan(1, 17, 0).unwrap();
    let broken = ClientError::Disconnected { node: 1, reason: "test".into() };
    fetcher.failed(1, &broken, 0);
    assert_eq!(fetcher.take_fault(), None);
    assert!(fetcher.wanted_nodes(99).is_empty());
    assert_eq!(fetcher.next_retry_ms(0), Some(100));
    assert_eq!(fetcher.plan(1, 17, 100).unwrap().session_epoch, 0);
    fetcher.failed(1, &ClientError::BadAnswer { reason: "test".into() }, 100);
    assert!(fetcher.take_fault().is_some());
}

#[test]
fn a_follower_named_by_the_leader_is_fetched_from() {
    let mut fetcher = fetcher(1);
    let named = PartitionData { preferred_read_replica: 2, ..data(0, vec![]) };
    fetch(&mut fetcher, vec![named], 0);
    assert_eq!(fetcher.wanted_nodes(1), BTreeSet::from([2]));
    assert_eq!(fetcher.wanted_nodes(limits::PREFERRED_REPLICA_MS), BTreeSet::from([1]));
    fetcher.plan(2, 17, 1).unwrap();
    fetcher.answered(2, &answer(vec![failed(0, ErrorCode::OffsetOutOfRange)]), 1);
    assert_eq!(fetcher.wanted_nodes(200), BTreeSet::from([1]), "a follower behind its leader is left");
    assert_eq!(fetcher.positions.get(&tp(0)).unwrap().state, State::Fetching);
}

#[test]
fn a_new_leader_epoch_drops_what_was_read_ahead() {
    let mut fetcher = fetcher(1);
    fetcher.positions.get_mut(&tp(0)).unwrap().offset_epoch = 3;
    fetch(&mut fetcher, vec![data(0, batch(0, 2))], 0);
    fetcher.observe(&cluster(2, 2, 4, 4));
    assert!(fetcher.take_records(9, 0).is_empty());
    let assigned = fetcher.positions.get(&tp(0)).unwrap();
    assert_eq!((assigned.state, assigned.fetch_offset), (State::AwaitsValidation, 0));
}

#[test]
fn whole_batches_are_counted_and_can_be_walked() {
    let mut fetcher = fetcher(1);
    let bytes = [batch(0, 3), batch(3, 2)].concat();
    let len = bytes.len();
    fetch(&mut fetcher, vec![data(0, bytes)], 0);
    let taken = fetcher.take_batches(0).remove(0);
    assert_eq!((taken.record_count, taken.bytes, taken.first_offset, taken.last_offset), (5, len, 0, 4));
    assert_eq!(taken.max_timestamp_ms, 1);
    let walked: Vec<i64> = taken.iter().map(|record| record.unwrap().offset).collect();
    assert_eq!(walked, [0, 1, 2, 3, 4]);
    assert_eq!(fetcher.positions.get(&tp(0)).unwrap().offset, 5);
}

#[test]
fn whole_batches_end_before_a_damaged_one() {
    let mut fetcher = fetcher(1);
    let mut bad = [batch(0, 2), batch(2, 1)].concat();
    *bad.last_mut().unwrap() ^= 1;
    fetch(&mut fetcher, vec![data(0, bad)], 0);
    let taken = fetcher.take_batches(0).remove(0);
    assert_eq!((taken.record_count, taken.iter().filter(Result::is_ok).count(), taken.iter().count()), (2, 2, 2));
    assert!(fetcher.take_fault().is_some());
}

#[test]
fn partitions_take_turns_at_being_named_first() {
    let mut fetcher = fetcher(3);
    let mut firsts = BTreeSet::new();
    for _ in 0..3 {
        let planned = fetcher.plan(1, 6, 0).unwrap();
        firsts.insert(planned.request(&ConsumerConfig::default()).topics[0].partitions[0].partition);
        fetcher.answered(1, &FetchResponse::default(), 0);
    }
    assert_eq!(firsts.len(), 3);
}

#[test]
fn partitions_that_go_take_their_data_with_them() {
    let mut fetcher = fetcher(2);
    fetch(&mut fetcher, vec![data(0, batch(0, 2)), data(1, batch(0, 1))], 0);
    fetcher.assign([tp(1)]);
    assert_eq!(offsets(&fetcher.take_records(9, 0)), [(1, 0)]);
    assert_eq!(fetcher.queued_bytes(), 0);
}

#[test]
fn only_committed_records_come_at_read_committed() {
    let config = ConsumerConfig { isolation_level: IsolationLevel::ReadCommitted, ..ConsumerConfig::default() };
    let mut fetcher = with(config, 1);
    let aborted = BatchBuilder::new()
        .attributes(0x10)
        .producer(model::ProducerId(4), model::ProducerEpoch(0), 0)
        .record(1, None, None)
        .finish();
    let list = vec![wire::generated::fetch::AbortedTransaction { producer_id: 4, first_offset: 0 }];
    let given = PartitionData { aborted_transactions: Some(list), ..data(0, [aborted, batch(1, 1)].concat()) };
    fetch(&mut fetcher, vec![given], 0);
    assert_eq!(offsets(&fetcher.take_records(9, 0)), [(0, 1)]);
}

#[test]
fn what_lies_paused_does_not_keep_others_waiting() {
    let mut fetcher = fetcher(2);
    let value = vec![0u8; limits::READ_AHEAD_BYTES];
    let large = BatchBuilder::new().record(1, None, Some(&value)).finish();
    fetch(&mut fetcher, vec![data(0, large)], 0);
    fetcher.pause(&tp(0), true);
    assert_eq!(fetcher.wanted_nodes(0), BTreeSet::from([1]));
    let planned = fetcher.plan(1, 17, 0).unwrap();
    assert_eq!(planned.counts(), (0, 1), "partition 1 is known, 0 is forgotten");
    fetcher.pause(&tp(0), false);
    let assigned = fetcher.positions.get(&tp(0)).unwrap();
    assert_eq!((assigned.offset, assigned.fetch_offset), (0, 0), "nothing of it is lost");
}

/// A fetcher whose partition 0 is to be fetched from node 2, as node 1 said at 0.
fn following() -> Fetcher {
    let config = ConsumerConfig { client_rack: Some("r".into()), ..ConsumerConfig::default() };
    let mut fetcher = with(config, 1);
    fetch(&mut fetcher, vec![PartitionData { preferred_read_replica: 2, ..data(0, vec![]) }], 0);
    assert_eq!(fetcher.wanted_nodes(0), BTreeSet::from([2]));
    fetcher
}

#[test]
fn a_follower_that_stays_away_is_left_for_the_leader() {
    let mut fetcher = following();
    assert!(!fetcher.leave_follower_away(2, limits::FOLLOWER_PATIENCE_MS - 1), "a moment to connect");
    let now_ms = limits::FOLLOWER_PATIENCE_MS;
    assert!(!fetcher.leave_follower_away(1, now_ms), "the leader is not left");
    assert!(fetcher.leave_follower_away(2, now_ms));
    assert_eq!(fetcher.wanted_nodes(now_ms), BTreeSet::from([1]));
    let planned = fetcher.plan(1, 17, now_ms).unwrap();
    assert_eq!(planned.request(&fetcher.config).rack_id, "", "so that the leader gives records");
    fetcher.answered(1, &answer(vec![PartitionData { preferred_read_replica: 2, ..data(0, vec![]) }]), now_ms);
    assert_eq!(fetcher.wanted_nodes(now_ms), BTreeSet::from([1]), "what was of no use is not believed at once");
    let later_ms = now_ms + limits::FOLLOWER_AVOIDED_MS;
    let planned = fetcher.plan(1, 17, later_ms).unwrap();
    assert_eq!(planned.request(&fetcher.config).rack_id, "r");
    fetcher.answered(1, &answer(vec![PartitionData { preferred_read_replica: 2, ..data(0, vec![]) }]), later_ms);
    assert_eq!(fetcher.wanted_nodes(later_ms), BTreeSet::from([2]));
}

#[test]
fn a_follower_that_breaks_or_refuses_is_left_for_the_leader() {
    let mut fetcher = following();
    fetcher.plan(2, 17, 0).unwrap();
    let away = ClientError::NotConnected { node: 2, reason: "test".into() };
    fetcher.failed(2, &away, 0);
    assert_eq!(fetcher.wanted_nodes(100), BTreeSet::from([2]), "the connection is being made");
    fetcher.plan(2, 17, 100).unwrap();
    fetcher.failed(2, &ClientError::Disconnected { node: 2, reason: "test".into() }, 100);
    assert_eq!(fetcher.wanted_nodes(100), BTreeSet::from([1]));
    for code in [ErrorCode::OffsetOutOfRange, ErrorCode::NotLeaderOrFollower] {
        let mut fetcher = following();
        fetcher.plan(2, 17, 0).unwrap();
        fetcher.answered(2, &answer(vec![failed(0, code)]), 0);
        assert_eq!(fetcher.wanted_nodes(100), BTreeSet::from([1]), "{code:?}");
        assert_eq!(fetcher.plan(1, 17, 100).unwrap().request(&fetcher.config).rack_id, "");
    }
}

#[test]
fn read_ahead_of_a_topic_made_anew_does_not_hold_the_new_one() {
    let mut fetcher = with(ConsumerConfig { auto_offset_reset: AutoOffsetReset::Earliest, ..Default::default() }, 1);
    fetch(&mut fetcher, vec![data(0, batch(0, 3))], 0);
    let mut anew = cluster(2, 1, 0, 4);
    anew.topics.values_mut().for_each(|topic| topic.id = [8; 16]);
    fetcher.observe(&anew);
    fetcher.plan(1, 17, 0).unwrap();
    let mut refused = answer(vec![failed(0, ErrorCode::OffsetOutOfRange)]);
    refused.responses[0].topic_id = [8; 16];
    fetcher.answered(1, &refused, 0);
    assert_eq!(fetcher.positions.get(&tp(0)).unwrap().state, State::AwaitsReset(ResetTo::Earliest));
    assert!(fetcher.take_records(9, 0).is_empty());
}

#[test]
fn a_hold_ends_with_the_last_of_what_is_void() {
    let mut fetcher = fetcher(1);
    fetch(&mut fetcher, vec![data(0, batch(0, 3))], 0);
    fetcher.positions.seek(&tp(0), 1, -1);
    fetcher.positions.get_mut(&tp(0)).unwrap().is_held = true;
    assert!(fetcher.take_records(9, 0).is_empty());
    assert_eq!(fetcher.wanted_nodes(0), BTreeSet::from([1]));
}

#[test]
fn small_answers_are_copied_out_and_count_for_more_than_their_bytes() {
    let mut fetcher = fetcher(1);
    let small = Bytes::from(batch(0, 1));
    let mut given = data(0, vec![]);
    given.records = Records::from(small.clone());
    fetch(&mut fetcher, vec![given], 0);
    assert_eq!(fetcher.queued_bytes(), small.len() + limits::READ_AHEAD_OVERHEAD_BYTES);
    assert!(small.is_unique(), "the read buffer is not kept");
    let value = vec![0u8; limits::COPY_BELOW_BYTES];
    let large = Bytes::from(BatchBuilder::new().base_offset(Offset(1)).record(1, None, Some(&value)).finish());
    let mut given = data(0, vec![]);
    given.records = Records::from(large.clone());
    fetch(&mut fetcher, vec![given], 0);
    assert!(!large.is_unique(), "large ones are not copied");
}

#[test]
fn many_small_answers_fill_the_read_ahead() {
    let mut fetcher = fetcher(1);
    let mut count = 0;
    while !fetcher.wanted_nodes(0).is_empty() {
        fetch(&mut fetcher, vec![data(0, batch(count, 1))], 0);
        count += 1;
    }
    assert!(count as usize <= limits::READ_AHEAD_BYTES / limits::READ_AHEAD_OVERHEAD_BYTES, "{count}");
}

#[test]
fn the_high_watermark_goes_back_with_the_log() {
    let mut fetcher = fetcher(1);
    fetch(&mut fetcher, vec![data(0, vec![])], 0);
    fetch(&mut fetcher, vec![PartitionData { high_watermark: 60, ..data(0, vec![]) }], 0);
    assert_eq!(fetcher.positions.get(&tp(0)).unwrap().high_watermark, 60);
}
