//! A producer: records to all partitions, each with its fate in the history. Some end now and then and begin anew with
//! another producer id.

use std::rc::Rc;

use bytes::Bytes;
use client::producer::{Producer, ProducerConfig};
use client::{Client, ProducerRecord, TopicPartition};
use runtime::TaskGroup;
use runtime::sim::Dice;

use super::clients::{Staged, linger, patiently};
use super::payload::{Id, encode};
use super::plan::ProducerPlan;

/// Records of one incarnation of a transient producer.
const TRANSIENT_RECORDS: u64 = 40;
/// Records whose fate is not known yet, at most.
const UNDER_WAY: usize = 60;

pub async fn produce(stage: Staged, plan: ProducerPlan, number: u32, mut dice: Dice) {
    let client = stage.client(&format!("producer-{number}"));
    let mut next = 0;
    // An idempotent producer that is begun anew is another one: only within one is there an order.
    let mut incarnation = number * 1_000;
    while !stage.is_over() {
        let producer = begin(&client, &stage, plan);
        let fates = TaskGroup::new();
        let last = if plan.transient { next + TRANSIENT_RECORDS } else { u64::MAX };
        while !stage.is_over() && next < last {
            if fates.running() < UNDER_WAY {
                let all = stage.history.borrow().all();
                let at = all[dice.below(all.len() as u64) as usize].clone();
                let id = Id { producer: incarnation, number: next as u32 };
                next += 1;
                send(&stage, &producer, plan, &fates, id, at, dice.below(plan.largest_value) as usize).await;
            }
            if !dice.one_in(3) {
                linger(&mut dice, plan.pause_ms).await;
            }
        }
        patiently("closing a producer", 60, producer.close()).await;
        patiently("the fate of the last records", 60, fates.wait()).await;
        incarnation += 1;
    }
}

fn begin(client: &Client, stage: &Staged, plan: ProducerPlan) -> Rc<Producer> {
    let request_timeout_ms = stage.plan.request_timeout_ms;
    let config = ProducerConfig {
        acks: plan.acks,
        linger_ms: plan.linger_ms,
        max_in_flight: plan.in_flight,
        retry_backoff_ms: 20,
        retry_backoff_max_ms: 400,
        request_timeout_ms,
        delivery_timeout_ms: 4 * request_timeout_ms + plan.linger_ms,
        max_block_ms: 2_000,
        enable_idempotence: plan.idempotent,
        ..ProducerConfig::default()
    };
    match Producer::new(client, config) {
        Ok(producer) => Rc::new(producer),
        Err(error) => panic!("a producer cannot be made: {error}"),
    }
}

async fn send(
    stage: &Staged,
    producer: &Producer,
    plan: ProducerPlan,
    fates: &TaskGroup,
    id: Id,
    at: TopicPartition,
    len: usize,
) {
    stage.history.borrow_mut().send(id, plan.acks, plan.idempotent);
    let record = ProducerRecord {
        topic: at.topic.clone(),
        partition: Some(at.partition),
        key: Some(Bytes::copy_from_slice(&id.producer.to_le_bytes())),
        value: Some(encode(id, len)),
        headers: Vec::new(),
        timestamp_ms: None,
    };
    // What is not taken is not sent; the history has it without a fate, and nobody may see it.
    let Ok(handle) = producer.send(record).await else { return };
    let history = stage.history.clone();
    fates.spawn("fate", async move {
        let delivery = handle.await;
        history.borrow_mut().tell(id, &at, &delivery);
    });
}
