#![allow(clippy::unwrap_used)]

use super::*;
use crate::drive::{WINDOW, drive};
use crate::fake_broker::{produced, serve};
use crate::requests::make;
use crate::workload::Workload;

const PARTITIONS: usize = 4;

fn plan(port: u16, shared: &Arc<Shared>) -> Plan {
    let text = "about = \"t\"\npartitions = 4\npartitions_per_request = 3\nbatch_bytes = 1000\nrecord_bytes = 100";
    let workload = Workload::parse("t", text).unwrap();
    Plan {
        port,
        partitions: PARTITIONS,
        in_flight: 3,
        requests: Arc::new(make(&workload, "t").unwrap()),
        shared: shared.clone(),
        notes_offsets: true,
    }
}

/// Drives a writer for so long and gives it back.
fn written(port: u16, rate: Option<Duration>, long: Duration) -> (Writer, Arc<Shared>, io::Result<()>) {
    let shared = Arc::new(Shared::default());
    let plan = plan(port, &shared);
    shared.enter(WINDOW);
    let pace = Pace { begun: Instant::now(), interval: rate, offset: Duration::ZERO };
    let mut writers = vec![Writer::connect(&plan, pace, 1).unwrap()];
    let timer = shared.clone();
    let ending = std::thread::spawn(move || {
        std::thread::sleep(long);
        timer.enter(ENDING);
    });
    let result = drive(&mut writers, &shared);
    ending.join().unwrap();
    (writers.remove(0), shared, result)
}

#[test]
fn everything_sent_is_answered_and_counted() {
    let mut ends = vec![0; PARTITIONS];
    let (port, serving) = serve(move |frame| produced(&frame, &mut ends, 0));
    let (writer, shared, result) = written(port, None, Duration::from_millis(60));
    result.unwrap();
    let (records, latencies) = (writer.records, writer.latencies[0].len());
    assert!(records > 0 && writer.waiting.is_empty());
    assert_eq!(shared.produced_records.load(Ordering::Relaxed), records);
    assert_eq!(shared.produced_bytes.load(Ordering::Relaxed), writer.bytes);
    assert_eq!(writer.ends.iter().sum::<i64>() as u64, records);
    assert_eq!(writer.sent.iter().map(|sent| u64::from(sent.records)).sum::<u64>(), records);
    // What left while the load was being ended lies in no window.
    assert!((1..=records).contains(&latencies), "{latencies} of {records}");
    let number = writer.number as usize;
    drop(writer);
    assert_eq!(serving.join().unwrap(), number);
}

/// A broker that stalls is charged for every request that should have left meanwhile, not only for those under way.
#[test]
fn an_open_loop_counts_what_a_stall_delayed() {
    let mut ends = vec![0; PARTITIONS];
    let mut first = true;
    let (port, _serving) = serve(move |frame| {
        if std::mem::take(&mut first) {
            std::thread::sleep(Duration::from_millis(300));
        }
        produced(&frame, &mut ends, 0)
    });
    let (writer, _, result) = written(port, Some(Duration::from_millis(2)), Duration::from_millis(340));
    result.unwrap();
    // 170 requests were meant to leave; half of those 150 that the stall met waited for more than 150 ms.
    let latencies = &writer.latencies[0];
    let late = latencies.len() - latencies.count_between(0, 150_000);
    assert!(late as f64 > latencies.len() as f64 * 0.3, "{late} of {}", latencies.len());
    assert!(latencies.max() >= 290_000);
}

/// What is still owed at the end counts with the time it has waited.
#[test]
fn a_broker_that_never_recovers_is_charged_too() {
    let mut ends = vec![0; PARTITIONS];
    let (port, _serving) = serve(move |frame| {
        std::thread::sleep(Duration::from_millis(100));
        produced(&frame, &mut ends, 0)
    });
    let (writer, _, result) = written(port, Some(Duration::from_millis(1)), Duration::from_millis(300));
    result.unwrap();
    // 300 were meant to leave, of 10 and of 30 records in turns.
    let records = writer.latencies[0].len();
    assert!(records > 250 * 20 && writer.number < 20, "{records} counted, {} requests sent", writer.number);
}

#[test]
fn a_refused_batch_fails_the_run() {
    let mut ends = vec![0; PARTITIONS];
    let (port, _serving) = serve(move |frame| produced(&frame, &mut ends, 56));
    let (_, _, result) = written(port, None, Duration::from_millis(30));
    assert!(result.unwrap_err().to_string().contains("error 56"));
}

#[test]
fn a_moment_lies_in_the_window_that_had_begun_by_then() {
    let shared = Shared::default();
    let before = Instant::now();
    shared.enter(WINDOW);
    let within = Instant::now();
    std::thread::sleep(Duration::from_millis(2));
    shared.enter(crate::drive::BESIDE_READER);
    let beside = Instant::now();
    std::thread::sleep(Duration::from_millis(2));
    shared.enter(ENDING);
    let found = [before, within, beside, Instant::now()].map(|moment| shared.window_at(moment));
    assert_eq!(found, [None, Some(0), Some(1), None]);
}
