//! Fetch (key 1): the head of the fetch way.
//!
//! Plans from the request or its session, asks each owning shard once for all its partitions, waits for news where there
//! is not enough yet, and answers with references: no record byte is copied or looked at. Budget: one message each way
//! for each owning shard, also where it has to wait for news; while others have news and it has none, none at all. Whoever wants
//! more than a byte pays for each round, and one more to call a wait off. A round that finds nothing waits on the owners' watermarks and is
//! not polled. An idle session's request costs the same however many partitions it has: it takes up the wait of the request
//! before it.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use model::{ErrorCode, Offset, PartitionIndex, PartitionKey, TopicId};
use runtime::clock;
use runtime::net::Part;
use wire::fetch::{FetchPartition, FetchPartitionHead, FetchResponseWriter, FetchWalk};
use wire::{Chunk, Reader, Records, RequestHeader, TopicRef, WireError};

use super::Context;
use super::fetch_rounds::{Rounds, Want};
use super::fetch_session::{self, Resolved};
use crate::connection::Close;
use crate::limits::{MAX_FETCH_WAIT_MS, TOLD_PARTITIONS};
use crate::mail::{FetchPart, FetchResult, RecordSlice};
use crate::sessions::SessionPartition;

/// First version that names topics by id.
pub const FIRST_WITH_TOPIC_ID: i16 = 13;

/// A partition of the answer, in answer order.
pub struct Planned {
    pub key: PartitionKey,
    /// The topic's name, for versions that say it.
    pub name: Option<Arc<str>>,
    /// Asked of its owner, or refused already.
    pub part: Result<FetchPart, ErrorCode>,
}

pub async fn handle(context: &Context<'_>, header: &RequestHeader<'_>, frame: &Bytes) -> Result<Vec<Part>, Close> {
    let mut reader = Reader::new(frame);
    RequestHeader::decode(&mut reader)?;
    let version = header.api_version;
    let walk = FetchWalk::open(reader, version)?;
    let mut resolved = match fetch_session::resolve(context, &walk).await? {
        Ok(resolved) => resolved,
        Err(code) => return Ok(top_level_error(header, code)?),
    };
    let deadline_ms = clock::now_ms() + i64::from(walk.max_wait_ms).clamp(0, MAX_FETCH_WAIT_MS);
    if let Some(session_id) = resolved.wait_quietly(context, deadline_ms).await {
        let nothing = Answer { header, version, session_id, planned: &[], results: Vec::new(), shown: Vec::new() };
        return nothing.encode();
    }
    let planned = plan(context, version, &walk, &resolved);
    let max_bytes = (walk.max_bytes.max(0) as usize).min(context.shard.config().connections.fetch_max_bytes);
    let want = Want::new(walk.min_bytes, max_bytes, deadline_ms);
    let rounds = Rounds::new(context.shard, &planned, resolved.is_session());
    let mut standing = context.shard.standings.take(context.connection);
    let told = standing.take_told();
    let (results, quiet) = rounds.run(want, &resolved.known(&told), &mut standing).await;
    if !resolved.is_session() && rounds.has_several_owners() && planned.len() <= TOLD_PARTITIONS {
        standing.tell(planned.iter().map(|plan| plan.key), &results);
    }
    context.shard.standings.put(context.connection, standing);
    context.shard.counters.fetched(&results);
    let (session_id, shown) = fetch_session::finish(context, &resolved, &planned, &results, quiet, version).await;
    Answer { header, version, session_id, planned: &planned, results, shown }.encode()
}

/// Where each partition is asked for. Unknown ones are answered from here.
fn plan(context: &Context<'_>, version: i16, walk: &FetchWalk<'_>, resolved: &Resolved) -> Vec<Planned> {
    let view = context.shard.view();
    let unknown =
        if version >= FIRST_WITH_TOPIC_ID { ErrorCode::UnknownTopicId } else { ErrorCode::UnknownTopicOrPartition };
    let mut planned = Vec::with_capacity(resolved.partitions.len() + resolved.unknown.len());
    for (slot, wanted) in resolved.partitions.iter().enumerate() {
        let topic = view.image.topic(wanted.key.topic_id);
        let part = match topic {
            None => Err(unknown),
            Some(_) if walk.replica_id >= 0 => Err(ErrorCode::NotLeaderOrFollower),
            Some(topic) if topic.partition(wanted.key.partition).is_none() => Err(ErrorCode::UnknownTopicOrPartition),
            Some(_) => Ok(FetchPart {
                slot,
                key: wanted.key,
                offset: Offset(wanted.fetch_offset),
                current_leader_epoch: wanted.current_leader_epoch,
                last_fetched_epoch: wanted.last_fetched_epoch,
                max_bytes: wanted.max_bytes.max(0) as usize,
            }),
        };
        // The client's word for it, also where the topic is gone.
        let name = || wanted.topic_name.clone().or_else(|| topic.map(|t| t.name.clone()));
        let name = if version < FIRST_WITH_TOPIC_ID { name() } else { None };
        planned.push(Planned { key: wanted.key, name, part });
    }
    for (name, partition) in &resolved.unknown {
        let key = PartitionKey { topic_id: TopicId::ZERO, partition: PartitionIndex(*partition) };
        planned.push(Planned { key, name: Some(name.clone()), part: Err(ErrorCode::UnknownTopicOrPartition) });
    }
    planned
}

