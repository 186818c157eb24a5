//! `ringlog perf produce`.

use std::cell::RefCell;
use std::rc::Rc;

use clap::Args;
use client::producer::{Producer, Refused};
use client::{Client, ProducerRecord};
use runtime::clock;

use super::open_loop::{due_at, meant_ns, sleep_until_ns};
use super::report::{Latencies, Meter};
use super::{LoadArgs, Payloads, RECORDS_PER_TURN};
use crate::admin::topic::ensure;
use crate::cli::Failure;
use crate::cli::interrupt::Interrupt;
use crate::records::produce::Tally;

/// Longest wait for room before Ctrl-C is looked at, in milliseconds.
const ROOM_WAIT_MS: i64 = 100;

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
        noted.bytes += noted.latencies.acknowledged(outcome, now_ns);
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
