//! A fake cluster and a sender on it, for the tests of the core.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::Bytes;
use model::{BatchView, Codec};
use wire::generated::produce::{PartitionProduceResponse, ProduceResponse, TopicProduceResponse};

use super::accumulator::Refused;
use super::answers::RequestOutcome;
use super::config::ProducerConfig;
use super::delivery::{Fate, Mark};
use super::request::{NodeRequest, Part};
use super::sender::Sender;
use crate::{Broker, ClientError, Cluster, Partition, ProducerRecord, Topic};

pub const TOPIC: &str = "orders";

/// `partitions` of one topic, spread over `nodes` (ids from 0).
pub fn cluster(nodes: i32, partitions: i32) -> Cluster {
    let broker = |id| Broker { id, host: "host".to_string(), port: 9_092, rack: None };
    let partition = |index: i32| Partition {
        leader: index % nodes,
        leader_epoch: 1,
        replicas: vec![],
        isr: vec![],
        offline: vec![],
    };
    let topic = Topic {
        name: TOPIC.into(),
        id: [7; 16],
        is_internal: false,
        partitions: (0..partitions).map(partition).collect(),
    };
    Cluster {
        brokers: (0..nodes).map(|id| (id, broker(id))).collect(),
        topics: BTreeMap::from([(topic.name.clone(), topic)]),
        version: 1,
        ..Cluster::default()
    }
}

pub fn set_leader(cluster: &mut Cluster, partition: usize, leader: i32) {
    let topic = cluster.topics.get_mut(TOPIC);
    topic.into_iter().for_each(|topic| topic.partitions[partition].leader = leader);
    cluster.version += 1;
}

pub fn record(partition: i32, value: Bytes) -> ProducerRecord {
    ProducerRecord {
        topic: TOPIC.into(),
        partition: Some(partition),
        key: None,
        value: Some(value),
        headers: vec![],
        timestamp_ms: None,
    }
}

pub fn tagged_big(tag: u64) -> Bytes {
    let mut value = vec![0; 900];
    value[..8].copy_from_slice(&tag.to_be_bytes());
    value.into()
}

pub struct Bench {
    pub sender: Sender,
    pub cluster: Cluster,
    pub now_ms: i64,
    pub topic: Rc<str>,
    /// Fates by tag, in the order in which they came.
    pub fates: Vec<(u64, i32, Fate)>,
}

impl Bench {
    /// With a producer id of 1 where the configuration wants one.
    pub fn new(config: ProducerConfig, nodes: i32, partitions: i32) -> Bench {
        config.check().unwrap();
        let cluster = cluster(nodes, partitions);
        let mut sender = Sender::new(config, 42);
        let topic: Rc<str> = TOPIC.into();
        assert!(sender.add_topic(&cluster, &topic));
        if sender.wants_producer_id() {
            sender.producer_id(1, 0);
        }
        Bench { sender, cluster, now_ms: 1_000, topic, fates: vec![] }
    }

    pub fn try_send(&mut self, partition: i32, tag: u64, value: Bytes) -> Result<bool, Refused> {
        let record = ProducerRecord { topic: self.topic.clone(), ..record(partition, value) };
        self.sender.append(&record, self.now_ms, Mark::Tag(tag), self.now_ms).map_err(|(refused, _)| refused)
    }

    /// A record whose value is its tag.
    pub fn send(&mut self, partition: i32, tag: u64) {
        self.try_send(partition, tag, Bytes::copy_from_slice(&tag.to_be_bytes())).unwrap();
    }

    /// A record of 900 bytes that begin with its tag.
    pub fn send_big(&mut self, partition: i32, tag: u64) {
        self.try_send(partition, tag, tagged_big(tag)).unwrap();
    }

    /// As if the brokers knew the producer already: more than one batch of a partition goes out.
    pub fn prove(&mut self) {
        self.sender.accumulator.partitions.iter_mut().for_each(|partition| partition.proven = true);
    }

