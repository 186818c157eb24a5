//! Entry points for fuzzing: any bytes may be handed in, nothing may panic.

use crate::config::{CoordinatorConfig, Now};
use crate::coordinator::GroupCoordinator;
use crate::records::{self, Record, group_metadata, offset_commit};

/// Reads the bytes as a record (one byte of key length, key, value), checks that what was read survives being written, and
/// loads a coordinator with it.
pub fn fuzz_record(data: &[u8]) {
    let Some((&key_len, rest)) = data.split_first() else { return };
    let (key, value) = rest.split_at(usize::from(key_len).min(rest.len()));
    let value = (!value.is_empty()).then_some(value);
    if let Ok(record) = records::decode(key, value) {
        check_round_trip(&record);
    }
    let mut coordinator = GroupCoordinator::new(CoordinatorConfig::default());
    // An error is a named one; the state must stay usable after it.
    let _named_error = coordinator.replay(key, value);
    coordinator.finish_loading(Now::default());
    while let Some(deadline_ms) = coordinator.next_deadline_ms().filter(|ms| *ms < 600_000) {
        coordinator.on_timer(Now { monotonic_ms: deadline_ms, wall_ms: deadline_ms });
    }
}

fn check_round_trip(record: &Record) {
    match record {
        Record::Offset { group, topic, partition, value } => {
            let key = offset_commit::encode_key(group, topic, *partition);
            let mut again = record.clone();
            if let Record::Offset { value: Some(v), .. } = &mut again
                && v.expire_timestamp_ms.is_some()
            {
                // The version that carries an expiry carries neither of these.
                v.leader_epoch = model::LeaderEpoch::UNKNOWN;
                v.topic_id = model::TopicId::ZERO;
            }
            let value = value.as_ref().map(offset_commit::encode_value);
            assert_eq!(records::decode(&key, value.as_deref()), Ok(again));
        }
        Record::Group { group, value } => {
            let key = group_metadata::encode_key(group);
            let value = value.as_ref().map(group_metadata::encode_value);
            assert_eq!(records::decode(&key, value.as_deref()), Ok(record.clone()));
        }
        Record::Unknown { .. } => {}
    }
}

#[cfg(test)]
#[path = "fuzz_tests.rs"]
mod tests;
