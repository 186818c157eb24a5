//! The connections of a shard: for the idle sweep, for stopping, for counting refusals.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::time::Duration;

use runtime::clock;
use wire::WireError;

use super::Connection;
use crate::limits::{IDLE_SWEEP_MS, STOP_CONNECTIONS_MS};
use crate::shard::Shard;

/// Sentences about malformed requests printed for each shard; after that they are only counted, so that a hostile client
/// cannot fill the journal.
const REFUSALS_PRINTED: u64 = 100;

#[derive(Default)]
pub struct Connections {
    by_id: RefCell<BTreeMap<u64, Weak<Connection>>>,
    next_id: Cell<u64>,
    refused: Cell<u64>,
}

/// Takes the connection off the list when dropped.
pub struct Registered<'a> {
    connections: &'a Connections,
    pub(super) id: u64,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.connections.by_id.borrow_mut().remove(&self.id);
    }
}

impl Connections {
    pub(super) fn register(&self, connection: &Rc<Connection>) -> Registered<'_> {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        self.by_id.borrow_mut().insert(id, Rc::downgrade(connection));
        Registered { connections: self, id }
    }

    pub fn len(&self) -> usize {
        self.by_id.borrow().len()
    }

    /// Connections since the start.
    pub fn accepted(&self) -> u64 {
        self.next_id.get()
    }

    /// Those that were closed because of what they sent.
    pub fn refused(&self) -> u64 {
        self.refused.get()
    }

    pub(super) fn count_refused(&self, peer: SocketAddr, error: WireError) {
        self.refused.set(self.refused.get() + 1);
        if self.refused.get() <= REFUSALS_PRINTED {
            eprintln!("ringlog: connection of {peer} closed: {error}");
        }
    }

    fn live(&self) -> Vec<Rc<Connection>> {
        self.by_id.borrow().values().filter_map(Weak::upgrade).collect()
    }

    /// Closes connections that were silent for `connections.max.idle.ms` or do not take their answers, until the shard
    /// stops.
    pub async fn sweep(shard: Rc<Shard>) {
        while !shard.is_stopping() {
            shard.pause_ms(IDLE_SWEEP_MS).await;
            let max_idle_ms = shard.config().connections.max_idle_ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
            let now_ms = clock::now_ms();
            for connection in shard.connections.live() {
                if connection.is_overdue(now_ms, max_idle_ms) {
                    connection.close();
                }
            }
        }
    }

    /// Ends all connections; those that are being answered get a moment.
    pub async fn close_all(&self) {
        let deadline_ms = clock::now_ms() + STOP_CONNECTIONS_MS;
        loop {
            let overdue = clock::now_ms() >= deadline_ms;
            for connection in self.live() {
                if overdue || connection.idle_since_ms().is_some() {
                    connection.close();
                }
            }
            if self.len() == 0 || clock::now_ms() >= deadline_ms + STOP_CONNECTIONS_MS {
                return;
            }
            clock::sleep(Duration::from_millis(5)).await;
        }
    }
}
