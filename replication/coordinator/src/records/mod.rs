//! The records of `__consumer_offsets`, byte for byte as Kafka 4.4 writes them, and every older version read.
//!
//! A key begins with a 16-bit kind: 0 and 1 a committed offset, 2 a group; others belong to newer group protocols. A value
//! begins with its own 16-bit version. Read once each at start, written at commits and rebalances; no input makes the
//! readers panic or reserve more than the input's own length.

pub mod group_metadata;
pub mod offset_commit;
pub(crate) mod reader;
pub(crate) mod writer;

use crate::offsets::CommittedOffset;
use group_metadata::GroupMetadata;
use reader::Reader;
use std::fmt;

const OFFSET_KEY_LEGACY: i16 = 0;
const OFFSET_KEY: i16 = 1;
const GROUP_KEY: i16 = 2;

/// Why a record could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    MissingKey,
    Truncated,
    NegativeLength,
    CountTooLarge,
    NullString,
    NotUtf8,
    StringTooLong,
    BadVarint,
    UnknownValueVersion(i16),
    BadTag,
    MembersWithoutProtocol,
    DuplicateMember,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::MissingKey => f.write_str("A group record has no key."),
            RecordError::Truncated => f.write_str("A group record ends in the middle of a field."),
            RecordError::NegativeLength => f.write_str("A length in a group record is negative."),
            RecordError::CountTooLarge => f.write_str("A group record counts more entries than it has bytes."),
            RecordError::NullString => f.write_str("A string that must be there is null in a group record."),
            RecordError::NotUtf8 => f.write_str("A string in a group record is not UTF-8."),
            RecordError::StringTooLong => f.write_str("A string in a group record is longer than 32 767 bytes."),
            RecordError::BadVarint => f.write_str("A variable-length number in a group record is malformed."),
            RecordError::UnknownValueVersion(v) => write!(f, "A group record's value has the unknown version {v}."),
            RecordError::BadTag => f.write_str("A tagged field in a group record has the wrong size."),
            RecordError::MembersWithoutProtocol => f.write_str("A group record has members but no protocol."),
            RecordError::DuplicateMember => f.write_str("A group record names a member or an instance twice."),
        }
    }
}

impl std::error::Error for RecordError {}

/// A record, read. A value of `None` is a tombstone.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    Offset { group: String, topic: String, partition: i32, value: Option<CommittedOffset> },
    Group { group: String, value: Option<GroupMetadata> },
    Unknown { kind: i16 },
}

pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Record, RecordError> {
    if key.is_empty() {
        return Err(RecordError::MissingKey);
    }
    let mut reader = Reader::new(key, false);
    match reader.int16()? {
        OFFSET_KEY_LEGACY | OFFSET_KEY => {
            let (group, topic, partition) = (reader.string()?, reader.string()?, reader.int32()?);
            let value = value.map(offset_commit::decode_value).transpose()?;
            Ok(Record::Offset { group, topic, partition, value })
        }
        GROUP_KEY => {
            let group = reader.string()?;
            let value = value.map(group_metadata::decode_value).transpose()?;
            Ok(Record::Group { group, value })
        }
        kind => Ok(Record::Unknown { kind }),
    }
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
