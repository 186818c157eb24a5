//! `ringlog perf produce`.

use std::cell::RefCell;
use std::rc::Rc;

use clap::Args;
use client::producer::{Fate, Producer, Refused, UNTAGGED};
use client::{Client, ProducerRecord};
use runtime::clock;

use super::report::{Latencies, Meter};
use super::{LoadArgs, Payloads, RECORDS_PER_TURN};
use crate::admin::topic::ensure;
use crate::cli::Failure;
use crate::cli::interrupt::Interrupt;
use crate::records::produce::Tally;

/// Longest wait for room before Ctrl-C is looked at, in milliseconds.
const ROOM_WAIT_MS: i64 = 100;
const NS_PER_S: u64 = 1_000_000_000;

#[derive(Debug, Args)]
pub struct ProduceArgs {
    #[command(flatten)]
    load: LoadArgs,
    /// Records in a second. Default: as fast as it goes.
    #[arg(long, value_name = "RECORDS", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// End after so many records, if the time is not over before.
    #[arg(long, value_name = "N")]
    records: Option<u64>,
}

/// What came back so far.
#[derive(Debug)]
struct Acknowledged {
    tally: Tally,
    bytes: u64,
    latencies: Latencies,
}

pub fn run(args: ProduceArgs) -> Result<(), Failure> {
    let interrupt = Interrupt::watch();
    args.load.connect.clone().run(move |client| load(client, args, interrupt))
}

async fn load(client: Client, args: ProduceArgs, interrupt: Interrupt) -> Result<(), Failure> {
    ensure(&client, &args.load.topic, args.load.create).await?;
    let acknowledged =
        Rc::new(RefCell::new(Acknowledged { tally: Tally::default(), bytes: 0, latencies: Latencies::new() }));
    let noted = acknowledged.clone();
    let config = args.load.producer.config(args.load.connect.timeout_ms);
    let producer = Producer::with_outcomes(&client, config, move |outcome| {
        let now_ns = clock::now_ns();
        let noted = &mut *noted.borrow_mut();
        noted.tally.add(outcome);
        if !matches!(outcome.fate, Fate::Acknowledged { .. }) {
            return;
        }
        noted.bytes += outcome.bytes as u64;
        for sent_ns in outcome.tags.iter().filter(|&&tag| tag != UNTAGGED) {
            noted.latencies.record_us(now_ns.saturating_sub(*sent_ns) / 1000);
        }
    })?;
    let mut meter = Meter::new("produced");
    send(&producer, &args, &interrupt, &acknowledged, &mut meter).await?;
    producer.close().await;
    let end = acknowledged.borrow();
    let totals = meter.end(end.tally.acknowledged, end.bytes);
    totals.print(&[("until acknowledged", &end.latencies)], args.load.json)?;
    end.tally.verdict()
}

async fn send(
    producer: &Producer,
    args: &ProduceArgs,
    interrupt: &Interrupt,
    acknowledged: &Rc<RefCell<Acknowledged>>,
    meter: &mut Meter,
) -> Result<(), Failure> {
    let payloads = Payloads::new(&args.load);
    let mut record = ProducerRecord {
        topic: args.load.topic.as_str().into(),
        partition: None,
        key: None,
        value: None,
        headers: Vec::new(),
        timestamp_ms: None,
    };
    let begun_ns = clock::now_ns();
    let end_ns = begun_ns + args.load.duration.as_nanos() as u64;
    // What was due in time is sent even if it gets late: leaving it out would leave out its latency.
    let given_up_ns = end_ns + args.load.connect.timeout_ms as u64 * 1_000_000;
    let mut sent = 0;
    while args.records.is_none_or(|records| sent < records) && !interrupt.is_asked() {
        let now_ns = clock::now_ns();
        let is_over = match args.rate {
            Some(rate) => meant_ns(begun_ns, sent, rate) >= end_ns,
            None => now_ns >= end_ns,
        };
        if is_over {
            break;
        }
        if now_ns >= given_up_ns {
            let rate = args.rate.unwrap_or(0);
            let left = due_at(begun_ns, end_ns, rate).saturating_sub(sent);
            return Err(Failure::TimedOut(format!(
                "{left} records were due and could not be sent: the broker is too slow"
            )));
        }
        let due = match args.rate {
            Some(rate) => due_at(begun_ns, now_ns.min(end_ns - 1), rate),
            None => sent + RECORDS_PER_TURN,
        };
        let due = args.records.map_or(due, |records| due.min(records));
        let now_ms = (now_ns / 1_000_000) as i64;
        let mut is_full = false;
        while sent < due && !is_full {
            let meant = args.rate.map_or(now_ns, |rate| meant_ns(begun_ns, sent, rate));
            record.key = payloads.key(sent);
            record.value = Some(payloads.value(sent));
            match producer.send_counted(&record, meant, now_ms) {
                Ok(()) => sent += 1,
                Err(Refused::Full) => is_full = true,
                Err(Refused::UnknownTopic) => {
                    // The way that waits for metadata, and says what is in the way.
                    producer.send(record.clone()).await?;
                    sent += 1;
                }
                Err(Refused::Invalid(error)) => return Err(error.into()),
            }
        }
        {
            let noted = acknowledged.borrow();
            meter.tick(noted.tally.acknowledged, noted.bytes, Some(&noted.latencies));
        }
        match args.rate {
            _ if is_full => producer.room(clock::now_ms() + ROOM_WAIT_MS).await,
            Some(rate) => sleep_until_ns(meant_ns(begun_ns, sent, rate).min(end_ns)).await,
            None => runtime::task::yield_now().await,
        }
    }
    Ok(())
}

/// When record `number` of an open loop is meant to be sent.
pub fn meant_ns(begun_ns: u64, number: u64, rate: u32) -> u64 {
    begun_ns + (u128::from(number) * u128::from(NS_PER_S) / u128::from(rate.max(1))) as u64
}

/// How many records should have been sent by now.
pub fn due_at(begun_ns: u64, now_ns: u64, rate: u32) -> u64 {
    (u128::from(now_ns - begun_ns) * u128::from(rate) / u128::from(NS_PER_S)) as u64 + 1
}

/// Not less than a tenth of a millisecond: one wake sends all that is due.
pub async fn sleep_until_ns(at_ns: u64) {
    let left = at_ns.saturating_sub(clock::now_ns()).max(100_000);
    clock::sleep(std::time::Duration::from_nanos(left)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_due_at_their_times_however_many() {
        assert_eq!(meant_ns(5, 0, 1_000), 5);
        assert_eq!(meant_ns(0, 1_500, 1_000), 1_500_000_000);
        assert_eq!(meant_ns(0, 100_000_000_000, 1_000_000), 100_000 * NS_PER_S);
        assert_eq!(due_at(0, 0, 1_000), 1);
        assert_eq!(due_at(0, NS_PER_S, 1_000), 1_001);
    }
}
