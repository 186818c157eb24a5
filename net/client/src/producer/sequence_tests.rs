//! An idempotent producer's sequence numbers when things go wrong.

use super::*;

const OUT_OF_ORDER: i16 = 45;
const UNKNOWN_PRODUCER: i16 = 59;
const FENCED_EPOCH: i16 = 47;

/// Sequence and first record of a request under the first epoch of the id `1`.
fn sequence_of(request: &NodeRequest) -> (i64, i32, u64) {
    let seen = seen(&request.parts[0]);
    assert_eq!(seen.producer_epoch, if seen.producer_id == 5 { 1 } else { 0 });
    (seen.producer_id, seen.sequence, seen.tags[0])
}

/// Epoch, sequence and first record of a request under the id `1`.
fn in_epoch(request: &NodeRequest) -> (i16, i32, u64) {
    let seen = seen(&request.parts[0]);
    assert_eq!(seen.producer_id, 1);
    (seen.producer_epoch, seen.sequence, seen.tags[0])
}

#[test]
fn nothing_goes_before_there_is_a_producer_id() {
    let mut sender = Sender::new(config(), 1);
    let cluster = cluster(1, 1);
    assert!(sender.wants_producer_id());
    assert!(sender.add_topic(&cluster, &TOPIC.into()));
    sender.append(&record(0, big()), 0, Mark::Tag(1), 0).unwrap();
    assert!(sender.drain(100, &cluster, &mut |_| true).is_empty());
    sender.producer_id(9, 2);
    assert!(!sender.wants_producer_id());
    assert_eq!(sender.drain(100, &cluster, &mut |_| true).len(), 1);
}

#[test]
fn the_first_batch_under_a_producer_id_goes_alone() {
    let mut bench = Bench::new(config(), 1, 1);
    (0..4).for_each(|tag| bench.send_big(0, tag));
    let first = bench.drain_one();
    assert!(bench.drain().is_empty());
    bench.answer(&first, 10, -1);
    bench.fates.clear();
    let second = bench.drain_one();
    assert_eq!(sequence_of(&second), (1, 0, 1), "nothing of the refused one is there");
    bench.answer(&second, 0, 0);
    bench.pass(5);
    assert_eq!([sequence_of(&bench.drain_one()), sequence_of(&bench.drain_one())], [(1, 1, 2), (1, 2, 3)]);
}

#[test]
fn sequences_count_records_per_partition() {
    let mut bench = Bench::new(config(), 1, 2);
    for round in 0..3 {
        (0..=round).for_each(|tag| bench.send(0, tag));
        bench.send(1, round);
        bench.pass(5);
        let request = bench.drain_one();
        assert_eq!(seen(&request.parts[0]).sequence, [0, 1, 3][round as usize]);
        assert_eq!(seen(&request.parts[1]).sequence, round as i32);
        bench.answer(&request, 0, 0);
    }
}

#[test]
fn a_real_gap_raises_the_epoch_and_everything_goes_on_in_order() {
    let mut bench = Bench::new(config(), 1, 1);
    (0..4).for_each(|tag| bench.send_big(0, tag));
    bench.prove();
    let requests: Vec<_> = (0..3).map(|_| bench.drain_one()).collect();
    bench.answer(&requests[0], 0, 0);
    bench.answer(&requests[1], OUT_OF_ORDER, -1);
    bench.pass(2_000);
    assert!(bench.drain().is_empty(), "one is in flight");
    bench.answer(&requests[2], OUT_OF_ORDER, -1);
    bench.pass(2_000);
    let first = bench.drain_one();
    assert!(!bench.sender.wants_producer_id(), "nobody is asked for the next epoch");
    bench.answer(&first, 0, 1);
    let others = [in_epoch(&bench.drain_one()), in_epoch(&bench.drain_one())];
    assert_eq!((in_epoch(&first), others), ((1, 0, 1), [(1, 1, 2), (1, 2, 3)]));
    assert_eq!(bench.sender.metrics().epoch_bumps, 1);
}

#[test]
fn one_partitions_gap_leaves_the_others_alone() {
    let mut bench = Bench::new(config(), 1, 2);
    for tag in 0..2 {
        (0..2).for_each(|p| bench.send(p, tag));
        bench.pass(5);
        let request = bench.drain_one();
        bench.answer_with(&request, |part| if part.index == 0 && tag == 1 { (UNKNOWN_PRODUCER, -1) } else { (0, 0) });
    }
    bench.drain();
    bench.send(1, 2);
    bench.pass(5);
    assert_eq!(sequence_of(&bench.drain_one()), (1, 2, 2), "it goes on in its old epoch");
    bench.pass(200);
    assert_eq!(in_epoch(&bench.drain_one()), (1, 0, 1));
    bench.send(1, 3);
    bench.pass(5);
    assert_eq!(sequence_of(&bench.drain_one()), (1, 3, 3));
}

#[test]
fn an_id_that_another_producer_has_is_left_behind() {
    let mut bench = Bench::new(config(), 1, 1);
    bench.send(0, 1);
    bench.pass(5);
    let request = bench.drain_one();
    bench.answer(&request, FENCED_EPOCH, -1);
    bench.pass(200);
    assert!(bench.drain().is_empty());
    assert!(bench.sender.wants_producer_id());
    bench.sender.producer_id(5, 1);
    let request = bench.drain_one();
    assert_eq!(sequence_of(&request), (5, 0, 1));
    bench.answer(&request, 0, 0);
    assert_eq!(bench.acknowledged(), [1]);
}

