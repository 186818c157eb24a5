//! The producer's core: what to send to whom and when, without I/O, clock or randomness of its own.
//!
//! Owns all state of a producer. Its driver asks it for requests (`drain`), tells it what came of them (`answered`, in
//! `answers.rs`) and takes away what ended (`take_finished`). Time is an argument everywhere.
//!
//! A node gets one request at a time out of `drain`, with a batch of each of its partitions as far as
//! `max_request_size` goes; partitions that did not fit are first in the next. A batch that is due takes the others of
//! its node along, so that 64 partitions on two nodes make two requests.

use std::collections::BTreeMap;
use std::rc::Rc;

use model::ErrorCode;

use super::accumulator::{Accumulator, Refused};
use super::config::ProducerConfig;
use super::delivery::{Fate, Finished, Mark, ProducerMetrics};
use super::limits::MAX_SLEEP_MS;
use super::partition::{Batch, Gate, Identity};
use super::request::{InFlight, NodeRequest, Part, PartKey};
use crate::{ClientError, Cluster, ProducerRecord};

#[derive(Debug, Default)]
pub(super) struct Node {
    pub in_flight: usize,
    /// The place that is first in the next request.
    rotation: u32,
    pub throttled_until_ms: i64,
    candidates: Vec<u32>,
    due: bool,
}

#[derive(Debug)]
pub struct Sender {
    pub(super) config: ProducerConfig,
    pub(super) accumulator: Accumulator,
    pub(super) nodes: BTreeMap<i32, Node>,
    pub(super) requests: BTreeMap<u64, InFlight>,
    next_request: u64,
    identity: Option<Identity>,
    /// The id cannot be gone on with: somebody else has it, or its epochs are used up.
    id_is_spent: bool,
    /// A partition waits for another id.
    id_wanted: bool,
    pub(super) refresh_wanted: bool,
    /// Why no more records are taken.
    fatal: Option<ClientError>,
    stopped: bool,
    /// Calls of `flush` under way.
    flushing: usize,
    finished: Vec<Finished>,
    pub(super) metrics: ProducerMetrics,
    pub(super) seed: u64,
    /// When the driver will look again by itself.
    wake_ms: i64,
    woken: bool,
}

impl Sender {
    /// `config` was checked; `seed` spreads load and back-off.
    pub fn new(config: ProducerConfig, seed: u64) -> Sender {
        Sender {
            accumulator: Accumulator::new(&config, seed),
            config,
            nodes: BTreeMap::new(),
            requests: BTreeMap::new(),
            next_request: 0,
            identity: None,
            id_is_spent: false,
            id_wanted: false,
            refresh_wanted: false,
            fatal: None,
            stopped: false,
            flushing: 0,
            finished: Vec::new(),
            metrics: ProducerMetrics::default(),
            seed,
            wake_ms: i64::MAX,
            woken: false,
        }
    }

    /// Takes a record. `Ok(true)`: the driver should look now.
    pub fn append(
        &mut self,
        record: &ProducerRecord,
        timestamp_ms: i64,
        mark: Mark,
        now_ms: i64,
    ) -> Result<bool, (Refused, Mark)> {
        if let Some(error) = &self.fatal {
            return Err((Refused::Invalid(error.clone()), mark));
        }
        let appended = self.accumulator.append(record, timestamp_ms, mark, now_ms)?;
        let sooner = appended.began && now_ms + self.config.linger_ms < self.wake_ms;
        let wake = (sooner || appended.filled) && !self.woken;
        self.woken |= wake;
        Ok(wake)
    }

    /// Takes up a topic. `false`: it is not in the metadata.
    pub fn add_topic(&mut self, cluster: &Cluster, name: &Rc<str>) -> bool {
        self.accumulator.add_topic(cluster, name)
    }

