//! Topics that come and go under the same name. What was acknowledged is there, what was deleted does not come back.

use std::collections::BTreeSet;

use bytes::Bytes;
use client::admin::{Admin, NewTopic};
use client::consumer::ConsumerConfig;
use client::producer::{Delivery, Producer, ProducerConfig};
use client::{Client, ClientError, ProducerRecord, TopicPartition};
use model::ErrorCode;
use runtime::clock;
use runtime::sim::{self, Dice};

use super::clients::{Staged, linger, only};
use super::payload::{Id, decode, encode};
use super::plan::outlives_requests;
use super::reader::{consumer, settings};

/// What takes so long may have been tried more than once: a client waits longer before it tries again, milliseconds.
const RETRIED_MS: i64 = 50;

/// What is known of the topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum There {
    Yes,
    No,
    Perhaps,
}

struct Churner {
    stage: Staged,
    client: Client,
    admin: Admin,
    topic: String,
    producer: u32,
    next: u32,
    there: There,
    /// Connections may stall for longer than a request is waited for.
    stalls: bool,
    /// The broker in whose time a create or delete was given up or tried again.
    given_up_in: Option<usize>,
    /// Acknowledged since the topic was made, of this making.
    live: BTreeSet<Id>,
    /// Acknowledged before a deletion that was acknowledged.
    dead: BTreeSet<Id>,
}

pub async fn churn(stage: Staged, number: u64, mut dice: Dice) {
    let client = stage.client(&format!("churner-{number}"));
    let mut churner = Churner {
        admin: Admin::new(client.clone()),
        topic: format!("coming-and-going-{number}"),
        producer: 900_000 + number as u32,
        next: 0,
        there: There::No,
        stalls: outlives_requests(&stage.plan),
        given_up_in: None,
        live: BTreeSet::new(),
        dead: BTreeSet::new(),
        stage,
        client,
    };
    while !churner.stage.is_over() {
        match dice.below(8) {
            0 | 1 => churner.create().await,
            2..5 => churner.send(1 + dice.below(10)).await,
            5 => churner.read().await,
            6 => churner.look().await,
            _ => churner.delete().await,
        }
        linger(&mut dice, 100).await;
    }
    churner.read().await;
    churner.look().await;
}

fn has_code(error: &ClientError, code: ErrorCode) -> bool {
    error.code() == Some(code)
}

impl Churner {
    async fn create(&mut self) {
        if self.there != There::No {
            return;
        }
        self.there = There::Perhaps;
        let topic = NewTopic { partitions: 1, replication_factor: 1, ..NewTopic::new(&self.topic) };
        let begun_ms = clock::now_ms();
        let created = only(self.admin.create_topics(&[topic], false).await);
        self.note_attempts(begun_ms, created.is_err());
        match created {
            Ok(Ok(_)) => self.there = There::Yes,
            // An attempt before this one did it.
            Ok(Err(error)) if has_code(&error, ErrorCode::TopicAlreadyExists) => self.there = There::Yes,
            _ => {}
        }
    }

    /// After a create or delete.
    fn note_attempts(&mut self, begun_ms: i64, failed: bool) {
        if failed || clock::now_ms() - begun_ms >= RETRIED_MS {
            self.given_up_in = Some(self.life());
        }
    }

    fn life(&self) -> usize {
        self.stage.history.borrow().life
    }

    /// A create or delete that was given up, or tried again on another connection, may be read after later ones, and nothing
    /// in the protocol fences it: the topic goes, or is there again. With its broker it is gone.
    fn may_come_late(&self) -> bool {
        self.stalls || self.given_up_in == Some(self.life())
    }

    async fn delete(&mut self) {
        if self.there == There::No {
            return;
        }
        self.there = There::Perhaps;
        let live = std::mem::take(&mut self.live);
        let begun_ms = clock::now_ms();
        let deleted = only(self.admin.delete_topics(&[&self.topic]).await);
        self.note_attempts(begun_ms, deleted.is_err());
        match deleted {
            Ok(Ok(())) => self.there = There::No,
            Ok(Err(error)) if has_code(&error, ErrorCode::UnknownTopicOrPartition) => self.there = There::No,
            _ => return,
        }
        sim::note("deleted", [live.len() as u64, 0], || self.topic.clone());
        self.dead.extend(live);
    }

    /// Whether the topic is there is durable.
    async fn look(&mut self) {
        let Ok(topics) = self.admin.list_topics().await else { return };
        let is_there = topics.iter().any(|topic| *topic.name == *self.topic);
        let topic = &self.topic;
        match self.there {
            _ if self.may_come_late() => {}
            There::Yes => assert!(is_there, "topic {topic} was made, and is not there"),
            There::No => assert!(!is_there, "topic {topic} was deleted, and is there"),
            // Neither side of it is known for certain: a request may still be on its way.
            There::Perhaps => {}
        }
    }

    async fn send(&mut self, count: u64) {
        if self.there == There::No {
            return;
        }
        let config = ProducerConfig {
            request_timeout_ms: self.stage.plan.request_timeout_ms,
            delivery_timeout_ms: 2 * self.stage.plan.request_timeout_ms + 10,
            max_block_ms: 1_000,
            ..ProducerConfig::default()
        };
        let Ok(producer) = Producer::new(&self.client, config) else { return };
        for _ in 0..count {
            let id = Id { producer: self.producer, number: self.next };
            self.next += 1;
            let record = ProducerRecord {
                topic: self.topic.as_str().into(),
                partition: Some(0),
                key: Some(Bytes::new()),
                value: Some(encode(id, 30)),
                headers: Vec::new(),
                timestamp_ms: None,
            };
            let Ok(handle) = producer.send(record).await else { break };
            if let Delivery::Acknowledged { .. } = handle.await {
                self.live.insert(id);
            }
        }
        producer.close_within(100).await;
    }

    /// All of the topic, once.
    async fn read(&mut self) {
        if self.there != There::Yes {
            return;
        }
        let at = TopicPartition::new(&self.topic, 0);
        let reader = consumer(&self.client, ConsumerConfig { ..settings() });
        if reader.assign(vec![at.clone()]).is_err() {
            return;
        }
        let Ok(ends) = reader.end_offsets(std::slice::from_ref(&at)).await else { return };
        let Some(end) = ends.get(&at).copied() else { return };
        let mut left: BTreeSet<Id> = self.live.clone();
        let mut next = 0;
        while next < end {
            let Ok(records) = reader.poll(1_000).await else { return };
            if records.is_empty() {
                return;
            }
            for record in &records {
                let id = decode(record.value.as_ref(), &format!("{} at offset {}", self.topic, record.offset));
                assert!(!self.dead.contains(&id), "{id} is in {} again, which was deleted with it", self.topic);
                left.remove(&id);
                next = record.offset + 1;
            }
        }
        assert!(
            left.is_empty() || self.may_come_late(),
            "{}: {left:?} were acknowledged and are not there",
            self.topic
        );
    }
}
