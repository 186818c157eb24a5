//! Records on their way into batches: topics, a queue of batches per partition, the memory of all of them.
//!
//! Owns everything that an append touches. A topic is found by a pointer comparison with the last one, its partition
//! by index; a record costs no allocation of its own. Bounded by `buffer_memory`.

use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::BytesMut;
use model::Codec;
use model::batch::HEADER_LEN;

use super::batch::{Builder, RecordRef};
use super::config::{PartitionerKind, ProducerConfig};
use super::delivery::{Mark, UNTAGGED, Waiter};
use super::limits::{MAX_FREE_BUFFERS, MAX_PARTITIONS, MAX_TOPICS, MIN_BUFFER_BYTES};
use super::partition::{Batch, Body, Partition};
use super::partitioner::{Chooser, Random};
use super::pool::Pool;
use crate::{ClientError, Cluster, ProducerRecord};

const NO_SLOT: u32 = u32::MAX;
const NO_LEADER: i32 = -1;
/// Length, attributes, timestamp and offset of a record at most.
const RECORD_OVERHEAD: usize = 5 + 1 + 10 + 5;

/// Why a record was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No room in `buffer_memory`: again when batches ended.
    Full,
    /// Not in the metadata, or not with this partition: again when it changed.
    UnknownTopic,
    Invalid(ClientError),
}

/// What an append did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    pub slot: u32,
    /// It began a batch.
    pub began: bool,
    /// A batch of the partition is as large as it gets.
    pub filled: bool,
}

#[derive(Debug)]
pub struct Topic {
    pub name: Rc<str>,
    pub id: [u8; 16],
    /// Node ids by partition.
    leaders: Vec<i32>,
    /// Partitions with a leader, ascending.
    available: Vec<i32>,
    /// By partition: its place in `partitions`.
    slots: Vec<u32>,
    chooser: Chooser,
}

#[derive(Debug)]
pub struct Accumulator {
    kind: PartitionerKind,
    codec: Codec,
    batch_limit: usize,
    max_request_size: usize,
    pub topics: Vec<Topic>,
    by_name: BTreeMap<Rc<str>, u32>,
    last_topic: u32,
    pub partitions: Vec<Partition>,
    /// Places of partitions that have batches.
    pub active: Vec<u32>,
    pub pool: Pool,
    next_batch: u64,
    seen_version: Option<u64>,
    random: Random,
    scratch: Vec<u8>,
    spare_tags: Vec<Vec<u64>>,
}

impl Accumulator {
    pub fn new(config: &ProducerConfig, seed: u64) -> Accumulator {
        Accumulator {
            kind: config.partitioner,
            codec: config.compression,
            batch_limit: config.batch_limit(),
            max_request_size: config.max_request_size,
            topics: Vec::new(),
            by_name: BTreeMap::new(),
            last_topic: 0,
            partitions: Vec::new(),
            active: Vec::new(),
            pool: Pool::new(config.buffer_memory),
            next_batch: 0,
            seen_version: None,
            random: Random::new(seed),
            scratch: Vec::new(),
            spare_tags: Vec::new(),
        }
    }

    pub fn batch_limit(&self) -> usize {
        self.batch_limit
    }

    /// The id that the next batch will have; ids ascend.
    pub fn next_batch(&self) -> u64 {
        self.next_batch
    }

    pub fn new_batch_id(&mut self) -> u64 {
        self.next_batch += 1;
        self.next_batch - 1
    }

    /// Takes over what changed in the cluster.
    pub fn update(&mut self, cluster: &Cluster) {
        if self.seen_version == Some(cluster.version) {
            return;
        }
        self.seen_version = Some(cluster.version);
        for topic in &mut self.topics {
            learn(topic, cluster);
        }
        for partition in &mut self.partitions {
            partition.leader = self.topics[partition.topic as usize].leader(partition.index);
        }
    }

    /// Takes up a topic that was not written to before. `false`: the cluster has no such topic.
    pub fn add_topic(&mut self, cluster: &Cluster, name: &Rc<str>) -> bool {
        self.update(cluster);
        if let Some(at) = self.find_topic(name) {
            return self.topics[at as usize].has_partitions();
        }
        let known = cluster.topic(name).is_some_and(|topic| !topic.partitions.is_empty());
        if !known || self.topics.len() >= MAX_TOPICS {
            return false;
        }
        let mut topic = Topic {
            name: name.clone(),
            id: [0; 16],
            leaders: Vec::new(),
            available: Vec::new(),
            slots: Vec::new(),
            chooser: Chooser::default(),
        };
        learn(&mut topic, cluster);
        self.by_name.insert(name.clone(), self.topics.len() as u32);
        self.topics.push(topic);
        true
    }

