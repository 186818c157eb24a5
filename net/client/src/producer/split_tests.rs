//! MESSAGE_TOO_LARGE.

use model::Codec;

use super::*;

const TOO_LARGE: i16 = 10;

#[test]
fn a_batch_that_is_too_large_is_cut_and_keeps_its_order_and_sequence() {
    let mut bench = Bench::new(config(), 1, 1);
    (0..8).for_each(|tag| bench.send(0, tag));
    bench.pass(5);
    let request = bench.drain_one();
    bench.answer(&request, TOO_LARGE, -1);
    let mut next = 0;
    while next < 8 {
        let request = bench.drain_one();
        let seen = seen(&request.parts[0]);
        assert_eq!((seen.sequence, seen.tags[0]), (next as i32, next));
        assert!(seen.tags.len() <= 4);
        next += seen.tags.len() as u64;
        bench.answer(&request, 0, 100 + i64::from(seen.sequence));
    }
    assert_eq!(bench.acknowledged(), (0..8).collect::<Vec<_>>());
    assert_eq!((bench.sender.metrics().splits, bench.sender.memory_used()), (1, 0));
    assert_eq!(bench.sender.metrics().retries, 0);
}

#[test]
fn it_goes_on_until_a_single_record_is_too_large() {
    let mut bench = Bench::new(config(), 1, 1);
    (0..4).for_each(|tag| bench.send(0, tag));
    bench.pass(5);
    // Everything with record 2 in it is too large.
    for _ in 0..20 {
        let Some(request) = bench.drain().pop() else { break };
        let bad = seen(&request.parts[0]).tags.contains(&2);
        bench.answer(&request, if bad { TOO_LARGE } else { 0 }, 0);
    }
    let request = bench.drain();
    request.iter().for_each(|request| bench.answer(request, 0, 0));
    bench.fates.sort_by_key(|fate| fate.0);
    let failed: Vec<_> = bench.fates.iter().filter(|f| matches!(f.2, Fate::NotSent(_))).map(|f| f.0).collect();
    assert_eq!(failed, [2]);
    assert!(bench.acknowledged().starts_with(&[0, 1]));
}

#[test]
fn later_batches_wait_behind_the_pieces() {
    let mut bench = Bench::new(config(), 1, 1);
    (0..2).for_each(|tag| bench.send(0, tag));
    bench.prove();
    bench.pass(5);
    let first = bench.drain_one();
    bench.send(0, 2);
    bench.pass(5);
    let second = bench.drain_one();
    bench.answer(&first, TOO_LARGE, -1);
    bench.answer(&second, 45, -1);
    bench.pass(1_000);
    let mut tags = vec![];
    for _ in 0..3 {
        let request = bench.drain_one();
        tags.extend(seen(&request.parts[0]).tags);
        bench.answer(&request, 0, 0);
    }
    assert_eq!(tags, [0, 1, 2]);
    assert_eq!(bench.sender.metrics().epoch_bumps, 0);
}

#[test]
fn handles_hear_of_their_own_record() {
    use std::task::{Context, Poll, Waker};

    let mut bench = Bench::new(config(), 1, 1);
    let mut handles = vec![];
    for tag in 0..5u64 {
        let (mark, handle) = Mark::handle();
        let record = record(0, Bytes::copy_from_slice(&tag.to_be_bytes()));
        bench.sender.append(&record, 500 + tag as i64, mark, bench.now_ms).unwrap();
        handles.push(handle);
    }
    bench.pass(5);
    let request = bench.drain_one();
    bench.answer(&request, TOO_LARGE, -1);
    for _ in 0..5 {
        for request in bench.sender.drain(bench.now_ms, &bench.cluster.clone(), &mut |_| true) {
            let base_offset = 40 + i64::from(seen(&request.parts[0]).sequence);
            let response = response(&request, |_| (0, base_offset));
            bench.sender.answered(
                bench.now_ms,
                request.id,
                super::super::super::answers::RequestOutcome::Answered(&response),
            );
        }
    }
    bench.sender.take_finished().iter_mut().for_each(|finished| finished.tell());
    let mut cx = Context::from_waker(Waker::noop());
    for (at, handle) in handles.into_iter().enumerate() {
        let delivery = std::pin::pin!(handle).poll(&mut cx);
        let at = at as i64;
        let expected = super::super::super::delivery::Delivery::Acknowledged {
            partition: 0,
            offset: 40 + at,
            timestamp_ms: 500 + at,
        };
        assert_eq!(delivery, Poll::Ready(expected));
    }
}

#[test]
fn compressed_batches_are_cut_too() {
    let mut bench = Bench::new(ProducerConfig { compression: Codec::Zstd, batch_size: 10_000, ..config() }, 1, 1);
    (0..8).for_each(|tag| bench.send_big(0, tag));
    bench.pass(5);
    let request = bench.drain_one();
    assert!(request.bytes() < 1_000, "zeros compress");
    bench.answer(&request, TOO_LARGE, -1);
    let mut records = 0;
    for _ in 0..8 {
        for request in bench.drain() {
            records += model::BatchView::parse(&request.parts[0].records).unwrap().header.record_count;
            bench.answer(&request, 0, 0);
        }
    }
    assert_eq!((records, bench.sender.memory_used()), (8, 0));
    assert_eq!(bench.acknowledged(), (0..8).collect::<Vec<_>>());
}
