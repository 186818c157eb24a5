//! Judges a history: what an idempotent producer sent, what was acknowledged to it, what was read back.
//!
//! Each record carries a number; the numbers of one partition rise in the order of sending. Every send is `acknowledged`,
//! or its fate is unknown (`possibly_sent`). Then: an acknowledged record is there, at the offset that was acknowledged;
//! no record is there twice; nothing is there that was not sent; numbers and offsets only rise.

use std::collections::BTreeMap;

/// What was read from one partition: (offset, number), in the order of reading.
pub type ReadBack = Vec<(i64, u64)>;

#[derive(Default, Debug)]
pub struct History {
    /// Numbers sent to each partition.
    sent: BTreeMap<i32, Vec<u64>>,
    /// Offset of each acknowledged number, by partition.
    acknowledged: BTreeMap<i32, BTreeMap<u64, i64>>,
}

impl History {
    pub fn send(&mut self, partition: i32, number: u64) {
        let numbers = self.sent.entry(partition).or_default();
        assert!(numbers.last().is_none_or(|last| *last < number), "numbers rise");
        numbers.push(number);
    }

    pub fn acknowledge(&mut self, partition: i32, number: u64, offset: i64) {
        self.acknowledged.entry(partition).or_default().insert(number, offset);
    }

    pub fn sent(&self) -> usize {
        self.sent.values().map(Vec::len).sum()
    }

    pub fn acknowledged(&self) -> usize {
        self.acknowledged.values().map(BTreeMap::len).sum()
    }

    /// Every way in which what was read contradicts the history, a sentence each.
    pub fn contradictions(&self, read: &BTreeMap<i32, ReadBack>) -> Vec<String> {
        let mut found = Vec::new();
        let nothing = Vec::new();
        for (partition, sent) in &self.sent {
            let read = read.get(partition).unwrap_or(&nothing);
            out_of_order(*partition, read, &mut found);
            let places = places(*partition, read, &mut found);
            for (number, offset) in self.acknowledged.get(partition).into_iter().flatten() {
                match places.get(number) {
                    None => {
                        found.push(format!("partition {partition}: {number} was acknowledged at {offset} and is lost"))
                    }
                    Some(there) if there != offset => {
                        found.push(format!(
                            "partition {partition}: {number} was acknowledged at {offset}, is at {there}"
                        ));
                    }
                    Some(_) => {}
                }
            }
            let never = places.keys().filter(|number| sent.binary_search(number).is_err());
            found.extend(never.map(|number| format!("partition {partition}: {number} was never sent")));
        }
        found
    }
}

fn out_of_order(partition: i32, read: &ReadBack, found: &mut Vec<String>) {
    for pair in read.windows(2) {
        let ((before, first), (after, second)) = (pair[0], pair[1]);
        if after <= before {
            found.push(format!("partition {partition}: offset {after} was read after {before}"));
        }
        if second < first {
            found.push(format!("partition {partition}: {second} (offset {after}) stands behind {first}"));
        }
    }
}

fn places(partition: i32, read: &ReadBack, found: &mut Vec<String>) -> BTreeMap<u64, i64> {
    let mut places = BTreeMap::new();
    for (offset, number) in read {
        if let Some(other) = places.insert(*number, *offset) {
            found.push(format!("partition {partition}: {number} is there twice, at {other} and {offset}"));
        }
    }
    places
}

#[cfg(test)]
#[path = "checker_tests.rs"]
mod tests;
