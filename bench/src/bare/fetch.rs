//! Fetch at the tail, from memory: what a consumer of the load generator asks for, session included.
//!
//! A connection has one session, which it owns. An answer names ranges of the log's memory, which are lent until it was sent; no
//! record is copied, and base offsets were patched when the batches came. What is no longer in memory is refused as out of range:
//! there is no reading from disk. Budget: a look at each partition of the session for each answer.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use wire::fetch::{FetchPartitionHead, FetchResponseWriter, FetchWalk};
use wire::{Chunk, Reader, Records, RequestHeader, TopicRef, WireError, encode_response_with};

use super::memory::Memory;
use super::out::Out;
use super::produce_answer::UNKNOWN_TOPIC_OR_PARTITION;
use super::topics::{Partition, Topics};

const OFFSET_OUT_OF_RANGE: i16 = 1;
const FETCH_SESSION_ID_NOT_FOUND: i16 = 70;
/// A request that begins a session, and one without.
const FIRST_EPOCH: i32 = 0;
const NO_EPOCH: i32 = -1;

#[derive(Clone, Copy, Debug)]
struct Want {
    offset: i64,
    max_bytes: usize,
}

/// What a connection wants, by partition number.
#[derive(Clone, Debug, Default)]
pub struct Session {
    id: i32,
    wants: BTreeMap<usize, Want>,
}

/// A request that may have to wait.
#[derive(Clone, Copy, Debug)]
pub struct Fetch {
    correlation_id: i32,
    version: i16,
    header_version: i16,
    max_bytes: usize,
    pub max_wait_ms: u64,
    /// Every partition is answered, with or without records.
    full: bool,
    error_code: i16,
}

/// What a partition is answered with.
struct Found {
    number: usize,
    error_code: i16,
    high_watermark: i64,
    chunks: Vec<Chunk>,
}

impl Session {
    /// Takes what a request says into the session. `id`: what a new session is called.
    pub fn ask(&mut self, topics: &Topics, frame: &Bytes, id: i32) -> Result<Fetch, WireError> {
        let mut reader = Reader::new(frame);
        let header = RequestHeader::decode(&mut reader)?;
        let walk = FetchWalk::open(reader, header.api_version)?;
        let full = matches!(walk.session_epoch, FIRST_EPOCH | NO_EPOCH);
        let mut fetch = Fetch {
            correlation_id: header.correlation_id,
            version: header.api_version,
            header_version: header.response_header_version(),
            max_bytes: usize::try_from(walk.max_bytes).unwrap_or(0),
            max_wait_ms: u64::try_from(walk.max_wait_ms).unwrap_or(0),
            full,
            error_code: 0,
        };
        if full {
            *self = Session { id: if walk.session_epoch == FIRST_EPOCH { id } else { 0 }, wants: BTreeMap::new() };
        } else if walk.session_id != self.id {
            fetch.error_code = FETCH_SESSION_ID_NOT_FOUND;
            return Ok(fetch);
        }
        for partition in walk.partitions() {
            let partition = partition?;
            match number(topics, partition.topic, partition.partition) {
                Some(number) => {
                    let max_bytes = usize::try_from(partition.partition_max_bytes).unwrap_or(0);
                    self.wants.insert(number, Want { offset: partition.fetch_offset, max_bytes });
                }
                None => fetch.error_code = UNKNOWN_TOPIC_OR_PARTITION,
            }
        }
        for partition in walk.forgotten() {
            let partition = partition?;
            if let Some(number) = number(topics, partition.topic, partition.partition) {
                self.wants.remove(&number);
            }
        }
        Ok(fetch)
    }

    /// The answer, or nothing where there is nothing to say yet and the time has not come.
    pub fn answer(
        &self,
        fetch: &Fetch,
        topics: &Topics,
        memory: &mut Memory,
        durable: u64,
        at_last: bool,
    ) -> Result<Option<Out>, WireError> {
        let mut left = fetch.max_bytes;
        let mut found = Vec::new();
        let mut oldest = None::<u64>;
        let mut any = fetch.error_code != 0;
        for (&number, want) in self.wants.iter().filter(|_| fetch.error_code == 0) {
            let one = find(topics.partition(number), number, want, (memory.oldest(), durable), &mut left);
            for chunk in &one.chunks {
                if let Chunk::External { token, .. } = chunk {
                    oldest = Some(oldest.map_or(*token, |oldest| oldest.min(*token)));
                }
            }
            let says = one.error_code != 0 || !one.chunks.is_empty();
            any |= says;
            if fetch.full || says {
                found.push(one);
            }
        }
        if !any && !at_last {
            return Ok(None);
        }
        let mut out = encode(fetch, self.id, topics, &found)?;
        if let Some(oldest) = oldest {
            memory.lend(oldest);
            out.note_lent(oldest);
        }
        Ok(Some(out))
    }
}

fn number(topics: &Topics, topic: TopicRef<'_>, index: i32) -> Option<usize> {
    let TopicRef::Name(name) = topic else { return None };
    topics.number(topics.find(name)?, index)
}

/// At least one batch, whatever the limits; then as many as fit.
fn find(partition: &Partition, number: usize, want: &Want, in_memory: (u64, u64), left: &mut usize) -> Found {
    let (oldest, durable) = in_memory;
    let high_watermark = partition.high_watermark(durable);
    let mut found = Found { number, error_code: 0, high_watermark, chunks: Vec::new() };
    let Some(entries) = partition.from(want.offset, oldest, durable) else {
        return Found { error_code: OFFSET_OUT_OF_RANGE, ..found };
    };
    let mut bytes = 0;
    for entry in entries {
        let len = entry.len as usize;
        let fits = bytes + len <= want.max_bytes && len <= *left;
        if !fits && (bytes > 0 || *left == 0) {
            break;
        }
        bytes += len;
        *left = left.saturating_sub(len);
        found.chunks.push(Chunk::External { len, token: entry.position });
    }
    found
}

fn encode(fetch: &Fetch, session_id: i32, topics: &Topics, found: &[Found]) -> Result<Out, WireError> {
    let named = |one: &Found| topics.named(one.number);
    let groups: Vec<&[Found]> = found.chunk_by(|one, other| named(one).0 == named(other).0).collect();
    let mut scratch = BytesMut::new();
    let body = |writer: &mut wire::Writer| {
        let (error, session) = if fetch.error_code == 0 { (0, session_id) } else { (fetch.error_code, 0) };
        let mut answer = FetchResponseWriter::begin(writer, fetch.version, 0, error, session, groups.len())?;
        for group in &groups {
            let name = &topics.all()[named(&group[0]).0].name;
            answer.topic(TopicRef::Name(name), group.len())?;
            for one in *group {
                let head = FetchPartitionHead {
                    high_watermark: one.high_watermark,
                    last_stable_offset: one.high_watermark,
                    log_start_offset: 0,
                    ..FetchPartitionHead::error(named(one).1, one.error_code)
                };
                answer.partition(&head, &Records::Chunks(one.chunks.clone()))?;
            }
        }
        answer.finish(&[])
    };
    let chunks = encode_response_with(&mut scratch, fetch.correlation_id, fetch.header_version, body)?;
    let mut out = Out::default();
    for chunk in &chunks {
        match chunk {
            Chunk::Bytes(bytes) => out.push_own(bytes),
            Chunk::External { len, token } => out.push_lent(*token, *len),
        }
    }
    Ok(out)
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
