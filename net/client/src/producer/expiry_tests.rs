//! `delivery_timeout_ms`: what never left is certainly not sent, what may be written is said to be possibly sent.

use super::*;

/// Refused before anything was appended.
const LEADER_NOT_AVAILABLE: i16 = 5;

fn short() -> ProducerConfig {
    ProducerConfig { request_timeout_ms: 900, delivery_timeout_ms: 1_000, ..config() }
}

#[test]
fn what_never_left_is_certainly_not_sent() {
    let mut bench = Bench::new(short(), 1, 1);
    set_leader(&mut bench.cluster, 0, -1);
    bench.send(0, 1);
    bench.pass(999);
    bench.drain();
    assert!(bench.fates.is_empty());
    bench.pass(1);
    bench.drain();
    assert!(matches!(&bench.fates[0].2, Fate::NotSent(ClientError::TimedOut { after_ms: 1_000, .. })));
    assert_eq!(bench.sender.memory_used(), 0);
}

#[test]
fn the_driver_wakes_for_the_deadline() {
    let mut bench = Bench::new(short(), 1, 1);
    bench.send(0, 1);
    bench.pass(5);
    bench.drain_one();
    bench.drain();
    assert_eq!(bench.sender.next_wake_ms(), 2_000);
    bench.now_ms = 2_000;
    bench.drain();
    assert_eq!(bench.fates.len(), 1);
    assert!(bench.sender.next_wake_ms() > 2_000, "it does not spin over what it only waits for");
}

#[test]
fn what_is_in_flight_is_possibly_sent_and_a_late_answer_changes_nothing() {
    let mut bench = Bench::new(short(), 1, 1);
    bench.send(0, 1);
    bench.pass(5);
    let request = bench.drain_one();
    bench.pass(1_000);
    bench.drain();
    assert!(matches!(bench.fates[0].2, Fate::PossiblySent(_)));
    assert!(bench.sender.memory_used() > 0, "the connection may still hold it");
    assert!(bench.sender.is_flushed(u64::MAX));
    bench.answer(&request, 0, 3);
    assert_eq!((bench.fates.len(), bench.sender.memory_used()), (1, 0));
    // It was written after all, so the sequence has no hole.
    bench.send(0, 2);
    bench.pass(5);
    assert_eq!(seen(&bench.drain_one().parts[0]).sequence, 1);
    assert_eq!(bench.sender.metrics().epoch_bumps, 0);
}

#[test]
fn what_expired_in_flight_without_an_answer_costs_the_epoch() {
    let mut bench = Bench::new(short(), 1, 1);
    bench.send(0, 1);
    bench.pass(5);
    let request = bench.drain_one();
    bench.pass(1_000);
    bench.drain();
    bench.send(0, 2);
    bench.pass(5);
    assert!(bench.drain().is_empty(), "a later sequence might leave a gap");
    bench.disconnect(&request);
    let request = bench.drain_one();
    assert_eq!((seen(&request.parts[0]).producer_epoch, seen(&request.parts[0]).sequence), (1, 0));
    bench.answer(&request, 0, 0);
    assert_eq!(bench.acknowledged(), [2]);
}

#[test]
fn a_refused_attempt_leaves_it_certain_that_nothing_was_sent() {
    let mut bench = Bench::new(short(), 1, 1);
    bench.send(0, 1);
    bench.pass(5);
    let request = bench.drain_one();
    bench.answer(&request, LEADER_NOT_AVAILABLE, -1);
    set_leader(&mut bench.cluster, 0, -1);
    bench.pass(1_000);
    bench.drain();
    assert!(matches!(bench.fates[0].2, Fate::NotSent(_)));
}

#[test]
fn an_attempt_without_an_answer_leaves_it_open() {
    let mut bench = Bench::new(short(), 1, 1);
    bench.send(0, 1);
    bench.pass(5);
    let request = bench.drain_one();
    bench.disconnect(&request);
    set_leader(&mut bench.cluster, 0, -1);
    bench.pass(1_000);
    bench.drain();
    assert!(matches!(bench.fates[0].2, Fate::PossiblySent(_)));
}

#[test]
fn behind_one_that_may_be_written_the_old_sequence_is_tried_first() {
    let mut bench = Bench::new(short(), 1, 1);
    bench.send_big(0, 1);
    bench.pass(600);
    bench.send_big(0, 2);
    bench.prove();
    let first = bench.drain_one();
    bench.pass(5);
    let second = bench.drain_one();
    bench.disconnect(&first);
    bench.disconnect(&second);
    set_leader(&mut bench.cluster, 0, -1);
    bench.pass(500);
    bench.drain();
    assert_eq!(bench.fates.len(), 1);
    set_leader(&mut bench.cluster, 0, 0);
    // Both were written: another epoch would write the second twice.
    let request = bench.drain_one();
    assert_eq!((seen(&request.parts[0]).producer_id, seen(&request.parts[0]).sequence), (1, 1));
    bench.answer(&request, 46, -1);
    assert_eq!(bench.acknowledged(), [2]);
    bench.send(0, 3);
    bench.pass(5);
    assert_eq!(seen(&bench.drain_one().parts[0]).sequence, 2);
    assert_eq!(bench.sender.metrics().epoch_bumps, 0);
}

#[test]
fn what_a_former_leader_refused_may_be_written_and_its_place_is_not_taken() {
    let mut bench = Bench::new(short(), 2, 1);
    bench.prove();
    bench.send(0, 1);
    bench.pass(5);
    let request = bench.drain_one();
    // Leadership moved: the old leader may have appended before it said so, and there is no new one.
    bench.answer(&request, 6, -1);
    set_leader(&mut bench.cluster, 0, -1);
    bench.drain();
    bench.pass(1_000);
    bench.drain();
    assert!(matches!(bench.fates[0], (1, 0, Fate::PossiblySent(_))), "{:?}", bench.fates);
    set_leader(&mut bench.cluster, 0, 1);
    bench.send(0, 2);
    bench.pass(5);
    // With the same epoch and sequence the new leader would take it for the one that it has.
    let request = bench.drain_one();
    assert_eq!((seen(&request.parts[0]).producer_epoch, seen(&request.parts[0]).sequence), (1, 0));
}