    /// The requests to send now, at most one per node. `ready` says whether a node's connection takes one.
    pub fn drain(&mut self, now_ms: i64, cluster: &Cluster, ready: &mut dyn FnMut(i32) -> bool) -> Vec<NodeRequest> {
        self.woken = false;
        self.accumulator.update(cluster);
        self.nodes.retain(|id, node| node.in_flight > 0 || cluster.brokers.contains_key(id));
        self.wake_ms = now_ms + MAX_SLEEP_MS;
        self.look(now_ms);
        let mut nodes = std::mem::take(&mut self.nodes);
        let mut out = Vec::new();
        for (id, node) in &mut nodes {
            if !node.due || node.in_flight >= self.config.max_in_flight {
                continue;
            }
            if node.throttled_until_ms > now_ms {
                self.wake_ms = self.wake_ms.min(node.throttled_until_ms);
            } else if ready(*id) {
                out.push(self.request(*id, node));
            }
        }
        self.nodes = nodes;
        self.accumulator.pool.short = false;
        out
    }

    /// Looks at every partition that has batches: what expired, what may go where, and when to look again.
    fn look(&mut self, now_ms: i64) {
        for node in self.nodes.values_mut() {
            node.candidates.clear();
            node.due = false;
        }
        let urgent = self.flushing > 0 || self.accumulator.pool.short;
        let mut active = std::mem::take(&mut self.accumulator.active);
        active.retain(|&slot| {
            self.expire(slot, now_ms);
            self.settle(slot, now_ms);
            let partition = &mut self.accumulator.partitions[slot as usize];
            partition.active = !partition.is_idle();
            if partition.active {
                self.candidate(slot, now_ms, urgent);
            }
            self.accumulator.partitions[slot as usize].active
        });
        self.accumulator.active = active;
    }

    /// Lets a partition whose sequence has a gap begin anew, if it can.
    fn settle(&mut self, slot: u32, now_ms: i64) {
        let partition = &mut self.accumulator.partitions[slot as usize];
        if !partition.must_begin_anew() {
            return;
        }
        let old = partition.identity;
        let Some(identity) = self.identity_after(old) else { return };
        let partition = &self.accumulator.partitions[slot as usize];
        let name = &self.accumulator.topics[partition.topic as usize].name;
        let what = format!("partition {} of {name}, whose sequence begins anew", partition.index);
        let error = ClientError::Broker { code: ErrorCode::OutOfOrderSequenceNumber, what, message: None };
        while let Some(batch) = self.accumulator.partitions[slot as usize].take_doubtful() {
            self.fail(slot, batch, error.clone(), now_ms);
        }
        self.accumulator.partitions[slot as usize].begin(identity);
    }

    /// What a partition goes on with after `old`: what others went on with already, or the next epoch (KIP-360). Nobody
    /// has to be asked for that. `None`: a new producer id has to come first.
    fn identity_after(&mut self, old: Option<Identity>) -> Option<Identity> {
        let current = self.identity?;
        if old.is_none_or(|old| current.generation > old.generation) {
            return Some(current);
        }
        let epoch = current.producer_epoch.checked_add(1).filter(|_| !self.id_is_spent);
        self.id_wanted = epoch.is_none();
        let next = Identity { producer_epoch: epoch?, generation: current.generation + 1, ..current };
        self.metrics.epoch_bumps += 1;
        self.identity = Some(next);
        Some(next)
    }

    /// A broker knows a newer epoch of the partition's id than its own: another producer has that id.
    pub(super) fn fenced(&mut self, slot: u32) {
        let partition = &mut self.accumulator.partitions[slot as usize];
        partition.needs_bump = true;
        let same_id = |current: Identity| partition.identity.is_some_and(|id| id.producer_id == current.producer_id);
        self.id_is_spent |= self.identity.is_some_and(same_id);
    }

