//! `ringlog demo clickstream`: a shop's visitors write, a consumer group reads and works out what happens, and a screen
//! shows both.
//!
//! All of it runs on one shard. The producer and each member of the group have a client of their own, as programs on
//! different hosts would; they share nothing but the counters in [`Counts`] and each member's [`Insights`].

use std::cell::{Cell, RefCell};
use std::io::IsTerminal;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use clap::{Args, Subcommand, ValueEnum};
use client::consumer::{AutoOffsetReset, Consumer, ConsumerConfig};
use client::producer::{Producer, ProducerConfig};
use client::{Client, ClientError, ProducerRecord};
use runtime::{TaskHandle, clock, spawn};

use super::decode::decode;
use super::event::Encoding;
use super::insights::Insights;
use super::profile::{ATTRIBUTION, sessions_for_rate};
use super::screen::{Latency, Snapshot, TABLE_ROWS, frame, summary_line};
use super::sessions::{Generator, GeneratorConfig};
use crate::admin::topic::ensure;
use crate::cli::connect::request_timeout_ms;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::print;
use crate::cli::{Connect, Failure};
use crate::perf::open_loop::{due_at, meant_ns, sleep_until_ns};
use crate::perf::report::Latencies;
use crate::records::produce::{Tally, send};

const POLL_MS: i64 = 100;
const REFRESH_MS: i64 = 1_000;
/// Events between two turns for the other tasks when nothing limits the rate.
const EVENTS_PER_TURN: u64 = 128;
/// How long the group may take to read what was written last, in milliseconds.
const DRAIN_MS: i64 = 30_000;
/// How long the last events may take after Ctrl-C, in milliseconds.
const STOP_MS: i64 = 5_000;
/// Longest wait for a group to form, in milliseconds.
const FORM_MS: i64 = 20_000;
/// Width of the screen where it is not known.
const USUAL_WIDTH: usize = 100;

#[derive(Debug, Subcommand)]
pub enum DemoCommand {
    /// Visitors of a shop click, a consumer group counts: pages per minute, top items, conversion, live.
    #[command(
        after_help = "Example:\n  ringlog demo clickstream --duration 20s\n  ringlog demo clickstream --rate 0 --partitions 16 --consumers 4"
    )]
    Clickstream(ClickstreamArgs),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EncodingName {
    Json,
    Compact,
}

