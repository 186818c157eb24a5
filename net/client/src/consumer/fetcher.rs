//! The fetcher's core: which node is asked for what, what lies read ahead, and what of it the program gets next.
//!
//! No I/O: plans go out, answers come in, time is an argument. One Fetch is under way per node, whatever the number of its
//! partitions. Read-ahead is bounded: no plan is made while `limits::READ_AHEAD_BYTES` lie unread, and an answer on top of
//! that is bounded by `fetch_max_bytes` (and one batch). Partitions are drained in the order in which their data came, each
//! answer holding at most `max_partition_fetch_bytes` of one, so none starves.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use model::ErrorCode;
use wire::generated::fetch::{FetchResponse, PartitionData};

use super::batches::{Aborted, BatchCursor, ReadOptions};
use super::config::{ConsumerConfig, IsolationLevel};
use super::limits;
use super::positions::{Positions, ResetTo, State};
use super::session::{FetchSession, PlannedFetch, Wanted};
use crate::{ClientError, Cluster, ConsumerRecord, TopicPartition};

/// Data of one partition from one answer, as it came.
#[derive(Clone, Debug)]
pub struct PartitionBatches {
    pub partition: TopicPartition,
    pub record_count: u64,
    pub bytes: usize,
    pub first_offset: i64,
    pub last_offset: i64,
    pub max_timestamp_ms: i64,
    cursor: BatchCursor,
}

impl PartitionBatches {
    /// The records, inflated as they are walked. Nothing comes after an error.
    pub fn iter(&self) -> impl Iterator<Item = Result<ConsumerRecord, ClientError>> + use<> {
        let mut cursor = self.cursor.clone();
        let mut has_failed = false;
        std::iter::from_fn(move || {
            if has_failed {
                return None;
            }
            let item = cursor.next_record();
            has_failed = item.is_err();
            item.transpose()
        })
    }
}

#[derive(Debug)]
struct Completed {
    generation: u64,
    bytes: usize,
    cursor: BatchCursor,
}

#[derive(Debug, Default)]
struct Node {
    session: FetchSession,
    is_in_flight: bool,
    retry_at_ms: i64,
}

#[derive(Debug)]
pub struct Fetcher {
    config: ConsumerConfig,
    retry_backoff_ms: i64,
    pub positions: Positions,
    nodes: BTreeMap<i32, Node>,
    queue: VecDeque<Completed>,
    queued_bytes: usize,
    faults: VecDeque<(Option<TopicPartition>, ClientError)>,
    /// Turns the order in which partitions are named.
    turn: usize,
}

impl Fetcher {
    pub fn new(config: ConsumerConfig, retry_backoff_ms: i64) -> Fetcher {
        Fetcher {
            config,
            retry_backoff_ms,
            positions: Positions::default(),
            nodes: BTreeMap::new(),
            queue: VecDeque::new(),
            queued_bytes: 0,
            faults: VecDeque::new(),
            turn: 0,
        }
    }

    /// Bytes that lie read ahead.
    pub fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    pub fn assign(&mut self, wanted: impl IntoIterator<Item = TopicPartition>) {
        let state = match (&self.config.group_id, ResetTo::from_policy(self.config.auto_offset_reset)) {
            (Some(_), _) => State::AwaitsCommitted,
            (None, Some(to)) => State::AwaitsReset(to),
            (None, None) => State::Lost,
        };
        self.positions.assign(wanted, state);
        self.drop_stale();
    }

    /// Takes over leaders and epochs. True when the metadata lacks some leader.
    pub fn observe(&mut self, cluster: &Cluster) -> bool {
        self.nodes.retain(|node, known| known.is_in_flight || cluster.brokers.contains_key(node));
        self.positions.observe(cluster)
    }

    pub fn pause(&mut self, partition: &TopicPartition, paused: bool) -> bool {
        self.positions.get_mut(partition).map(|assigned| assigned.paused = paused).is_some()
    }

    /// Forgets what was read ahead and is void now.
    pub fn drop_stale(&mut self) {
        let positions = &self.positions;
        let is_current = |of: &Completed| {
            positions.get(of.cursor.partition()).is_some_and(|assigned| assigned.generation == of.generation)
        };
        self.queue.retain(is_current);
        self.queued_bytes = self.queue.iter().map(|one| one.bytes).sum();
        self.faults.retain(|(of, _)| of.as_ref().is_none_or(|partition| positions.get(partition).is_some()));
    }

