#![allow(clippy::unwrap_used)]
use std::rc::Rc;

use super::*;
use crate::producers::ProducerTable;

fn memory(offset: i64) -> BatchMemory {
    BatchMemory {
        first_sequence: 0,
        last_sequence: 0,
        first_offset: Offset(offset),
        last_offset: Offset(offset),
        timestamp_ms: 1,
    }
}

fn write(table: &ProducerTable, id: i64, now_ms: i64) {
    table.restore(ProducerId(id), ProducerEpoch(0), memory(id), now_ms);
}

fn ids(table: &ProducerTable) -> Vec<i64> {
    table.to_vec().into_iter().map(|(id, _)| id.0).collect()
}

#[test]
fn the_longest_silent_gives_way_whatever_its_partition() {
    let states = Rc::new(ProducerStates::new(16));
    let (a, b) = (ProducerTable::within(&states), ProducerTable::within(&states));
    for id in 0..16 {
        write(if id % 2 == 0 { &a } else { &b }, id, 0);
    }
    write(&a, 100, 0);
    write(&a, 101, 0);
    assert_eq!(ids(&a), [2, 4, 6, 8, 10, 12, 14, 100, 101]);
    assert_eq!(ids(&b), [3, 5, 7, 9, 11, 13, 15]);
    assert_eq!((states.len(), states.evicted()), (16, 2));
}

#[test]
fn active_producers_keep_their_place_among_a_million_that_write_once() {
    const MAX: usize = 1_000;
    let states = Rc::new(ProducerStates::new(MAX));
    let table = ProducerTable::within(&states);
    for once in 0..1_000_000 {
        // Ten that write every few hundred newcomers.
        if once % 40 == 0 {
            write(&table, 10_000_000 + once / 40 % 10, once);
        }
        write(&table, once, once);
        assert!(states.len() <= MAX);
    }
    let left = ids(&table);
    assert!((10_000_000..10_000_010).all(|id| left.contains(&id)), "{:?}", &left[left.len() - 12..]);
    assert_eq!(left.len(), MAX);
    assert_eq!(states.with(table_id(&states), ProducerId(10_000_003), |e| e.batches.len()), Some(5));
}

fn table_id(states: &ProducerStates) -> TableId {
    states.next_table.get() - 1
}

#[test]
fn a_table_goes_with_its_partition() {
    let states = Rc::new(ProducerStates::new(16));
    let (a, b) = (ProducerTable::within(&states), ProducerTable::within(&states));
    (0..6).for_each(|id| write(&a, id, 0));
    (0..6).for_each(|id| write(&b, id, 0));
    drop(a);
    assert_eq!((states.len(), states.order.borrow().len()), (6, 6));
    assert_eq!(ids(&b), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn silence_is_measured_by_the_brokers_clock() {
    let states = Rc::new(ProducerStates::new(16));
    let table = ProducerTable::within(&states);
    write(&table, 1, 1_000);
    write(&table, 2, 5_000);
    write(&table, 1, 9_000);
    table.expire(5_001);
    assert_eq!(ids(&table), [1]);
    assert_eq!(states.order.borrow().len(), 1);
}
