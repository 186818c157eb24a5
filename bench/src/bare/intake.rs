//! What arrives, taken in: batches are checked and appended, requests answered or put aside.
//!
//! The log is one for all connections, and the server's thread owns it. Nothing here waits or speaks to the kernel. Budget: one pass
//! over a batch for its checksum, one copy; an allocation for each answer.

use std::time::{Duration, Instant};

use bytes::Bytes;
use wire::ApiKey;

use super::connection::{Connection, Parked};
use super::control;
use super::limits::{ANSWERS_MAX, FETCH_WAIT_MS_MAX};
use super::log_file::LogFile;
use super::memory::Memory;
use super::out::Out;
use super::produce_answer::{ProduceAnswer, UNKNOWN_TOPIC_OR_PARTITION};
use super::rounds::Rounds;
use super::topics::{Entry, Topics};
use super::walk::{Malformed, Step};

/// What is the same for all connections.
pub struct Log {
    pub memory: Memory,
    pub rounds: Rounds,
    pub topics: Topics,
    pub file: LogFile,
    pub port: u16,
    sessions: i32,
}

impl Log {
    pub fn new(memory: Memory, file: LogFile, port: u16) -> Log {
        Log { memory, rounds: Rounds::default(), topics: Topics::default(), file, port, sessions: 0 }
    }
}

/// What a connection does when its bytes were walked.
pub enum Turn {
    /// Receives more, so that so many bytes can lie at the front.
    Receive(usize),
    /// Waits for room in the log, or for its answers to leave.
    Stall,
    /// Has a Fetch that is to be answered, or waits.
    Park,
}

/// Walks a connection's bytes as far as they go; batches are checked and copied on the way.
pub fn walk(connection: &mut Connection, log: &mut Log) -> Result<Turn, Malformed> {
    loop {
        if !log.memory.has_room() || connection.owed() >= ANSWERS_MAX {
            return Ok(Turn::Stall);
        }
        let (taken, step) = connection.walk.step(connection.inbox.bytes())?;
        let mut turn = None;
        match step {
            Step::Wants(wanted) => turn = Some(Turn::Receive(wanted)),
            Step::Produce { correlation_id, topics } => {
                connection.produce = Some(ProduceAnswer::begin(correlation_id, topics));
            }
            Step::Topic { name, partitions } => {
                connection.topic = log.topics.find(name);
                connection.produce.as_mut().ok_or(Malformed)?.topic(name, partitions);
            }
            Step::Partition { index } => {
                connection.partition = connection.topic.and_then(|topic| log.topics.number(topic, index));
                let (error_code, base_offset) = match connection.partition {
                    Some(number) => (0, log.topics.partition(number).next_offset),
                    None => (UNKNOWN_TOPIC_OR_PARTITION, -1),
                };
                connection.produce.as_mut().ok_or(Malformed)?.partition(index, error_code, base_offset);
            }
            Step::Batch(batch) => {
                batch.check_crc().map_err(|_| Malformed)?;
                if let Some(number) = connection.partition {
                    append(log, number, &batch);
                }
            }
            Step::End => {
                let answer = connection.produce.take().ok_or(Malformed)?.finish();
                connection.answer(log.memory.head(), Out::of(answer));
            }
            Step::Request(request) => {
                let request = Bytes::copy_from_slice(request);
                turn = other(connection, log, &request)?;
            }
        }
        connection.inbox.taken(taken);
        if let Some(turn) = turn {
            return Ok(turn);
        }
    }
}

fn append(log: &mut Log, number: usize, batch: &model::BatchView<'_>) {
    let base_offset = log.topics.partition(number).next_offset;
    let position = log.rounds.append(&mut log.memory, batch.bytes, base_offset);
    let next_offset = base_offset + i64::from(batch.header.last_offset_delta) + 1;
    let entry = Entry { base_offset, next_offset, position, len: batch.bytes.len() as u32 };
    log.topics.append(number, entry, log.memory.oldest());
}

/// A request that is no Produce.
fn other(connection: &mut Connection, log: &mut Log, request: &Bytes) -> Result<Option<Turn>, Malformed> {
    if request.first_chunk() != Some(&(ApiKey::Fetch as i16).to_be_bytes()) {
        let answer = control::answer(request, &mut log.topics, log.port).map_err(|_| Malformed)?;
        connection.answer(0, Out::of(answer));
        return Ok(None);
    }
    log.sessions = (log.sessions % i32::MAX) + 1;
    let fetch = connection.session.ask(&log.topics, request, log.sessions).map_err(|_| Malformed)?;
    let wait = Duration::from_millis(fetch.max_wait_ms.min(FETCH_WAIT_MS_MAX));
    connection.parked = Some(Parked { fetch, until: Instant::now() + wait });
    Ok(Some(Turn::Park))
}
