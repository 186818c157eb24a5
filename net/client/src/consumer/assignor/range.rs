//! Each topic by itself: its partitions in order, cut into runs, the first members getting one more.

use super::{Assignments, Member, PartitionCounts, empty, in_order};
use crate::TopicPartition;

pub(super) fn assign(counts: &PartitionCounts, members: &[Member]) -> Assignments {
    let mut out = empty(members);
    let sorted = in_order(members);
    for (topic, &count) in counts {
        let readers: Vec<&Member> = sorted.iter().copied().filter(|member| member.topics.contains(topic)).collect();
        let Some(each) = usize::try_from(count).ok().and_then(|count| count.checked_div(readers.len())) else {
            continue;
        };
        let extra = count as usize % readers.len();
        let mut next = 0;
        for (at, reader) in readers.iter().enumerate() {
            let end = next + each as i32 + i32::from(at < extra);
            let run = (next..end).map(|partition| TopicPartition { topic: topic.clone(), partition });
            out.entry(reader.id.clone()).or_default().extend(run);
            next = end;
        }
    }
    out
}