    /// Read-ahead of paused partitions must not keep the others waiting: where it fills the room, it is dropped, and
    /// fetched anew once they go on.
    fn make_room(&mut self) {
        if self.queued_bytes < limits::READ_AHEAD_BYTES {
            return;
        }
        let is_paused =
            |one: &&Completed| self.positions.get(one.cursor.partition()).is_some_and(|assigned| assigned.paused);
        let paused: BTreeSet<TopicPartition> =
            self.queue.iter().filter(is_paused).map(|one| one.cursor.partition().clone()).collect();
        for partition in &paused {
            self.positions.rewind(partition, 0);
        }
        self.drop_stale();
    }

    /// Nodes that should be asked now: leaders (or preferred followers) with something to fetch.
    pub fn wanted_nodes(&mut self, now_ms: i64) -> BTreeSet<i32> {
        self.make_room();
        if self.queued_bytes >= limits::READ_AHEAD_BYTES {
            return BTreeSet::new();
        }
        let mut nodes = BTreeSet::new();
        for (_, assigned) in self.positions.iter() {
            if is_fetchable(assigned, now_ms) {
                nodes.insert(source(assigned, now_ms));
            }
        }
        nodes
            .retain(|node| self.nodes.get(node).is_none_or(|known| !known.is_in_flight && known.retry_at_ms <= now_ms));
        nodes
    }

    /// One request with all that is to be fetched from `node`. From here on it is in flight.
    pub fn plan(&mut self, node: i32, version: i16, now_ms: i64) -> Option<PlannedFetch> {
        let mut wanted: Vec<(TopicPartition, Wanted)> = self
            .positions
            .iter()
            .filter(|(_, assigned)| is_fetchable(assigned, now_ms) && source(assigned, now_ms) == node)
            .map(|(partition, assigned)| {
                let wanted = Wanted {
                    topic_id: assigned.topic_id,
                    fetch_offset: assigned.fetch_offset,
                    leader_epoch: assigned.leader_epoch,
                    generation: assigned.generation,
                };
                (partition.clone(), wanted)
            })
            .collect();
        if wanted.is_empty() {
            return None;
        }
        let avoids = |(partition, _): &(TopicPartition, Wanted)| {
            self.positions.get(partition).is_some_and(|assigned| now_ms < assigned.avoids_followers_until_ms)
        };
        // A leader that knows the rack names the follower again instead of giving records.
        let tells_rack = !wanted.iter().any(avoids);
        let turn = self.turn % wanted.len();
        wanted.rotate_left(turn);
        self.turn = self.turn.wrapping_add(1);
        let state = self.nodes.entry(node).or_default();
        assert!(!state.is_in_flight, "one fetch is under way per node");
        state.is_in_flight = true;
        let mut planned = state.session.plan(node, version, wanted, self.config.max_partition_fetch_bytes);
        planned.tells_rack = tells_rack;
        Some(planned)
    }

    /// The request got no answer, or none that can be read; the latter is told.
    pub fn failed(&mut self, node: i32, error: &ClientError, now_ms: i64) {
        if !super::is_broken(error) {
            self.push_any_fault(None, error.clone());
        }
        let wait_ms = match error {
            // Nothing was sent; the client backs off by itself and says when it is connected.
            ClientError::NotConnected { .. } => limits::NOT_CONNECTED_RETRY_MS,
            _ => self.retry_backoff_ms,
        };
        let retry_at_ms = now_ms + wait_ms;
        let state = self.nodes.entry(node).or_default();
        state.is_in_flight = false;
        state.session.begin_again();
        state.retry_at_ms = retry_at_ms;
        if !matches!(error, ClientError::NotConnected { .. }) {
            self.leave_follower(node, now_ms, now_ms);
        }
    }

    /// `node` is not connected. True: partitions that were to be fetched from it as their follower go by their leader
    /// now. One that was named just now has a moment to be connected to.
    pub fn leave_follower_away(&mut self, node: i32, now_ms: i64) -> bool {
        self.leave_follower(node, now_ms - limits::FOLLOWER_PATIENCE_MS, now_ms)
    }