    fn candidate(&mut self, slot: u32, now_ms: i64, urgent: bool) {
        let config = &self.config;
        let partition = &self.accumulator.partitions[slot as usize];
        let oldest = partition.in_flight.iter().find(|batch| !batch.expired).into_iter().chain(partition.queue.front());
        for batch in oldest {
            self.wake_ms = self.wake_ms.min(batch.created_ms + config.delivery_timeout_ms);
        }
        match partition.gate(now_ms, config.enable_idempotence, config.max_in_flight) {
            Gate::Open => {}
            Gate::Shut => return,
            Gate::NotBefore(at_ms) => {
                self.wake_ms = self.wake_ms.min(at_ms);
                return;
            }
        }
        if config.enable_idempotence && self.identity.is_none() {
            return;
        }
        let Some(front) = partition.queue.front() else { return };
        let Some(leader) = partition.leader else {
            self.refresh_wanted = true;
            self.wake_ms = self.wake_ms.min(now_ms + config.retry_backoff_ms.max(1));
            return;
        };
        let full = partition.queue.len() > 1 || !front.is_open() || front.len() >= self.accumulator.batch_limit();
        let linger_ends_ms = front.created_ms + config.linger_ms;
        let node = self.nodes.entry(leader).or_default();
        node.candidates.push(slot);
        if urgent || full || linger_ends_ms <= now_ms {
            node.due = true;
        } else {
            self.wake_ms = self.wake_ms.min(linger_ends_ms);
        }
    }

    /// Fills one request, beginning where the last one had no room any more.
    fn request(&mut self, id: i32, node: &mut Node) -> NodeRequest {
        let mut slots = std::mem::take(&mut node.candidates);
        slots.sort_unstable();
        let first = slots.partition_point(|slot| *slot < node.rotation);
        slots.rotate_left(first);
        let mut parts: Vec<Part> = Vec::with_capacity(slots.len());
        let mut bytes = 0;
        for &slot in &slots {
            let len = self.accumulator.seal_front(slot);
            node.rotation = slot;
            if !parts.is_empty() && bytes + len > self.config.max_request_size {
                break;
            }
            node.rotation = slot + 1;
            bytes += len;
            parts.extend(self.take(slot));
        }
        slots.clear();
        node.candidates = slots;
        node.in_flight += 1;
        parts.sort_by(|a, b| (&a.topic, a.index).cmp(&(&b.topic, b.index)));
        let request = NodeRequest {
            id: self.next_request,
            node: id,
            acks: self.config.acks.code(),
            timeout_ms: self.config.request_timeout_ms as i32,
            parts,
        };
        self.next_request += 1;
        self.requests.insert(request.id, InFlight::new(&request));
        self.metrics.requests += 1;
        self.metrics.batches += request.parts.len() as u64;
        self.metrics.bytes += request.bytes() as u64;
        request
    }

    /// Moves a partition's first batch, which is sealed, into flight.
    fn take(&mut self, slot: u32) -> Option<Part> {
        let partition = &mut self.accumulator.partitions[slot as usize];
        if let Some(identity) = self.identity.filter(|_| self.config.enable_idempotence) {
            partition.assign_sequence(identity);
        }
        let mut batch = partition.queue.pop_front()?;
        self.metrics.records += u64::from(batch.records);
        let topic = &self.accumulator.topics[partition.topic as usize];
        let part = Part {
            topic: topic.name.clone(),
            topic_id: topic.id,
            index: partition.index,
            records: batch.encode(),
            key: PartKey { slot, batch: batch.id },
        };
        partition.in_flight.push_back(batch);
        Some(part)
    }

    /// Ends what is past `delivery_timeout_ms`. What is in flight then may still be written: it ends as possibly sent,
    /// and its memory stays in use until its answer.
    fn expire(&mut self, slot: u32, now_ms: i64) {
        let after_ms = self.config.delivery_timeout_ms;
        let error = || ClientError::TimedOut { what: "the record's delivery", after_ms };
        let is_past = |batch: &mut Batch| batch.created_ms + after_ms <= now_ms;
        while let Some(batch) = self.accumulator.partitions[slot as usize].queue.pop_front_if(is_past) {
            self.fail(slot, batch, error(), now_ms);
        }
        self.expire_in_flight(slot, now_ms, is_past, error);
    }

    fn expire_in_flight(
        &mut self,
        slot: u32,
        now_ms: i64,
        mut is_past: impl FnMut(&mut Batch) -> bool,
        error: impl Fn() -> ClientError,
    ) {
        let partition = &mut self.accumulator.partitions[slot as usize];
        let name = &self.accumulator.topics[partition.topic as usize].name;
        for batch in partition.in_flight.iter_mut().filter(|batch| !batch.expired) {
            if is_past(batch) {
                batch.expired = true;
                partition.hole |= batch.stamp.is_some();
                self.metrics.records_failed += u64::from(batch.records);
                self.finished.push(batch.end(name.clone(), partition.index, Fate::PossiblySent(error()), now_ms));
            }
        }
    }