    fn find_topic(&mut self, name: &Rc<str>) -> Option<u32> {
        if let Some(last) = self.topics.get(self.last_topic as usize)
            && (Rc::ptr_eq(&last.name, name) || last.name == *name)
        {
            return Some(self.last_topic);
        }
        self.last_topic = *self.by_name.get(name)?;
        Some(self.last_topic)
    }

    /// Chooses a partition and puts the record into its open batch.
    pub fn append(
        &mut self,
        record: &ProducerRecord,
        timestamp_ms: i64,
        mark: Mark,
        now_ms: i64,
    ) -> Result<Appended, (Refused, Mark)> {
        let topic = match self.find_topic(&record.topic) {
            Some(at) if self.topics[at as usize].has_partitions() => at,
            _ => return Err((Refused::UnknownTopic, mark)),
        };
        let bare = RecordRef {
            key: record.key.as_deref(),
            value: record.value.as_deref(),
            headers: &record.headers,
            timestamp_ms,
        };
        let body_len = bare.body_len();
        if let Err(error) = self.check(record, timestamp_ms, body_len) {
            return Err((Refused::Invalid(error), mark));
        }
        let partition = match self.choose(topic, record) {
            Some(partition) => partition,
            None => return Err((Refused::UnknownTopic, mark)),
        };
        let slot = self.slot(topic, partition);
        let (began, before) = match self.room(slot, &bare, body_len, now_ms) {
            Some(found) => found,
            None => return Err((Refused::Full, mark)),
        };
        let filled = self.write(slot, &bare, body_len, mark) || (began && before > 0);
        let chooser = &mut self.topics[topic as usize].chooser;
        chooser.sent(partition, body_len + RECORD_OVERHEAD, self.batch_limit, filled);
        Ok(Appended { slot, began, filled })
    }

    fn check(&self, record: &ProducerRecord, timestamp_ms: i64, body_len: usize) -> Result<(), ClientError> {
        let refuse = |reason: String| Err(ClientError::BadRequest { reason });
        let most = self.max_request_size;
        if HEADER_LEN + RECORD_OVERHEAD + body_len > most {
            return refuse(format!(
                "a record of {body_len} bytes for {} is larger than max.request.size allows, which is {most}",
                record.topic
            ));
        }
        if timestamp_ms < 0 {
            return refuse(format!("a record for {} has the time {timestamp_ms}, which is before 1970", record.topic));
        }
        if record.partition.is_some_and(|partition| partition < 0) {
            return refuse(format!("a record for {} names a negative partition", record.topic));
        }
        Ok(())
    }

    fn choose(&mut self, topic: u32, record: &ProducerRecord) -> Option<i32> {
        let topic = &mut self.topics[topic as usize];
        let count = topic.leaders.len();
        if let Some(partition) = record.partition {
            return (partition as usize).lt(&count).then_some(partition);
        }
        Some(topic.chooser.choose(self.kind, record.key.as_deref(), count, &topic.available, &mut self.random))
    }

    fn slot(&mut self, topic_at: u32, index: i32) -> u32 {
        let topic = &mut self.topics[topic_at as usize];
        let at = index as usize;
        if let Some(&slot) = topic.slots.get(at)
            && slot != NO_SLOT
        {
            return slot;
        }
        if topic.slots.len() <= at {
            topic.slots.resize(at + 1, NO_SLOT);
        }
        let slot = self.partitions.len() as u32;
        topic.slots[at] = slot;
        self.partitions.push(Partition::new(topic_at, index, topic.leader(index)));
        slot
    }

    /// Sees to it that the partition's last batch is open and has room for the record. Gives whether it was begun for
    /// it, and how many batches were before it. `None`: no memory.
    fn room(&mut self, slot: u32, record: &RecordRef<'_>, body_len: usize, now_ms: i64) -> Option<(bool, usize)> {
        let partition = &mut self.partitions[slot as usize];
        if let Some(batch) = partition.queue.back_mut()
            && let Body::Open(builder) = &mut batch.body
        {
            let len = builder.len() + builder.record_len(record.timestamp_ms, body_len);
            if len <= self.batch_limit {
                // Without memory to grow it the record waits: another batch would be a crumb, and what that frees once it
                // is acknowledged is room for the next crumb only.
                return grow(&mut self.pool, builder, &mut batch.charge, len, self.batch_limit).then_some((false, 0));
            }
        }
        let least = HEADER_LEN + RECORD_OVERHEAD + body_len;
        let hint =
            partition.usual_len.next_power_of_two().clamp(MIN_BUFFER_BYTES, self.batch_limit.max(MIN_BUFFER_BYTES));
        // For the same reason a batch begins with the room that batches of this partition usually take, or not at all.
        let buffer = self.pool.take(least.max(hint))?;
        let before = partition.queue.len();
        let batch = self.open(buffer, now_ms);
        let partition = &mut self.partitions[slot as usize];
        partition.queue.push_back(batch);
        if !partition.active {
            partition.active = true;
            self.active.push(slot);
        }
        Some((true, before))
    }

