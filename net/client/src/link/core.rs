//! The state of one connection, without I/O, clock or randomness: bytes and times in, bytes and answers out.
//!
//! A connection begins with ApiVersions; until the broker's versions are known nothing else is sent. After that requests
//! go out in the order of the calls, and the protocol promises answers in that same order: the next answer belongs to
//! the oldest request, its correlation id proves it, and any other id means that the peer cannot be trusted with the
//! rest. So every way out of step (a foreign id, bytes that are no frame, a request past its deadline) ends the
//! connection, and every request under way ends with it: an answer is never given to the wrong question. Whoever
//! stopped waiting keeps the request's place.
//!
//! What a request ends as says whether the broker may have seen it: `NotConnected` while its bytes were still here,
//! `Disconnected` or `TimedOut` afterwards.
//!
//! `T` is who waits. Budget: an answer's bytes are never copied; memory is bounded by the bytes received, by
//! [`MAX_ANSWER_BYTES`] and by [`MAX_IN_FLIGHT_PER_LINK`].

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use bytes::{Bytes, BytesMut};
use model::ErrorCode;
use wire::generated::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use wire::{ApiKey, Chunk, Decode, Reader, Request, Split, decode_response_header, encode_request, split_frame};

use crate::ClientError;
use crate::limits::{MAX_ANSWER_BYTES, MAX_IN_FLIGHT_PER_LINK};

/// The first version with the client's name in it; brokers since Kafka 2.4 serve it, and we need nothing newer.
const FIRST_ASKED_VERSION: i16 = 3;

/// An answer's bytes behind its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawAnswer {
    pub version: i16,
    pub body: Bytes,
}

pub(crate) type Outcome = Result<RawAnswer, ClientError>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Connecting,
    /// The broker was asked for its versions, in this version of the question.
    Negotiating(i16),
    Ready,
    Ended,
}

/// Until when an answer is waited for; `after_ms` is for the sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadline {
    pub at_ms: i64,
    pub after_ms: i64,
}

impl Deadline {
    pub fn after(now_ms: i64, after_ms: i64) -> Deadline {
        Deadline { at_ms: now_ms.saturating_add(after_ms), after_ms }
    }
}

/// A request under way.
#[derive(Debug)]
struct InFlight<T> {
    correlation_id: i32,
    api: ApiKey,
    version: i16,
    deadline: Deadline,
    /// Where its bytes begin and end, counted from the connection's first.
    bytes: std::ops::Range<u64>,
    /// `None`: the connection itself.
    waiter: Option<T>,
}

#[derive(Debug)]
pub(crate) struct LinkCore<T> {
    node: i32,
    client_id: String,
    phase: Phase,
    /// Whether the broker's versions were ever known: says whether a connection was worth anything.
    was_ready: bool,
    end_reason: String,
    negotiation_timeout_ms: i64,
    /// By API number, those included that we do not know.
    ranges: BTreeMap<i16, RangeInclusive<i16>>,
    next_correlation_id: i32,
    /// In the order of the wire.
    in_flight: VecDeque<InFlight<T>>,
    /// Requests without an answer that are not with the kernel yet, in the order of the wire.
    unanswered: VecDeque<InFlight<T>>,
    output: Vec<Bytes>,
    /// Bytes ever put into `output`, taken out of it, and handed to the kernel.
    queued: u64,
    taken: u64,
    written: u64,
    done: Vec<(T, Outcome)>,
}