    /// Ends a batch that is neither waiting nor in flight any more without it being acknowledged.
    pub(super) fn fail(&mut self, slot: u32, batch: Batch, error: ClientError, now_ms: i64) {
        self.accumulator.partitions[slot as usize].lost(&batch);
        let fate = if batch.maybe_appended { Fate::PossiblySent(error) } else { Fate::NotSent(error) };
        self.metrics.records_failed += u64::from(batch.counts().0);
        self.end(slot, batch, fate, now_ms);
    }

    pub(super) fn end(&mut self, slot: u32, mut batch: Batch, fate: Fate, now_ms: i64) {
        let partition = &self.accumulator.partitions[slot as usize];
        let name = self.accumulator.topics[partition.topic as usize].name.clone();
        self.finished.push(batch.end(name, partition.index, fate, now_ms));
        self.release(batch);
    }

    pub(super) fn release(&mut self, batch: Batch) {
        let charge = batch.charge;
        self.accumulator.pool.give_back(charge, batch.into_buffer());
    }

    /// Ends everything, and takes no more records. What is in flight ends as possibly sent.
    pub fn stop(&mut self, error: &ClientError, now_ms: i64) {
        self.fatal.get_or_insert_with(|| error.clone());
        self.stopped = true;
        for slot in self.accumulator.active.clone() {
            while let Some(batch) = self.accumulator.partitions[slot as usize].queue.pop_front() {
                self.fail(slot, batch, error.clone(), now_ms);
            }
            self.expire_in_flight(slot, now_ms, |_| true, || error.clone());
        }
    }

    /// Takes no more records; those that it has go on.
    pub fn refuse_more(&mut self) {
        self.fatal.get_or_insert(ClientError::Closed);
    }

    /// Whether a (new) producer id is needed before anything (or one partition) can go on.
    pub fn wants_producer_id(&self) -> bool {
        self.config.enable_idempotence && !self.stopped && (self.identity.is_none() || self.id_wanted)
    }

    pub fn producer_id(&mut self, producer_id: i64, producer_epoch: i16) {
        let generation = self.identity.map_or(0, |old| old.generation + 1);
        self.metrics.epoch_bumps += u64::from(generation > 0);
        self.identity = Some(Identity { producer_id, producer_epoch, generation });
        (self.id_is_spent, self.id_wanted) = (false, false);
    }

    /// When to drain again even if nothing happens.
    pub fn next_wake_ms(&self) -> i64 {
        self.wake_ms
    }

    /// Whether the metadata turned out to be stale since this was last asked.
    pub fn take_refresh_wanted(&mut self) -> bool {
        std::mem::take(&mut self.refresh_wanted)
    }

    pub fn take_finished(&mut self) -> Vec<Finished> {
        std::mem::take(&mut self.finished)
    }

    pub fn recycle(&mut self, finished: Finished) {
        self.accumulator.recycle_tags(finished.outcome.tags);
    }

    /// Nothing lingers from here to [`Sender::end_flush`]. Gives what [`Sender::is_flushed`] asks for.
    pub fn begin_flush(&mut self) -> u64 {
        self.flushing += 1;
        self.accumulator.next_batch()
    }

    pub fn end_flush(&mut self) {
        assert!(self.flushing > 0, "a flush ends once");
        self.flushing -= 1;
    }

    /// Whether every record that was there when `upto` was given has ended.
    pub fn is_flushed(&self, upto: u64) -> bool {
        let live = |batch: &Batch| batch.born < upto && !batch.expired;
        !self.accumulator.active.iter().any(|slot| {
            let partition = &self.accumulator.partitions[*slot as usize];
            partition.queue.front().is_some_and(live) || partition.in_flight.iter().any(live)
        })
    }

    /// Bytes of `buffer_memory` in use.
    pub fn memory_used(&self) -> usize {
        self.accumulator.pool.used()
    }

    pub fn metrics(&self) -> ProducerMetrics {
        self.metrics
    }

    pub fn config(&self) -> &ProducerConfig {
        &self.config
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
