//! What members of a classic group tell each other through JoinGroup and SyncGroup: the embedded "consumer" protocol,
//! versions 0-3. Pure functions over bytes; the bytes come from other members of the group, so from anybody: memory is
//! bounded by the bytes that came.
//!
//! Newer versions only append fields, so a version above 3 is read as 3, and everybody can be sent version 3.

use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::{BufMut, Bytes, BytesMut};
use wire::{Reader, WireError};

use crate::{ClientError, TopicPartition};

/// The version that is written, as Java's members do.
const VERSION: i16 = 3;

/// What a member says of itself when it joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    pub topics: Vec<Rc<str>>,
    /// The assignor's own.
    pub user_data: Option<Bytes>,
    /// What the member holds while it joins (versions 1+).
    pub owned_partitions: Vec<TopicPartition>,
    /// Of which generation `owned_partitions` are; -1: not said (versions 2+).
    pub generation_id: i32,
    /// Versions 3+.
    pub rack_id: Option<Rc<str>>,
}

/// What the leader gives a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    pub partitions: Vec<TopicPartition>,
    /// The assignor's own.
    pub user_data: Option<Bytes>,
}

impl Default for Subscription {
    fn default() -> Subscription {
        Subscription {
            topics: Vec::new(),
            user_data: None,
            owned_partitions: Vec::new(),
            generation_id: -1,
            rack_id: None,
        }
    }
}

impl Subscription {
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_i16(VERSION);
        out.put_i32(self.topics.len() as i32);
        for topic in &self.topics {
            put_string(&mut out, topic);
        }
        put_bytes(&mut out, self.user_data.as_ref());
        put_partitions(&mut out, &self.owned_partitions);
        out.put_i32(self.generation_id);
        match &self.rack_id {
            Some(rack) => put_string(&mut out, rack),
            None => out.put_i16(-1),
        }
        out.freeze()
    }

    pub fn decode(bytes: &[u8]) -> Result<Subscription, ClientError> {
        read(bytes, "a member's subscription", |reader, version| {
            let mut value = Subscription {
                topics: reader.array(false, 2, |reader| reader.string(false).map(Rc::from))?,
                user_data: reader.nullable_bytes(false)?,
                ..Subscription::default()
            };
            if version >= 1 {
                value.owned_partitions = partitions(reader)?;
            }
            if version >= 2 {
                value.generation_id = reader.i32()?;
            }
            if version >= 3 {
                value.rack_id = reader.nullable_string(false)?.map(Rc::from);
            }
            Ok(value)
        })
    }
}

impl Assignment {
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_i16(VERSION);
        put_partitions(&mut out, &self.partitions);
        put_bytes(&mut out, self.user_data.as_ref());
        out.freeze()
    }

    /// No bytes at all are what a member gets that the leader left out: nothing.
    pub fn decode(bytes: &[u8]) -> Result<Assignment, ClientError> {
        if bytes.is_empty() {
            return Ok(Assignment::default());
        }
        read(bytes, "a member's assignment", |reader, _| {
            Ok(Assignment { partitions: partitions(reader)?, user_data: reader.nullable_bytes(false)? })
        })
    }
}

fn read<T>(
    bytes: &[u8],
    what: &str,
    body: impl FnOnce(&mut Reader<'_>, i16) -> Result<T, WireError>,
) -> Result<T, ClientError> {
    let frame = Bytes::copy_from_slice(bytes);
    let mut reader = Reader::new(&frame);
    let version = reader.i16().map_err(|error| bad(what, &error.to_string()))?;
    if version < 0 {
        return Err(bad(what, &format!("version {version}")));
    }
    body(&mut reader, version).map_err(|error| bad(what, &error.to_string()))
}

fn bad(what: &str, reason: &str) -> ClientError {
    ClientError::BadAnswer { reason: format!("{what}: {reason}") }
}

fn partitions(reader: &mut Reader<'_>) -> Result<Vec<TopicPartition>, WireError> {
    let mut all = Vec::new();
    let topics = reader.count(false, 6)?;
    for _ in 0..topics {
        let topic: Rc<str> = reader.string(false)?.into();
        let count = reader.count(false, 4)?;
        for _ in 0..count {
            all.push(TopicPartition { topic: topic.clone(), partition: reader.i32()? });
        }
    }
    Ok(all)
}

/// Topics by name, partitions in the order given.
fn put_partitions(out: &mut BytesMut, partitions: &[TopicPartition]) {
    let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for one in partitions {
        topics.entry(&one.topic).or_default().push(one.partition);
    }
    out.put_i32(topics.len() as i32);
    for (topic, indexes) in topics {
        put_string(out, topic);
        out.put_i32(indexes.len() as i32);
        for index in indexes {
            out.put_i32(index);
        }
    }
}

fn put_string(out: &mut BytesMut, text: &str) {
    // Topic names have at most 249 bytes; whoever sets a rack is the program itself.
    assert!(text.len() <= i16::MAX as usize, "a topic's name or a rack is longer than the protocol can say");
    out.put_i16(text.len() as i16);
    out.put_slice(text.as_bytes());
}

fn put_bytes(out: &mut BytesMut, bytes: Option<&Bytes>) {
    match bytes {
        Some(bytes) => {
            out.put_i32(bytes.len() as i32);
            out.put_slice(bytes);
        }
        None => out.put_i32(-1),
    }
}

#[cfg(test)]
#[path = "consumer_protocol_tests.rs"]
mod tests;
