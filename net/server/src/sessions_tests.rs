#![allow(clippy::unwrap_used)]

use super::*;

const SHARDS: usize = 1;

fn partition(topic: u8, name: Option<&str>, index: i32) -> SessionPartition {
    SessionPartition {
        key: PartitionKey { topic_id: TopicId([topic; 16]), partition: PartitionIndex(index) },
        topic_name: name.map(Arc::from),
        fetch_offset: 0,
        current_leader_epoch: -1,
        last_fetched_epoch: -1,
        max_bytes: 1024,
        high_watermark: -1,
        log_start_offset: -1,
    }
}

fn session(partitions: usize) -> Session {
    let mut session = Session::default();
    (0..partitions).for_each(|index| session.put(partition(1, None, index as i32)));
    session
}

#[test]
fn only_a_session_that_was_silent_for_long_makes_room() {
    let sessions = Sessions::new(2);
    assert!(sessions.insert(1, session(1), SHARDS, 0));
    assert!(sessions.insert(2, session(1), SHARDS, 10));
    assert!(!sessions.insert(3, session(1), SHARDS, SESSION_EVICTION_MS), "the first was used lately");
    assert!(sessions.insert(3, session(1), SHARDS, SESSION_EVICTION_MS + 1));
    assert_eq!(sessions.with(1, |_| ()), None);
    assert_eq!(sessions.with(2, |_| ()), Some(()));
}

#[test]
fn the_slots_are_shared_by_all_shards() {
    let sessions = Sessions::new(5);
    assert!(sessions.insert(1, session(1), 2, 0));
    assert!(sessions.insert(2, session(1), 2, 0));
    assert!(!sessions.insert(3, session(1), 2, 0));
    let one_each = Sessions::new(1);
    assert!(one_each.insert(1, session(1), 8, 0), "each shard has at least one");
    assert!(!Sessions::new(0).insert(1, session(1), 1, 0), "none at all were asked for");
}

#[test]
fn partitions_are_bounded_over_all_sessions() {
    let sessions = Sessions::new(100);
    assert!(!sessions.insert(1, session(SESSION_PARTITIONS_PER_SHARD + 1), SHARDS, 0));
    assert!(sessions.insert(1, session(SESSION_PARTITIONS_PER_SHARD - 1), SHARDS, 0));
    assert!(!sessions.insert(2, session(2), SHARDS, 0));
    assert!(sessions.insert(2, session(1), SHARDS, 0));
    // One that grows beyond the bound is given up, and what it held is free again.
    let grown = sessions.advance(2, 1, false, 1, |session| session.put(partition(2, None, 0)));
    assert_eq!(grown, Err(SessionError::NotFound));
    assert!(sessions.insert(3, session(1), SHARDS, 1));
    // Forgotten partitions are free too.
    let shrunk = sessions.advance(3, 1, false, 2, |session| {
        session.forget(SessionTopic::Id(TopicId([1; 16])), PartitionIndex(0));
        session.len()
    });
    assert_eq!(shrunk, Ok(0));
    assert!(sessions.insert(4, session(1), SHARDS, 2));
}

#[test]
fn a_partition_by_name_is_found_by_its_name_whatever_its_topic_is_now() {
    let mut session = Session::default();
    let old = partition(1, Some("t"), 0);
    session.put(old.clone());
    session.put(partition(1, Some("other"), 0));
    assert!(session.sent(&old, 7, 0, false, false));
    assert!(!session.sent(&old, 7, 0, false, false), "nothing changed");
    // Made again: it takes the old one's place, and what was told of the old one does not count.
    let new = partition(2, Some("t"), 0);
    session.put(new.clone());
    assert_eq!(session.len(), 2);
    assert!(session.sent(&new, 7, 0, false, false));
    session.forget(SessionTopic::Name("t".into()), PartitionIndex(0));
    let left: Vec<_> = session.partitions().map(|p| p.topic_name.as_deref().unwrap()).collect();
    assert_eq!(left, ["other"]);
}

#[test]
fn a_session_that_was_begun_by_name_knows_no_ids() {
    let sessions = Sessions::new(1);
    assert!(sessions.insert(1, session(1), SHARDS, 0));
    assert_eq!(sessions.advance(1, 1, true, 0, |_| ()), Err(SessionError::TopicId));
    assert_eq!(sessions.advance(1, 1, false, 0, |_| ()), Ok(()));
}