    fn open(&mut self, buffer: BytesMut, now_ms: i64) -> Batch {
        let id = self.new_batch_id();
        Batch {
            id,
            born: id,
            first: 0,
            created_ms: now_ms,
            charge: buffer.capacity(),
            body: Body::Open(Builder::new(buffer)),
            records: 0,
            bytes: 0,
            stamp: None,
            attempts: 0,
            not_before_ms: 0,
            maybe_appended: false,
            expired: false,
            tags: self.spare_tags.pop().unwrap_or_default(),
            waiters: Vec::new(),
        }
    }

    /// Writes the record; `true`: its batch is full.
    fn write(&mut self, slot: u32, record: &RecordRef<'_>, body_len: usize, mark: Mark) -> bool {
        let batch = self.partitions[slot as usize].queue.back_mut();
        let Some(batch) = batch else { unreachable!("room was made before") };
        let Body::Open(builder) = &mut batch.body else { unreachable!("room is made in an open batch") };
        let index = builder.records();
        builder.push(record, body_len);
        let tag = match mark {
            Mark::Tag(tag) => tag,
            Mark::Handle(sender) => {
                batch.waiters.push(Waiter { index, timestamp_ms: record.timestamp_ms, sender });
                UNTAGGED
            }
        };
        batch.tags.push(tag);
        builder.len() >= self.batch_limit
    }

    /// Seals the first batch of a partition and gives its size on the wire.
    pub fn seal_front(&mut self, slot: u32) -> usize {
        let partition = &mut self.partitions[slot as usize];
        let Some(batch) = partition.queue.front_mut() else { return 0 };
        if batch.is_open() {
            partition.usual_len = batch.len().max(partition.usual_len - partition.usual_len / 4);
            seal(batch, &mut self.pool, self.codec, &mut self.scratch);
        }
        batch.len()
    }

    /// Takes the pieces of a split batch into the books and seals them.
    pub fn seal_piece(&mut self, batch: &mut Batch) {
        self.pool.charge(batch.charge);
        seal(batch, &mut self.pool, self.codec, &mut self.scratch);
    }

    /// Keeps a list of tags for the next batch.
    pub fn recycle_tags(&mut self, mut tags: Vec<u64>) {
        if self.spare_tags.len() < MAX_FREE_BUFFERS && tags.capacity() > 0 {
            tags.clear();
            self.spare_tags.push(tags);
        }
    }
}

/// Seals a batch; the buffer that compression left over goes back to the pool.
fn seal(batch: &mut Batch, pool: &mut Pool, codec: Codec, scratch: &mut Vec<u8>) {
    let Some(left) = batch.seal(codec, scratch) else { return };
    pool.give_back(batch.charge, Some(left));
    if let Body::Sealed(sealed) = &batch.body {
        batch.charge = sealed.capacity();
    }
    pool.charge(batch.charge);
}

/// Moves an open batch into a larger buffer if it has to be. `false`: there is no memory for it.
fn grow(pool: &mut Pool, builder: &mut Builder, charge: &mut usize, len: usize, limit: usize) -> bool {
    if len <= builder.capacity() {
        return true;
    }
    let wanted = builder.capacity().saturating_mul(2).clamp(len, limit.max(len));
    let Some(buffer) = pool.take(wanted) else { return false };
    let old_charge = std::mem::replace(charge, buffer.capacity());
    let old = builder.move_to(buffer);
    pool.give_back(old_charge, Some(old));
    true
}

/// What the cluster says of a topic; a topic that went away has no partition.
fn learn(topic: &mut Topic, cluster: &Cluster) {
    topic.leaders.clear();
    if let Some(known) = cluster.topic(&topic.name) {
        topic.id = known.id;
        let with_leader = |leader: i32| if cluster.brokers.contains_key(&leader) { leader } else { NO_LEADER };
        topic.leaders.extend(known.partitions.iter().take(MAX_PARTITIONS).map(|p| with_leader(p.leader)));
    }
    topic.available.clear();
    let with_leader = topic.leaders.iter().enumerate().filter(|(_, leader)| **leader != NO_LEADER);
    topic.available.extend(with_leader.map(|(index, _)| index as i32));
    topic.chooser.cluster_changed(topic.leaders.len(), &topic.available);
}

impl Topic {
    fn has_partitions(&self) -> bool {
        !self.leaders.is_empty()
    }

    fn leader(&self, index: i32) -> Option<i32> {
        self.leaders.get(index as usize).copied().filter(|leader| *leader != NO_LEADER)
    }
}

#[cfg(test)]
#[path = "accumulator_tests.rs"]
mod tests;
