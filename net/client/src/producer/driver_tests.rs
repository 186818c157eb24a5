//! The producer with its client and a broker that is a closure.

#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use wire::generated::init_producer_id::InitProducerIdResponse;
use wire::generated::metadata::{MetadataResponsePartition, MetadataResponseTopic};
use wire::generated::produce::{PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceResponse};
use wire::{ApiKey, Decode, Reader};

use super::*;
use crate::ClientConfig;
use crate::client::fake_broker::{FakeBroker, Reply, Seen, metadata};

const TOPIC: &str = "orders";
const PARTITIONS: i32 = 64;

fn topic(id: u8) -> MetadataResponseTopic<'static> {
    let partition = |index| MetadataResponsePartition {
        partition_index: index,
        leader_id: 1,
        leader_epoch: 0,
        replica_nodes: vec![1],
        isr_nodes: vec![1],
        ..Default::default()
    };
    MetadataResponseTopic {
        name: Some(TOPIC.into()),
        topic_id: [id; 16],
        partitions: (0..PARTITIONS).map(partition).collect(),
        ..Default::default()
    }
}

/// Acknowledges everything with offset 100.
fn acknowledge(seen: &Seen) -> Reply {
    let mut reader = Reader::new(&seen.body);
    let request = ProduceRequest::decode(&mut reader, seen.version).unwrap();
    let topics = request.topic_data.iter().map(|topic| TopicProduceResponse {
        name: topic.name.to_string().into(),
        topic_id: topic.topic_id,
        partition_responses: topic
            .partition_data
            .iter()
            .map(|part| PartitionProduceResponse { index: part.index, base_offset: 100, ..Default::default() })
            .collect(),
    });
    seen.answer(&ProduceResponse { responses: topics.collect(), ..Default::default() })
}

fn broker(id: u8, produce: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> FakeBroker {
    FakeBroker::start(move |seen, port| {
        let reply = match seen.api {
            ApiKey::Metadata => seen.answer(&metadata(port, vec![topic(id)])),
            ApiKey::InitProducerId => {
                seen.answer(&InitProducerIdResponse { producer_id: 7, producer_epoch: 0, ..Default::default() })
            }
            ApiKey::Produce => produce(seen),
            _ => seen.usual(port),
        };
        vec![reply]
    })
}

fn client(address: String) -> Client {
    Client::new(ClientConfig { bootstrap: vec![address], ..ClientConfig::default() }).unwrap()
}

fn record(partition: i32, value: usize) -> ProducerRecord {
    ProducerRecord {
        topic: TOPIC.into(),
        partition: Some(partition),
        key: None,
        value: Some(Bytes::from(vec![1; value])),
        headers: vec![],
        timestamp_ms: Some(5),
    }
}

/// Runs `test` with a producer on `broker`.
fn with_producer<F: Future<Output = ()> + 'static>(
    broker: &FakeBroker,
    config: ProducerConfig,
    test: impl Fn(Rc<Producer>) -> F + Clone + Send + 'static,
) {
    let address = broker.address();
    runtime::testing::run(move || {
        let (address, config, test) = (address.clone(), config.clone(), test.clone());
        async move {
            let client = client(address);
            let producer = Rc::new(Producer::new(&client, config).unwrap());
            test(producer.clone()).await;
            producer.close_within(100).await;
        }
    });
}

#[test]
fn a_flush_of_64_partitions_is_one_request_on_the_wire() {
    let broker = broker(3, acknowledge);
    let config = ProducerConfig { linger_ms: 20_000, ..ProducerConfig::default() };
    with_producer(&broker, config, |producer| async move {
        let mut handles = vec![];
        for partition in 0..PARTITIONS {
            handles.push(producer.send(record(partition, 10)).await.unwrap());
        }
        producer.flush().await;
        for (partition, handle) in handles.into_iter().enumerate() {
            let expected = Delivery::Acknowledged { partition: partition as i32, offset: 100, timestamp_ms: 5 };
            assert_eq!(handle.await, expected);
        }
        assert_eq!((producer.metrics().requests, producer.metrics().batches), (1, 64));
    });
    let produced = broker.asked_for(ApiKey::Produce);
    assert_eq!(produced.len(), 1);
    assert_eq!(produced[0].version, 13, "by topic id");
}

#[test]
fn a_topic_without_an_id_goes_by_name() {
    let broker = broker(0, acknowledge);
    with_producer(&broker, ProducerConfig::default(), |producer| async move {
        let delivery = producer.send(record(0, 10)).await.unwrap().await;
        assert!(matches!(delivery, Delivery::Acknowledged { offset: 100, .. }));
    });
    assert_eq!(broker.asked_for(ApiKey::Produce)[0].version, 12);
}

#[test]
fn a_broken_connection_is_made_again_and_the_batch_sent_again() {
    let failures = Arc::new(AtomicUsize::new(0));
    let broker = broker(
        3,
        move |seen| {
            if failures.fetch_add(1, Ordering::SeqCst) < 2 { Reply::Close } else { acknowledge(seen) }
        },
    );
    let config = ProducerConfig { retry_backoff_ms: 5, ..ProducerConfig::default() };
    with_producer(&broker, config, |producer| async move {
        let delivery = producer.send(record(0, 10)).await.unwrap().await;
        assert!(matches!(delivery, Delivery::Acknowledged { .. }));
        assert_eq!(producer.metrics().retries, 2);
    });
}

