use super::super::test_support::{cluster, topic_id, view, with_topic};
use super::*;

fn target(resource_type: i8, name: &str) -> Result<ConfigResource, ErrorCode> {
    let view = view(with_topic(&cluster(1), "t", 1, &[]));
    of_change(&view, NodeId(1), resource_type, name).map_err(|refusal| refusal.code)
}

#[test]
fn what_there_is_is_found() {
    assert_eq!(target(TOPIC, "t"), Ok(ConfigResource::Topic(topic_id("t"))));
    assert_eq!(target(BROKER, "1"), Ok(ConfigResource::Broker(NodeId(1))));
    assert_eq!(target(BROKER, ""), Ok(ConfigResource::BrokerDefault));
}

#[test]
fn what_there_is_not_has_its_own_code() {
    assert_eq!(target(TOPIC, "unknown"), Err(ErrorCode::UnknownTopicOrPartition));
    assert_eq!(target(TOPIC, "a b"), Err(ErrorCode::InvalidTopicException));
    for (resource_type, name) in
        [(TOPIC, ""), (BROKER, "2"), (BROKER, "x"), (BROKER_LOGGER, "1"), (CLIENT_METRICS, "m"), (GROUP, "g"), (0, "x")]
    {
        assert_eq!(target(resource_type, name), Err(ErrorCode::InvalidRequest), "{resource_type} {name}");
    }
}
