//! GroupMetadataKey (kind 2) and GroupMetadataValue (versions 0 to 4 read, 3 written): a group with its members, whole.

use super::reader::Reader;
use super::writer::Writer;
use super::{GROUP_KEY, RecordError};
use crate::group::Group;
use crate::member::Member;
use crate::response::RecordBytes;
use bytes::Bytes;

/// What Kafka 4.4 writes.
const VALUE_VERSION: i16 = 3;
const MAX_VALUE_VERSION: i16 = 4;
const FIRST_FLEXIBLE_VERSION: i16 = 4;

#[derive(Clone, Debug, PartialEq)]
pub struct GroupMetadata {
    /// Empty for a group that nobody completed a join of.
    pub protocol_type: String,
    pub generation_id: i32,
    pub protocol_name: Option<String>,
    pub leader: Option<String>,
    /// -1 when not known.
    pub state_timestamp_ms: i64,
    pub members: Vec<MemberMetadata>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MemberMetadata {
    pub member_id: String,
    pub instance_id: Option<String>,
    pub client_id: String,
    pub client_host: String,
    /// -1 when not known.
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    pub subscription: Bytes,
    pub assignment: Bytes,
}

/// The record of a group as it is, with these assignments.
pub(crate) fn record(group: &Group, assignment: impl Fn(&Member) -> Bytes) -> RecordBytes {
    let protocol = group.protocol_name.as_deref().unwrap_or("");
    let members = group.members.values().map(|m| MemberMetadata {
        member_id: m.id.to_string(),
        instance_id: m.instance_id.as_deref().map(str::to_owned),
        client_id: m.client_id.clone(),
        client_host: m.client_host.clone(),
        rebalance_timeout_ms: m.rebalance_timeout_ms,
        session_timeout_ms: m.session_timeout_ms,
        subscription: m.metadata(protocol),
        assignment: assignment(m),
    });
    let value = GroupMetadata {
        protocol_type: group.protocol_type.clone().unwrap_or_default(),
        generation_id: group.generation_id,
        protocol_name: group.protocol_name.clone(),
        leader: group.leader.as_deref().map(str::to_owned),
        state_timestamp_ms: group.state_timestamp_ms.unwrap_or(-1),
        members: members.collect(),
    };
    (encode_key(&group.id), Some(encode_value(&value)))
}

/// The first record of a group that is being joined: it exists, and says nothing yet.
pub(crate) fn empty_record(group: &Group) -> RecordBytes {
    let value = GroupMetadata {
        protocol_type: String::new(),
        generation_id: 0,
        protocol_name: None,
        leader: None,
        state_timestamp_ms: group.state_timestamp_ms.unwrap_or(-1),
        members: Vec::new(),
    };
    (encode_key(&group.id), Some(encode_value(&value)))
}

pub(crate) fn tombstone(group_id: &str) -> RecordBytes {
    (encode_key(group_id), None)
}

pub fn encode_key(group: &str) -> Vec<u8> {
    let mut out = Writer::with_capacity(4 + group.len());
    out.int16(GROUP_KEY).string(group);
    out.0
}

pub fn encode_value(value: &GroupMetadata) -> Vec<u8> {
    let mut out = Writer::default();
    out.int16(VALUE_VERSION)
        .string(&value.protocol_type)
        .int32(value.generation_id)
        .nullable_string(value.protocol_name.as_deref())
        .nullable_string(value.leader.as_deref())
        .int64(value.state_timestamp_ms)
        .int32(value.members.len() as i32);
    for member in &value.members {
        out.string(&member.member_id)
            .nullable_string(member.instance_id.as_deref())
            .string(&member.client_id)
            .string(&member.client_host)
            .int32(member.rebalance_timeout_ms)
            .int32(member.session_timeout_ms)
            .bytes(&member.subscription)
            .bytes(&member.assignment);
    }
    out.0
}

pub fn decode_value(bytes: &[u8]) -> Result<GroupMetadata, RecordError> {
    let mut reader = Reader::new(bytes, false);
    let version = reader.int16()?;
    if !(0..=MAX_VALUE_VERSION).contains(&version) {
        return Err(RecordError::UnknownValueVersion(version));
    }
    if version >= FIRST_FLEXIBLE_VERSION {
        reader.set_flexible();
    }
    let protocol_type = reader.string()?;
    let generation_id = reader.int32()?;
    let protocol_name = reader.nullable_string()?;
    let leader = reader.nullable_string()?;
    let state_timestamp_ms = if version >= 2 { reader.int64()? } else { -1 };
    let count = reader.array_count()?.unwrap_or(0);
    let mut members = Vec::new();
    for _ in 0..count {
        members.push(decode_member(&mut reader, version)?);
    }
    reader.tagged_fields(|_, _| Ok(()))?;
    Ok(GroupMetadata { protocol_type, generation_id, protocol_name, leader, state_timestamp_ms, members })
}

fn decode_member(reader: &mut Reader<'_>, version: i16) -> Result<MemberMetadata, RecordError> {
    let member = MemberMetadata {
        member_id: reader.string()?,
        instance_id: if version >= 3 { reader.nullable_string()? } else { None },
        client_id: reader.string()?,
        client_host: reader.string()?,
        rebalance_timeout_ms: if version >= 1 { reader.int32()? } else { -1 },
        session_timeout_ms: reader.int32()?,
        subscription: reader.bytes()?,
        assignment: reader.bytes()?,
    };
    reader.tagged_fields(|_, _| Ok(()))?;
    Ok(member)
}
