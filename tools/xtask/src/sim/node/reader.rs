//! A reader without a group: all partitions from the start, or from the end, and from the start again.

use std::collections::BTreeMap;

use client::consumer::{AutoOffsetReset, Consumer, ConsumerConfig};
use client::{Client, TopicPartition};
use runtime::sim::Dice;

use super::clients::{Staged, linger};

/// Settings that all readers have in common.
pub fn settings() -> ConsumerConfig {
    ConsumerConfig {
        fetch_max_wait_ms: 200,
        max_partition_fetch_bytes: 16 << 10,
        max_poll_records: 200,
        auto_offset_reset: AutoOffsetReset::Earliest,
        enable_auto_commit: false,
        allow_auto_create_topics: false,
        ..ConsumerConfig::default()
    }
}

pub fn consumer(client: &Client, config: ConsumerConfig) -> Consumer {
    match Consumer::new(client, config) {
        Ok(consumer) => consumer,
        Err(error) => panic!("a consumer cannot be made: {error}"),
    }
}

pub async fn read(stage: Staged, number: u64, mut dice: Dice) {
    let client = stage.client(&format!("reader-{number}"));
    while !stage.is_over() {
        let all = stage.history.borrow().all();
        let from_end = dice.one_in(2);
        let reset = if from_end { AutoOffsetReset::Latest } else { AutoOffsetReset::Earliest };
        let reader = consumer(&client, ConsumerConfig { auto_offset_reset: reset, ..settings() });
        if reader.assign(all).is_err() {
            return;
        }
        let mut expected: BTreeMap<TopicPartition, i64> = BTreeMap::new();
        for _ in 0..20 + dice.below(200) {
            if stage.is_over() {
                break;
            }
            match reader.poll(500).await {
                Ok(records) => {
                    let mut history = stage.history.borrow_mut();
                    for record in &records {
                        history.see(record);
                        let at = TopicPartition { topic: record.topic.clone(), partition: record.partition };
                        if let Some(expected) = expected.insert(at.clone(), record.offset + 1) {
                            history.partition(&at).follow(expected, record.offset, from_end);
                        }
                    }
                }
                Err(_) => linger(&mut dice, 50).await,
            }
            if dice.one_in(4) {
                linger(&mut dice, 30).await;
            }
        }
        reader.close().await;
    }
}