#[test]
fn a_broker_that_never_answers_leaves_it_open() {
    let broker = broker(3, |_| Reply::Nothing);
    let config = ProducerConfig {
        request_timeout_ms: 100,
        delivery_timeout_ms: 250,
        linger_ms: 0,
        retry_backoff_ms: 5,
        ..ProducerConfig::default()
    };
    with_producer(&broker, config, |producer| async move {
        let delivery = producer.send(record(0, 10)).await.unwrap().await;
        assert!(matches!(delivery, Delivery::PossiblySent(ClientError::TimedOut { .. })), "{delivery:?}");
    });
}

#[test]
fn a_full_buffer_is_waited_for() {
    let broker = broker(3, acknowledge);
    let config = ProducerConfig { buffer_memory: 4_000, max_request_size: 2_000, ..ProducerConfig::default() };
    with_producer(&broker, config, |producer| async move {
        let mut handles = vec![];
        for _ in 0..50 {
            handles.push(producer.send(record(0, 1_000)).await.unwrap());
            assert!(producer.memory_used() <= 4_000);
        }
        for handle in handles {
            assert!(matches!(handle.await, Delivery::Acknowledged { .. }));
        }
        assert_eq!(producer.memory_used(), 0);
    });
}

#[test]
fn waiting_for_a_topic_or_for_room_ends_at_max_block_ms() {
    let silent = broker(3, |_| Reply::Nothing);
    let config =
        ProducerConfig { buffer_memory: 2_000, max_request_size: 2_000, max_block_ms: 80, ..ProducerConfig::default() };
    with_producer(&silent, config, |producer| async move {
        let elsewhere = ProducerRecord { topic: "elsewhere".into(), ..record(0, 10) };
        assert!(matches!(producer.send(elsewhere).await.unwrap_err(), ClientError::UnknownTopic { .. }));
        let error = producer.send(record(PARTITIONS, 10)).await.unwrap_err();
        assert!(error.to_string().contains("has no partition 64"), "{error}");
        producer.send(record(0, 1_500)).await.unwrap();
        let error = producer.send(record(0, 1_500)).await.unwrap_err();
        assert!(error.to_string().contains("buffer.memory"), "{error}");
        assert_eq!(producer.try_send(&record(0, 1_500)).unwrap_err(), Refused::Full);
    });
}

#[test]
fn a_dropped_producer_leaves_nobody_waiting() {
    let broker = broker(3, |_| Reply::Nothing);
    let address = broker.address();
    runtime::testing::run(move || {
        let address = address.clone();
        async move {
            let client = client(address);
            let config = ProducerConfig { linger_ms: 0, ..ProducerConfig::default() };
            let producer = Producer::new(&client, config).unwrap();
            let sent = producer.send(record(0, 10)).await.unwrap();
            while producer.metrics().requests == 0 {
                clock::sleep_until_ms(clock::now_ms() + 5).await;
            }
            let waiting = producer.send(record(1, 10)).await.unwrap();
            drop(producer);
            assert_eq!(sent.await, Delivery::PossiblySent(ClientError::Closed));
            assert_eq!(waiting.await, Delivery::NotSent(ClientError::Closed));
        }
    });
}

#[test]
fn counted_records_are_told_by_batch_and_may_send_again_from_there() {
    let broker = broker(3, acknowledge);
    let address = broker.address();
    runtime::testing::run(move || {
        let address = address.clone();
        async move {
            let client = client(address);
            let tags: Rc<RefCell<Vec<u64>>> = Rc::default();
            let told = tags.clone();
            let again: Rc<RefCell<Option<Rc<Producer>>>> = Rc::default();
            let (sender, config) = (again.clone(), ProducerConfig { linger_ms: 0, ..ProducerConfig::default() });
            let producer = Producer::with_outcomes(&client, config, move |outcome| {
                assert_eq!(outcome.tags.len(), outcome.records as usize);
                told.borrow_mut().extend(&outcome.tags);
                let producer = sender.borrow().clone();
                if outcome.tags == [1, 2, 3] {
                    producer.unwrap().send_counted(&record(0, 5), 4, clock::now_ms()).unwrap();
                }
            })
            .unwrap();
            let producer = Rc::new(producer);
            *again.borrow_mut() = Some(producer.clone());
            client.resolve(&[TOPIC]).await.unwrap();
            let now_ms = clock::now_ms();
            (1..=3).for_each(|tag| producer.send_counted(&record(0, 5), tag, now_ms).unwrap());
            while tags.borrow().len() < 4 {
                producer.room(clock::now_ms() + 1_000).await;
            }
            assert_eq!(*tags.borrow(), [1, 2, 3, 4]);
            *again.borrow_mut() = None;
            producer.close().await;
            assert_eq!(producer.send_counted(&record(0, 5), 9, 0), Err(Refused::Invalid(ClientError::Closed)));
        }
    });
}

#[test]
fn a_bad_configuration_is_refused() {
    runtime::testing::run(|| async {
        let client = client("127.0.0.1:1".to_string());
        let config = ProducerConfig { acks: Acks::None, ..ProducerConfig::default() };
        assert!(matches!(Producer::new(&client, config), Err(ClientError::BadConfig { key: "acks", .. })));
    });
}
