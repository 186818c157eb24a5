#![allow(clippy::unwrap_used)]

use metadata::{Command, ConfigChange};
use model::config::BrokerConfig;

use super::super::admin::test_support::{cluster, then, view, with_topic};
use super::*;

fn resource<'a>(keys: &[&'a str]) -> DescribeConfigsResource<'a> {
    let configuration_keys = Some(keys.to_vec());
    DescribeConfigsResource { resource_type: config_target::TOPIC, resource_name: "t", configuration_keys }
}

fn request(include_synonyms: bool, include_documentation: bool) -> DescribeConfigsRequest<'static> {
    DescribeConfigsRequest { resources: Vec::new(), include_synonyms, include_documentation }
}

#[test]
fn keys_choose_and_flags_trim() {
    let view = view(with_topic(&cluster(1), "t", 1, &[("retention.ms", "1000")]));
    let asked = resource(&["retention.ms", "nonsense", "cleanup.policy"]);
    let full = result(&request(true, true), &asked, topic(&view, "t"));
    let names: Vec<_> = full.configs.iter().map(|config| config.name.as_ref()).collect();
    assert_eq!(names, ["cleanup.policy", "retention.ms"]);
    let retention = &full.configs[1];
    assert_eq!((retention.value.as_deref(), retention.config_source), (Some("1000"), 1));
    assert_eq!(retention.synonyms[0].name, "retention.ms");
    assert!(retention.documentation.as_ref().is_some_and(|doc| !doc.is_empty()));
    let bare = result(&request(false, false), &asked, topic(&view, "t"));
    assert!(bare.configs.iter().all(|config| config.synonyms.is_empty() && config.documentation.is_none()));
    let all = result(&request(false, false), &resource(&[]), topic(&view, "t"));
    assert!(all.configs.len() > 30);
}

#[test]
fn unknown_topics_have_an_empty_sentence() {
    let view = view(cluster(1));
    assert_eq!(
        topic(&view, "none").map_err(|r| (r.code, r.message)),
        Err((ErrorCode::UnknownTopicOrPartition, String::new()))
    );
    assert_eq!(topic(&view, "a b").map_err(|r| r.code), Err(ErrorCode::InvalidTopicException));
}

#[test]
fn the_default_of_all_brokers_is_what_was_set_for_them() {
    let set = |image: &metadata::Image, resource, value: &str| {
        let change = ConfigChange::Replace(vec![("log.retention.ms".into(), value.into())]);
        then(image, Command::AlterConfigs { resource, change })
    };
    let image = set(&cluster(1), ConfigResource::BrokerDefault, "5");
    let image = set(&image, ConfigResource::Broker(model::NodeId(1)), "7");
    let base = BrokerConfig::from_pairs([("node.id", "1"), ("log.retention.ms", "9")]).unwrap();
    let mut view = view(image);
    view.config = View::effective_config(&base, &view.image, model::NodeId(1)).unwrap().into();
    let described = broker_default(&view);
    assert_eq!(described.len(), 1);
    assert_eq!(described[0].value.as_deref(), Some("5"));
    assert_eq!(described[0].source, Source::DynamicDefaultBroker);
    assert_eq!(described[0].synonyms.len(), 1);
}
