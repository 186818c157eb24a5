//! Groups, answer by answer: membership, description, deletion.

use std::time::{Duration, Instant};

use ringlog_e2e::Broker;
use ringlog_e2e::groups::{self, Commit, Member, committed, delete_group, delete_offset, describe, ready};
use ringlog_e2e::raw::Raw;
use ringlog_e2e::requests::{create_topic, until};

use crate::with_topic;

const UNKNOWN_MEMBER_ID: i16 = 25;
const ILLEGAL_GENERATION: i16 = 22;
const REBALANCE_IN_PROGRESS: i16 = 27;
const NON_EMPTY_GROUP: i16 = 68;
const GROUP_ID_NOT_FOUND: i16 = 69;
const FENCED_INSTANCE_ID: i16 = 82;
const GROUP_SUBSCRIBED_TO_TOPIC: i16 = 86;

#[test]
fn an_unknown_group_is_not_found_and_was_dead_before_version_six() {
    let (_broker, mut raw) = with_topic(&[]);
    ready(&mut raw, "nobody");
    assert_eq!(describe(&mut raw, 6, "nobody").error_code, GROUP_ID_NOT_FOUND);
    let before = describe(&mut raw, 5, "nobody");
    assert_eq!((before.error_code, &*before.group_state), (0, "Dead"));
}

#[test]
fn a_lone_member_has_its_assignment_as_soon_as_the_initial_delay_is_over() {
    let broker = Broker::with(&[("group.initial.rebalance.delay.ms", "1000")]);
    create_topic(&mut Raw::connect(&broker), "t", 1, &[]);
    let mut member = Member::new(&broker, "g", "t");
    let begun = Instant::now();
    member.settle();
    let taken = begun.elapsed();
    assert!((Duration::from_millis(900)..Duration::from_millis(3500)).contains(&taken), "{taken:?} for 1 s");
    assert_eq!(member.heartbeat(), 0);
}

#[test]
fn members_join_together_and_the_leader_is_told_of_all() {
    let (broker, mut raw) = with_topic(&[]);
    let mut first = Member::new(&broker, "g", "t");
    first.settle();
    assert_eq!(describe(&mut raw, 5, "g").group_state.as_str(), "Stable");

    let mut second = Member::new(&broker, "g", "t");
    second.begin_join();
    until("the first is told to join again", || (first.heartbeat() == REBALANCE_IN_PROGRESS).then_some(()));
    let (mine, theirs) = (first.join(), second.end_join());
    assert_eq!((mine.error_code, theirs.error_code), (0, 0));
    assert_eq!(mine.generation_id, theirs.generation_id);
    assert_eq!((mine.members.len(), theirs.members.len()), (2, 0), "only the leader is told");
    assert_eq!(&*mine.leader, &*first.id);

    let ids = (first.id.clone(), second.id.clone());
    assert_eq!(first.sync(&[(&ids.0, b"one"), (&ids.1, b"two")]).1, "one");
    assert_eq!(second.sync(&[]).1, "two");
    let described = describe(&mut raw, 5, "g");
    assert_eq!((described.members.len(), described.protocol_data.as_str()), (2, "range"));

    assert_eq!(second.leave(), 0);
    assert_eq!(second.heartbeat(), UNKNOWN_MEMBER_ID);
    until("the leave starts a rebalance", || (first.heartbeat() == REBALANCE_IN_PROGRESS).then_some(()));
    assert_eq!(first.join().members.len(), 1);
}

#[test]
fn generations_and_members_are_checked() {
    let (broker, _raw) = with_topic(&[]);
    let mut member = Member::new(&broker, "g", "t");
    member.settle();
    member.generation += 1;
    assert_eq!(member.heartbeat(), ILLEGAL_GENERATION);
    assert_eq!(member.commit("t", 1), ILLEGAL_GENERATION);
    member.generation -= 1;
    let id = std::mem::replace(&mut member.id, "nobody".into());
    assert_eq!(member.heartbeat(), UNKNOWN_MEMBER_ID);
    assert_eq!(member.sync(&[]).0, UNKNOWN_MEMBER_ID);
    member.id = id;
    assert_eq!(member.heartbeat(), 0);
}

#[test]
fn a_group_in_use_cannot_be_deleted_nor_its_subscribed_offsets() {
    let (broker, mut raw) = with_topic(&[]);
    create_topic(&mut raw, "other", 1, &[]);
    let mut member = Member::new(&broker, "g", "t");
    member.settle();
    assert_eq!((member.commit("t", 3), member.commit("other", 4)), (0, 0));
    assert_eq!(delete_group(&mut raw, "g"), NON_EMPTY_GROUP);
    assert_eq!(delete_offset(&mut raw, "g", "t"), GROUP_SUBSCRIBED_TO_TOPIC);
    assert_eq!(delete_offset(&mut raw, "g", "other"), 0);
    assert_eq!(committed(&mut raw, "g", "other").0, -1);
    assert_eq!(committed(&mut raw, "g", "t").0, 3);
    assert_eq!(member.leave(), 0);
    assert_eq!(delete_group(&mut raw, "g"), 0);
    assert_eq!(delete_group(&mut raw, "g"), GROUP_ID_NOT_FOUND);
}

#[test]
fn a_static_member_takes_over_from_itself_and_the_former_is_fenced() {
    let (broker, _raw) = with_topic(&[]);
    let mut former = Member::new(&broker, "g", "t").with_instance("i1");
    former.settle();
    let mut latter = Member::new(&broker, "g", "t").with_instance("i1");
    let joined = latter.join();
    assert_eq!((joined.error_code, joined.generation_id), (0, former.generation), "no rebalance");
    assert_ne!(latter.id, former.id);
    assert_eq!(latter.sync(&[]), (0, "all of it".into()));
    assert_eq!(former.heartbeat(), FENCED_INSTANCE_ID);
    assert_eq!(latter.heartbeat(), 0);
}

#[test]
fn an_evicted_member_cannot_commit() {
    let broker = Broker::with(&[("group.min.session.timeout.ms", "100")]);
    let mut raw = Raw::connect(&broker);
    create_topic(&mut raw, "t", 1, &[]);
    let mut member = Member::new(&broker, "g", "t");
    member.session_timeout_ms = 1000;
    member.settle();
    assert_eq!(member.commit("t", 5), 0);
    until("the silent member is evicted", || describe(&mut raw, 5, "g").members.is_empty().then_some(()));
    assert_eq!(member.commit("t", 9), UNKNOWN_MEMBER_ID);
    assert_eq!(committed(&mut raw, "g", "t").0, 5, "the offset is unchanged");
}

#[test]
fn a_deleted_group_stays_deleted_after_a_restart() {
    let (mut broker, mut raw) = with_topic(&[]);
    for group in ["gone", "kept"] {
        ready(&mut raw, group);
        assert_eq!(Commit::new(group, "t", 7).send(&mut raw), 0);
    }
    assert_eq!(delete_group(&mut raw, "gone"), 0);
    broker.restart();
    let mut raw = Raw::connect(&broker);
    until("the group is loaded", || (committed(&mut raw, "kept", "t").0 == 7).then_some(()));
    ready(&mut raw, "gone");
    assert_eq!(committed(&mut raw, "gone", "t").0, -1);
    assert_eq!(groups::describe(&mut raw, 6, "gone").error_code, GROUP_ID_NOT_FOUND);
}
