//! What the sender makes of what became of a request: the second half of [`Sender`].

use model::batch::HEADER_LEN;
use wire::generated::produce::{PartitionProduceResponse, ProduceResponse};

use super::batch::{Stamp, sequence_plus, split};
use super::delivery::Fate;
use super::limits::{MAX_BACKOFF_DOUBLINGS, MAX_INFLATED_BYTES, MAX_THROTTLE_MS};
use super::partition::{Batch, Body};
use super::request::PartKey;
use super::sender::Sender;
use super::verdict::{Verdict, judge};
use crate::ClientError;

/// What became of a request as a whole.
#[derive(Debug)]
pub enum RequestOutcome<'a> {
    Answered(&'a ProduceResponse<'a>),
    /// Without acknowledgements: the bytes are on their way.
    Handed,
    /// Certainly no byte of it left.
    NotSent(ClientError),
    /// No answer that can be read; the broker may have it.
    Unknown(ClientError),
}

impl Sender {
    /// Takes in what became of the request `id`. Another call for the same one does nothing.
    pub fn answered(&mut self, now_ms: i64, id: u64, outcome: RequestOutcome<'_>) {
        let Some(request) = self.requests.remove(&id) else { return };
        let node = self.nodes.entry(request.node).or_default();
        node.in_flight = node.in_flight.saturating_sub(1);
        if let RequestOutcome::Answered(response) = &outcome {
            let pause_ms = i64::from(response.throttle_time_ms).clamp(0, MAX_THROTTLE_MS);
            node.throttled_until_ms = node.throttled_until_ms.max(now_ms + pause_ms);
        }
        let keys = request.parts.iter().map(|part| part.key);
        match outcome {
            RequestOutcome::Answered(response) => {
                for (key, answer) in keys.zip(request.pair(response)) {
                    self.part_answered(now_ms, key, answer);
                }
            }
            RequestOutcome::Handed => {
                let fate = Fate::Acknowledged { base_offset: -1, log_append_time_ms: -1 };
                keys.for_each(|key| self.acknowledged(now_ms, key, fate.clone()));
            }
            RequestOutcome::NotSent(error) => keys.for_each(|key| self.not_sent(now_ms, key, &error)),
            RequestOutcome::Unknown(error) => {
                let verdict = Verdict::Retry { refresh: true, maybe_appended: true };
                keys.for_each(|key| self.rejected(now_ms, key, verdict, error.clone()));
            }
        }
    }

    fn part_answered(&mut self, now_ms: i64, key: PartKey, answer: Option<&PartitionProduceResponse<'_>>) {
        let Some(answer) = answer else {
            let reason = "it says nothing about one of the partitions".to_string();
            let verdict = Verdict::Retry { refresh: true, maybe_appended: true };
            return self.rejected(now_ms, key, verdict, ClientError::BadAnswer { reason });
        };
        match judge(answer.error_code, self.config.enable_idempotence) {
            Verdict::Appended => {
                // With an error (a duplicate) the offset may be anything below 0.
                let base_offset = answer.base_offset.max(-1);
                let log_append_time_ms = answer.log_append_time_ms.max(-1);
                self.acknowledged(now_ms, key, Fate::Acknowledged { base_offset, log_append_time_ms });
            }
            verdict => {
                let error = self.broker_error(key, answer);
                self.rejected(now_ms, key, verdict, error);
            }
        }
    }

    fn broker_error(&self, key: PartKey, answer: &PartitionProduceResponse<'_>) -> ClientError {
        let partition = &self.accumulator.partitions[key.slot as usize];
        let topic = &self.accumulator.topics[partition.topic as usize].name;
        let what = format!("partition {} of {topic}", partition.index);
        let checked = ClientError::check_with(answer.error_code, what.clone(), answer.error_message.as_deref());
        checked.err().unwrap_or(ClientError::UnknownBrokerError { code: answer.error_code, what })
    }

    fn acknowledged(&mut self, now_ms: i64, key: PartKey, fate: Fate) {
        let partition = &mut self.accumulator.partitions[key.slot as usize];
        let Some(batch) = partition.take_in_flight(key.batch) else { return };
        partition.acknowledged(&batch);
        if batch.expired {
            return self.release(batch);
        }
        self.metrics.records_acknowledged += u64::from(batch.records);
        self.end(key.slot, batch, fate, now_ms);
    }

    fn not_sent(&mut self, now_ms: i64, key: PartKey, error: &ClientError) {
        let verdict = match error {
            ClientError::UnsupportedApi { .. } | ClientError::BadRequest { .. } => {
                Verdict::Failed { maybe_appended: false }
            }
            _ => Verdict::Retry { refresh: true, maybe_appended: false },
        };
        self.rejected(now_ms, key, verdict, error.clone());
    }

