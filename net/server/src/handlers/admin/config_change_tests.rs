#![allow(clippy::unwrap_used)]

use super::super::test_support::{cluster, topic_id, view, with_topic};
use super::*;

fn with(configs: &[(&str, &str)]) -> View {
    view(with_topic(&cluster(1), "t", 1, configs))
}

fn changed(view: &View, resource: &Resource<'_>) -> Result<Image, ErrorCode> {
    let command = judge(&view.config, NodeId(1), view, resource).map_err(|refusal| refusal.code)?;
    Ok(metadata::apply(&view.image, view.image.version() + 1, &command).unwrap().0)
}

fn of_topic(asked: Asked<'_>) -> Resource<'_> {
    Resource { resource_type: config_target::TOPIC, name: "t", asked }
}

/// What topic `t` would hold under `key`.
fn after(view: &View, key: &str, ops: &[(&str, i8, Option<&str>)]) -> Result<Option<String>, ErrorCode> {
    let ops = ops.iter().map(|&(name, operation, value)| Op { name, operation, value }).collect();
    let image = changed(view, &of_topic(Asked::Incremental(ops)))?;
    let configs = image.configs(&ConfigResource::Topic(topic_id("t")));
    Ok(configs.and_then(|configs| configs.get(key)).map(|value| value.to_string()))
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
    let replaced = |entries| changed(&view, &of_topic(Asked::Replace(entries)));
    let image = replaced(vec![("segment.ms", Some("7"))]).unwrap();
    let configs = image.configs(&ConfigResource::Topic(topic_id("t"))).unwrap();
    assert_eq!(configs.iter().map(|(k, v)| (k.as_ref(), v.as_ref())).collect::<Vec<_>>(), [("segment.ms", "7")]);
    assert_eq!(replaced(vec![("segment.ms", None)]).err(), Some(ErrorCode::InvalidRequest));
    assert_eq!(replaced(vec![("nope", Some("1"))]).err(), Some(ErrorCode::InvalidConfig));
}

/// Of broker 1, or of all when `broker` is empty.
fn set_on_broker(view: &View, broker: &str, name: &str, value: &str) -> Result<(), ErrorCode> {
    let asked = Asked::Incremental(vec![Op { name, operation: SET, value: Some(value) }]);
    changed(view, &Resource { resource_type: config_target::BROKER, name: broker, asked }).map(drop)
}

#[test]
fn a_running_broker_takes_dynamic_properties_only() {
    let view = with(&[]);
    for broker in ["1", ""] {
        assert_eq!(set_on_broker(&view, broker, "log.retention.ms", "5"), Ok(()));
        for (name, value) in [("node.id", "5"), ("num.partitions", "5"), ("log.retention.ms", "x")] {
            assert_eq!(set_on_broker(&view, broker, name, value), Err(ErrorCode::InvalidRequest), "{name}");
        }
        assert_eq!(set_on_broker(&view, broker, "my.custom", "5"), Err(ErrorCode::InvalidConfig));
    }
}

#[test]
fn a_brokers_default_must_suit_every_topic() {
    let view = with(&[("min.compaction.lag.ms", "100")]);
    let broker = "";
    assert_eq!(set_on_broker(&view, broker, "log.cleaner.max.compaction.lag.ms", "1000"), Ok(()));
    let code = set_on_broker(&view, broker, "log.cleaner.max.compaction.lag.ms", "99");
    assert_eq!(code, Err(ErrorCode::InvalidRequest));
}

#[test]
fn resources_that_repeat_are_found() {
    let resource = |resource_type, name| Resource { resource_type, name, asked: Asked::Incremental(Vec::new()) };
    let found = repeated(&[resource(2, "a"), resource(2, "b"), resource(4, "a"), resource(2, "a")]);
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [(2, "a")]);
}