    /// Where `node` was named as follower before or at `named_ms`, the leader is fetched from for a while.
    fn leave_follower(&mut self, node: i32, named_ms: i64, now_ms: i64) -> bool {
        let mut has_left = false;
        for partition in self.preferring(node) {
            if let Some(assigned) = self.positions.get_mut(&partition)
                && assigned.preferred.is_some_and(|(_, until)| until - limits::PREFERRED_REPLICA_MS <= named_ms)
            {
                assigned.leave_follower(now_ms);
                has_left = true;
            }
        }
        has_left
    }

    fn preferring(&self, node: i32) -> Vec<TopicPartition> {
        let prefers = |one: &(&TopicPartition, &super::positions::Assigned)| {
            one.1.preferred.is_some_and(|(preferred, _)| preferred == node)
        };
        self.positions.iter().filter(prefers).map(|(partition, _)| partition.clone()).collect()
    }

    /// The answer of the request under way to `node`. True: the metadata is stale.
    pub fn answered(&mut self, node: i32, answer: &FetchResponse<'_>, now_ms: i64) -> bool {
        let Some(mut state) = self.nodes.remove(&node) else { return false };
        state.is_in_flight = false;
        let code = ErrorCode::from_code(answer.error_code);
        let mut is_stale = false;
        if answer.error_code != 0 {
            match code {
                Some(ErrorCode::FetchSessionIdNotFound) => state.session.forgotten_by_broker(),
                Some(ErrorCode::InvalidFetchSessionEpoch) => state.session.begin_again(),
                _ => {
                    state.session.begin_again();
                    state.retry_at_ms = now_ms + self.retry_backoff_ms;
                    is_stale = true;
                }
            }
        } else if state.session.answered(answer.session_id) {
            for topic in &answer.responses {
                for data in &topic.partitions {
                    let asked = state.session.asked(&topic.topic, &topic.topic_id, data.partition_index);
                    let Some((partition, asked)) = asked else { continue };
                    is_stale |= self.partition_answered(node, partition, asked, data, now_ms);
                }
            }
        }
        self.nodes.insert(node, state);
        is_stale
    }

    fn partition_answered(
        &mut self,
        node: i32,
        partition: TopicPartition,
        asked: &Wanted,
        data: &PartitionData,
        now_ms: i64,
    ) -> bool {
        let Some(assigned) = self.positions.get_mut(&partition) else { return false };
        if (assigned.generation, assigned.fetch_offset) != (asked.generation, asked.fetch_offset) {
            return false;
        }
        if data.error_code != 0 {
            return self.partition_failed(node, partition, data.error_code, now_ms);
        }
        // It may go back: a log that lost its end is shorter.
        assigned.high_watermark = data.high_watermark;
        assigned.last_stable_offset = data.last_stable_offset;
        assigned.log_start_offset = data.log_start_offset;
        let is_named = data.preferred_read_replica >= 0 && data.preferred_read_replica != node;
        if is_named && now_ms >= assigned.avoids_followers_until_ms {
            assigned.preferred = Some((data.preferred_read_replica, now_ms + limits::PREFERRED_REPLICA_MS));
        }
        if let Some(records) = data.records.to_bytes().filter(|records| !records.is_empty()) {
            self.queue_records(partition, records, asked, data);
        }
        false
    }

    fn queue_records(&mut self, partition: TopicPartition, records: Bytes, asked: &Wanted, data: &PartitionData) {
        let options = ReadOptions {
            check_crcs: self.config.check_crcs,
            read_committed: self.config.isolation_level == IsolationLevel::ReadCommitted,
        };
        let aborted = match (&data.aborted_transactions, options.read_committed) {
            (Some(list), true) => list
                .iter()
                .map(|one| Aborted { producer_id: one.producer_id, first_offset: one.first_offset })
                .collect(),
            _ => Vec::new(),
        };
        let records = match records.len() {
            len if len < limits::COPY_BELOW_BYTES => Bytes::copy_from_slice(&records),
            _ => records,
        };
        let bytes = records.len() + std::mem::size_of_val(&aborted[..]) + limits::READ_AHEAD_OVERHEAD_BYTES;
        let cursor = BatchCursor::new(partition.clone(), records, asked.fetch_offset, aborted, options);
        let end = cursor.end_offset();
        if let Some(assigned) = self.positions.get_mut(&partition) {
            match end {
                Some(end) if end > assigned.fetch_offset => assigned.fetch_offset = end,
                // Reading it tells what is wrong; until then the same bytes need not come again.
                _ => assigned.is_held = true,
            }
        }
        self.queued_bytes += bytes;
        self.queue.push_back(Completed { generation: asked.generation, bytes, cursor });
    }

