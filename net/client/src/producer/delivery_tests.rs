use std::pin::pin;
use std::task::Waker;

use super::*;

/// What the third record of a batch hears.
fn told(fate: Fate) -> Poll<Delivery> {
    let (mark, handle) = Mark::handle();
    let Mark::Handle(sender) = mark else { panic!("a handle's mark is one") };
    let outcome = BatchOutcome {
        topic: "orders".into(),
        partition: 4,
        fate,
        records: 3,
        bytes: 30,
        created_ms: 0,
        ended_ms: 1,
        tags: vec![UNTAGGED; 3],
    };
    Finished { outcome, waiters: vec![Waiter { index: 2, timestamp_ms: 77, sender }] }.tell();
    pin!(handle).poll(&mut Context::from_waker(Waker::noop()))
}

fn acknowledged(offset: i64, timestamp_ms: i64) -> Poll<Delivery> {
    Poll::Ready(Delivery::Acknowledged { partition: 4, offset, timestamp_ms })
}

#[test]
fn a_records_offset_is_its_place_in_the_batch() {
    assert_eq!(told(Fate::Acknowledged { base_offset: 10, log_append_time_ms: -1 }), acknowledged(12, 77));
}

#[test]
fn the_brokers_time_wins_where_it_gives_one() {
    assert_eq!(told(Fate::Acknowledged { base_offset: 0, log_append_time_ms: 99 }), acknowledged(2, 99));
}

#[test]
fn an_unknown_offset_stays_unknown() {
    assert_eq!(told(Fate::Acknowledged { base_offset: -1, log_append_time_ms: -1 }), acknowledged(-1, 77));
    assert_eq!(told(Fate::Acknowledged { base_offset: i64::MAX, log_append_time_ms: -1 }), acknowledged(i64::MAX, 77));
}

#[test]
fn failures_are_told_as_they_are() {
    assert_eq!(told(Fate::NotSent(ClientError::Closed)), Poll::Ready(Delivery::NotSent(ClientError::Closed)));
    assert_eq!(told(Fate::PossiblySent(ClientError::Closed)), Poll::Ready(Delivery::PossiblySent(ClientError::Closed)));
}

#[test]
fn a_sender_that_goes_away_leaves_it_open() {
    let (mark, handle) = Mark::handle();
    drop(mark);
    let polled = pin!(handle).poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(polled, Poll::Ready(Delivery::PossiblySent(ClientError::Closed)));
}