    /// A batch that was in flight and is not acknowledged.
    fn rejected(&mut self, now_ms: i64, key: PartKey, verdict: Verdict, error: ClientError) {
        let partition = &mut self.accumulator.partitions[key.slot as usize];
        let Some(mut batch) = partition.take_in_flight(key.batch) else { return };
        if batch.expired {
            return self.release(batch);
        }
        match verdict {
            Verdict::Appended => unreachable!("what is appended is acknowledged"),
            Verdict::Retry { refresh, maybe_appended } => {
                self.refresh_wanted |= refresh;
                batch.maybe_appended |= maybe_appended;
                self.retry(now_ms, key.slot, batch, error);
            }
            Verdict::OutOfOrder => {
                // Behind one that is not acknowledged either this is to be expected. Otherwise the broker lost what it
                // knew, or a batch before this one is gone.
                partition.needs_bump |= !partition.has_earlier(&batch);
                self.retry(now_ms, key.slot, batch, error);
            }
            Verdict::ProducerLost => {
                partition.needs_bump = true;
                self.retry(now_ms, key.slot, batch, error);
            }
            Verdict::Fenced => {
                self.fenced(key.slot);
                self.retry(now_ms, key.slot, batch, error);
            }
            Verdict::TooLarge => {
                if let Err(batch) = self.split(key.slot, batch) {
                    self.fail(key.slot, *batch, error, now_ms);
                }
            }
            Verdict::Failed { maybe_appended } => {
                batch.maybe_appended |= maybe_appended;
                self.fail(key.slot, batch, error, now_ms);
            }
        }
    }

    fn retry(&mut self, now_ms: i64, slot: u32, mut batch: Batch, error: ClientError) {
        batch.attempts += 1;
        if batch.attempts > self.config.retries {
            return self.fail(slot, batch, error, now_ms);
        }
        self.metrics.retries += 1;
        batch.not_before_ms = now_ms + self.backoff_ms(&batch);
        self.accumulator.partitions[slot as usize].requeue(batch);
    }

    /// Doubles with each attempt, and is spread by a fifth to both sides so that producers do not come back together.
    fn backoff_ms(&self, batch: &Batch) -> i64 {
        let doublings = (batch.attempts - 1).min(MAX_BACKOFF_DOUBLINGS);
        let most = self.config.retry_backoff_max_ms.max(self.config.retry_backoff_ms);
        let backoff_ms = (self.config.retry_backoff_ms << doublings).min(most);
        let mixed = (self.seed ^ batch.id ^ u64::from(batch.attempts)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (backoff_ms * (80 + (mixed % 41) as i64) / 100).max(1)
    }

    /// Cuts a batch that the broker calls too large. Its records keep their sequence numbers, so nothing behind it has
    /// to change. `Err`: it cannot be cut.
    fn split(&mut self, slot: u32, mut batch: Batch) -> Result<(), Box<Batch>> {
        let Body::Stamped(bytes) = &batch.body else { return Err(Box::new(batch)) };
        let size = self.accumulator.batch_limit().min(HEADER_LEN + batch.bytes / 2);
        let Some(pieces) = split(bytes, size, MAX_INFLATED_BYTES) else { return Err(Box::new(batch)) };
        self.metrics.splits += 1;
        for piece in pieces.into_iter().rev() {
            let first_waiter = batch.waiters.partition_point(|waiter| waiter.index < piece.first);
            let mut waiters = batch.waiters.split_off(first_waiter);
            waiters.iter_mut().for_each(|waiter| waiter.index -= piece.first);
            let base = |stamp: Stamp| Stamp { base_sequence: sequence_plus(stamp.base_sequence, piece.first), ..stamp };
            let mut cut = Batch {
                id: self.accumulator.new_batch_id(),
                born: batch.born,
                first: batch.first + piece.first,
                created_ms: batch.created_ms,
                charge: piece.builder.capacity(),
                body: Body::Open(piece.builder),
                records: 0,
                bytes: 0,
                stamp: batch.stamp.map(base),
                attempts: batch.attempts,
                not_before_ms: 0,
                maybe_appended: batch.maybe_appended,
                expired: false,
                tags: batch.tags.split_off(piece.first as usize),
                waiters,
            };
            self.accumulator.seal_piece(&mut cut);
            self.accumulator.partitions[slot as usize].requeue(cut);
        }
        self.release(batch);
        Ok(())
    }
}
