//! Requests in the words of a test: one function an API, on a [`Raw`] connection, answering what the test looks at.

use std::thread;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::list_offsets_response::ListOffsetsPartitionResponse;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, BrokerId, CreateTopicsRequest, DeleteRecordsRequest, DeleteTopicsRequest,
    DescribeConfigsRequest, FetchRequest, IncrementalAlterConfigsRequest, InitProducerIdRequest, ListOffsetsRequest,
    MetadataRequest, MetadataResponse, ProduceRequest, ProducerId, TopicName, TransactionalId,
};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use crate::batch::{self, Batch, Fetched};
use crate::raw::Raw;

pub const TOPIC_RESOURCE: i8 = 2;
pub const BROKER_RESOURCE: i8 = 4;
const COORDINATOR_LOAD_IN_PROGRESS: i16 = 14;
const TIMEOUT_MS: i32 = 15_000;
/// How long until what was asked of the cluster must show.
pub const SETTLE_LIMIT: Duration = Duration::from_secs(20);

pub fn text(from: &str) -> StrBytes {
    StrBytes::from_string(from.to_owned())
}

pub fn topic_name(name: &str) -> TopicName {
    TopicName(text(name))
}

pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("the clock is past 1970");
    since.as_millis() as i64
}

/// Asks until the answer is there; panics with `what` after the limit.
#[track_caller]
pub fn until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    within(SETTLE_LIMIT, ask).unwrap_or_else(|| panic!("not within {SETTLE_LIMIT:?}: {what}"))
}

/// Asks until the answer is there; None after the limit.
pub fn within<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        let answer = ask();
        if answer.is_some() || Instant::now() >= end {
            return answer;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// What the broker says that it serves. Since version 3 a client has to say what it is.
#[track_caller]
pub fn api_versions(raw: &mut Raw, version: i16) -> ApiVersionsResponse {
    let request = ApiVersionsRequest::default()
        .with_client_software_name(text("ringlog-e2e"))
        .with_client_software_version(text("1"));
    let answer = raw.call(version, &request);
    assert_eq!(answer.error_code, 0, "ApiVersions in version {version}");
    answer
}

pub fn new_topic(name: &str, partitions: i32, configs: &[(&str, &str)]) -> CreatableTopic {
    let config = |(key, value): &(&str, &str)| {
        CreatableTopicConfig::default().with_name(text(key)).with_value(Some(text(value)))
    };
    CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(partitions)
        .with_replication_factor(1)
        .with_configs(configs.iter().map(config).collect())
}

/// The error code for each topic, in the order of the answer, by name.
pub fn create_topics(raw: &mut Raw, topics: Vec<CreatableTopic>, validate_only: bool) -> Vec<(String, i16)> {
    let request = CreateTopicsRequest::default()
        .with_topics(topics)
        .with_timeout_ms(TIMEOUT_MS)
        .with_validate_only(validate_only);
    let answer = raw.call(7, &request);
    let mut codes: Vec<_> = answer.topics.iter().map(|topic| (topic.name.to_string(), topic.error_code)).collect();
    codes.sort();
    codes
}

/// Makes a topic and waits until it has leaders; its id.
#[track_caller]
pub fn create_topic(raw: &mut Raw, name: &str, partitions: i32, configs: &[(&str, &str)]) -> Uuid {
    let codes = create_topics(raw, vec![new_topic(name, partitions, configs)], false);
    assert_eq!(codes, [(name.to_owned(), 0)], "create {name}");
    wait_for_leaders(raw, name, partitions as usize).topic_id
}

/// Waits until that many partitions of a topic have leaders, as after a start.
#[track_caller]
pub fn wait_for_leaders(raw: &mut Raw, name: &str, partitions: usize) -> MetadataResponseTopic {
    until("the topic has leaders", || {
        let topic = metadata(raw, &[name], false).topics.remove(0);
        let led = topic.partitions.iter().filter(|partition| partition.leader_id.0 >= 0).count();
        (topic.error_code == 0 && led == partitions).then_some(topic)
    })
}

pub fn delete_topic(raw: &mut Raw, name: &str) -> i16 {
    let state = DeleteTopicState::default().with_name(Some(topic_name(name)));
    let request = DeleteTopicsRequest::default().with_topics(vec![state]).with_timeout_ms(TIMEOUT_MS);
    raw.call(6, &request).responses[0].error_code
}

pub fn metadata(raw: &mut Raw, topics: &[&str], auto_create: bool) -> MetadataResponse {
    let topic = |name: &&str| MetadataRequestTopic::default().with_name(Some(topic_name(name)));
    let topics = topics.iter().map(topic).collect();
    raw.call(12, &MetadataRequest::default().with_topics(Some(topics)).with_allow_auto_topic_creation(auto_create))
}

pub fn all_topics(raw: &mut Raw) -> Vec<MetadataResponseTopic> {
    raw.call(12, &MetadataRequest::default().with_topics(None)).topics
}

/// A produce request for one partition; the defaults are what a careful producer sends.
#[derive(Clone)]
pub struct Produce<'a> {
    pub version: i16,
    pub acks: i16,
    pub topic: &'a str,
    pub topic_id: Uuid,
    pub partition: i32,
    pub transactional_id: Option<&'a str>,
    pub records: Bytes,
}

