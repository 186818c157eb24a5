use metadata::{Command, ConfigChange};

use super::super::admin::test_support::{cluster, then, view, with_topic};
use super::*;

#[test]
fn types_are_chosen_from_version_1_on() {
    assert_eq!(types(0, &[]), Ok(BTreeSet::from([CLIENT_METRICS])));
    assert_eq!(types(1, &[]).map(|types| types.len()), Ok(5));
    assert_eq!(types(1, &[BROKER, BROKER]), Ok(BTreeSet::from([BROKER])));
    for unknown in [0, 1, 64] {
        assert_eq!(types(1, &[TOPIC, unknown]), Err(ErrorCode::UnsupportedVersion));
    }
}

#[test]
fn resources_are_listed_by_type_and_name() {
    let change = ConfigChange::Replace(vec![("k".into(), "v".into())]);
    let group = Command::AlterConfigs { resource: Target::Group("g".into()), change };
    let image = then(&with_topic(&with_topic(&cluster(1), "b", 1, &[]), "a", 1, &[]), group);
    let view = view(image);
    let listed = |types: &[i8]| -> Vec<(String, i8)> {
        let types = types.iter().copied().collect();
        list(&view, &types).into_iter().map(|r| (r.resource_name.into_owned(), r.resource_type)).collect()
    };
    let pair = |name: &str, resource_type| (name.to_string(), resource_type);
    assert_eq!(listed(&[TOPIC, BROKER]), [pair("a", TOPIC), pair("b", TOPIC), pair("1", BROKER)]);
    assert_eq!(listed(&[GROUP, CLIENT_METRICS, BROKER_LOGGER]), [pair("g", GROUP)]);
}
