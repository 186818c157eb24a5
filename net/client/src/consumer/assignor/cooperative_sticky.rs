//! Sticky in two steps: a partition that changes hands is first given to nobody, so that its holder lets go of it; the
//! round after that, which the holder asks for, gives it to the new one.

use std::collections::BTreeMap;

use super::{Assignments, Member, PartitionCounts, sticky};
use crate::TopicPartition;
use crate::consumer_protocol::Subscription;

/// Of what the member holds: said in the subscription since its version 2, before that in the user data.
pub(super) fn generation(subscription: &Subscription) -> i32 {
    if subscription.generation_id >= 0 {
        return subscription.generation_id;
    }
    let bytes = subscription.user_data.as_ref().and_then(|data| data.get(..4)?.try_into().ok());
    bytes.map_or(-1, i32::from_be_bytes)
}

pub(super) fn assign(counts: &PartitionCounts, members: &[Member]) -> Assignments {
    let mut out = sticky::assign(counts, members);
    // Whoever may still be reading it, by any claim: two members never read one partition at a time.
    let mut holders: BTreeMap<&TopicPartition, Vec<&str>> = BTreeMap::new();
    for member in members {
        for partition in &member.owned {
            holders.entry(partition).or_default().push(&member.id);
        }
    }
    for (id, partitions) in &mut out {
        partitions
            .retain(|partition| holders.get(partition).is_none_or(|holders| holders.iter().all(|holder| holder == id)));
    }
    out
}
