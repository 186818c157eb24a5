//! What shards say to each other.
//!
//! The hot ways have messages of their own; everything else is a piece of work that runs on the other shard with its
//! state at hand ([`Job`]). All of it is `Send`: values, `Bytes`, file references, never an `Rc`.

use std::any::Any;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use model::{Offset, PartitionKey};
use runtime::SharedFile;

use crate::shard::Shard;

/// Work for another shard; made by [`Shard::on`].
pub type Job = Box<dyn FnOnce(Rc<Shard>) -> Pin<Box<dyn Future<Output = Box<dyn Any + Send>>>> + Send>;

pub enum ShardRequest {
    Produce(ProduceMail),
    Fetch(FetchMail),
    /// Answered when any of the partitions has something new, at the deadline, or when cancelled.
    Await(AwaitMail),
    CancelAwait {
        ticket: u64,
    },
    Run(Job),
}

pub enum ShardReply {
    Produce(Vec<ProduceResult>),
    /// `kept`: its wait ended without news and may be taken up again under its ticket.
    Fetch {
        results: Vec<FetchResult>,
        kept: bool,
    },
    /// `kept`: as above.
    Awaited {
        news: bool,
        kept: bool,
    },
    Ran(Box<dyn Any + Send>),
}

/// The partitions of one Produce request that one shard owns.
#[derive(Debug)]
pub struct ProduceMail {
    pub parts: Vec<ProducePart>,
    pub acks: i16,
    pub timeout_ms: i32,
}

#[derive(Debug)]
pub struct ProducePart {
    /// Which partition of the request, counted from 0.
    pub slot: usize,
    pub key: PartitionKey,
    /// A slice of the connection's buffer.
    pub batch: Bytes,
}

/// What became of one partition's records.
#[derive(Clone, Debug)]
pub struct ProduceResult {
    pub slot: usize,
    pub error_code: i16,
    pub base_offset: i64,
    pub log_append_time_ms: i64,
    pub log_start_offset: i64,
    pub message: Option<String>,
    pub records: Vec<(i32, &'static str)>,
}

impl ProduceResult {
    pub fn error(slot: usize, code: model::ErrorCode) -> ProduceResult {
        ProduceResult {
            slot,
            error_code: code.code(),
            base_offset: -1,
            log_append_time_ms: -1,
            log_start_offset: -1,
            message: None,
            records: Vec::new(),
        }
    }
}

/// The partitions of one Fetch request that one shard owns.
#[derive(Clone, Debug)]
pub struct FetchMail {
    pub parts: Arc<[FetchPart]>,
    pub max_bytes: usize,
    /// Where nothing is found the answer waits for something.
    pub wait: Option<FetchWait>,
}

/// How a Fetch waits at the owner of its partitions: until one of them has something new, the deadline, or until it is called
/// off under its ticket; there is an answer in each case.
#[derive(Clone, Copy, Debug)]
pub struct FetchWait {
    pub ticket: u64,
    pub deadline_ms: i64,
    /// Of a session, which may come again with the same.
    pub keep: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchPart {
    pub slot: usize,
    pub key: PartitionKey,
    pub offset: Offset,
    pub current_leader_epoch: i32,
    pub last_fetched_epoch: i32,
    pub max_bytes: usize,
}

/// Record bytes of an answer, by reference.
#[derive(Clone, Debug)]
pub enum RecordSlice {
    Bytes(Bytes),
    File { file: SharedFile, position: u64, len: usize },
}

#[derive(Debug)]
pub struct FetchResult {
    pub slot: usize,
    pub error_code: i16,
    pub high_watermark: i64,
    pub last_stable_offset: i64,
    pub log_start_offset: i64,
    pub diverging_epoch: Option<(i32, i64)>,
    pub slices: Vec<RecordSlice>,
    pub bytes: usize,
}

impl FetchResult {
    /// Whether the client should hear of it at once.
    pub fn is_news(&self) -> bool {
        self.bytes > 0 || self.error_code != 0 || self.diverging_epoch.is_some()
    }

    pub fn error(slot: usize, code: model::ErrorCode) -> FetchResult {
        FetchResult {
            slot,
            error_code: code.code(),
            high_watermark: -1,
            last_stable_offset: -1,
            log_start_offset: -1,
            diverging_epoch: None,
            slices: Vec::new(),
            bytes: 0,
        }
    }
}

#[derive(Debug)]
pub struct AwaitMail {
    /// None: the wait that was kept under this ticket goes on.
    pub parts: Vec<(PartitionKey, Offset)>,
    pub wait: FetchWait,
}
