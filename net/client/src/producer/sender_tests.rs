#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use wire::generated::produce::ProduceResponse;

use super::super::accumulator::Refused;
use super::super::config::Acks;
use super::super::test_support::*;
use super::*;

const NOT_LEADER: i16 = 6;

fn config() -> ProducerConfig {
    ProducerConfig { batch_size: 1_000, ..ProducerConfig::default() }
}

fn plain() -> ProducerConfig {
    ProducerConfig { enable_idempotence: false, ..config() }
}

fn big() -> Bytes {
    Bytes::from(vec![0; 900])
}

#[test]
fn a_record_lingers_and_then_goes() {
    let mut bench = Bench::new(config(), 1, 1);
    bench.send(0, 1);
    assert!(bench.drain().is_empty());
    assert_eq!(bench.sender.next_wake_ms(), bench.now_ms + 5);
    bench.pass(4);
    assert!(bench.drain().is_empty());
    bench.pass(1);
    let request = bench.drain_one();
    bench.answer(&request, 0, 77);
    assert_eq!(bench.fates, [(1, 0, Fate::Acknowledged { base_offset: 77, log_append_time_ms: -1 })]);
    assert_eq!(bench.sender.memory_used(), 0);
}

#[test]
fn a_full_batch_does_not_linger() {
    let mut bench = Bench::new(config(), 1, 1);
    assert!(bench.try_send(0, 1, big()).unwrap(), "the first record of a batch arms the timer");
    bench.drain();
    assert!(bench.try_send(0, 2, big()).unwrap(), "a second batch means that the first is full");
    let request = bench.drain_one();
    assert_eq!(seen(&request.parts[0]).tags.len(), 1);
    assert!(request.bytes() <= 1_000);
}

#[test]
fn the_driver_is_woken_once_and_only_for_what_is_sooner() {
    let mut bench = Bench::new(config(), 1, 2);
    let value = Bytes::from_static(b"12345678");
    assert!(bench.try_send(0, 1, value.clone()).unwrap());
    assert!(!bench.try_send(1, 2, value.clone()).unwrap(), "it was woken already");
    bench.drain();
    bench.pass(1);
    assert!(!bench.try_send(0, 3, value.clone()).unwrap(), "the batch has its timer");
    bench.pass(10);
    for request in bench.drain() {
        bench.answer(&request, 0, 0);
    }
}

#[test]
fn a_flush_of_64_partitions_on_2_nodes_is_2_requests() {
    let mut bench = Bench::new(config(), 2, 64);
    (0..64).for_each(|p| bench.send(p, p as u64));
    let upto = bench.sender.begin_flush();
    let requests = bench.drain();
    assert_eq!(requests.iter().map(|r| (r.node, r.parts.len())).collect::<Vec<_>>(), [(0, 32), (1, 32)]);
    assert!(bench.drain().is_empty());
    assert!(!bench.sender.is_flushed(upto));
    for request in &requests {
        assert!(request.parts.iter().all(|part| part.index % 2 == request.node));
        bench.answer(request, 0, 0);
    }
    assert!(bench.sender.is_flushed(upto));
    assert_eq!(bench.sender.metrics().requests, 2);
    assert_eq!(bench.sender.metrics().records_acknowledged, 64);
}

