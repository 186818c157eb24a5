use super::super::admin::test_support::{cluster, topic_id, view, with_topic};
use super::*;

fn key(topic: &str, partition: i32) -> PartitionKey {
    PartitionKey { topic_id: topic_id(topic), partition: PartitionIndex(partition) }
}

#[test]
fn only_what_exists_is_measured() {
    let view = view(with_topic(&cluster(1), "a", 2, &[]));
    let topics = [
        DescribableLogDirTopic { topic: "a", partitions: vec![1, 1, 9, -1] },
        DescribableLogDirTopic { topic: "none", partitions: vec![0] },
        DescribableLogDirTopic { topic: "a", partitions: vec![0] },
    ];
    let wanted: Vec<_> = wanted(&view, &topics).into_iter().collect();
    assert_eq!(wanted, [key("a", 0), key("a", 1)]);
    assert_eq!(all(&view).collect::<Vec<_>>(), wanted);
}

#[test]
fn sizes_are_put_together_by_name() {
    let view = view(with_topic(&with_topic(&cluster(1), "b", 1, &[]), "a", 2, &[]));
    let sizes = [(key("b", 0), 3), (key("a", 1), 2), (key("a", 0), 1), (key("gone", 0), 9)];
    let topics = by_topic(&view, sizes.into_iter());
    let flat: Vec<_> = topics
        .iter()
        .flat_map(|t| t.partitions.iter().map(|p| (t.name.as_ref(), p.partition_index, p.partition_size)))
        .collect();
    assert_eq!(flat, [("a", 0, 1), ("a", 1, 2), ("b", 0, 3)]);
}
