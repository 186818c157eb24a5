//! The internal topic: there from the first moment, and nobody's but the broker's.

use kafka_protocol::messages::CreatePartitionsRequest;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use ringlog_e2e::Broker;
use ringlog_e2e::batch::Batch;
use ringlog_e2e::broker::skip_on_kafka;
use ringlog_e2e::groups::find_coordinator;
use ringlog_e2e::raw::Raw;
use ringlog_e2e::requests::{self, all_topics, create_topics, new_topic, topic_name, until};

const INVALID_TOPIC: i16 = 17;
const OFFSETS: &str = "__consumer_offsets";

#[test]
fn all_its_partitions_are_there_from_the_first_moment() {
    let broker = Broker::with(&[("offsets.topic.num.partitions", "7")]);
    let mut raw = Raw::connect(&broker);
    until("the coordinator is found", || (find_coordinator(&mut raw, "g", 0) == 0).then_some(()));
    let topics = all_topics(&mut raw);
    let offsets = topics.iter().find(|topic| topic.name.as_ref().is_some_and(|name| name.as_str() == OFFSETS));
    let offsets = offsets.expect("the offsets' topic is in the metadata");
    assert!(offsets.is_internal);
    assert_eq!(offsets.partitions.len(), 7);
    assert!(offsets.partitions.iter().all(|partition| partition.leader_id.0 >= 0 && partition.error_code == 0));
}

#[test]
fn clients_cannot_produce_to_it() {
    let broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    until("the coordinator is found", || (find_coordinator(&mut raw, "g", 0) == 0).then_some(()));
    assert_eq!(requests::refused(&mut raw, OFFSETS, &Batch::of(&["forged"])), INVALID_TOPIC);
}

#[test]
fn clients_cannot_make_or_grow_internal_names() {
    if skip_on_kafka("Kafka lets an administrator make and grow them") {
        return;
    }
    let broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    for name in [OFFSETS, "__transaction_state", "__share_group_state", "__cluster_metadata"] {
        let codes = create_topics(&mut raw, vec![new_topic(name, 1, &[])], false);
        assert_ne!(codes, [(name.to_owned(), 0)]);
        let seen = requests::metadata(&mut raw, &[name], true).topics.remove(0);
        let again = requests::metadata(&mut raw, &[name], true).topics.remove(0);
        assert!(name == OFFSETS || (seen.error_code != 0 && again.error_code != 0), "{name} was auto-created");
    }
    until("the coordinator is found", || (find_coordinator(&mut raw, "g", 0) == 0).then_some(()));
    let grow = CreatePartitionsTopic::default().with_name(topic_name(OFFSETS)).with_count(100);
    let request = CreatePartitionsRequest::default().with_topics(vec![grow]).with_timeout_ms(5000);
    assert_ne!(raw.call(3, &request).results[0].error_code, 0);
}
