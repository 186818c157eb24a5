//! Produce (key 0): the head of the produce way.
//!
//! Budget: the walk allocates nothing; batches stay slices of the connection's buffer; one message for each owning shard.
//! [`begin`] returns as soon as the mail is on its way: mailboxes keep order, so the connection may read on.

use std::ops::Range;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use model::{Codec, ErrorCode};
use wire::produce::{PartitionOutcome, ProducePartition, ProduceResponseWriter, ProduceWalk, RecordError};
use wire::{Reader, RequestHeader, TopicRef, WireError};

use crate::connection::{Close, Later, Reply};
use crate::dispatch::memory_only;
use crate::mail::{ProduceMail, ProducePart, ProduceResult, ShardReply, ShardRequest};
use crate::shard::Shard;
use crate::view::{View, is_internal};

/// First version that may carry zstd.
const FIRST_WITH_ZSTD: i16 = 7;
const ATTRIBUTES_AT: usize = 21;
const TRANSACTIONAL: u8 = 0x10;

/// Which partitions a request named, in its order and grouped as it groups them: the answer is too. Holds nothing of the
/// frame, whose memory is free for the next one as soon as the batches have their places.
#[derive(Default)]
struct Asked {
    /// Each name that a partition stands under, one behind the other.
    names: String,
    topics: Vec<AskedTopic>,
    /// By slot.
    indexes: Vec<i32>,
}

struct AskedTopic {
    /// Its place in the request.
    topic_index: usize,
    name: AskedName,
    /// Slots of its partitions.
    slots: Range<usize>,
}

enum AskedName {
    /// Where in `names`.
    Name(Range<usize>),
    Id([u8; 16]),
}

impl Asked {
    fn add(&mut self, partition: &ProducePartition<'_>) {
        let slot = self.indexes.len();
        self.indexes.push(partition.index);
        match self.topics.last_mut().filter(|last| last.topic_index == partition.topic_index) {
            Some(last) => last.slots.end = slot + 1,
            None => {
                let name = match partition.topic {
                    TopicRef::Id(id) => AskedName::Id(id),
                    TopicRef::Name(name) => {
                        self.names.push_str(name);
                        AskedName::Name(self.names.len() - name.len()..self.names.len())
                    }
                };
                self.topics.push(AskedTopic { topic_index: partition.topic_index, name, slots: slot..slot + 1 });
            }
        }
    }

    fn name_of(&self, topic: &AskedTopic) -> TopicRef<'_> {
        match &topic.name {
            AskedName::Name(range) => TopicRef::Name(&self.names[range.clone()]),
            AskedName::Id(id) => TopicRef::Id(*id),
        }
    }
}

/// What an answer is made from once all shards have theirs.
struct Plan {
    asked: Asked,
    version: i16,
    correlation_id: i32,
    header_version: i16,
    acks: i16,
    results: Vec<Option<ProduceResult>>,
}

/// Sends every partition's batch to its owner, in order; the future resolves to the answer.
pub fn begin(shard: &Rc<Shard>, header: &RequestHeader<'_>, frame: &Bytes) -> Result<Later, Close> {
    let mut reader = Reader::new(frame);
    RequestHeader::decode(&mut reader)?;
    let walk = ProduceWalk::open(reader, header.api_version)?;
    let mut plan = Plan {
        asked: Asked::default(),
        version: header.api_version,
        correlation_id: header.correlation_id,
        header_version: header.response_header_version(),
        acks: walk.acks,
        results: vec![None; walk.partition_count],
    };
    let mails = sort(shard, &walk, &mut plan)?;
    let calls: Vec<_> = mails
        .into_iter()
        .enumerate()
        .filter(|(_, parts)| !parts.is_empty())
        .map(|(to, parts)| {
            let slots: Vec<usize> = parts.iter().map(|part| part.slot).collect();
            let mail = ProduceMail { parts, acks: walk.acks, timeout_ms: walk.timeout_ms };
            (slots, shard.post.call(to, ShardRequest::Produce(mail)))
        })
        .collect();
    let counters = shard.counters.clone();
    Ok(Box::pin(async move {
        for (slots, call) in calls {
            match call.await {
                Some(ShardReply::Produce(results)) => {
                    for result in results {
                        let slot = result.slot;
                        plan.results[slot] = Some(result);
                    }
                }
                _ => slots.into_iter().for_each(|slot| plan.refuse(slot, ErrorCode::NotLeaderOrFollower)),
            }
        }
        counters.produced(plan.results.iter().flatten());
        plan.answer()
    }))
}