impl<T> LinkCore<T> {
    pub fn new(node: i32, client_id: &str, negotiation_timeout_ms: i64) -> LinkCore<T> {
        LinkCore {
            node,
            client_id: client_id.to_string(),
            phase: Phase::Connecting,
            was_ready: false,
            end_reason: String::new(),
            negotiation_timeout_ms,
            ranges: BTreeMap::new(),
            next_correlation_id: 0,
            in_flight: VecDeque::new(),
            unanswered: VecDeque::new(),
            output: Vec::new(),
            queued: 0,
            taken: 0,
            written: 0,
            done: Vec::new(),
        }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    pub fn was_ready(&self) -> bool {
        self.was_ready
    }

    pub fn end_reason(&self) -> &str {
        &self.end_reason
    }

    /// A bootstrap connection learns later whose it is.
    pub fn set_node(&mut self, node: i32) {
        self.node = node;
    }

    pub fn under_way(&self) -> usize {
        self.in_flight.len() + self.unanswered.len()
    }

    /// Whether a request would be taken now.
    pub fn has_room(&self) -> bool {
        self.phase == Phase::Ready && self.under_way() < MAX_IN_FLIGHT_PER_LINK
    }

    /// The connection is up: asks for the broker's versions.
    pub fn connected(&mut self, now_ms: i64) {
        assert_eq!(self.phase, Phase::Connecting, "a connection comes up once");
        self.ask_versions(FIRST_ASKED_VERSION, now_ms);
    }

    fn ask_versions(&mut self, version: i16, now_ms: i64) {
        let request = ApiVersionsRequest {
            client_software_name: "ringlog",
            client_software_version: env!("CARGO_PKG_VERSION"),
            ..ApiVersionsRequest::default()
        };
        self.phase = Phase::Negotiating(version);
        let deadline = Deadline::after(now_ms, self.negotiation_timeout_ms);
        match self.enqueue(&request, version, deadline, None) {
            Ok(entry) => self.in_flight.push_back(entry),
            Err(error) => self.end(&error.to_string()),
        }
    }

    /// The highest version of `api` that the broker, we and the caller speak.
    pub fn version(&self, api: ApiKey, wanted: Option<&RangeInclusive<i16>>) -> Result<i16, ClientError> {
        let unsupported = |reason: String| ClientError::UnsupportedApi { api: api.name(), reason };
        let Some(theirs) = self.ranges.get(&(api as i16)) else {
            return Err(unsupported("it is not among the APIs that it lists".to_string()));
        };
        let ours = api.versions();
        let wanted = wanted.unwrap_or(&ours);
        let least = *theirs.start().max(ours.start()).max(wanted.start());
        let most = *theirs.end().min(ours.end()).min(wanted.end());
        if least > most {
            let (from, to) = (wanted.start().max(ours.start()), wanted.end().min(ours.end()));
            return Err(unsupported(format!(
                "it speaks versions {} to {}, wanted are {from} to {to}",
                theirs.start(),
                theirs.end()
            )));
        }
        Ok(most)
    }

    /// Queues a request behind those before. `Err`: nothing was queued.
    pub fn send<R: Request>(
        &mut self,
        request: &R,
        wanted: Option<&RangeInclusive<i16>>,
        deadline: Deadline,
        waiter: T,
    ) -> Result<(), ClientError> {
        let entry = self.enqueue_ready(request, wanted, deadline, waiter)?;
        self.in_flight.push_back(entry);
        Ok(())
    }

    /// The same for a request that has no answer: it is done once its bytes were written.
    pub fn send_unanswered<R: Request>(
        &mut self,
        request: &R,
        wanted: Option<&RangeInclusive<i16>>,
        deadline: Deadline,
        waiter: T,
    ) -> Result<(), ClientError> {
        let entry = self.enqueue_ready(request, wanted, deadline, waiter)?;
        self.unanswered.push_back(entry);
        Ok(())
    }

    fn enqueue_ready<R: Request>(
        &mut self,
        request: &R,
        wanted: Option<&RangeInclusive<i16>>,
        deadline: Deadline,
        waiter: T,
    ) -> Result<InFlight<T>, ClientError> {
        if self.phase != Phase::Ready {
            let reason = match self.phase {
                Phase::Ended => self.end_reason.clone(),
                _ => "it is being made".to_string(),
            };
            return Err(ClientError::NotConnected { node: self.node, reason });
        }
        if self.under_way() >= MAX_IN_FLIGHT_PER_LINK {
            let reason = format!("{MAX_IN_FLIGHT_PER_LINK} requests are under way on it");
            return Err(ClientError::NotConnected { node: self.node, reason });
        }
        let version = self.version(R::API, wanted)?;
        self.enqueue(request, version, deadline, Some(waiter))
    }

    fn enqueue<R: Request>(
        &mut self,
        request: &R,
        version: i16,
        deadline: Deadline,
        waiter: Option<T>,
    ) -> Result<InFlight<T>, ClientError> {
        let bad = |reason: String| ClientError::BadRequest { reason };
        let correlation_id = self.next_correlation_id;
        let chunks = encode_request(correlation_id, Some(&self.client_id), version, request)
            .map_err(|error| bad(format!("{} version {version}: {error}", R::API.name())))?;
        let start = self.queued;
        let before = self.output.len();
        for chunk in chunks {
            match chunk {
                Chunk::Bytes(bytes) => {
                    self.queued += bytes.len() as u64;
                    self.output.push(bytes);
                }
                Chunk::External { .. } => {
                    self.output.truncate(before);
                    self.queued = start;
                    return Err(bad(format!("{} with bytes that are not in memory", R::API.name())));
                }
            }
        }
        // Ids stay positive and are unique by far among those under way.
        self.next_correlation_id = correlation_id.wrapping_add(1) & i32::MAX;
        Ok(InFlight { correlation_id, api: R::API, version, deadline, bytes: start..self.queued, waiter })
    }

    /// Whether there is something to write.
    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// What to write next; from here on the broker may see it.
    pub fn take_output(&mut self) -> Vec<Bytes> {
        self.taken = self.queued;
        std::mem::take(&mut self.output)
    }

    /// The first `count` bytes of those not yet reported are with the kernel.
    pub fn wrote(&mut self, count: usize) {
        self.written += count as u64;
        assert!(self.written <= self.taken, "more was written than taken");
        while let Some(first) = self.unanswered.front()
            && first.bytes.end <= self.written
        {
            if let Some(entry) = self.unanswered.pop_front() {
                self.complete(entry.waiter, Ok(RawAnswer { version: entry.version, body: Bytes::new() }));
            }
        }
    }

    /// Bytes came in: pairs every whole answer in `buffer`. Gives how many more bytes the next needs at least.
    pub fn received(&mut self, buffer: &mut BytesMut, now_ms: i64) -> usize {
        while matches!(self.phase, Phase::Negotiating(_) | Phase::Ready) {
            match split_frame(buffer, MAX_ANSWER_BYTES) {
                Ok(Split::Need(more)) => return more,
                Ok(Split::Frame(frame)) => self.answered(&frame, now_ms),
                Err(error) => self.end(&format!("its bytes are no answer: {error}")),
            }
        }
        0
    }

    fn answered(&mut self, frame: &Bytes, now_ms: i64) {
        let Some(first) = self.in_flight.front() else {
            return self.end("it answered although nothing was asked");
        };
        let mut reader = Reader::new(frame);
        let header = first.api.response_header_version(first.version);
        match decode_response_header(&mut reader, header) {
            Ok(id) if id == first.correlation_id => {}
            Ok(id) => {
                let expected = first.correlation_id;
                return self.end(&format!("it answered request {id} where {expected} is next"));
            }
            Err(error) => return self.end(&format!("its answer has no header: {error}")),
        }
        let body = frame.slice(reader.position()..);
        let Some(entry) = self.in_flight.pop_front() else { return };
        match self.phase {
            Phase::Negotiating(asked) => self.negotiated(asked, &body, now_ms),
            _ => self.complete(entry.waiter, Ok(RawAnswer { version: entry.version, body })),
        }
    }

    /// Error 35 comes in version 0 whatever was asked, and its code stands first in every version.
    fn negotiated(&mut self, asked: i16, body: &Bytes, now_ms: i64) {
        let code = Reader::new(body).i16().unwrap_or(ErrorCode::UnknownServerError.code());
        if code == ErrorCode::UnsupportedVersion.code() && asked > 0 {
            return self.ask_versions(0, now_ms);
        }
        if let Err(error) = ClientError::check(code, "asking for its versions") {
            return self.end(&error.to_string());
        }
        match ApiVersionsResponse::decode(&mut Reader::new(body), asked) {
            Ok(answer) => {
                let ranges = answer.api_keys.iter().map(|one| (one.api_key, one.min_version..=one.max_version));
                self.ranges = ranges.collect();
                self.phase = Phase::Ready;
                self.was_ready = true;
            }
            Err(error) => self.end(&format!("its list of versions cannot be read: {error}")),
        }
    }

    /// When [`LinkCore::expire`] has something to do.
    pub fn next_deadline_ms(&self) -> Option<i64> {
        self.in_flight.iter().chain(&self.unanswered).map(|entry| entry.deadline.at_ms).min()
    }

    /// Ends the connection if a request is past its deadline: its answer could still come, and nobody may get it.
    pub fn expire(&mut self, now_ms: i64) {
        let late = self.in_flight.iter().chain(&self.unanswered).find(|entry| entry.deadline.at_ms <= now_ms);
        let Some(late) = late else { return };
        let reason = format!("{} was not answered within {} ms", late.api.name(), late.deadline.after_ms);
        self.finish(&reason, Some(now_ms));
    }

    /// The connection is gone or to be given up. Ending twice is ending once.
    pub fn end(&mut self, reason: &str) {
        self.finish(reason, None);
    }

    fn finish(&mut self, reason: &str, late_since_ms: Option<i64>) {
        if self.phase == Phase::Ended {
            return;
        }
        self.phase = Phase::Ended;
        self.end_reason = reason.to_string();
        self.output.clear();
        let all = self.in_flight.drain(..).chain(self.unanswered.drain(..)).collect::<Vec<_>>();
        for entry in all {
            let error = match late_since_ms {
                _ if entry.bytes.start >= self.taken => {
                    ClientError::NotConnected { node: self.node, reason: reason.to_string() }
                }
                Some(now_ms) if entry.deadline.at_ms <= now_ms => {
                    ClientError::TimedOut { what: entry.api.name(), after_ms: entry.deadline.after_ms }
                }
                _ => ClientError::Disconnected { node: self.node, reason: reason.to_string() },
            };
            self.complete(entry.waiter, Err(error));
        }
    }

    fn complete(&mut self, waiter: Option<T>, outcome: Outcome) {
        if let Some(waiter) = waiter {
            self.done.push((waiter, outcome));
        }
    }

    /// What came to an end since the last call, in order.
    pub fn take_done(&mut self) -> Vec<(T, Outcome)> {
        std::mem::take(&mut self.done)
    }
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
