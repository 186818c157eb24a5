//! The owner's side of Produce: append at once where everything is open, then wait for what `acks` asks.
//!
//! Budget: one copy of each batch (in the log), one task for each request that waits. Order: mail from one connection
//! arrives in order and appends happen before the handler returns, so batches of a connection keep their order without
//! a round trip between two of them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use model::ErrorCode;
use replica::{Placed, ProduceError, Refused, Replica};
use runtime::{Responder, clock};

use super::Shard;
use crate::limits::{MAX_PRODUCE_TIMEOUT_MS, MIN_PRODUCE_TIMEOUT_MS};
use crate::mail::{ProduceMail, ProducePart, ProduceResult, ShardReply, ShardRequest};
use crate::mutants::{Mutant, active};

/// A batch that has its place and waits to be acknowledged.
struct Pending {
    slot: usize,
    replica: Rc<Replica>,
    placed: Placed,
}

enum Outcome {
    Done(ProduceResult),
    Waits(Pending),
}

/// A request whose parts find their places one after the other. Answered when the last one has.
struct Collecting {
    outcomes: RefCell<Vec<Option<Outcome>>>,
    left: Cell<usize>,
    acks: i16,
    deadline_ms: i64,
    responder: Cell<Option<Responder<ShardRequest, ShardReply>>>,
}

impl Collecting {
    fn put(&self, at: usize, outcome: Outcome) {
        self.outcomes.borrow_mut()[at] = Some(outcome);
        self.left.set(self.left.get() - 1);
        if self.left.get() == 0
            && let Some(responder) = self.responder.take()
        {
            let outcomes = self.outcomes.take().into_iter().flatten().collect();
            settle(outcomes, self.acks, self.deadline_ms, responder);
        }
    }
}

/// Produce mail that came while too many bytes waited for the disk; worked off in order.
#[derive(Default)]
pub(crate) struct Braked {
    queue: RefCell<VecDeque<(ProduceMail, Responder<ShardRequest, ShardReply>)>>,
    running: Cell<bool>,
}

impl Shard {
    pub(super) fn on_produce(self: Rc<Self>, mail: ProduceMail, responder: Responder<ShardRequest, ShardReply>) {
        if !self.braked.running.get() && !self.log.is_braked() {
            self.place(mail, responder);
            return;
        }
        // Bounded by what the connections of all shards may have under way.
        self.braked.queue.borrow_mut().push_back((mail, responder));
        if !self.braked.running.replace(true) {
            runtime::spawn("braked produce", async move {
                loop {
                    self.log.wait_room().await;
                    let next = self.braked.queue.borrow_mut().pop_front();
                    let Some((mail, responder)) = next else { break };
                    self.place(mail, responder);
                }
                self.braked.running.set(false);
            });
        }
    }

    /// Gives every batch its place, at once where its partition is open. Batches of one partition keep their order in any
    /// case, because work parked at an opening is done before anyone else sees the partition open.
    fn place(self: &Rc<Self>, mail: ProduceMail, responder: Responder<ShardRequest, ShardReply>) {
        let timeout_ms = match mail.acks {
            // Kafka lets these wait for nothing but the local append, whatever the client's time-out says.
            0 | 1 => MAX_PRODUCE_TIMEOUT_MS,
            _ => i64::from(mail.timeout_ms).clamp(MIN_PRODUCE_TIMEOUT_MS, MAX_PRODUCE_TIMEOUT_MS),
        };
        let wall_ms = clock::wall_ms();
        let count = mail.parts.len();
        let collecting = Rc::new(Collecting {
            outcomes: RefCell::new((0..count).map(|_| None).collect()),
            left: Cell::new(count),
            acks: mail.acks,
            deadline_ms: clock::now_ms() + timeout_ms,
            responder: Cell::new(Some(responder)),
        });
        for (at, part) in mail.parts.into_iter().enumerate() {
            let collecting = collecting.clone();
            self.with_partition(part.key, move |opened| {
                let outcome = match opened {
                    Ok(replica) => {
                        if waits_for_write(collecting.acks) {
                            replica.log().tell_written();
                        }
                        append(part, replica, wall_ms)
                    }
                    Err(code) => Outcome::Done(ProduceResult::error(part.slot, *code)),
                };
                collecting.put(at, outcome);
            });
        }
    }
}

/// Whether the answer is for the write, where others' is for the sync.
fn waits_for_write(acks: i16) -> bool {
    matches!(acks, 0 | 1) || active(Mutant::AnswerBeforeSync)
}

fn append(part: ProducePart, replica: &Rc<Replica>, wall_ms: i64) -> Outcome {
    match replica.produce(&part.batch, wall_ms) {
        Ok(placed) => Outcome::Waits(Pending { slot: part.slot, replica: replica.clone(), placed }),
        Err(ProduceError::Refused(refused)) => Outcome::Done(refusal(part.slot, refused, replica)),
        Err(ProduceError::Failed(error)) => Outcome::Done(ProduceResult {
            message: Some(error.to_string()),
            ..ProduceResult::error(part.slot, error.code())
        }),
    }
}

fn refusal(slot: usize, refused: Refused, replica: &Replica) -> ProduceResult {
    let mut result = ProduceResult::error(slot, refused.code);
    if refused.code == ErrorCode::InvalidRecord || refused.code == ErrorCode::InvalidTimestamp {
        result.log_start_offset = replica.log().log_start_offset().0;
    }
    result.message = Some(refused.message.to_string());
    result.records = refused.records;
    result
}

/// Answers now if nothing has to be waited for, else from a task. `acks=0` waits for the write like `acks=1`: the client
/// gets no answer anyway, and until then its bytes count against the connection's and the shard's budgets, which is the
/// only brake that such a client can feel.
fn settle(outcomes: Vec<Outcome>, acks: i16, deadline_ms: i64, responder: Responder<ShardRequest, ShardReply>) {
    if outcomes.iter().all(|o| matches!(o, Outcome::Done(_))) {
        let results = outcomes.into_iter().filter_map(|outcome| match outcome {
            Outcome::Done(result) => Some(result),
            Outcome::Waits(_) => None,
        });
        responder.send(ShardReply::Produce(results.collect()));
        return;
    }
    runtime::spawn("acknowledge", async move {
        let mut results = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            results.push(match outcome {
                Outcome::Done(result) => result,
                Outcome::Waits(pending) => pending.wait(acks, deadline_ms).await,
            });
        }
        responder.send(ShardReply::Produce(results));
    });
}

impl Pending {
    async fn wait(self, acks: i16, deadline_ms: i64) -> ProduceResult {
        let next_offset = self.placed.next_offset;
        let waited = if waits_for_write(acks) {
            self.replica.written(next_offset, deadline_ms).await
        } else {
            self.replica.committed(next_offset, deadline_ms).await
        };
        match waited {
            Ok(()) => self.acknowledged(),
            Err(error) => {
                ProduceResult { message: Some(error.to_string()), ..ProduceResult::error(self.slot, error.code()) }
            }
        }
    }

    fn acknowledged(self) -> ProduceResult {
        ProduceResult {
            slot: self.slot,
            error_code: ErrorCode::None.code(),
            base_offset: self.placed.base_offset.0,
            log_append_time_ms: self.placed.log_append_time_ms,
            log_start_offset: self.replica.log().log_start_offset().0,
            message: None,
            records: Vec::new(),
        }
    }
}
