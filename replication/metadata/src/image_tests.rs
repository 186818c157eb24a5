#![allow(clippy::unwrap_used)]
use super::*;
use crate::apply::apply;
use crate::command::Command;

fn id(number: u32) -> TopicId {
    let mut id = [0x40; 16];
    // Spread over the tree, as random ids are.
    id[..4].copy_from_slice(&number.wrapping_mul(0x9e37_79b9).to_be_bytes());
    TopicId(id)
}

pub(crate) fn image_with_topics(count: u32) -> Image {
    let mut image = Image { cluster_id: Some("AAAAAAAAQACAAAAAAAAAAQ".into()), ..Image::default() };
    let register = Command::RegisterBroker {
        node: NodeId(0),
        incarnation: Incarnation::default(),
        host: "h".into(),
        port: 1,
        rack: None,
    };
    image = apply(&image, 1, &register).unwrap().0;
    for number in 0..count {
        image = create(&image, number);
    }
    image
}

fn create(image: &Image, number: u32) -> Image {
    let command = Command::CreateTopic {
        name: format!("t{number:06}").into(),
        id: id(number),
        assignments: vec![vec![NodeId(0)]],
        configs: vec![],
    };
    apply(image, image.version() + 1, &command).unwrap().0
}

#[test]
fn creating_one_topic_among_ten_thousand_shares_the_others() {
    let before = image_with_topics(10_000);
    let after = create(&before, 10_000);
    for topic in before.topics() {
        assert!(Arc::ptr_eq(topic, after.topic(topic.id).unwrap()));
    }
    assert!(before.topic(id(10_000)).is_none());
    assert_eq!(after.topic_count(), 10_001);
    assert_eq!(after.partition_count(), 10_001);
    // The maps share their nodes too: the difference is found without looking at ten thousand topics.
    assert!(!before.topics.ptr_eq(&after.topics));
    assert!(before.brokers.ptr_eq(&after.brokers) && before.configs.ptr_eq(&after.configs));
}

#[test]
fn replicas_and_isr_are_shared_within_a_topic() {
    let image = image_with_topics(0);
    let command =
        Command::CreateTopic { name: "t".into(), id: id(1), assignments: vec![vec![NodeId(0)]; 100], configs: vec![] };
    let image = apply(&image, 5, &command).unwrap().0;
    let partitions = &image.topic(id(1)).unwrap().partitions;
    assert!(partitions.iter().all(|p| Arc::ptr_eq(&p.replicas, &partitions[0].isr)));
}

#[test]
fn changes_between_two_images_are_the_changed_topics_only() {
    let old = image_with_topics(500);
    let mut new = create(&old, 500);
    new = apply(&new, new.version() + 1, &Command::DeleteTopic { id: id(3) }).unwrap().0;
    let grow = Command::AddPartitions { id: id(4), first: PartitionIndex(1), assignments: vec![vec![NodeId(0)]] };
    new = apply(&new, new.version() + 1, &grow).unwrap().0;
    let mut seen = Vec::new();
    for change in new.changed_topics_since(&old) {
        match change {
            TopicChange::Created(topic) => seen.push(("created", topic.id)),
            TopicChange::Deleted(topic) => seen.push(("deleted", topic.id)),
            TopicChange::Changed { old, new } => {
                assert_eq!((old.partitions.len(), new.partitions.len()), (1, 2));
                seen.push(("changed", new.id));
            }
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, vec![("changed", id(4)), ("created", id(500)), ("deleted", id(3))]);
    assert_eq!(new.changed_topics_since(&new).count(), 0);
    assert_eq!(new.changed_topics_since(&Image::default()).count(), new.topic_count());
}

#[test]
fn topics_are_found_by_name_and_listed_in_name_order() {
    let image = image_with_topics(300);
    assert_eq!(image.topic_by_name("t000007").unwrap().id, id(7));
    assert_eq!(image.topic_id("t000007"), Some(id(7)));
    assert!(image.topic_by_name("none").is_none());
    assert!(image.partition(id(7), PartitionIndex(0)).is_some());
    assert!(image.partition(id(7), PartitionIndex(1)).is_none());
    assert!(image.partition(id(7), PartitionIndex(-1)).is_none());
    let names: Vec<&str> = image.topics_by_name().map(|topic| &*topic.name).collect();
    assert!(names.is_sorted() && names.len() == 300);
    let page: Vec<&str> = image.topics_from("t000298").map(|topic| &*topic.name).collect();
    assert_eq!(page, ["t000298", "t000299"]);
    assert_eq!(image.topics_from("t0002985").count(), 1);
}
