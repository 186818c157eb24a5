#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn the_limit_holds_and_says_when_it_was_in_the_way() {
    let mut pool = Pool::new(1_000);
    let buffer = pool.take(800).unwrap();
    assert_eq!(pool.used(), 800);
    assert!(!pool.short);
    assert!(pool.take(201).is_none());
    assert!(pool.short);
    pool.give_back(buffer.capacity(), Some(buffer));
    assert_eq!(pool.used(), 0);
    assert!(pool.take(1_000).is_some());
}

#[test]
fn buffers_are_used_again() {
    let mut pool = Pool::new(10_000);
    let mut buffer = pool.take(500).unwrap();
    buffer.extend_from_slice(b"old");
    let at = buffer.as_ptr();
    pool.give_back(buffer.capacity(), Some(buffer));
    let again = pool.take(400).unwrap();
    assert!(again.is_empty());
    assert_eq!((again.as_ptr(), pool.used()), (at, 500));
}

#[test]
fn a_buffer_that_is_much_too_large_is_left() {
    let mut pool = Pool::new(10_000);
    let buffer = pool.take(5_000).unwrap();
    pool.give_back(buffer.capacity(), Some(buffer));
    assert_eq!(pool.take(100).unwrap().capacity(), 100);
}

#[test]
fn waiting_buffers_make_room() {
    let mut pool = Pool::new(1_000);
    let buffer = pool.take(900).unwrap();
    pool.give_back(900, Some(buffer));
    assert!(pool.take(300).is_some());
    assert_eq!((pool.used(), pool.free_bytes), (300, 0));
}
