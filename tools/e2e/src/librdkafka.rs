//! librdkafka 2 through the crate `rdkafka`, in the test's own process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_lite::future::block_on;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, DeliveryResult, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, ThreadedProducer};
use rdkafka::{Offset, TopicPartitionList};

use crate::Broker;
use crate::sample::Sample;

/// Longer than any single call takes on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(60);

pub fn config(broker: &Broker, settings: &[(&str, &str)]) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", broker.bootstrap()).set("broker.address.family", "v4");
    for (key, value) in settings {
        config.set(*key, *value);
    }
    config
}

/// What became of each record, by the number that its sender gave it: partition and offset, or the error.
pub type Outcomes = BTreeMap<u64, Result<(i32, i64), String>>;

/// Writes down each delivery report.
#[derive(Clone, Default)]
pub struct Recorder(Arc<Mutex<Outcomes>>);

impl Recorder {
    pub fn outcomes(&self) -> Outcomes {
        self.0.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl ClientContext for Recorder {
    // Connections that break while a broker is killed are what the tests are about, not news.
    fn log(&self, _: rdkafka::config::RDKafkaLogLevel, _: &str, _: &str) {}
    fn error(&self, _: KafkaError, _: &str) {}
}

impl ProducerContext for Recorder {
    type DeliveryOpaque = Box<u64>;

    fn delivery(&self, report: &DeliveryResult<'_>, number: Box<u64>) {
        let outcome = match report {
            Ok(message) => Ok((message.partition(), message.offset())),
            Err((error, _)) => Err(error.to_string()),
        };
        let known = self.0.lock().unwrap().insert(*number, outcome);
        assert!(known.is_none(), "record {number} was reported twice");
    }
}

pub type RecordingProducer = ThreadedProducer<Recorder>;

#[track_caller]
pub fn producer(broker: &Broker, settings: &[(&str, &str)]) -> (RecordingProducer, Recorder) {
    let recorder = Recorder::default();
    let producer = config(broker, settings).create_with_context(recorder.clone());
    (producer.expect("librdkafka knows the settings"), recorder)
}

/// Produces to partition 0 in order; each must be acknowledged.
#[track_caller]
pub fn produce(broker: &Broker, topic: &str, codec: &str, samples: &[Sample]) {
    let (producer, recorder) = producer(broker, &[("compression.type", codec), ("enable.idempotence", "true")]);
    for (number, sample) in samples.iter().enumerate() {
        let headers = sample
            .headers
            .iter()
            .fold(OwnedHeaders::new(), |headers, (key, value)| headers.insert(Header { key, value: value.as_deref() }));
        let mut record = BaseRecord::with_opaque_to(topic, Box::new(number as u64)).partition(0).headers(headers);
        record.key = sample.key.as_deref();
        record.payload = sample.value.as_deref();
        producer.send::<[u8], [u8]>(record).map_err(|(error, _)| error).expect("room in the queue");
    }
    producer.flush(LIMIT).expect("everything is delivered");
    let outcomes = recorder.outcomes();
    assert_eq!(outcomes.len(), samples.len());
    assert!(outcomes.values().all(Result::is_ok), "{outcomes:?}");
}

/// Partition 0 from its beginning to its end.
#[track_caller]
pub fn consume(broker: &Broker, topic: &str) -> Vec<Sample> {
    let mut samples = Vec::new();
    read_to_end(broker, topic, 0, |message| samples.push(sample_of(message)));
    samples
}

/// Shows every record of a partition to `see`, until its end is reached.
#[track_caller]
pub fn read_to_end(broker: &Broker, topic: &str, partition: i32, see: impl FnMut(&BorrowedMessage<'_>)) {
    read_all_to_end(broker, topic, partition..partition + 1, see);
}

/// The same for several partitions, by one consumer: all of each partition, in order.
pub fn read_all_to_end(
    broker: &Broker,
    topic: &str,
    partitions: std::ops::Range<i32>,
    mut see: impl FnMut(&BorrowedMessage<'_>),
) {
    let consumer: BaseConsumer =
        config(broker, &[("group.id", "unused"), ("enable.partition.eof", "true"), ("enable.auto.commit", "false")])
            .create()
            .expect("librdkafka knows the settings");
    let mut wanted = TopicPartitionList::new();
    let mut unfinished: BTreeSet<i32> = partitions.collect();
    for &partition in &unfinished {
        wanted.add_partition_offset(topic, partition, Offset::Beginning).expect("a valid position");
    }
    consumer.assign(&wanted).expect("an assignment");
    let mut end = Instant::now() + LIMIT;
    while !unfinished.is_empty() {
        assert!(Instant::now() < end, "the ends of {topic}-{unfinished:?} were not reached within {LIMIT:?}");
        match consumer.poll(Duration::from_millis(200)) {
            Some(Ok(message)) => {
                end = Instant::now() + LIMIT;
                see(&message);
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                unfinished.remove(&partition);
            }
            Some(Err(KafkaError::MessageConsumption(code))) if is_passing(code) => {}
            Some(Err(error)) => panic!("reading {topic}: {error}"),
            None => {}
        }
    }
}

/// Errors that a client retries by itself.
pub fn is_passing(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode::{AllBrokersDown, BrokerTransportFailure, NotLeaderForPartition, OperationTimedOut};
    matches!(code, AllBrokersDown | BrokerTransportFailure | NotLeaderForPartition | OperationTimedOut)
}

fn sample_of(message: &BorrowedMessage<'_>) -> Sample {
    let headers = message.headers().map(|headers| {
        let owned = |header: Header<'_, &[u8]>| (header.key.to_owned(), header.value.map(<[u8]>::to_vec));
        headers.iter().map(owned).collect()
    });
    Sample {
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        headers: headers.unwrap_or_default(),
    }
}

fn admin(broker: &Broker) -> AdminClient<DefaultClientContext> {
    config(broker, &[]).create().expect("librdkafka knows the settings")
}

fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(LIMIT)).operation_timeout(Some(LIMIT))
}

#[track_caller]
pub fn create_topic(broker: &Broker, name: &str, partitions: i32, configs: &[(&str, &str)]) {
    let mut topic = NewTopic::new(name, partitions, TopicReplication::Fixed(1));
    for (key, value) in configs {
        topic = topic.set(key, value);
    }
    let made = block_on(admin(broker).create_topics([&topic], &options())).expect("an answer");
    assert!(made.iter().all(Result::is_ok), "create {name}: {made:?}");
}

#[track_caller]
pub fn delete_topic(broker: &Broker, name: &str) {
    let deleted = block_on(admin(broker).delete_topics(&[name], &options())).expect("an answer");
    assert!(deleted.iter().all(Result::is_ok), "delete {name}: {deleted:?}");
}
