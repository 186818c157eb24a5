//! Records as a program sees them. Keys, values and headers are ref-counted slices: of the caller's buffer on the way
//! in, of the answer's frame (or of the inflated batch) on the way out.

use std::rc::Rc;

use bytes::Bytes;

/// A topic's name and a partition's index. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopicPartition {
    pub topic: Rc<str>,
    pub partition: i32,
}

impl TopicPartition {
    pub fn new(topic: &str, partition: i32) -> TopicPartition {
        TopicPartition { topic: topic.into(), partition }
    }
}

/// A record's header: a name and a value, which may be null. Names may repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// A record to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerRecord {
    pub topic: Rc<str>,
    /// `None` leaves the choice to the partitioner.
    pub partition: Option<i32>,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    pub headers: Vec<Header>,
    /// Milliseconds since 1970; `None`: the time of the call.
    pub timestamp_ms: Option<i64>,
}

/// A record that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerRecord {
    pub topic: Rc<str>,
    pub partition: i32,
    pub offset: i64,
    /// Of the batch; -1 when the broker does not say.
    pub leader_epoch: i32,
    /// Milliseconds since 1970; -1 when there is none.
    pub timestamp_ms: i64,
    /// Whether the broker gave the timestamp (message.timestamp.type=LogAppendTime).
    pub is_log_append_time: bool,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    pub headers: Vec<Header>,
}
