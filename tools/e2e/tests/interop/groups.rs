//! Groups of `ringlog consume` mixed with members by Java, librdkafka and kafka-python: they share the partitions, and read
//! each record once while members come and go.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ringlog_e2e::cli::{self, LIMIT};
use ringlog_e2e::{Broker, requests};

use crate::members::{Client, GROUP, Member, TOPIC};

const PARTITIONS: usize = 6;
/// Between two records of the feed.
const FEED_INTERVAL: Duration = Duration::from_millis(4);

/// A `ringlog produce` that writes until it is told to end.
struct Feed {
    ending: Arc<AtomicBool>,
    thread: JoinHandle<usize>,
}

impl Feed {
    fn start(broker: &Broker) -> Feed {
        let mut producer = cli::spawn(broker, &["produce", TOPIC, "--round-robin"]);
        let ending = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&ending);
        let thread = thread::spawn(move || {
            let mut count = 0;
            while !asked.load(Ordering::Acquire) {
                producer.say(&format!("record {count}"));
                count += 1;
                thread::sleep(FEED_INTERVAL);
            }
            producer.end_input();
            assert!(producer.wait(LIMIT).is_some_and(|status| status.success()), "{}", producer.tail());
            count
        });
        Feed { ending, thread }
    }

    /// How many records it wrote.
    fn end(self) -> usize {
        self.ending.store(true, Ordering::Release);
        self.thread.join().unwrap()
    }
}

/// Which of the members read each record, in the order of reading: partition and offset, positions in `members`.
fn readers(members: &[&Member]) -> BTreeMap<(i32, i64), Vec<usize>> {
    let reads = members
        .iter()
        .enumerate()
        .flat_map(|(at, member)| member.read_when().into_iter().map(move |(when, record)| (when, record, at)));
    let mut reads: Vec<_> = reads.collect();
    reads.sort_unstable();
    let mut readers = BTreeMap::<_, Vec<usize>>::new();
    for (_, record, at) in reads {
        readers.entry(record).or_default().push(at);
    }
    readers
}

/// The records that nobody read, each with who read the one before it and the one behind it.
fn holes(members: &[&Member]) -> Vec<String> {
    let readers = readers(members);
    let names = |by: &[usize]| by.iter().map(|at| members[*at].name()).collect::<Vec<_>>().join(", ");
    let pairs = readers.iter().zip(readers.iter().skip(1));
    let gaps = pairs.filter(|((before, _), (behind, _))| before.0 == behind.0 && behind.1 > before.1 + 1);
    gaps.map(|(before, behind)| {
        format!("between {:?} ({}) and {:?} ({})", before.0, names(before.1), behind.0, names(behind.1))
    })
    .collect()
}

#[track_caller]
fn wait_until_read(members: &[&Member], records: usize) {
    let met = requests::within(LIMIT, || (readers(members).len() >= records).then_some(()));
    assert!(met.is_some(), "{} of {records} records were read: {:?}", readers(members).len(), holes(members));
}

/// Waits until each of them has read something new.
#[track_caller]
fn wait_until_each_reads_on(members: &[&Member]) {
    let before: Vec<usize> = members.iter().map(|member| member.read().len()).collect();
    for (member, before) in members.iter().zip(before) {
        let met = requests::within(LIMIT, || (member.read().len() > before).then_some(()));
        assert!(met.is_some(), "a member has partitions and reads nothing\n{}", member.tail());
    }
}

/// A Java member goes on reading while a cooperative rebalance is under way, and gives partitions up without committing
/// what it read meanwhile: among Java members alone, on Apache Kafka, some records come twice as well.
fn may_repeat(member: &Member, assignor: &str) -> bool {
    member.client() == Client::Java && assignor == "cooperative-sticky"
}

#[track_caller]
fn assert_each_once(members: &[&Member], records: usize, assignor: &str) {
    let readers = readers(members);
    assert_eq!(readers.len(), records, "records that were read at all");
    let mut again = BTreeMap::<Vec<&str>, usize>::new();
    for by in readers.values().filter(|by| by.len() > 1) {
        if by[..by.len() - 1].iter().any(|at| !may_repeat(members[*at], assignor)) {
            *again.entry(by.iter().map(|at| members[*at].name()).collect()).or_default() += 1;
        }
    }
    assert!(again.is_empty(), "records that were read more than once, by whom: {again:?}");
}

fn shared_with(other: Client, assignor: &str) {
    let broker = Broker::start();
    cli::create_topic(&broker, TOPIC, PARTITIONS);
    let settled = |members: &[&Member]| {
        cli::wait_for_shares(&broker, GROUP, members.len(), PARTITIONS);
        wait_until_each_reads_on(members);
    };
    let feed = Feed::start(&broker);
    let mut first = Member::join(&broker, Client::Ours, assignor, "our first");
    settled(&[&first]);
    let mut foreign = Member::join(&broker, other, assignor, "the other");
    settled(&[&first, &foreign]);
    let mut second = Member::join(&broker, Client::Ours, assignor, "our second");
    settled(&[&first, &foreign, &second]);
    second.leave();
    settled(&[&first, &foreign]);
    foreign.leave();
    settled(&[&first]);
    let mut again = Member::join(&broker, other, assignor, "the other again");
    settled(&[&first, &again]);
    let records = feed.end();
    let all = [&first, &foreign, &second, &again];
    wait_until_read(&all, records);
    assert_each_once(&all, records, assignor);

    // Ours has no short session timeout: its death would take the test 45 s.
    if other != Client::Ours {
        again.kill();
        inherits_from_the_dead(&broker, &first, records);
    }
    first.leave();
}

/// What the dead one had read and not committed comes again; nothing is lost.
fn inherits_from_the_dead(broker: &Broker, first: &Member, records: usize) {
    cli::wait_for_shares(broker, GROUP, 1, PARTITIONS);
    let (before, more) = (first.read().len(), 60);
    cli::produce(broker, TOPIC, &["--round-robin"], "behind the dead\n".repeat(more));
    let inherited = requests::within(LIMIT, || cli::has_read_all(broker, GROUP, PARTITIONS).then_some(()));
    assert!(inherited.is_some(), "{:?}\n{}", cli::lag(broker, GROUP), first.tail());
    let read = requests::within(LIMIT, || (first.read().len() >= before + more).then_some(()));
    assert!(read.is_some(), "{}", first.tail());
    let total: i64 = cli::lag(broker, GROUP).unwrap().iter().map(|row| row.committed.unwrap()).sum();
    assert_eq!(total as usize, records + more, "all of it is committed");
}

#[test]
fn with_java_by_range() {
    shared_with(Client::Java, "range");
}

#[test]
fn with_java_cooperatively() {
    shared_with(Client::Java, "cooperative-sticky");
}

#[test]
fn with_librdkafka_by_range() {
    shared_with(Client::Librdkafka, "range");
}

#[test]
fn with_librdkafka_cooperatively() {
    shared_with(Client::Librdkafka, "cooperative-sticky");
}

#[test]
fn with_kafka_python_by_range() {
    shared_with(Client::KafkaPython, "range");
}

#[test]
fn with_kafka_python_cooperatively() {
    shared_with(Client::KafkaPython, "cooperative-sticky");
}

#[test]
fn among_ourselves_by_range() {
    shared_with(Client::Ours, "range");
}

#[test]
fn among_ourselves_cooperatively() {
    shared_with(Client::Ours, "cooperative-sticky");
}
