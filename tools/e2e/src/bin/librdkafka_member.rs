//! `librdkafka_member BOOTSTRAP GROUP TOPIC ASSIGNOR`: a member of a group by librdkafka, in a process that can be killed.
//! It prints a line for each record and change of partitions, and leaves when its standard input ends.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::message::Message;

const POLL: Duration = Duration::from_millis(100);

struct Tell;

impl ClientContext for Tell {}

impl ConsumerContext for Tell {
    fn post_rebalance(&self, _: &BaseConsumer<Self>, change: &Rebalance<'_>) {
        match change {
            Rebalance::Assign(partitions) => println!("assigned {}", partitions.count()),
            Rebalance::Revoke(partitions) => println!("revoked {}", partitions.count()),
            Rebalance::Error(error) => println!("rebalance failed: {error}"),
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [bootstrap, group, topic, assignor] = &arguments[..] else {
        panic!("usage: librdkafka_member BOOTSTRAP GROUP TOPIC ASSIGNOR");
    };
    let consumer: BaseConsumer<Tell> = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("broker.address.family", "v4")
        .set("group.id", group)
        .set("partition.assignment.strategy", assignor)
        .set("auto.offset.reset", "earliest")
        .set("session.timeout.ms", "6000")
        .set("heartbeat.interval.ms", "500")
        // What the crate polls and drops while it closes must not count as read.
        .set("enable.auto.offset.store", "false")
        .create_with_context(Tell)
        .expect("librdkafka knows the settings");
    consumer.subscribe(&[topic.as_str()]).expect("a subscription");
    let ending = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&ending);
    thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        asked.store(true, Ordering::Release);
    });
    while !ending.load(Ordering::Acquire) {
        match consumer.poll(POLL) {
            Some(Ok(record)) => {
                println!("record {} {}", record.partition(), record.offset());
                if let Err(error) = consumer.store_offset_from_message(&record) {
                    println!("not stored: {error}");
                }
            }
            Some(Err(error)) => println!("error: {error}"),
            None => {}
        }
    }
    // Leaves the group, and commits what was read.
    drop(consumer);
    println!("left");
}
