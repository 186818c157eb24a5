//! A member of the consumer group: polls, commits what it was given, comes and goes.

use std::collections::BTreeMap;

use client::TopicPartition;
use client::consumer::{Consumer, ConsumerConfig, OffsetAndMetadata, Offsets};
use runtime::sim::{self, Dice};

use super::clients::{Staged, linger};
use super::reader::{consumer, settings};

const GROUP: &str = "steady-group";

pub fn member_settings() -> ConsumerConfig {
    ConsumerConfig {
        group_id: Some(GROUP.to_string()),
        session_timeout_ms: 6_000,
        heartbeat_interval_ms: 500,
        max_poll_interval_ms: 10_000,
        ..settings()
    }
}

pub async fn take_part(stage: Staged, number: u64, mut dice: Dice) {
    let client = stage.client(&format!("member-{number}"));
    let topics: Vec<&str> = stage.plan.topics.iter().map(|topic| topic.name.as_str()).collect();
    while !stage.is_over() {
        let member = consumer(&client, member_settings());
        if member.subscribe(&topics, None).is_err() {
            return;
        }
        for _ in 0..10 + dice.below(100) {
            if stage.is_over() {
                break;
            }
            match member.poll(500).await {
                Ok(records) => {
                    let mut next: BTreeMap<TopicPartition, i64> = BTreeMap::new();
                    for record in &records {
                        stage.history.borrow_mut().see(record);
                        let at = TopicPartition { topic: record.topic.clone(), partition: record.partition };
                        next.insert(at, record.offset + 1);
                    }
                    if !next.is_empty() && dice.one_in(2) {
                        commit(&stage, &member, next).await;
                    }
                }
                Err(_) => linger(&mut dice, 50).await,
            }
            linger(&mut dice, 20).await;
        }
        if dice.one_in(2) {
            member.close().await;
        }
        drop(member);
        linger(&mut dice, 300).await;
    }
}

async fn commit(stage: &Staged, member: &Consumer, next: BTreeMap<TopicPartition, i64>) {
    for (at, offset) in &next {
        stage.history.borrow_mut().committing(at, *offset);
    }
    sim::note("commit", [next.len() as u64, 0], || told(&next));
    let offsets: Offsets = next
        .iter()
        .map(|(at, offset)| {
            (at.clone(), OffsetAndMetadata { offset: *offset, leader_epoch: -1, metadata: String::new() })
        })
        .collect();
    let committed = member.commit_sync(Some(offsets)).await;
    sim::note("committed", [next.len() as u64, 0], || format!("{}: {committed:?}", told(&next)));
    if committed.is_ok() {
        for (at, offset) in &next {
            stage.history.borrow_mut().committed(at, *offset);
        }
    }
}

fn told(offsets: &BTreeMap<TopicPartition, i64>) -> String {
    offsets.iter().map(|(at, offset)| format!(" {}-{} {offset}", at.topic, at.partition)).collect()
}

/// What the group has committed is at least what was acknowledged before it is asked for.
pub async fn look(stage: &Staged, observer: &Consumer) -> bool {
    let all = stage.history.borrow().all();
    let least: Vec<i64> = all.iter().map(|at| stage.history.borrow().least_committed(at)).collect();
    let Ok(told) = observer.committed(&all).await else { return false };
    let history = stage.history.borrow();
    for (at, least) in all.iter().zip(least) {
        history.tell_committed(at, least, told.get(at).map(|one| one.offset));
    }
    true
}
