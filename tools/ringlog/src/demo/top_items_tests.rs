use std::collections::BTreeMap;

use super::*;
use crate::demo::random::{Alias, Rng};

/// Skewed items, three times as many as there are counters.
fn feed(seed: u64, events: usize, sketch: &mut TopItems, exact: &mut BTreeMap<u32, u64>) {
    let weights: Vec<f64> = (0..3 * MAX_TOP_COUNTERS).map(|rank| 1.0 / (rank as f64 + 1.0)).collect();
    let items = Alias::new(&weights);
    let mut rng = Rng::new(seed);
    for _ in 0..events {
        let item = items.sample(&mut rng) as u32;
        sketch.add(item);
        *exact.entry(item).or_default() += 1;
    }
}

fn assert_bounds(sketch: &TopItems, exact: &BTreeMap<u32, u64>, most_error: u64) {
    for TopItem { item, count, error } in sketch.top(usize::MAX) {
        let real = exact.get(&item).copied().unwrap_or(0);
        assert!(real <= count && count - error <= real, "item {item}: {real} counted as {count} +- {error}");
        assert!(error <= most_error, "item {item}: {error} of {most_error}");
    }
}

#[test]
fn few_items_are_counted_exactly() {
    let mut sketch = TopItems::default();
    for item in [5, 9, 5, 7, 9, 5] {
        sketch.add(item);
    }
    let wanted = [(5, 3), (9, 2), (7, 1)].map(|(item, count)| TopItem { item, count, error: 0 });
    assert_eq!(sketch.top(10), wanted);
    assert_eq!(sketch.top(1), wanted[..1]);
}

#[test]
fn counts_keep_their_bounds() {
    let (mut sketch, mut exact) = (TopItems::default(), BTreeMap::new());
    feed(1, 100_000, &mut sketch, &mut exact);
    assert!(exact.len() > 2 * MAX_TOP_COUNTERS);
    assert_eq!(sketch.top(usize::MAX).len(), MAX_TOP_COUNTERS);
    assert_eq!(sketch.top(usize::MAX).iter().map(|top| top.count).sum::<u64>(), 100_000);
    assert_bounds(&sketch, &exact, 100_000 / MAX_TOP_COUNTERS as u64);
}

#[test]
fn the_first_items_are_found() {
    let (mut sketch, mut exact) = (TopItems::default(), BTreeMap::new());
    feed(2, 100_000, &mut sketch, &mut exact);
    let found: Vec<u32> = sketch.top(5).iter().map(|top| top.item).collect();
    assert_eq!(found, [0, 1, 2, 3, 4]);
}

#[test]
fn ever_new_items_take_no_more_memory() {
    let mut sketch = TopItems::default();
    (0..50_000).for_each(|item| sketch.add(item));
    assert_eq!(sketch.counters.len(), MAX_TOP_COUNTERS);
    assert_eq!(sketch.by_item.len(), MAX_TOP_COUNTERS);
    assert_eq!(sketch.heap.len(), MAX_TOP_COUNTERS);
}

#[test]
fn merged_counts_keep_their_bounds() {
    let (mut one, mut other, mut exact) = (TopItems::default(), TopItems::default(), BTreeMap::new());
    feed(3, 60_000, &mut one, &mut exact);
    feed(4, 40_000, &mut other, &mut exact);
    one.merge(&other);
    assert_eq!(one.counters.len(), MAX_TOP_COUNTERS);
    assert_bounds(&one, &exact, 100_000 / MAX_TOP_COUNTERS as u64);
    feed(5, 20_000, &mut one, &mut exact);
    assert_bounds(&one, &exact, 120_000 / MAX_TOP_COUNTERS as u64 + 100);
}

#[test]
fn merging_with_nothing_changes_nothing() {
    let (mut one, mut exact) = (TopItems::default(), BTreeMap::new());
    feed(6, 5_000, &mut one, &mut exact);
    let before = one.top(usize::MAX);
    one.merge(&TopItems::default());
    assert_eq!(one.top(usize::MAX), before);
    let mut empty = TopItems::default();
    empty.merge(&one);
    assert_eq!(empty.top(usize::MAX), before);
}