    /// True: the metadata is stale.
    fn partition_failed(&mut self, node: i32, partition: TopicPartition, number: i16, now_ms: i64) -> bool {
        let has_queued = self.has_queued(&partition);
        let retry_at_ms = now_ms + self.retry_backoff_ms;
        let Some(assigned) = self.positions.get_mut(&partition) else { return false };
        assigned.retry_at_ms = retry_at_ms;
        let code = ErrorCode::from_code(number);
        if let Some(code) = code
            && is_staleness(code)
        {
            // Of a follower it says that it has no replica (any more).
            if node != assigned.leader {
                assigned.leave_follower(now_ms);
            }
            return true;
        }
        match code {
            Some(ErrorCode::UnknownLeaderEpoch | ErrorCode::OffsetNotAvailable | ErrorCode::UnknownServerError) => {}
            Some(ErrorCode::OffsetOutOfRange)
                if source(assigned, now_ms) != assigned.leader || node != assigned.leader =>
            {
                assigned.leave_follower(now_ms);
            }
            // What lies read ahead comes first; then this is asked, and answered, again.
            _ if has_queued => assigned.is_held = true,
            Some(ErrorCode::OffsetOutOfRange) => self.out_of_range(partition),
            _ => {
                let what = format!("fetching partition {} of {}", partition.partition, partition.topic);
                if let Err(error) = ClientError::check(number, what) {
                    self.push_fault(partition, error);
                }
            }
        }
        false
    }

    fn out_of_range(&mut self, partition: TopicPartition) {
        match ResetTo::from_policy(self.config.auto_offset_reset) {
            Some(to) => {
                self.positions.reset(&partition, to);
            }
            None => {
                let offset = self.positions.get(&partition).map_or(-1, |assigned| assigned.offset);
                let error = ClientError::Broker {
                    code: ErrorCode::OffsetOutOfRange,
                    what: format!(
                        "offset {offset} of partition {} of {}, with auto_offset_reset=none",
                        partition.partition, partition.topic
                    ),
                    message: None,
                };
                self.push_fault(partition, error);
            }
        }
    }

    pub fn push_fault(&mut self, partition: TopicPartition, error: ClientError) {
        self.push_any_fault(Some(partition), error);
    }

    fn push_any_fault(&mut self, of: Option<TopicPartition>, error: ClientError) {
        let is_known = self.faults.iter().any(|(known, _)| *known == of);
        if !is_known && self.faults.len() < limits::MAX_FAULTS {
            self.faults.push_back((of, error));
        }
    }

    /// What is wrong with some partition, once.
    pub fn take_fault(&mut self) -> Option<ClientError> {
        self.faults.pop_front().map(|(_, error)| error)
    }

    /// At most `max` records, and the positions behind them.
    pub fn take_records(&mut self, max: usize, now_ms: i64) -> Vec<ConsumerRecord> {
        let mut out = Vec::new();
        self.drain(now_ms, |cursor| {
            while out.len() < max {
                match cursor.next_record()? {
                    Some(record) => out.push(record),
                    None => return Ok(Drained::All),
                }
            }
            // With no room left, the cursor may still stand at its end.
            Ok(if cursor.bytes_left() == 0 { Drained::All } else { Drained::Enough })
        });
        out
    }

    /// Everything that lies read ahead.
    pub fn take_batches(&mut self, now_ms: i64) -> Vec<PartitionBatches> {
        let mut out = Vec::new();
        self.drain(now_ms, |cursor| {
            let begin = cursor.clone();
            let mut sum = PartitionBatches {
                partition: begin.partition().clone(),
                record_count: 0,
                bytes: 0,
                first_offset: -1,
                last_offset: -1,
                max_timestamp_ms: -1,
                cursor: begin.clone(),
            };
            let outcome = loop {
                match cursor.next_batch() {
                    Ok(Some(batch)) => {
                        if sum.record_count == 0 {
                            sum.first_offset = batch.first_offset;
                        }
                        sum.record_count += batch.record_count;
                        sum.bytes += batch.bytes;
                        sum.last_offset = batch.last_offset;
                        sum.max_timestamp_ms = sum.max_timestamp_ms.max(batch.max_timestamp_ms);
                    }
                    Ok(None) => break Ok(Drained::All),
                    Err(error) => break Err(error),
                }
            };
            if sum.record_count > 0 {
                sum.cursor = begin.up_to(cursor);
                out.push(sum);
            }
            outcome
        });
        out
    }

