//! OffsetCommitKey (kinds 0 and 1) and OffsetCommitValue (versions 0 to 4): one committed offset.

use super::reader::Reader;
use super::writer::Writer;
use super::{OFFSET_KEY, RecordError};
use crate::offsets::{CommittedOffset, OffsetChange};
use crate::response::RecordBytes;
use model::{LeaderEpoch, Offset, TopicId};

/// What Kafka 4.4 writes.
const VALUE_VERSION: i16 = 4;
/// The only version that can carry an expiry of its own.
const VALUE_VERSION_WITH_EXPIRY: i16 = 1;
const TAG_TOPIC_ID: u32 = 0;

/// A change of an offset as a record: a commit or a tombstone.
pub(crate) fn record(change: &OffsetChange) -> RecordBytes {
    let key = encode_key(&change.group, &change.topic, change.partition);
    (key, change.value.as_ref().map(encode_value))
}

pub fn encode_key(group: &str, topic: &str, partition: i32) -> Vec<u8> {
    let mut out = Writer::with_capacity(10 + group.len() + topic.len());
    out.int16(OFFSET_KEY).string(group).string(topic).int32(partition);
    out.0
}

pub fn encode_value(value: &CommittedOffset) -> Vec<u8> {
    let mut out = Writer::with_capacity(48 + value.metadata.len());
    if let Some(expire_timestamp_ms) = value.expire_timestamp_ms {
        out.int16(VALUE_VERSION_WITH_EXPIRY)
            .int64(value.offset.0)
            .string(&value.metadata)
            .int64(value.commit_timestamp_ms)
            .int64(expire_timestamp_ms);
        return out.0;
    }
    out.int16(VALUE_VERSION)
        .int64(value.offset.0)
        .int32(value.leader_epoch.0)
        .compact_string(&value.metadata)
        .int64(value.commit_timestamp_ms);
    if value.topic_id.is_zero() {
        out.unsigned(0);
    } else {
        out.unsigned(1).unsigned(TAG_TOPIC_ID).unsigned(16).raw(&value.topic_id.0);
    }
    out.0
}

pub fn decode_value(bytes: &[u8]) -> Result<CommittedOffset, RecordError> {
    let mut reader = Reader::new(bytes, false);
    let version = reader.int16()?;
    if !(0..=VALUE_VERSION).contains(&version) {
        return Err(RecordError::UnknownValueVersion(version));
    }
    if version >= 4 {
        reader.set_flexible();
    }
    let offset = Offset(reader.int64()?);
    let leader_epoch = if version >= 3 { LeaderEpoch(reader.int32()?) } else { LeaderEpoch::UNKNOWN };
    let metadata = reader.string()?;
    let commit_timestamp_ms = reader.int64()?;
    let expire_timestamp_ms = if version == 1 { Some(reader.int64()?).filter(|t| *t != -1) } else { None };
    let mut topic_id = TopicId::ZERO;
    reader.tagged_fields(|tag, field| {
        if tag == TAG_TOPIC_ID {
            topic_id = TopicId(field.try_into().map_err(|_| RecordError::BadTag)?);
        }
        Ok(())
    })?;
    Ok(CommittedOffset { offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms, topic_id })
}
