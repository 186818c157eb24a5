#![allow(clippy::unwrap_used)]

use crate::test_support::*;
use crate::*;

#[test]
fn a_stable_group_shows_metadata_and_assignments() {
    let mut h = Harness::new();
    let ids = h.stable("g", 2);
    let d = h.c.describe("g").unwrap().unwrap();
    assert_eq!((d.state, d.protocol_type.as_str(), d.protocol.as_str()), (GroupState::Stable, "consumer", "range"));
    let member = d.members.iter().find(|m| *m.member_id == *ids[1]).unwrap();
    assert_eq!((member.client_id.as_str(), member.client_host.as_str()), ("c1", "/127.0.0.1"));
    assert_eq!(member.metadata, subscription(&["t"]));
    assert_eq!(member.assignment, format!("assigned-{}", ids[1]));
    assert_eq!(h.c.describe("nowhere"), Ok(None));
}

#[test]
fn a_rebalancing_group_shows_no_protocol() {
    let mut h = Harness::new();
    h.join_new("g", "c");
    let d = h.c.describe("g").unwrap().unwrap();
    assert_eq!((d.state, d.protocol.as_str()), (GroupState::PreparingRebalance, ""));
    assert!(d.members[0].metadata.is_empty());
}

#[test]
fn lists_are_filtered_by_state_and_type_without_regard_to_case() {
    let mut h = Harness::new();
    h.stable("b", 1);
    h.commit("a", "", -1, 1);
    let ids = |states: &[&str], types: &[&str]| -> Vec<String> {
        let own = |f: &[&str]| f.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        h.c.list(&own(states), &own(types)).unwrap().iter().map(|g| g.group_id.to_string()).collect()
    };
    assert_eq!(ids(&[], &[]), ["a", "b"]);
    assert_eq!(ids(&["stable"], &[]), ["b"]);
    assert_eq!(ids(&["Empty", "Stable"], &["CLASSIC"]), ["a", "b"]);
    assert!(ids(&[], &["consumer"]).is_empty());
    assert!(ids(&["no-such-state"], &[]).is_empty());
    assert_eq!(h.c.list(&[], &[]).unwrap()[1].protocol_type, "consumer");
}