impl<'a> Produce<'a> {
    pub fn new(topic: &'a str, batch: &Batch) -> Self {
        Self::bytes(topic, batch.encode())
    }

    pub fn bytes(topic: &'a str, records: Bytes) -> Self {
        Produce { version: 9, acks: -1, topic, topic_id: Uuid::nil(), partition: 0, transactional_id: None, records }
    }

    pub fn request(&self) -> ProduceRequest {
        let partition =
            PartitionProduceData::default().with_index(self.partition).with_records(Some(self.records.clone()));
        let mut topic = TopicProduceData::default().with_partition_data(vec![partition]);
        topic = if self.version >= 13 {
            topic.with_topic_id(self.topic_id)
        } else {
            topic.with_name(topic_name(self.topic))
        };
        ProduceRequest::default()
            .with_transactional_id(self.transactional_id.map(|id| TransactionalId(text(id))))
            .with_acks(self.acks)
            .with_timeout_ms(TIMEOUT_MS)
            .with_topic_data(vec![topic])
    }

    #[track_caller]
    pub fn send(&self, raw: &mut Raw) -> PartitionProduceResponse {
        raw.call(self.version, &self.request()).responses.remove(0).partition_responses.remove(0)
    }

    #[track_caller]
    pub fn code(&self, raw: &mut Raw) -> i16 {
        self.send(raw).error_code
    }
}

/// Produces to partition 0 with acks=all; the base offset. Any error ends the test.
#[track_caller]
pub fn produce(raw: &mut Raw, topic: &str, batch: &Batch) -> i64 {
    let answer = Produce::new(topic, batch).send(raw);
    assert_eq!(answer.error_code, 0, "produce to {topic}: {:?}", answer.error_message);
    answer.base_offset
}

/// The error code of one batch for partition 0.
#[track_caller]
pub fn refused(raw: &mut Raw, topic: &str, batch: &Batch) -> i16 {
    Produce::new(topic, batch).code(raw)
}

pub fn fetch_partition(partition: i32, offset: i64, max_bytes: i32) -> FetchPartition {
    FetchPartition::default()
        .with_partition(partition)
        .with_fetch_offset(offset)
        .with_current_leader_epoch(-1)
        .with_last_fetched_epoch(-1)
        .with_log_start_offset(-1)
        .with_partition_max_bytes(max_bytes)
}