#[test]
fn one_that_is_due_takes_the_others_of_its_node_along() {
    let mut bench = Bench::new(config(), 2, 4);
    bench.send(0, 1);
    bench.pass(3);
    bench.send(2, 2);
    bench.send(1, 3);
    bench.pass(2);
    let request = bench.drain_one();
    assert_eq!(request.parts.iter().map(|p| p.index).collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn a_request_holds_no_more_than_its_size_and_turns_go_round() {
    let mut config = config();
    (config.max_request_size, config.batch_size) = (2_500, 1_000);
    let mut bench = Bench::new(config, 1, 5);
    for round in 0..2 {
        (0..5).for_each(|p| bench.send_big(p, round));
    }
    bench.prove();
    let mut sent = vec![];
    for _ in 0..5 {
        let request = bench.drain_one();
        assert!(request.bytes() <= 2_500);
        sent.extend(request.parts.iter().map(|p| p.index));
    }
    assert_eq!(sent.len(), 10);
    // Three requests of two reach all five.
    assert!((0..5).all(|p| sent[..6].contains(&p)), "{sent:?}");
}

#[test]
fn no_more_than_max_in_flight_go_to_a_node() {
    let mut bench = Bench::new(config(), 1, 1);
    (0..7).for_each(|tag| bench.send_big(0, tag));
    bench.prove();
    let requests: Vec<_> = (0..5).map(|_| bench.drain_one()).collect();
    assert!(bench.drain().is_empty());
    bench.answer(&requests[0], 0, 0);
    bench.drain_one();
    assert!(bench.drain().is_empty());
}

#[test]
fn a_node_that_is_not_ready_gets_nothing() {
    let mut bench = Bench::new(config(), 2, 2);
    bench.send(0, 1);
    bench.send(1, 2);
    bench.pass(5);
    let requests = bench.sender.drain(bench.now_ms, &bench.cluster, &mut |node| node == 1);
    assert_eq!(requests.iter().map(|r| r.node).collect::<Vec<_>>(), [1]);
}

#[test]
fn what_did_not_leave_is_sent_again_after_a_pause() {
    let mut bench = Bench::new(config(), 1, 1);
    bench.send(0, 1);
    bench.pass(5);
    let request = bench.drain_one();
    bench.not_sent(&request);
    assert!(bench.sender.take_refresh_wanted());
    assert!(bench.drain().is_empty());
    let wake_ms = bench.sender.next_wake_ms();
    assert!((bench.now_ms + 80..=bench.now_ms + 120).contains(&wake_ms));
    bench.now_ms = wake_ms;
    let request = bench.drain_one();
    assert_eq!(seen(&request.parts[0]).sequence, 0);
    bench.answer(&request, 0, 0);
    assert_eq!(bench.acknowledged(), [1]);
}

#[test]
fn the_pause_doubles_up_to_its_limit() {
    let mut bench = Bench::new(config(), 1, 1);
    bench.send(0, 1);
    bench.pass(5);
    let mut pauses = vec![];
    for _ in 0..8 {
        let request = bench.drain_one();
        bench.answer(&request, NOT_LEADER, -1);
        assert!(bench.sender.take_refresh_wanted());
        bench.drain();
        pauses.push(bench.sender.next_wake_ms() - bench.now_ms);
        bench.now_ms = bench.sender.next_wake_ms();
    }
    for (pause_ms, expected_ms) in pauses.iter().zip([100, 200, 400, 800, 1_000, 1_000, 1_000, 1_000]) {
        assert!((expected_ms * 8 / 10..=expected_ms * 12 / 10).contains(pause_ms), "{pauses:?}");
    }
    assert_eq!(bench.sender.metrics().retries, 8);
}

#[test]
fn retries_keep_the_order_with_five_in_flight() {
    let mut bench = Bench::new(config(), 1, 1);
    (0..6).for_each(|tag| bench.send_big(0, tag));
    bench.prove();
    let requests: Vec<_> = (0..5).map(|_| bench.drain_one()).collect();
    bench.answer(&requests[0], NOT_LEADER, -1);
    bench.pass(2_000);
    assert!(bench.drain().is_empty(), "later ones are in flight");
    requests[1..].iter().for_each(|request| bench.answer(request, 45, -1));
    bench.pass(2_000);
    let mut order = vec![];
    for _ in 0..6 {
        let request = bench.drain_one();
        let seen = seen(&request.parts[0]);
        order.push((seen.sequence, seen.tags[0]));
        if seen.sequence < 5 && order.len() < 5 {
            assert!(bench.drain().is_empty(), "one at a time until all have their answer");
        }
        bench.answer(&request, 0, i64::from(seen.sequence));
    }
    assert_eq!(order, (0..6).map(|i| (i as i32, i)).collect::<Vec<_>>());
    assert_eq!(bench.sender.metrics().epoch_bumps, 0, "the errors behind a failed batch are no gap");
    assert_eq!(bench.acknowledged(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn with_one_in_flight_order_holds_without_idempotence() {
    let mut bench = Bench::new(ProducerConfig { max_in_flight: 1, ..plain() }, 2, 1);
    (0..3).for_each(|tag| bench.send_big(0, tag));
    let request = bench.drain_one();
    assert_eq!(seen(&request.parts[0]).producer_id, -1);
    bench.disconnect(&request);
    set_leader(&mut bench.cluster, 0, 1);
    let mut tags = vec![];
    for _ in 0..3 {
        bench.pass(2_000);
        let request = bench.drain_one();
        assert_eq!(request.node, 1);
        tags.extend(seen(&request.parts[0]).tags);
        bench.answer(&request, 0, 0);
    }
    assert_eq!(tags, [0, 1, 2]);
}

#[test]
fn a_leader_that_moves_takes_its_batches_along() {
    let mut bench = Bench::new(config(), 2, 1);
    bench.send(0, 1);
    set_leader(&mut bench.cluster, 0, 1);
    bench.pass(5);
    let request = bench.drain_one();
    assert_eq!(request.node, 1);
    bench.answer(&request, NOT_LEADER, -1);
    assert!(bench.sender.take_refresh_wanted());
    set_leader(&mut bench.cluster, 0, -1);
    bench.pass(200);
    assert!(bench.drain().is_empty());
    assert!(bench.sender.take_refresh_wanted(), "without a leader it asks again");
    set_leader(&mut bench.cluster, 0, 0);
    assert_eq!(bench.drain_one().node, 0);
}

#[test]
fn an_unknown_topic_id_asks_for_metadata_and_goes_out_under_the_new_one() {
    let mut bench = Bench::new(config(), 1, 1);
    bench.send(0, 1);
    bench.pass(5);
    let request = bench.drain_one();
    assert_eq!(request.parts[0].topic_id, [7; 16]);
    bench.answer(&request, 100, -1);
    assert!(bench.sender.take_refresh_wanted());
    bench.cluster.topics.get_mut(TOPIC).unwrap().id = [8; 16];
    bench.cluster.version += 1;
    bench.pass(200);
    assert_eq!(bench.drain_one().parts[0].topic_id, [8; 16]);
}

#[test]
fn a_duplicate_counts_as_written() {
    let mut bench = Bench::new(config(), 1, 1);
    bench.send(0, 1);
    bench.pass(5);
    let request = bench.drain_one();
    bench.answer(&request, 46, -1);
    assert_eq!(bench.fates, [(1, 0, Fate::Acknowledged { base_offset: -1, log_append_time_ms: -1 })]);
}

#[test]
fn without_acks_the_kernel_is_enough() {
    let mut bench = Bench::new(ProducerConfig { acks: Acks::None, ..plain() }, 1, 1);
    bench.send(0, 1);
    bench.pass(5);
    let request = bench.drain_one();
    assert_eq!(request.acks, 0);
    bench.handed(&request);
    assert_eq!(bench.acknowledged(), [1]);
}

#[test]
fn a_final_error_fails_the_batch_alone_and_its_sequence_is_used_again() {
    let mut bench = Bench::new(config(), 1, 2);
    bench.send(0, 1);
    bench.send(1, 2);
    bench.pass(5);
    let request = bench.drain_one();
    bench.answer_with(&request, |part| if part.index == 0 { (87, -1) } else { (0, 5) });
    assert!(matches!(&bench.fates[0], (1, 0, Fate::NotSent(e)) if e.to_string().contains("refuses a record")));
    assert_eq!(bench.acknowledged(), [2]);
    bench.send(0, 3);
    bench.pass(5);
    let request = bench.drain_one();
    assert_eq!(seen(&request.parts[0]).sequence, 0);
    assert_eq!(bench.sender.metrics().epoch_bumps, 0);
}

#[test]
fn retries_end_at_their_limit() {
    let mut bench = Bench::new(ProducerConfig { retries: 1, ..config() }, 1, 1);
    bench.send(0, 1);
    bench.pass(5);
    for _ in 0..2 {
        let request = bench.drain_one();
        bench.answer(&request, 7, -1);
        bench.pass(1_000);
    }
    assert!(matches!(bench.fates[0].2, Fate::PossiblySent(_)), "a time-out may have been written");
}

#[test]
fn a_missing_answer_is_no_answer() {
    let mut bench = Bench::new(config(), 1, 1);
    bench.send(0, 1);
    bench.pass(5);
    let request = bench.drain_one();
    bench.answer_raw(&request, &ProduceResponse::default());
    bench.answer(&request, 0, 0);
    assert!(bench.fates.is_empty(), "an answer counts once");
    bench.pass(200);
    let request = bench.drain_one();
    bench.answer(&request, 46, -1);
    assert_eq!(bench.acknowledged(), [1]);
}

#[test]
fn a_full_buffer_refuses_hurries_and_takes_again() {
    let mut config = config();
    (config.buffer_memory, config.max_request_size) = (3_000, 2_000);
    let mut bench = Bench::new(config, 1, 8);
    let mut taken = 0;
    while bench.try_send(taken % 8, taken as u64, tagged_big(taken as u64)).is_ok() {
        taken += 1;
    }
    assert_eq!(taken, 3);
    assert!(bench.sender.memory_used() <= 3_000);
    assert_eq!(bench.try_send(0, 9, big()), Err(Refused::Full));
    let request = bench.drain_one();
    bench.answer(&request, 0, 0);
    assert!(bench.try_send(0, 9, big()).is_ok());
}

#[test]
fn a_throttled_node_is_left_alone_for_as_long_as_it_asks() {
    let mut bench = Bench::new(config(), 1, 1);
    bench.send(0, 1);
    bench.pass(5);
    let request = bench.drain_one();
    let mut answer = response(&request, |_| (0, 0));
    answer.throttle_time_ms = 50;
    bench.answer_raw(&request, &answer);
    bench.send(0, 2);
    bench.pass(10);
    assert!(bench.drain().is_empty());
    assert_eq!(bench.sender.next_wake_ms(), bench.now_ms + 40);
    bench.pass(40);
    bench.drain_one();
}

#[test]
fn what_cannot_be_sent_is_refused_with_a_sentence() {
    let mut bench = Bench::new(config(), 1, 1);
    let refused = |result: Result<bool, Refused>| match result {
        Err(Refused::Invalid(error)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let large = Bytes::from(vec![0; 1 << 20]);
    assert!(refused(bench.try_send(0, 1, large)).contains("max.request.size"));
    assert_eq!(bench.try_send(1, 1, big()), Err(Refused::UnknownTopic));
    assert!(refused(bench.try_send(-1, 1, big())).contains("negative partition"));
    let mut old = record(0, big());
    old.timestamp_ms = Some(-5);
    let got = bench.sender.append(&old, -5, Mark::Tag(0), 0).map_err(|(refused, _)| refused);
    assert!(refused(got).contains("before 1970"));
    let mut other = record(0, big());
    other.topic = "elsewhere".into();
    assert!(matches!(bench.sender.append(&other, 0, Mark::Tag(0), 0), Err((Refused::UnknownTopic, _))));
}

#[test]
fn a_stop_gives_everything_its_fate() {
    let mut bench = Bench::new(config(), 1, 2);
    bench.send(0, 1);
    bench.pass(5);
    let request = bench.drain_one();
    bench.send(1, 2);
    bench.sender.stop(&ClientError::Closed, bench.now_ms);
    bench.collect();
    bench.fates.sort_by_key(|fate| fate.0);
    assert_eq!(bench.fates[0].2, Fate::PossiblySent(ClientError::Closed));
    assert_eq!(bench.fates[1].2, Fate::NotSent(ClientError::Closed));
    bench.answer(&request, 0, 0);
    assert_eq!((bench.fates.len(), bench.sender.memory_used()), (2, 0));
    assert_eq!(bench.try_send(0, 3, big()), Err(Refused::Invalid(ClientError::Closed)));
}

#[path = "sequence_tests.rs"]
mod sequences;

#[path = "expiry_tests.rs"]
mod expiry;

#[path = "split_tests.rs"]
mod splits;

#[path = "property_tests.rs"]
mod properties;

#[test]
fn short_memory_makes_no_crumbs() {
    let config = ProducerConfig {
        batch_size: 64 << 10,
        buffer_memory: 1 << 20,
        max_request_size: 64 << 10,
        linger_ms: 1_000,
        ..plain()
    };
    let mut bench = Bench::new(config, 1, 1);
    bench.prove();
    let mut tag = 0;
    let mut sizes = Vec::new();
    // A program that sends as fast as it may, and a broker that answers one request after the other.
    for _ in 0..400 {
        while bench.try_send(0, tag, tagged_big(tag)).is_ok() {
            tag += 1;
        }
        for request in bench.drain() {
            sizes.push(request.bytes());
            bench.answer(&request, 0, 0);
        }
    }
    assert!(sizes.len() >= 400, "{}", sizes.len());
    // But for the first ones, which grow to their size.
    let crumbs = sizes[20..].iter().filter(|&&bytes| bytes < 32 << 10).count();
    assert_eq!(crumbs, 0, "{:?}", &sizes[..40]);
}