/// Parts by owning shard; what is refused here already has its result.
fn sort(shard: &Shard, walk: &ProduceWalk<'_>, plan: &mut Plan) -> Result<Vec<Vec<ProducePart>>, WireError> {
    let view = shard.view();
    let mut mails: Vec<Vec<ProducePart>> = (0..shard.post.shards()).map(|_| Vec::new()).collect();
    let whole = if walk.transactional_id.is_some() {
        Some(ErrorCode::TransactionalIdAuthorizationFailed)
    } else if !matches!(walk.acks, -1..=1) {
        Some(ErrorCode::InvalidRequiredAcks)
    } else {
        None
    };
    for (slot, partition) in walk.partitions().enumerate() {
        let partition = partition?;
        plan.asked.add(&partition);
        let judged = match whole {
            Some(code) => Err(code),
            None => judge(&view, slot, partition, plan.version),
        };
        match judged {
            Ok((owner, part)) => mails[owner].push(part),
            Err(code) => plan.refuse(slot, code),
        }
    }
    Ok(mails)
}

fn judge(
    view: &View,
    slot: usize,
    partition: ProducePartition<'_>,
    version: i16,
) -> Result<(usize, ProducePart), ErrorCode> {
    let unknown = match partition.topic {
        TopicRef::Name(_) => ErrorCode::UnknownTopicOrPartition,
        TopicRef::Id(_) => ErrorCode::UnknownTopicId,
    };
    let topic = view.topic(partition.topic).ok_or(unknown)?;
    if is_internal(&topic.name) {
        return Err(ErrorCode::InvalidTopicException);
    }
    let located = view.locate(partition.topic, partition.index).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let batch = partition.records.ok_or(ErrorCode::InvalidRecord)?;
    if let Some(&attributes) = batch.get(ATTRIBUTES_AT + 1) {
        if attributes & TRANSACTIONAL != 0 {
            return Err(ErrorCode::TransactionalIdAuthorizationFailed);
        }
        if version < FIRST_WITH_ZSTD && i16::from(attributes & 7) == Codec::Zstd as i16 {
            return Err(ErrorCode::UnsupportedCompressionType);
        }
    }
    Ok((located.shard, ProducePart { slot, key: located.key, batch }))
}

impl Plan {
    fn refuse(&mut self, slot: usize, code: ErrorCode) {
        self.results[slot] = Some(ProduceResult::error(slot, code));
    }

    fn answer(self) -> Result<Reply, Close> {
        if self.acks == 0 {
            let failed = self.results.iter().flatten().any(|result| result.error_code != 0);
            return if failed { Err(Close::NoAnswerForError) } else { Ok(None) };
        }
        let mut buffer = BytesMut::new();
        let chunks = wire::encode_response_with(&mut buffer, self.correlation_id, self.header_version, |writer| {
            // Topics without partitions are left out.
            let mut response = ProduceResponseWriter::begin(writer, self.version, self.asked.topics.len())?;
            for topic in &self.asked.topics {
                response.topic(self.asked.name_of(topic), topic.slots.len())?;
                for slot in topic.slots.clone() {
                    self.write_partition(slot, self.asked.indexes[slot], &mut response)?;
                }
            }
            response.finish(0, &[])
        })?;
        Ok(memory_only(chunks))
    }

    fn write_partition(
        &self,
        slot: usize,
        index: i32,
        response: &mut ProduceResponseWriter<'_>,
    ) -> Result<(), WireError> {
        let Some(result) = &self.results[slot] else {
            return response.partition(&PartitionOutcome::error(index, ErrorCode::UnknownServerError.code()));
        };
        let records: Vec<RecordError<'_>> = result
            .records
            .iter()
            .map(|&(batch_index, message)| RecordError { batch_index, message: Some(message) })
            .collect();
        response.partition(&PartitionOutcome {
            index,
            error_code: result.error_code,
            base_offset: result.base_offset,
            log_append_time_ms: result.log_append_time_ms,
            log_start_offset: result.log_start_offset,
            record_errors: &records,
            error_message: result.message.as_deref(),
            current_leader: None,
        })
    }
}