    /// Gives `read` one cursor after the other, and takes over where each ends.
    fn drain(&mut self, now_ms: i64, mut read: impl FnMut(&mut BatchCursor) -> Result<Drained, ClientError>) {
        let mut at = 0;
        while let Some(one) = self.queue.get_mut(at) {
            let partition = one.cursor.partition().clone();
            let current = self.positions.get_mut(&partition).filter(|known| known.generation == one.generation);
            let Some(assigned) = current else {
                self.remove_queued(at);
                self.release_hold(&partition);
                continue;
            };
            if assigned.paused || assigned.state != State::Fetching {
                at += 1;
                continue;
            }
            let outcome = read(&mut one.cursor);
            assigned.offset = assigned.offset.max(one.cursor.next_offset());
            if one.cursor.leader_epoch() >= 0 {
                assigned.offset_epoch = one.cursor.leader_epoch();
            }
            match outcome {
                Ok(Drained::Enough) => return,
                Ok(Drained::All) => {
                    self.remove_queued(at);
                    self.release_hold(&partition);
                }
                Err(error) => {
                    // Others go on; this one is asked for anew from where it stands, after a while.
                    self.positions.rewind(&partition, now_ms + self.retry_backoff_ms);
                    self.push_fault(partition, error);
                    self.remove_queued(at);
                }
            }
        }
    }

    /// Whether something lies read ahead that will be given out: what was fetched before a jump will not.
    fn has_queued(&self, partition: &TopicPartition) -> bool {
        let generation = self.positions.get(partition).map(|assigned| assigned.generation);
        self.queue.iter().any(|one| Some(one.generation) == generation && one.cursor.partition() == partition)
    }

    /// A held partition has nothing queued any more: it is fetched from where reading stands.
    fn release_hold(&mut self, partition: &TopicPartition) {
        let has_queued = self.has_queued(partition);
        if let Some(assigned) = self.positions.get_mut(partition)
            && assigned.is_held
            && !has_queued
        {
            assigned.is_held = false;
            assigned.fetch_offset = assigned.offset;
        }
    }

    fn remove_queued(&mut self, at: usize) {
        if let Some(gone) = self.queue.remove(at) {
            self.queued_bytes -= gone.bytes;
        }
    }

    /// When a node or a partition may be asked again.
    pub fn next_retry_ms(&self, now_ms: i64) -> Option<i64> {
        let nodes = self.nodes.values().map(|node| node.retry_at_ms).filter(|at| *at > now_ms).min();
        nodes.into_iter().chain(self.positions.next_retry_ms(now_ms)).min()
    }
}

enum Drained {
    All,
    Enough,
}

fn is_fetchable(assigned: &super::positions::Assigned, now_ms: i64) -> bool {
    assigned.state == State::Fetching
        && !assigned.paused
        && !assigned.is_held
        && assigned.leader >= 0
        && assigned.retry_at_ms <= now_ms
}

fn source(assigned: &super::positions::Assigned, now_ms: i64) -> i32 {
    match assigned.preferred {
        Some((node, until_ms)) if now_ms < until_ms => node,
        _ => assigned.leader,
    }
}

/// Errors that say our picture of the cluster is old.
pub(crate) fn is_staleness(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::NotLeaderOrFollower
            | ErrorCode::FencedLeaderEpoch
            | ErrorCode::UnknownTopicOrPartition
            | ErrorCode::LeaderNotAvailable
            | ErrorCode::ReplicaNotAvailable
            | ErrorCode::KafkaStorageError
            | ErrorCode::UnknownTopicId
            | ErrorCode::InconsistentTopicId
            | ErrorCode::BrokerNotAvailable
    )
}

#[cfg(test)]
#[path = "fetcher_tests.rs"]
mod tests;