#[test]
fn a_refused_batch_in_the_middle_is_a_gap_that_is_closed() {
    let mut bench = Bench::new(config(), 1, 1);
    (0..3).for_each(|tag| bench.send_big(0, tag));
    bench.prove();
    bench.pass(5);
    let requests: Vec<_> = (0..3).map(|_| bench.drain_one()).collect();
    bench.answer(&requests[0], 0, 0);
    bench.answer(&requests[1], 87, -1);
    bench.answer(&requests[2], OUT_OF_ORDER, -1);
    bench.pass(200);
    let request = bench.drain_one();
    assert_eq!(in_epoch(&request), (1, 0, 2));
    bench.answer(&request, 0, 1);
    assert_eq!(bench.acknowledged(), [0, 2]);
}

/// Two batches of which the first is acknowledged and the second refused as `code`; then nothing is in flight.
fn refused_behind_one(bench: &mut Bench, code: i16) {
    (0..2).for_each(|tag| bench.send_big(0, tag));
    bench.prove();
    let requests = [bench.drain_one(), {
        bench.pass(5);
        bench.drain_one()
    }];
    bench.answer(&requests[0], 0, 0);
    bench.answer(&requests[1], code, -1);
    bench.pass(200);
}

#[test]
fn a_broker_that_forgot_the_producer_is_begun_anew_with() {
    let mut bench = Bench::new(config(), 1, 1);
    refused_behind_one(&mut bench, UNKNOWN_PRODUCER);
    let request = bench.drain_one();
    assert_eq!(in_epoch(&request), (1, 0, 1));
    bench.answer(&request, 0, 1);
    assert_eq!(bench.acknowledged(), [0, 1]);
}

#[test]
fn every_gap_raises_the_epoch_once_more() {
    let mut bench = Bench::new(config(), 1, 1);
    refused_behind_one(&mut bench, OUT_OF_ORDER);
    for epoch in 1..4 {
        let request = bench.drain_one();
        assert_eq!(in_epoch(&request), (epoch, 0, 1));
        bench.answer(&request, OUT_OF_ORDER, -1);
        bench.pass(2_000);
    }
    assert_eq!(in_epoch(&bench.drain_one()), (4, 0, 1));
    assert_eq!(bench.sender.metrics().epoch_bumps, 4);
}

#[test]
fn partitions_share_the_epoch_that_one_of_them_raised() {
    let mut bench = Bench::new(config(), 1, 2);
    for tag in 0..2 {
        (0..2).for_each(|p| bench.send(p, tag));
        bench.pass(5);
        let request = bench.drain_one();
        bench.answer_with(&request, |_| if tag == 1 { (OUT_OF_ORDER, -1) } else { (0, 0) });
    }
    bench.pass(200);
    let request = bench.drain_one();
    let epochs: Vec<_> = request.parts.iter().map(|part| (seen(part).producer_epoch, seen(part).sequence)).collect();
    assert_eq!((epochs, bench.sender.metrics().epoch_bumps), (vec![(1, 0), (1, 0)], 1));
}

#[test]
fn when_the_epochs_are_used_up_a_new_id_is_asked_for() {
    let mut bench = Bench::new(config(), 1, 1);
    bench.sender.producer_id(1, i16::MAX);
    refused_behind_one(&mut bench, OUT_OF_ORDER);
    assert!(bench.drain().is_empty());
    assert!(bench.sender.wants_producer_id());
    bench.sender.producer_id(2, 0);
    assert!(!bench.sender.wants_producer_id());
    assert_eq!(sequence_of(&bench.drain_one()), (2, 0, 1));
}

#[test]
fn what_may_be_in_the_log_is_not_sent_under_another_epoch() {
    let mut bench = Bench::new(config(), 1, 1);
    (0..4).for_each(|tag| bench.send_big(0, tag));
    bench.prove();
    let requests: Vec<_> = (0..3).map(|_| bench.drain_one()).collect();
    bench.answer(&requests[0], 0, 0);
    // The connection's buffer may still hold it when its next attempt is refused.
    bench.disconnect(&requests[1]);
    bench.answer(&requests[2], OUT_OF_ORDER, -1);
    bench.pass(2_000);
    let again = bench.drain_one();
    assert_eq!(sequence_of(&again), (1, 1, 1));
    bench.answer(&again, OUT_OF_ORDER, -1);
    bench.pass(2_000);
    let first = bench.drain_one();
    assert!(matches!(bench.fates[..], [(0, _, Fate::Acknowledged { .. }), (1, _, Fate::PossiblySent(_))]));
    bench.answer(&first, 0, 1);
    assert_eq!([in_epoch(&first), in_epoch(&bench.drain_one())], [(1, 0, 2), (1, 1, 3)]);
}

#[test]
fn a_disconnect_is_tried_again_with_the_same_sequence() {
    let mut bench = Bench::new(config(), 1, 1);
    (0..2).for_each(|tag| bench.send_big(0, tag));
    bench.prove();
    let first = bench.drain_one();
    bench.pass(5);
    let second = bench.drain_one();
    let sent = [sequence_of(&first), sequence_of(&second)];
    bench.disconnect(&first);
    bench.disconnect(&second);
    let mut again = vec![];
    for _ in 0..2 {
        bench.pass(1_000);
        let request = bench.drain_one();
        again.push(sequence_of(&request));
        bench.answer(&request, 46, -1);
    }
    assert_eq!(again, sent);
    assert_eq!(bench.acknowledged(), [0, 1]);
}

#[test]
fn without_idempotence_an_unexpected_sequence_error_is_final() {
    let mut bench = Bench::new(plain(), 1, 1);
    bench.send(0, 1);
    bench.pass(5);
    let request = bench.drain_one();
    bench.answer(&request, OUT_OF_ORDER, -1);
    assert!(matches!(bench.fates[0].2, Fate::NotSent(_)));
    assert!(!bench.sender.wants_producer_id());
}