    pub fn drain(&mut self) -> Vec<NodeRequest> {
        let requests = self.sender.drain(self.now_ms, &self.cluster, &mut |_| true);
        self.collect();
        requests
    }

    /// The one request that there must be.
    pub fn drain_one(&mut self) -> NodeRequest {
        let mut requests = self.drain();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests.remove(0)
    }

    pub fn pass(&mut self, ms: i64) {
        self.now_ms += ms;
    }

    fn outcome(&mut self, id: u64, outcome: RequestOutcome<'_>) {
        self.sender.answered(self.now_ms, id, outcome);
        self.collect();
    }

    /// Answers every part with `code` and an offset.
    pub fn answer(&mut self, request: &NodeRequest, code: i16, base_offset: i64) {
        let response = response(request, |_| (code, base_offset));
        self.outcome(request.id, RequestOutcome::Answered(&response));
    }

    pub fn answer_with(&mut self, request: &NodeRequest, judge: impl FnMut(&Part) -> (i16, i64)) {
        let response = response(request, judge);
        self.outcome(request.id, RequestOutcome::Answered(&response));
    }

    pub fn answer_raw(&mut self, request: &NodeRequest, response: &ProduceResponse<'_>) {
        self.outcome(request.id, RequestOutcome::Answered(response));
    }

    pub fn handed(&mut self, request: &NodeRequest) {
        self.outcome(request.id, RequestOutcome::Handed);
    }

    pub fn disconnect(&mut self, request: &NodeRequest) {
        let error = ClientError::Disconnected { node: request.node, reason: "gone".to_string() };
        self.outcome(request.id, RequestOutcome::Unknown(error));
    }

    pub fn not_sent(&mut self, request: &NodeRequest) {
        let error = ClientError::NotConnected { node: request.node, reason: "down".to_string() };
        self.outcome(request.id, RequestOutcome::NotSent(error));
    }

    pub fn collect(&mut self) {
        for finished in self.sender.take_finished() {
            let outcome = &finished.outcome;
            assert_eq!(outcome.tags.len(), outcome.records as usize);
            self.fates.extend(outcome.tags.iter().map(|tag| (*tag, outcome.partition, outcome.fate.clone())));
            self.sender.recycle(finished);
        }
    }

    pub fn acknowledged(&self) -> Vec<u64> {
        let acked = self.fates.iter().filter(|(_, _, fate)| matches!(fate, Fate::Acknowledged { .. }));
        acked.map(|(tag, _, _)| *tag).collect()
    }
}

pub fn response(request: &NodeRequest, mut judge: impl FnMut(&Part) -> (i16, i64)) -> ProduceResponse<'static> {
    let topics = request.parts.chunk_by(|a, b| a.topic == b.topic).map(|parts| TopicProduceResponse {
        name: "".into(),
        topic_id: parts[0].topic_id,
        partition_responses: parts
            .iter()
            .map(|part| {
                let (error_code, base_offset) = judge(part);
                PartitionProduceResponse { index: part.index, error_code, base_offset, ..Default::default() }
            })
            .collect(),
    });
    ProduceResponse { responses: topics.collect(), ..ProduceResponse::default() }
}

/// A batch as the broker sees it.
pub struct Seen {
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub sequence: i32,
    pub tags: Vec<u64>,
}

pub fn seen(part: &Part) -> Seen {
    let view = BatchView::parse(&part.records).unwrap();
    view.check_crc().unwrap();
    assert_eq!(view.bytes.len(), part.records.len());
    assert_eq!(view.header.codec().unwrap(), Codec::None);
    let tag = |value: &[u8]| u64::from_be_bytes(*value.first_chunk().unwrap());
    Seen {
        producer_id: view.header.producer_id.0,
        producer_epoch: view.header.producer_epoch.0,
        sequence: view.header.base_sequence,
        tags: view.records().map(|record| tag(record.unwrap().value.unwrap())).collect(),
    }
}