/// What a request says of a partition, as a session keeps it. `None`: the topic's name is unknown.
pub fn wanted(context: &Context<'_>, partition: &FetchPartition<'_>) -> Option<SessionPartition> {
    let (topic_id, topic_name) = match partition.topic {
        TopicRef::Id(id) => (TopicId(id), None),
        TopicRef::Name(name) => {
            let image = &context.shard.view().image;
            let topic_id = image.topic_id(name)?;
            (topic_id, image.topic(topic_id).map(|topic| topic.name.clone()))
        }
    };
    Some(SessionPartition {
        key: PartitionKey { topic_id, partition: PartitionIndex(partition.partition) },
        topic_name,
        fetch_offset: partition.fetch_offset,
        current_leader_epoch: partition.current_leader_epoch,
        last_fetched_epoch: partition.last_fetched_epoch,
        max_bytes: partition.partition_max_bytes,
        high_watermark: -1,
        log_start_offset: -1,
    })
}

fn top_level_error(header: &RequestHeader<'_>, code: ErrorCode) -> Result<Vec<Part>, WireError> {
    let mut buffer = BytesMut::new();
    let chunks =
        wire::encode_response_with(&mut buffer, header.correlation_id, header.response_header_version(), |writer| {
            FetchResponseWriter::begin(writer, header.api_version, 0, code.code(), 0, 0)?.finish(&[])
        })?;
    Ok(chunks.into_iter().filter_map(|chunk| memory(chunk, &[])).collect())
}

struct Answer<'a> {
    header: &'a RequestHeader<'a>,
    version: i16,
    session_id: i32,
    planned: &'a [Planned],
    results: Vec<FetchResult>,
    /// Whether a partition has to be in the answer; incremental answers leave out what did not change.
    shown: Vec<bool>,
}

impl Answer<'_> {
    fn encode(mut self) -> Result<Vec<Part>, Close> {
        let mut files = Vec::new();
        let slots: Vec<usize> = (0..self.planned.len()).filter(|&slot| self.shown[slot]).collect();
        let groups: Vec<Vec<usize>> = slots.chunk_by(|&a, &b| self.same_topic(a, b)).map(<[usize]>::to_vec).collect();
        let (correlation_id, header_version) = (self.header.correlation_id, self.header.response_header_version());
        let mut buffer = BytesMut::new();
        let chunks = wire::encode_response_with(&mut buffer, correlation_id, header_version, |writer| {
            let mut response = FetchResponseWriter::begin(writer, self.version, 0, 0, self.session_id, groups.len())?;
            for group in &groups {
                let first = &self.planned[group[0]];
                let topic = if self.version >= FIRST_WITH_TOPIC_ID {
                    TopicRef::Id(first.key.topic_id.0)
                } else {
                    TopicRef::Name(first.name.as_deref().unwrap_or_default())
                };
                response.topic(topic, group.len())?;
                for &slot in group {
                    let records = records(std::mem::take(&mut self.results[slot].slices), &mut files);
                    response.partition(&self.head(slot), &records)?;
                }
            }
            response.finish(&[])
        })?;
        Ok(chunks.into_iter().filter_map(|chunk| memory(chunk, &files)).collect())
    }

    fn same_topic(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.planned[a], &self.planned[b]);
        a.key.topic_id == b.key.topic_id && a.name == b.name
    }

    fn head(&self, slot: usize) -> FetchPartitionHead<'static> {
        let result = &self.results[slot];
        FetchPartitionHead {
            index: self.planned[slot].key.partition.0,
            error_code: result.error_code,
            high_watermark: result.high_watermark,
            last_stable_offset: result.last_stable_offset,
            log_start_offset: result.log_start_offset,
            diverging_epoch: result.diverging_epoch,
            ..FetchPartitionHead::error(0, 0)
        }
    }
}

/// Records of one partition; file ranges are named by their place in `files`. Never null: older clients fail on it.
fn records(slices: Vec<RecordSlice>, files: &mut Vec<Part>) -> Records {
    let chunk = |slice| match slice {
        RecordSlice::Bytes(bytes) => Chunk::Bytes(bytes),
        RecordSlice::File { file, position, len } => {
            files.push(Part::File { file, position, len });
            Chunk::External { len, token: files.len() as u64 - 1 }
        }
    };
    Records::Chunks(slices.into_iter().map(chunk).collect())
}

fn memory(chunk: Chunk, files: &[Part]) -> Option<Part> {
    match chunk {
        Chunk::Bytes(bytes) => Some(Part::Bytes(bytes)),
        Chunk::External { token, .. } => files.get(token as usize).cloned(),
    }
}

#[cfg(test)]
#[path = "01_fetch_tests.rs"]
mod tests;
