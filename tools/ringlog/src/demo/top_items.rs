//! # The items asked for most, in bounded memory
//!
//! Space-saving (Metwally, Agrawal, El Abbadi 2005): at most [`MAX_TOP_COUNTERS`] counters; an item without one takes
//! over the smallest and inherits its count as its possible error. A count is therefore never too low, too high by at
//! most its error, and no error exceeds the total divided by the number of counters.
//!
//! The counters form a heap with the smallest first; each knows its place in it. Owned by one [`super::insights`].

use std::collections::HashMap;

use super::limits::MAX_TOP_COUNTERS;

/// One line of the ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopItem {
    pub item: u32,
    /// Events of the item, too high by at most `error`.
    pub count: u64,
    pub error: u64,
}

/// The sketch. See the module.
#[derive(Debug, Clone, Default)]
pub struct TopItems {
    counters: Vec<TopItem>,
    /// Counters by size, smallest first, as a binary heap of their indexes.
    heap: Vec<u32>,
    /// Where in the heap each counter is.
    place: Vec<u32>,
    by_item: HashMap<u32, u32>,
}

impl TopItems {
    pub fn add(&mut self, item: u32) {
        if let Some(&counter) = self.by_item.get(&item) {
            self.counters[counter as usize].count += 1;
            self.sift_down(self.place[counter as usize] as usize);
        } else if self.counters.len() < MAX_TOP_COUNTERS {
            self.push(TopItem { item, count: 1, error: 0 });
        } else {
            let counter = self.heap[0];
            let smallest = self.counters[counter as usize];
            self.by_item.remove(&smallest.item);
            self.by_item.insert(item, counter);
            self.counters[counter as usize] = TopItem { item, count: smallest.count + 1, error: smallest.count };
            self.sift_down(0);
        }
    }

    /// Adds what `other` counted. An item that one of them has no counter for may have had up to that one's smallest
    /// count there, which is added to its count and its error.
    pub fn merge(&mut self, other: &TopItems) {
        let (ours_unseen, others_unseen) = (self.unseen(), other.unseen());
        let mut all: Vec<TopItem> = Vec::with_capacity(self.counters.len() + other.counters.len());
        for ours in &self.counters {
            let (count, error) = other.get(ours.item).map_or((others_unseen, others_unseen), |o| (o.count, o.error));
            all.push(TopItem { item: ours.item, count: ours.count + count, error: ours.error + error });
        }
        for theirs in other.counters.iter().filter(|theirs| self.get(theirs.item).is_none()) {
            let (count, error) = (theirs.count + ours_unseen, theirs.error + ours_unseen);
            all.push(TopItem { item: theirs.item, count, error });
        }
        rank(&mut all);
        all.truncate(MAX_TOP_COUNTERS);
        *self = TopItems::default();
        all.into_iter().for_each(|counter| self.push(counter));
    }

    /// The `n` items with the highest counts; of equal ones the lower number first.
    #[must_use]
    pub fn top(&self, n: usize) -> Vec<TopItem> {
        let mut all = self.counters.clone();
        rank(&mut all);
        all.truncate(n);
        all
    }

    fn get(&self, item: u32) -> Option<&TopItem> {
        self.by_item.get(&item).map(|&counter| &self.counters[counter as usize])
    }

    /// The most events that an item without a counter can have had.
    fn unseen(&self) -> u64 {
        if self.counters.len() < MAX_TOP_COUNTERS { 0 } else { self.counters[self.heap[0] as usize].count }
    }

    fn push(&mut self, counter: TopItem) {
        let index = self.counters.len() as u32;
        self.by_item.insert(counter.item, index);
        self.counters.push(counter);
        self.place.push(index);
        self.heap.push(index);
        self.sift_up(index as usize);
    }

    fn count_at(&self, place: usize) -> u64 {
        self.counters[self.heap[place] as usize].count
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.place[self.heap[one] as usize] = one as u32;
        self.place[self.heap[other] as usize] = other as u32;
    }

    fn sift_up(&mut self, mut place: usize) {
        while place > 0 && self.count_at(place) < self.count_at((place - 1) / 2) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            if left >= self.heap.len() {
                return;
            }
            let right_is_less = right < self.heap.len() && self.count_at(right) < self.count_at(left);
            let child = if right_is_less { right } else { left };
            if self.count_at(place) <= self.count_at(child) {
                return;
            }
            self.swap(place, child);
            place = child;
        }
    }
}

fn rank(counters: &mut [TopItem]) {
    counters.sort_unstable_by_key(|counter| (std::cmp::Reverse(counter.count), counter.item));
}

#[cfg(test)]
#[path = "top_items_tests.rs"]
mod tests;
