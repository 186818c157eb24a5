//! Producer ids for idempotent producers, handed out of a block that the quorum gave to this shard.
//!
//! A block is never given twice, so ids left in one at a stop are lost, and no id is ever handed out again. Owned by the
//! shard; one allocation at a time, requests that come meanwhile wait for it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use metadata::{Command, Outcome};
use model::{ErrorCode, ProducerId};
use runtime::Notify;

use crate::limits::PRODUCER_ID_BLOCK;
use crate::shard::Shard;

/// What is left of a shard's block.
#[derive(Debug, Default)]
pub struct ProducerIds {
    next: Cell<i64>,
    end: Cell<i64>,
    /// Set while a block is being asked for.
    asking: RefCell<Option<Rc<Notify>>>,
}

impl ProducerIds {
    fn take(&self) -> Option<ProducerId> {
        let id = self.next.get();
        (id < self.end.get()).then(|| {
            self.next.set(id + 1);
            ProducerId(id)
        })
    }

    fn refill(&self, first: ProducerId, len: u32) {
        assert!(first.0 >= self.end.get(), "blocks only grow");
        self.next.set(first.0);
        self.end.set(first.0 + i64::from(len));
    }
}

/// The allocation under way. Ends with its owner, whatever becomes of it: a connection may close while it waits.
struct Asking<'a> {
    ids: &'a ProducerIds,
    done: Rc<Notify>,
}

impl<'a> Asking<'a> {
    fn begin(ids: &'a ProducerIds) -> Asking<'a> {
        let done = Rc::new(Notify::new());
        let previous = ids.asking.borrow_mut().replace(done.clone());
        assert!(previous.is_none(), "one allocation at a time");
        Asking { ids, done }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.ids.asking.borrow_mut().take();
        self.done.notify();
    }
}

/// A producer id that nobody else has or had.
pub async fn next(shard: &Rc<Shard>) -> Result<ProducerId, ErrorCode> {
    let ids = &shard.producer_ids;
    loop {
        if let Some(id) = ids.take() {
            return Ok(id);
        }
        let under_way = ids.asking.borrow().clone();
        if let Some(done) = under_way {
            done.changed().await;
            continue;
        }
        let asking = Asking::begin(ids);
        let command = Command::AllocateProducerIds { node: shard.facts.node_id, block_len: PRODUCER_ID_BLOCK };
        let outcome = shard.change(command).await;
        match outcome {
            Ok(Outcome::ProducerIds { first, len }) => ids.refill(first, len),
            Ok(_) => return Err(ErrorCode::UnknownServerError),
            Err(error) => return Err(error.code()),
        }
        drop(asking);
    }
}

#[cfg(test)]
#[path = "producer_ids_tests.rs"]
mod tests;
