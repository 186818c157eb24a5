//! The sending half: answers leave in request order, several in one write where they are ready together.
//!
//! Large answers go out in slices, so that a slow client is told from one that does not read at all.

use std::rc::Rc;

use runtime::clock;
use runtime::net::Part;

use super::{Answer, Close, Connection, Outgoing, Reply, as_ms};
use crate::limits::SEND_SLICE_BYTES;

/// Parts put into one write at most.
const PARTS_PER_WRITE: usize = 256;

pub(super) async fn run(connection: Rc<Connection>) {
    while let Some(first) = connection.outgoing.pop().await {
        if !send_batch(&connection, first).await {
            connection.fail();
            break;
        }
    }
    // The reader may wait for the room that answers hold and push more: everything is dropped until it has closed the
    // queue. Produce requests under way still go to the log.
    while let Some(rest) = connection.outgoing.pop().await {
        drop(rest);
    }
}

/// Sends `first` and what is ready behind it. `false`: the connection is of no more use.
async fn send_batch(connection: &Connection, first: Outgoing) -> bool {
    let mut parts = Vec::new();
    let mut done = Vec::new();
    let mut next = Some(first);
    let mut healthy = true;
    while let Some(outgoing) = next.take() {
        let Outgoing { answer, api, received_ns, _bytes: bytes, _depth: depth } = outgoing;
        let resolved = resolve(answer).await;
        done.push((bytes, depth, api, received_ns));
        match resolved {
            Ok(Some(reply)) => parts.extend(reply),
            Ok(None) => {}
            Err(_) => {
                connection.counters.request_closed(api);
                healthy = false;
                break;
            }
        }
        if parts.len() < PARTS_PER_WRITE {
            next = connection.outgoing.try_pop_if(|o| matches!(o.answer, Answer::Ready(_)));
        }
    }
    let sent = send(connection, parts).await;
    connection.open.set(connection.open.get() - done.len());
    let now_ns = clock::now_ns();
    connection.last_used_ms.set(as_ms(now_ns));
    if healthy && sent {
        done.iter().for_each(|(_, _, api, since_ns)| connection.counters.answered(*api, now_ns - since_ns));
    }
    healthy && sent
}

async fn resolve(answer: Answer) -> Result<Reply, Close> {
    match answer {
        Answer::Ready(reply) => Ok(reply),
        Answer::Later(later) => later.await,
    }
}

async fn send(connection: &Connection, parts: Vec<Part>) -> bool {
    for slice in Slices::of(parts) {
        connection.sending_since_ms.set(Some(clock::now_ms()));
        let bytes = slice.iter().map(len).sum();
        let sent = connection.socket.send(slice).await;
        connection.sending_since_ms.set(None);
        if sent.is_err() {
            return false;
        }
        connection.counters.sent(bytes);
    }
    true
}

/// The parts in order, cut into slices of [`SEND_SLICE_BYTES`].
struct Slices {
    parts: std::vec::IntoIter<Part>,
    rest: Option<Part>,
}

impl Slices {
    fn of(parts: Vec<Part>) -> Slices {
        Slices { parts: parts.into_iter(), rest: None }
    }
}

impl Iterator for Slices {
    type Item = Vec<Part>;

    fn next(&mut self) -> Option<Vec<Part>> {
        let mut slice = Vec::new();
        let mut room = SEND_SLICE_BYTES;
        while room > 0
            && let Some(part) = self.rest.take().or_else(|| self.parts.next())
        {
            let (head, rest) = split(part, room);
            room -= len(&head);
            slice.push(head);
            self.rest = rest;
        }
        (!slice.is_empty()).then_some(slice)
    }
}

fn len(part: &Part) -> usize {
    match part {
        Part::Bytes(bytes) => bytes.len(),
        Part::File { len, .. } => *len,
    }
}

/// At most `at` bytes of `part`, and what is left of it.
fn split(part: Part, at: usize) -> (Part, Option<Part>) {
    match part {
        Part::Bytes(mut bytes) if bytes.len() > at => {
            let head = bytes.split_to(at);
            (Part::Bytes(head), Some(Part::Bytes(bytes)))
        }
        Part::File { file, position, len } if len > at => {
            let rest = Part::File { file: file.clone(), position: position + at as u64, len: len - at };
            (Part::File { file, position, len: at }, Some(rest))
        }
        whole => (whole, None),
    }
}