/// A fetch of some partitions of one topic, without a session until the test sets one.
pub fn fetch_request(topic: &str, partitions: Vec<FetchPartition>, max_bytes: i32) -> FetchRequest {
    let topics = vec![FetchTopic::default().with_topic(topic_name(topic)).with_partitions(partitions)];
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(200)
        .with_min_bytes(1)
        .with_max_bytes(max_bytes)
        .with_session_epoch(-1)
        .with_topics(topics)
}

/// Partition 0 from an offset on, as consumers ask.
#[track_caller]
pub fn fetch(raw: &mut Raw, topic: &str, offset: i64) -> PartitionData {
    let partition = fetch_partition(0, offset, 1 << 20);
    let mut answer = raw.call(12, &fetch_request(topic, vec![partition], 50 << 20));
    assert_eq!(answer.error_code, 0, "fetch from {topic}");
    answer.responses.remove(0).partitions.remove(0)
}

/// The batches of partition 0 from an offset on.
#[track_caller]
pub fn fetch_batches(raw: &mut Raw, topic: &str, offset: i64) -> Vec<Fetched> {
    let answer = fetch(raw, topic, offset);
    assert_eq!(answer.error_code, 0, "fetch {topic} at {offset}");
    batch::read(answer.records.expect("records are never null"))
}

#[track_caller]
pub fn list_offset(raw: &mut Raw, version: i16, topic: &str, timestamp: i64) -> ListOffsetsPartitionResponse {
    let partition = ListOffsetsPartition::default().with_timestamp(timestamp).with_current_leader_epoch(-1);
    let topic = ListOffsetsTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition]);
    let request = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
    raw.call(version, &request).topics.remove(0).partitions.remove(0)
}

#[track_caller]
pub fn delete_records(raw: &mut Raw, topic: &str, before: i64) -> (i16, i64) {
    let partition = DeleteRecordsPartition::default().with_offset(before);
    let topic = DeleteRecordsTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition]);
    let request = DeleteRecordsRequest::default().with_topics(vec![topic]).with_timeout_ms(TIMEOUT_MS);
    let answer = raw.call(2, &request).topics.remove(0).partitions.remove(0);
    (answer.error_code, answer.low_watermark)
}

pub fn init_producer_id(raw: &mut Raw, transactional_id: Option<&str>) -> (i16, i64, i16) {
    let request = InitProducerIdRequest::default()
        .with_transactional_id(transactional_id.map(|id| TransactionalId(text(id))))
        .with_transaction_timeout_ms(60_000)
        .with_producer_id(ProducerId(-1))
        .with_producer_epoch(-1);
    until("a coordinator for producer ids", || {
        let answer = raw.call(4, &request);
        let loading = answer.error_code == COORDINATOR_LOAD_IN_PROGRESS;
        (!loading).then_some((answer.error_code, answer.producer_id.0, answer.producer_epoch))
    })
}

/// A property of a topic as DescribeConfigs tells it.
#[track_caller]
pub fn describe_config(raw: &mut Raw, topic: &str, key: &str) -> Option<String> {
    let resource = DescribeConfigsResource::default()
        .with_resource_type(TOPIC_RESOURCE)
        .with_resource_name(text(topic))
        .with_configuration_keys(Some(vec![text(key)]));
    let answer = raw.call(4, &DescribeConfigsRequest::default().with_resources(vec![resource]));
    assert_eq!(answer.results[0].error_code, 0, "describe {topic}");
    answer.results[0].configs.first().and_then(|config| config.value.as_ref().map(ToString::to_string))
}

/// Sets a topic's property; the error code.
pub fn alter_config(raw: &mut Raw, topic: &str, key: &str, value: &str) -> i16 {
    let config = AlterableConfig::default().with_name(text(key)).with_value(Some(text(value)));
    let resource = AlterConfigsResource::default()
        .with_resource_type(TOPIC_RESOURCE)
        .with_resource_name(text(topic))
        .with_configs(vec![config]);
    raw.call(1, &IncrementalAlterConfigsRequest::default().with_resources(vec![resource])).responses[0].error_code
}
