//! `ringlog perf e2e`: one producer and one consumer on the same clock.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::{BufMut, Bytes, BytesMut};
use clap::Args;
use client::admin::Admin;
use client::consumer::{Consumer, ConsumerConfig};
use client::producer::{Producer, Refused};
use client::{Client, ClientError, ProducerRecord};
use runtime::{clock, spawn};

use super::open_loop::{meant_ns, sleep_until_ns};
use super::report::{Latencies, Meter};
use super::{LoadArgs, Payloads};
use crate::admin::topic::ensure;
use crate::cli::Failure;
use crate::cli::interrupt::Interrupt;
use crate::records::placed::{begin_at, placed};
use crate::records::position::Position;
use crate::records::produce::Tally;

const POLL_MS: i64 = 100;
/// Time and run in front of a value.
const STAMP_BYTES: usize = 16;
const ROOM_WAIT_MS: i64 = 100;
/// How long the last records may take to come back, in milliseconds.
const DRAIN_MS: i64 = 10_000;

#[derive(Debug, Args)]
pub struct EndToEndArgs {
    #[command(flatten)]
    load: LoadArgs,
    /// Records in a second.
    #[arg(long, value_name = "RECORDS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
}

/// What the two sides share.
#[derive(Debug)]
struct State {
    tally: Tally,
    until_acknowledged: Latencies,
    until_read: Latencies,
    read: u64,
    read_bytes: u64,
    failure: Option<ClientError>,
    is_over: bool,
}

pub fn run(args: EndToEndArgs) -> Result<(), Failure> {
    let interrupt = Interrupt::watch();
    args.load.connect.clone().run(move |client| load(client, args, interrupt))
}

async fn load(client: Client, args: EndToEndArgs, interrupt: Interrupt) -> Result<(), Failure> {
    let run = runtime::random::u64();
    ensure(&client, &args.load.topic, args.load.create).await?;
    let state = Rc::new(RefCell::new(State {
        tally: Tally::default(),
        until_acknowledged: Latencies::new(),
        until_read: Latencies::new(),
        read: 0,
        read_bytes: 0,
        failure: None,
        is_over: false,
    }));
    let consumer = consumer_at_end(&client, &args).await?;
    let reading = spawn("perf-read", read(consumer, run, state.clone()));
    let noted = state.clone();
    let config = args.load.producer.config(args.load.connect.timeout_ms);
    let producer = Producer::with_outcomes(&client, config, move |outcome| {
        let now_ns = clock::now_ns();
        let noted = &mut *noted.borrow_mut();
        noted.tally.add(outcome);
        noted.until_acknowledged.acknowledged(outcome, now_ns);
    })?;
    let mut meter = Meter::new("end to end");
    let sent = write(&producer, &args, run, &interrupt, &state, &mut meter).await;
    producer.close().await;
    let acknowledged = state.borrow().tally.acknowledged;
    let drained_ms = clock::now_ms() + DRAIN_MS;
    while state.borrow().read < acknowledged && state.borrow().failure.is_none() && clock::now_ms() < drained_ms {
        clock::sleep(std::time::Duration::from_millis(5)).await;
    }
    state.borrow_mut().is_over = true;
    reading.join().await;
    sent?;
    let state = state.borrow();
    let totals = meter.end(state.read, state.read_bytes);
    let latencies = [("until acknowledged", &state.until_acknowledged), ("until read", &state.until_read)];
    totals.print(&latencies, args.load.json)?;
    state.tally.verdict()?;
    if let Some(error) = &state.failure {
        return Err(error.clone().into());
    }
    if state.read < acknowledged {
        let text = format!("{acknowledged} records were acknowledged, and {} came back", state.read);
        return Err(Failure::Failed(text));
    }
    Ok(())
}

async fn consumer_at_end(client: &Client, args: &EndToEndArgs) -> Result<Consumer, Failure> {
    let partitions = client.cluster().partitions_of(&args.load.topic);
    let ends = placed(&Admin::new(client.clone()), &partitions, Position::Latest, false).await?;
    let config = ConsumerConfig { allow_auto_create_topics: false, ..ConsumerConfig::default() };
    let consumer = Consumer::new(client, config)?;
    begin_at(&consumer, &ends)?;
    Ok(consumer)
}

/// Until the other side says that it is over.
async fn read(consumer: Consumer, run: u64, state: Rc<RefCell<State>>) {
    while !state.borrow().is_over {
        match consumer.poll(POLL_MS).await {
            Ok(records) => {
                let now_ns = clock::now_ns();
                let mut state = state.borrow_mut();
                for record in records {
                    let Some(value) = record.value else { continue };
                    let Some((at_ns, rest)) = value.split_first_chunk::<8>() else { continue };
                    if rest.first_chunk::<8>() != Some(&run.to_be_bytes()) {
                        continue;
                    }
                    state.until_read.record_us(now_ns.saturating_sub(u64::from_be_bytes(*at_ns)) / 1000);
                    state.read += 1;
                    state.read_bytes += value.len() as u64;
                }
            }
            Err(error) => {
                state.borrow_mut().failure = Some(error);
                break;
            }
        }
    }
    consumer.close().await;
}

async fn write(
    producer: &Producer,
    args: &EndToEndArgs,
    run: u64,
    interrupt: &Interrupt,
    state: &Rc<RefCell<State>>,
    meter: &mut Meter,
) -> Result<(), Failure> {
    let payloads = Payloads::new(&args.load);
    let topic: Rc<str> = args.load.topic.as_str().into();
    let begun_ns = clock::now_ns();
    let end_ns = begun_ns + args.load.duration.as_nanos() as u64;
    let meant_ns = |number: u64| meant_ns(begun_ns, number, args.rate);
    let mut sent = 0;
    while meant_ns(sent) < end_ns && !interrupt.is_asked() && state.borrow().failure.is_none() {
        while meant_ns(sent) <= clock::now_ns()
            && meant_ns(sent) < end_ns
            && !interrupt.is_asked()
            && state.borrow().failure.is_none()
        {
            let record = ProducerRecord {
                topic: topic.clone(),
                partition: None,
                key: payloads.key(sent),
                value: Some(stamped(meant_ns(sent), run, &payloads.value(sent))),
                headers: Vec::new(),
                timestamp_ms: None,
            };
            match producer.send_counted(&record, meant_ns(sent), clock::now_ms()) {
                Ok(()) => sent += 1,
                Err(Refused::Full) => producer.room(clock::now_ms() + ROOM_WAIT_MS).await,
                Err(Refused::UnknownTopic) => {
                    // The way that waits for metadata, and says what is in the way.
                    producer.send(record).await?;
                    sent += 1;
                }
                Err(Refused::Invalid(error)) => return Err(error.into()),
            }
        }
        {
            let state = state.borrow();
            meter.tick(state.read, state.read_bytes, Some(&state.until_read));
        }
        sleep_until_ns(meant_ns(sent).min(end_ns)).await;
    }
    Ok(())
}

/// The value with the time it was meant to be sent and this run's number in front; both sides are one process, so one
/// clock. Others may write to the topic, too: their records have another number or none.
fn stamped(at_ns: u64, run: u64, value: &Bytes) -> Bytes {
    let mut bytes = BytesMut::with_capacity(value.len().max(STAMP_BYTES));
    bytes.put_u64(at_ns);
    bytes.put_u64(run);
    bytes.extend_from_slice(value.get(STAMP_BYTES..).unwrap_or_default());
    bytes.freeze()
}
