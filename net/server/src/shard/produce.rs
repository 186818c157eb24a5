//! The owner's side of Produce: append at once where everything is open, then wait for what `acks` asks.
//!
//! Budget: one copy of each batch (in the log), one task for each request that waits. Order: mail from one connection
//! arrives in order and appends happen before the handler returns, so batches of a connection keep their order without
//! a round trip between two of them.

use std::rc::Rc;

use model::ErrorCode;
use replica::{Placed, ProduceError, Refused, Replica};
use runtime::{Responder, clock};

use super::Shard;
use crate::limits::MAX_PRODUCE_TIMEOUT_MS;
use crate::mail::{ProduceMail, ProducePart, ProduceResult, ShardReply, ShardRequest};

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

impl Shard {
    pub(super) fn on_produce(self: Rc<Self>, mail: ProduceMail, responder: Responder<ShardRequest, ShardReply>) {
        let replicas: Option<Vec<_>> = mail.parts.iter().map(|part| self.partitions.get(part.key)).collect();
        let deadline_ms = clock::now_ms() + i64::from(mail.timeout_ms).clamp(0, MAX_PRODUCE_TIMEOUT_MS);
        match replicas {
            Some(replicas) => {
                let wall_ms = clock::wall_ms();
                let place = |(part, replica): (ProducePart, Rc<Replica>)| append(part, &replica, wall_ms);
                let outcomes: Vec<_> = mail.parts.into_iter().zip(replicas).map(place).collect();
                settle(outcomes, mail.acks, deadline_ms, responder);
            }
            None => {
                runtime::spawn("produce", async move {
                    let mut outcomes = Vec::with_capacity(mail.parts.len());
                    for part in mail.parts {
                        outcomes.push(match self.partition(part.key).await {
                            Ok(replica) => append(part, &replica, clock::wall_ms()),
                            Err(code) => Outcome::Done(ProduceResult::error(part.slot, code)),
                        });
                    }
                    settle(outcomes, mail.acks, deadline_ms, responder);
                });
            }
        }
    }
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
        let waited = if matches!(acks, 0 | 1) {
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
