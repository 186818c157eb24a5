//! The sending half: answers leave in request order, several in one write where they are ready together.

use std::rc::Rc;

use runtime::clock;
use runtime::net::Part;

use super::{Answer, Close, Connection, Outgoing, Reply};

/// Parts put into one write at most.
const PARTS_PER_WRITE: usize = 256;

pub(super) async fn run(connection: Rc<Connection>) {
    while let Some(first) = connection.outgoing.pop().await {
        if !send_batch(&connection, first).await {
            connection.close();
            break;
        }
    }
    // Whatever is left is dropped, but produce requests under way still go to the log.
    while let Some(rest) = connection.outgoing.try_pop() {
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
        let Outgoing { answer, _bytes: bytes, _depth: depth } = outgoing;
        let resolved = resolve(answer).await;
        done.push((bytes, depth));
        match resolved {
            Ok(Some(reply)) => parts.extend(reply),
            Ok(None) => {}
            Err(_) => {
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
    connection.last_used_ms.set(clock::now_ms());
    healthy && sent
}

async fn resolve(answer: Answer) -> Result<Reply, Close> {
    match answer {
        Answer::Ready(reply) => Ok(reply),
        Answer::Later(later) => later.await,
    }
}

async fn send(connection: &Connection, parts: Vec<Part>) -> bool {
    parts.is_empty() || connection.socket.send(parts).await.is_ok()
}
