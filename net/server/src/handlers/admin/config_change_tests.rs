use model::NodeId;

use super::super::test_support::{cluster, topic_id, view, with_topic};
use super::*;

fn with(configs: &[(&str, &str)]) -> View {
    view(with_topic(&cluster(1), "t", 1, configs))
}

fn topic() -> ConfigResource {
    ConfigResource::Topic(topic_id("t"))
}

/// What topic `t` would hold under `key`.
fn after(view: &View, key: &str, ops: &[(&str, i8, Option<&str>)]) -> Result<Option<String>, ErrorCode> {
    let ops = ops.iter().map(|&(name, operation, value)| Op { name, operation, value }).collect();
    let asked = Asked::Incremental(ops);
    let change = change(view, &topic(), &asked).map_err(|refusal| refusal.code)?;
    let command = Command::AlterConfigs { resource: topic(), change };
    let (image, _) = metadata::apply(&view.image, view.image.version() + 1, &command).unwrap();
    check_topic(view, &image, &topic()).map_err(|refusal| refusal.code)?;
    Ok(image.configs(&topic()).and_then(|configs| configs.get(key)).map(|value| value.to_string()))
}

fn one(view: &View, name: &str, operation: i8, value: Option<&str>) -> Result<Option<String>, ErrorCode> {
    after(view, name, &[(name, operation, value)])
}

#[test]
fn set_and_delete() {
    let view = with(&[("retention.ms", "5")]);
    assert_eq!(one(&view, "retention.ms", SET, Some("7")), Ok(Some("7".into())));
    assert_eq!(one(&view, "retention.ms", DELETE, None), Ok(None));
    assert_eq!(one(&view, "segment.ms", DELETE, Some("what was")), Ok(None));
    assert_eq!(one(&view, "no.such.key", DELETE, None), Ok(None));
}

#[test]
fn lists_grow_from_the_default_and_shrink() {
    let view = with(&[]);
    assert_eq!(one(&view, "cleanup.policy", APPEND, Some("compact")), Ok(Some("delete,compact".into())));
    assert_eq!(one(&view, "cleanup.policy", APPEND, Some("delete")), Ok(Some("delete".into())));
    assert_eq!(one(&view, "cleanup.policy", SUBTRACT, Some("delete")), Ok(Some(String::new())));
    let set = with(&[("cleanup.policy", "compact")]);
    assert_eq!(one(&set, "cleanup.policy", SUBTRACT, Some("delete")), Ok(Some("compact".into())));
}

#[test]
fn what_the_table_refuses_is_an_invalid_config() {
    let view = with(&[]);
    for (name, operation, value) in [
        ("retention.ms", SET, "abc"),
        ("retention.ms", SET, "-9"),
        ("retention.ms", APPEND, "5"),
        ("retention.ms", SUBTRACT, "5"),
        ("no.such.key", SET, "1"),
        ("no.such.key", APPEND, "1"),
        ("", SET, "1"),
        ("cleanup.policy", APPEND, "nope"),
        ("remote.storage.enable", SET, "true"),
        ("compression.type", SET, "gzip"),
    ] {
        let result = one(&view, name, operation, Some(value));
        assert_eq!(result, Err(ErrorCode::InvalidConfig), "{name} {operation} {value}");
    }
}

#[test]
fn malformed_changes_are_invalid_requests() {
    let view = with(&[]);
    for operation in [SET, APPEND, SUBTRACT] {
        assert_eq!(one(&view, "cleanup.policy", operation, None), Err(ErrorCode::InvalidRequest));
    }
    assert_eq!(one(&view, "retention.ms", 9, Some("5")), Err(ErrorCode::InvalidRequest));
    let twice = [("retention.ms", SET, Some("5")), ("retention.ms", SET, Some("6"))];
    assert_eq!(after(&view, "retention.ms", &twice), Err(ErrorCode::InvalidRequest));
}

#[test]
fn values_that_contradict_each_other_are_refused_together() {
    let view = with(&[("max.compaction.lag.ms", "100")]);
    assert_eq!(one(&view, "min.compaction.lag.ms", SET, Some("101")), Err(ErrorCode::InvalidConfig));
    let both = [("min.compaction.lag.ms", SET, Some("101")), ("max.compaction.lag.ms", DELETE, None)];
    assert_eq!(after(&view, "min.compaction.lag.ms", &both), Ok(Some("101".into())));
}

#[test]
fn replacing_drops_what_is_not_named() {
    let view = with(&[("retention.ms", "5"), ("segment.ms", "6")]);
    let change = change(&view, &topic(), &Asked::Replace(vec![("segment.ms", Some("7"))])).unwrap();
    assert_eq!(change, ConfigChange::Replace(vec![("segment.ms".into(), "7".into())]));
    let null = Asked::Replace(vec![("segment.ms", None)]);
    assert_eq!(super::change(&view, &topic(), &null).unwrap_err().code, ErrorCode::InvalidRequest);
}

fn broker_after(view: &View, resource: &ConfigResource, name: &str, value: &str) -> Result<(), ErrorCode> {
    let asked = Asked::Incremental(vec![Op { name, operation: SET, value: Some(value) }]);
    let change = change(view, resource, &asked).map_err(|refusal| refusal.code)?;
    let command = Command::AlterConfigs { resource: resource.clone(), change };
    let (image, _) = metadata::apply(&view.image, view.image.version() + 1, &command).unwrap();
    check_broker(&view.config, view, &image, NodeId(1)).map_err(|refusal| refusal.code)
}

#[test]
fn a_running_broker_takes_dynamic_properties_only() {
    let view = with(&[]);
    for resource in [ConfigResource::Broker(NodeId(1)), ConfigResource::BrokerDefault] {
        assert_eq!(broker_after(&view, &resource, "log.retention.ms", "5"), Ok(()));
        for (name, value) in [("node.id", "5"), ("num.partitions", "5"), ("log.retention.ms", "x")] {
            assert_eq!(broker_after(&view, &resource, name, value), Err(ErrorCode::InvalidRequest), "{name}");
        }
        assert_eq!(broker_after(&view, &resource, "my.custom", "5"), Err(ErrorCode::InvalidConfig));
    }
}

#[test]
fn a_brokers_default_must_suit_every_topic() {
    let view = with(&[("min.compaction.lag.ms", "100")]);
    let resource = ConfigResource::BrokerDefault;
    assert_eq!(broker_after(&view, &resource, "log.cleaner.max.compaction.lag.ms", "1000"), Ok(()));
    let code = broker_after(&view, &resource, "log.cleaner.max.compaction.lag.ms", "99");
    assert_eq!(code, Err(ErrorCode::InvalidRequest));
}

#[test]
fn resources_that_repeat_are_found() {
    let resource = |resource_type, name| Resource { resource_type, name, asked: Asked::Incremental(Vec::new()) };
    let found = repeated(&[resource(2, "a"), resource(2, "b"), resource(4, "a"), resource(2, "a")]);
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [(2, "a")]);
}