#[derive(Debug, Args)]
pub struct ClickstreamArgs {
    #[command(flatten)]
    connect: Connect,
    /// Topic; made if it is not there.
    #[arg(long, value_name = "TOPIC", default_value = "clickstream")]
    topic: String,
    /// Partitions of the topic if it is made.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(i32).range(1..=10_000))]
    partitions: i32,
    /// Group that reads.
    #[arg(long, value_name = "GROUP", default_value = "clickstream-demo")]
    group: String,
    /// Members of the group.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    consumers: u16,
    /// Events in a second; 0: as fast as it goes.
    #[arg(long, value_name = "EVENTS", default_value_t = 2_000)]
    rate: u32,
    /// End after so long. Default: on Ctrl-C.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,
    /// End after so many events.
    #[arg(long, value_name = "N")]
    events: Option<u64>,
    /// How an event is written.
    #[arg(long, value_enum, default_value = "json")]
    encoding: EncodingName,
    /// The same seed gives the same visits.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// What the producer, the members and the screen share.
#[derive(Debug)]
struct Counts {
    tally: RefCell<Tally>,
    consumed: Cell<u64>,
    consumed_bytes: Cell<u64>,
    unreadable: Cell<u64>,
    /// Of the last refresh's time only: an old stall would hide what is now.
    latencies: RefCell<Latencies>,
    latencies_of_all: RefCell<Latencies>,
    failure: RefCell<Option<ClientError>>,
    is_over: Cell<bool>,
    /// By the wall clock.
    begun_ms: i64,
}

/// One member of the group.
struct Member {
    consumer: Consumer,
    insights: Rc<RefCell<Insights>>,
    task: Option<TaskHandle<()>>,
    client: Client,
}

pub fn run(command: DemoCommand) -> Result<(), Failure> {
    let DemoCommand::Clickstream(args) = command;
    let interrupt = Interrupt::watch();
    args.connect.clone().run(move |client| clickstream(client, args, interrupt))
}

async fn clickstream(client: Client, args: ClickstreamArgs, interrupt: Interrupt) -> Result<(), Failure> {
    ensure(&client, &args.topic, Some(args.partitions)).await?;
    let counts = Rc::new(Counts {
        tally: RefCell::default(),
        consumed: Cell::new(0),
        consumed_bytes: Cell::new(0),
        unreadable: Cell::new(0),
        latencies: RefCell::new(Latencies::new()),
        latencies_of_all: RefCell::new(Latencies::new()),
        failure: RefCell::new(None),
        is_over: Cell::new(false),
        begun_ms: clock::wall_ms(),
    });
    let mut members = Vec::new();
    for _ in 0..args.consumers {
        members.push(join(&args, &counts)?);
    }
    form_group(&members, &counts, &interrupt).await;
    let noted = counts.clone();
    let request_timeout_ms = request_timeout_ms(args.connect.timeout_ms);
    let config = ProducerConfig {
        linger_ms: 5,
        batch_size: 64 << 10,
        request_timeout_ms,
        delivery_timeout_ms: args.connect.timeout_ms.max(5 + request_timeout_ms),
        ..ProducerConfig::default()
    };
    let producer =
        Rc::new(Producer::with_outcomes(&client, config, move |outcome| noted.tally.borrow_mut().add(outcome))?);
    let screen = Screen::new();
    let sent = {
        let writing = spawn("demo-write", write(producer.clone(), args_of(&args), counts.clone(), interrupt.clone()));
        show_until(&screen, &counts, &members, writing).await
    };
    if interrupt.is_asked() {
        eprintln!("ringlog: waiting for what is under way, {} s at most", STOP_MS / 1000);
        producer.close_within(STOP_MS).await;
    } else {
        producer.close().await;
    }
    drain(&screen, &counts, &members, &interrupt).await;
    screen.last(&counts, &members);
    counts.is_over.set(true);
    for member in &mut members {
        if let Some(task) = member.task.take() {
            task.join().await;
        }
        member.client.close().await;
    }
    sent?;
    finish(&counts)
}

fn finish(counts: &Counts) -> Result<(), Failure> {
    counts.tally.borrow().verdict()?;
    if let Some(error) = counts.failure.take() {
        return Err(error.into());
    }
    if counts.unreadable.get() > 0 {
        eprintln!("ringlog: {} records of the topic were no events of this demo", counts.unreadable.get());
    }
    let (sent, read) = (counts.tally.borrow().acknowledged, counts.consumed.get());
    if read < sent {
        return Err(Failure::Failed(format!("{sent} events were acknowledged, the group read {read} before it ended")));
    }
    Ok(())
}

/// Waits until the partitions are shared out: brokers hold a new group back for some seconds, so that its first members
/// come together, and what is written meanwhile would look late.
async fn form_group(members: &[Member], counts: &Counts, interrupt: &Interrupt) {
    eprintln!("waiting until the group's members have their partitions (some seconds for a new group) ...");
    let end_ms = clock::now_ms() + FORM_MS;
    let has_some = |member: &Member| !member.consumer.assignment().is_empty();
    while !members.iter().any(has_some)
        && counts.failure.borrow().is_none()
        && clock::now_ms() < end_ms
        && !interrupt.is_asked()
    {
        clock::sleep(Duration::from_millis(20)).await;
    }
}

/// A member with its own client, reading in the background.
fn join(args: &ClickstreamArgs, counts: &Rc<Counts>) -> Result<Member, Failure> {
    let client = Client::new(args.connect.client_config())?;
    let config = ConsumerConfig {
        group_id: Some(args.group.clone()),
        auto_offset_reset: AutoOffsetReset::Earliest,
        auto_commit_interval_ms: 1_000,
        allow_auto_create_topics: false,
        max_poll_records: 5_000,
        ..ConsumerConfig::default()
    };
    let consumer = Consumer::new(&client, config)?;
    consumer.subscribe(&[&args.topic], None)?;
    let insights = Rc::new(RefCell::new(Insights::new()));
    let task = spawn("demo-read", read(consumer.clone(), insights.clone(), counts.clone()));
    Ok(Member { consumer, insights, task: Some(task), client })
}

async fn read(consumer: Consumer, insights: Rc<RefCell<Insights>>, counts: Rc<Counts>) {
    while !counts.is_over.get() {
        match consumer.poll(POLL_MS).await {
            Ok(records) => {
                let now_ms = clock::wall_ms();
                let mut insights = insights.borrow_mut();
                for record in records {
                    // What lay in the topic before is old news, and would look like a slow broker.
                    if record.timestamp_ms < counts.begun_ms {
                        continue;
                    }
                    let value = record.value.unwrap_or_default();
                    match decode(&value) {
                        Ok(event) => insights.observe(&event),
                        Err(_) => counts.unreadable.set(counts.unreadable.get() + 1),
                    }
                    counts.consumed.set(counts.consumed.get() + 1);
                    counts.consumed_bytes.set(counts.consumed_bytes.get() + value.len() as u64);
                    let latency_us = now_ms.saturating_sub(record.timestamp_ms).max(0) as u64 * 1000;
                    counts.latencies.borrow_mut().record_us(latency_us);
                    counts.latencies_of_all.borrow_mut().record_us(latency_us);
                }
            }
            Err(error) => {
                counts.failure.replace(Some(error));
                break;
            }
        }
    }
    consumer.close().await;
}

/// What the writing task needs of the flags.
struct Plan {
    topic: Rc<str>,
    rate: u32,
    end: Option<Duration>,
    events: Option<u64>,
    seed: u64,
    config: GeneratorConfig,
}

fn args_of(args: &ClickstreamArgs) -> Plan {
    let rate = (args.rate > 0).then_some(f64::from(args.rate));
    let config = GeneratorConfig {
        encoding: match args.encoding {
            EncodingName::Json => Encoding::Json,
            EncodingName::Compact => Encoding::Compact,
        },
        rate,
        start_ms: clock::wall_ms(),
        active_sessions: rate.map_or(super::limits::USUAL_ACTIVE_SESSIONS, sessions_for_rate),
    };
    Plan {
        topic: args.topic.as_str().into(),
        rate: args.rate,
        end: args.duration,
        events: args.events,
        seed: args.seed,
        config,
    }
}

/// Writes events until the plan's end; gives how many.
async fn write(producer: Rc<Producer>, plan: Plan, counts: Rc<Counts>, interrupt: Interrupt) -> Result<u64, Failure> {
    let mut generator = Generator::new(plan.seed, plan.config);
    let mut bytes = Vec::new();
    let begun_ns = clock::now_ns();
    let end_ns = plan.end.map_or(u64::MAX, |end| begun_ns.saturating_add(end.as_nanos() as u64));
    let mut sent = 0;
    while !interrupt.is_asked() && counts.failure.borrow().is_none() {
        let now_ns = clock::now_ns();
        if now_ns >= end_ns || plan.events.is_some_and(|events| sent >= events) {
            break;
        }
        let due = match plan.rate {
            0 => sent + EVENTS_PER_TURN,
            rate => due_at(begun_ns, now_ns, rate),
        };
        let due = plan.events.map_or(due, |events| due.min(events));
        while sent < due {
            bytes.clear();
            let event = generator.next(&mut bytes);
            let record = ProducerRecord {
                topic: plan.topic.clone(),
                partition: None,
                key: Some(Bytes::copy_from_slice(&event.key())),
                value: Some(Bytes::copy_from_slice(&bytes)),
                headers: Vec::new(),
                timestamp_ms: None,
            };
            send(&producer, &record).await?;
            sent += 1;
        }
        match plan.rate {
            0 => runtime::task::yield_now().await,
            rate => {
                sleep_until_ns(meant_ns(begun_ns, sent, rate).min(end_ns)).await;
            }
        }
    }
    Ok(sent)
}

/// Draws until the writing ends.
async fn show_until(
    screen: &Screen,
    counts: &Rc<Counts>,
    members: &[Member],
    writing: TaskHandle<Result<u64, Failure>>,
) -> Result<u64, Failure> {
    let mut writing = std::pin::pin!(writing.join());
    loop {
        match runtime::sync::before(clock::now_ms() + REFRESH_MS, writing.as_mut()).await {
            Some(result) => return result.unwrap_or(Ok(0)),
            None => screen.draw(counts, members),
        }
    }
}

/// Lets the group read what was written.
async fn drain(screen: &Screen, counts: &Rc<Counts>, members: &[Member], interrupt: &Interrupt) {
    let end_ms = clock::now_ms() + DRAIN_MS;
    let mut drawn_ms = clock::now_ms();
    let was_asked = interrupt.is_asked();
    while counts.consumed.get() < counts.tally.borrow().acknowledged
        && counts.failure.borrow().is_none()
        && clock::now_ms() < end_ms
        // A Ctrl-C that comes now means now.
        && interrupt.is_asked() == was_asked
    {
        clock::sleep(Duration::from_millis(20)).await;
        if clock::now_ms() - drawn_ms >= REFRESH_MS {
            drawn_ms = clock::now_ms();
            screen.draw(counts, members);
        }
    }
}

/// A screen that nobody looks at any more is no reason to stop the shop.
fn show(text: &str) {
    let _ = print(text);
}

/// Where the figures go: a terminal is drawn over, anything else gets a line a refresh.
struct Screen {
    begun_ms: i64,
    is_terminal: bool,
    width: usize,
    /// Time, records and bytes of the last refresh.
    last: Cell<(i64, u64, u64)>,
}

impl Screen {
    fn new() -> Screen {
        let width = terminal_size::terminal_size().map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0));
        let now_ms = clock::now_ms();
        let is_terminal = std::io::stdout().is_terminal();
        if is_terminal {
            show("\x1b[2J");
        } else {
            show(&format!("{ATTRIBUTION}\n"));
        }
        Screen { begun_ms: now_ms, is_terminal, width, last: Cell::new((now_ms, 0, 0)) }
    }

    fn draw(&self, counts: &Counts, members: &[Member]) {
        let snapshot = self.snapshot(counts, members, &counts.latencies.replace(Latencies::new()));
        self.put(&snapshot);
    }

    /// The whole run's figures.
    fn last(&self, counts: &Counts, members: &[Member]) {
        self.last.set((self.begun_ms, 0, 0));
        let snapshot = self.snapshot(counts, members, &counts.latencies_of_all.borrow());
        if !self.is_terminal {
            show("in all:\n");
        }
        self.put(&snapshot);
    }

    fn put(&self, snapshot: &Snapshot) {
        let text = if self.is_terminal { frame(snapshot, self.width, true) } else { summary_line(snapshot) + "\n" };
        show(&text);
    }

    fn snapshot(&self, counts: &Counts, members: &[Member], latencies: &Latencies) -> Snapshot {
        let now_ms = clock::now_ms();
        let (then_ms, records, bytes) = self.last.replace((now_ms, counts.consumed.get(), counts.consumed_bytes.get()));
        let seconds = ((now_ms - then_ms).max(1)) as f64 / 1e3;
        let mut all = Insights::new();
        let mut lag = Vec::new();
        for member in members {
            all.merge(&member.insights.borrow());
            let assigned = member.consumer.assignment();
            lag.extend(assigned.iter().map(|one| (one.partition, member.consumer.lag(one).unwrap_or(0))));
        }
        lag.sort_unstable();
        Snapshot {
            elapsed_s: (now_ms - self.begun_ms) as f64 / 1e3,
            records_per_s: (counts.consumed.get() - records) as f64 / seconds,
            mb_per_s: (counts.consumed_bytes.get() - bytes) as f64 / 1e6 / seconds,
            produced: counts.tally.borrow().acknowledged,
            consumed: counts.consumed.get(),
            latency: Latency { p50_ms: latencies.ms(0.5), p99_ms: latencies.ms(0.99), p999_ms: latencies.ms(0.999) },
            lag,
            insights: all.summary(TABLE_ROWS, TABLE_ROWS),
        }
    }
}
