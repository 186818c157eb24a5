//! Committed offsets, answer by answer.

use ringlog_e2e::broker::Broker;
use ringlog_e2e::groups::{Commit, Member, committed, ready};
use ringlog_e2e::raw::Raw;
use ringlog_e2e::requests::{create_topic, delete_topic, fetch, produce, until};

use crate::with_topic;

const UNKNOWN_TOPIC: i16 = 3;
const OFFSET_METADATA_TOO_LARGE: i16 = 12;
const UNKNOWN_MEMBER_ID: i16 = 25;
const REBALANCE_IN_PROGRESS: i16 = 27;

fn with_coordinator(group: &str) -> (Broker, Raw) {
    let (broker, mut raw) = with_topic(&[]);
    ready(&mut raw, group);
    (broker, raw)
}

#[test]
fn metadata_is_kept_within_its_limit_and_offsets_may_lie_past_the_end() {
    let (mut broker, mut raw) = with_coordinator("g");
    let commit = Commit::new("g", "t", 3);
    let (most, more) = ("m".repeat(4096), "m".repeat(4097));
    assert_eq!(committed(&mut raw, "g", "t").0, -1, "nothing yet");
    assert_eq!(Commit { metadata: Some(&most), ..commit.clone() }.send(&mut raw), 0);
    assert_eq!(committed(&mut raw, "g", "t"), (3, Some(most)));
    assert_eq!(Commit { metadata: Some(&more), offset: 4, ..commit.clone() }.send(&mut raw), OFFSET_METADATA_TOO_LARGE);
    assert_eq!(committed(&mut raw, "g", "t").0, 3, "unchanged");
    assert_eq!(Commit { metadata: None, offset: 1_000_000, ..commit.clone() }.send(&mut raw), 0);
    let kept = committed(&mut raw, "g", "t");
    assert_eq!(kept, (1_000_000, Some(String::new())), "null is kept as empty");
    assert_eq!(Commit { topic: "nowhere", ..commit.clone() }.send(&mut raw), UNKNOWN_TOPIC);
    assert_eq!(Commit { partition: 1, ..commit }.send(&mut raw), UNKNOWN_TOPIC);

    broker.restart();
    let mut raw = Raw::connect(&broker);
    until("the group is loaded", || (committed(&mut raw, "g", "t") == kept).then_some(()));
}

#[test]
fn strangers_cannot_commit_into_an_active_group() {
    let (broker, mut raw) = with_topic(&[]);
    let mut member = Member::new(&broker, "g", "t");
    member.settle();
    assert_eq!(member.commit("t", 5), 0);
    assert_eq!(Commit::new("g", "t", 9).send(&mut raw), UNKNOWN_MEMBER_ID);
    assert_eq!(committed(&mut raw, "g", "t").0, 5);
    member.leave();
    assert_eq!(Commit::new("g", "t", 9).send(&mut raw), 0, "an empty group is anybody's");
}

#[test]
fn no_commit_while_a_rebalance_is_completed() {
    let (broker, _raw) = with_topic(&[]);
    let mut member = Member::new(&broker, "g", "t");
    assert_eq!(member.join().error_code, 0);
    assert_eq!(member.commit("t", 5), REBALANCE_IN_PROGRESS);
    let id = member.id.clone();
    assert_eq!(member.sync(&[(&id, b"all")]).0, 0);
    assert_eq!(member.commit("t", 5), 0);
}

#[test]
fn a_deleted_topic_takes_its_offsets_and_records_along() {
    let (_broker, mut raw) = with_coordinator("g");
    produce(&mut raw, "t", &ringlog_e2e::batch::Batch::of(&["a", "b"]));
    assert_eq!(Commit::new("g", "t", 2).send(&mut raw), 0);
    assert_eq!(delete_topic(&mut raw, "t"), 0);
    until("the committed offset is gone", || (committed(&mut raw, "g", "t").0 == -1).then_some(()));
    create_topic(&mut raw, "t", 1, &[]);
    let anew = fetch(&mut raw, "t", 0);
    assert_eq!((anew.error_code, anew.high_watermark, anew.log_start_offset), (0, 0, 0));
    assert_eq!(committed(&mut raw, "g", "t").0, -1);
}

#[test]
fn committed_offsets_survive_kill_9() {
    let (mut broker, mut raw) = with_coordinator("g");
    for offset in 1..=50 {
        assert_eq!(Commit::new("g", "t", offset).send(&mut raw), 0);
    }
    broker.kill();
    broker.start_again();
    let mut raw = Raw::connect(&broker);
    until("the group is loaded", || (committed(&mut raw, "g", "t").0 == 50).then_some(()));
}
