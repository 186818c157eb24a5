//! All partitions of all topics in order, dealt out one by one; who does not subscribe to the topic is passed over.

use super::{Assignments, Member, PartitionCounts, empty, in_order, wanted_partitions};

pub(super) fn assign(counts: &PartitionCounts, members: &[Member]) -> Assignments {
    let mut out = empty(members);
    let sorted = in_order(members);
    let mut turn = 0;
    for partition in wanted_partitions(counts, members) {
        // Somebody subscribes to it, or it would not be wanted.
        while !sorted[turn].topics.contains(&partition.topic) {
            turn = (turn + 1) % sorted.len();
        }
        out.entry(sorted[turn].id.clone()).or_default().push(partition);
        turn = (turn + 1) % sorted.len();
    }
    out
}
