use super::*;

const CART: Deeds = Deeds { cart: true, order: false };
const ORDER: Deeds = Deeds { cart: false, order: true };
const LOOK: Deeds = Deeds { cart: false, order: false };

#[test]
fn a_visit_remembers_what_it_did() {
    let mut open = OpenSessions::new(4);
    assert_eq!(open.touch(1, 0, LOOK), None);
    assert_eq!(open.touch(1, 10, CART), Some(LOOK));
    assert_eq!(open.touch(1, 20, ORDER), Some(CART));
    assert_eq!(open.touch(1, 30, LOOK), Some(CART.and(ORDER)));
    assert_eq!(open.len(), 1);
}

#[test]
fn a_long_pause_makes_a_new_visit() {
    let mut open = OpenSessions::new(4);
    open.touch(1, 0, CART);
    assert_eq!(open.touch(1, SESSION_IDLE_MS, LOOK), Some(CART));
    assert_eq!(open.touch(1, 2 * SESSION_IDLE_MS + 1, LOOK), None);
    assert_eq!(open.touch(1, 2 * SESSION_IDLE_MS + 2, LOOK), Some(LOOK));
}

#[test]
fn an_event_out_of_order_still_belongs() {
    let mut open = OpenSessions::new(4);
    open.touch(1, 1_000, CART);
    assert_eq!(open.touch(1, 500, LOOK), Some(CART));
    assert_eq!(open.touch(1, 1_000 + SESSION_IDLE_MS, LOOK), Some(CART), "the latest time counts");
}

#[test]
fn idle_visits_are_closed_and_their_slots_reused() {
    let mut open = OpenSessions::new(100);
    for key in 0..10 {
        open.touch(key, key as i64, LOOK);
    }
    open.touch(0, 100, LOOK);
    open.close_idle(SESSION_IDLE_MS + 6);
    assert_eq!(open.len(), 5, "0 was touched again, 6 to 9 are not over yet");
    open.close_idle(SESSION_IDLE_MS * 3);
    assert_eq!(open.len(), 0);
    for key in 20..30 {
        open.touch(key, SESSION_IDLE_MS * 3, LOOK);
    }
    assert_eq!((open.len(), open.slots.len(), open.evicted()), (10, 10, 0));
}

#[test]
fn too_many_visits_push_out_the_longest_idle() {
    let mut open = OpenSessions::new(3);
    for (at, key) in [1, 2, 3, 1, 4].into_iter().enumerate() {
        open.touch(key, at as i64, CART);
    }
    assert_eq!((open.len(), open.slots.len(), open.evicted()), (3, 3, 1));
    assert_eq!(open.touch(1, 9, LOOK), Some(CART));
    assert_eq!(open.touch(2, 9, LOOK), None, "2 was idle for longest");
}

#[test]
fn merging_joins_what_is_open_on_both_sides() {
    let (mut one, mut other) = (OpenSessions::new(10), OpenSessions::new(10));
    one.touch(1, 5, CART);
    one.touch(2, 6, LOOK);
    one.touch(3, 0, CART);
    other.touch(1, 7, ORDER);
    other.touch(3, SESSION_IDLE_MS + 1, ORDER);
    other.touch(4, 8, LOOK);
    let mut joined = Vec::new();
    one.merge(&other, |ours, theirs| joined.push((ours, theirs)));
    assert_eq!(joined, [(CART, ORDER)], "3 is two visits");
    assert_eq!(one.len(), 4);
    assert_eq!(one.touch(1, 9, LOOK), Some(CART.and(ORDER)));
    assert_eq!(one.touch(3, SESSION_IDLE_MS + 2, LOOK), Some(ORDER));
}

#[test]
fn merging_keeps_the_bound_and_the_latest() {
    let (mut one, mut other) = (OpenSessions::new(3), OpenSessions::new(3));
    for (key, at) in [(1, 10), (2, 30), (3, 50)] {
        one.touch(key, at, LOOK);
        other.touch(key + 3, at + 10, LOOK);
    }
    one.merge(&other, |_, _| panic!("no visit is on both sides"));
    assert_eq!((one.len(), one.evicted()), (3, 0));
    assert!([3, 5, 6].into_iter().all(|key| one.get(key).is_some()));
}
