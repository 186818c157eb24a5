//! `/metrics` and `/healthz` of a running broker: figures that move by what was sent, and a server that bad clients cannot
//! harm. About Ringlog alone.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use ringlog_e2e::batch::Batch;
use ringlog_e2e::broker::skip_on_kafka;
use ringlog_e2e::raw::Raw;
use ringlog_e2e::requests::{self, Produce};
use ringlog_e2e::{Broker, kcat};

const NOT_KAFKA: &str = "Apache Kafka has no such address";
const LIMIT: Duration = Duration::from_secs(15);
const LISTEN: (&str, &str) = ("ringlog.metrics.listen", "127.0.0.1:0");
const STORAGE_ERROR: i16 = 56;

/// A broker with metrics, and the port that they are at.
fn start(settings: &[(&str, &str)]) -> (Broker, u16) {
    let mut broker = Broker::with(&[&[LISTEN], settings].concat());
    let port = metrics_port(&mut broker);
    (broker, port)
}

#[track_caller]
fn metrics_port(broker: &mut Broker) -> u16 {
    let line = broker.process().wait_for_line(LIMIT, "/metrics");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).unwrap();
    address.rsplit(':').next().unwrap().parse().unwrap()
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

/// Status and body. Who is refused for the length of its question may be answered, and reset, before all of it is sent.
#[track_caller]
fn get(port: u16, path: &str) -> (u16, String) {
    let mut stream = connect(port);
    let _ = stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// The figures by name and labels, as they stand on the page.
type Figures = BTreeMap<String, f64>;

#[track_caller]
fn scrape_at(port: u16, path: &str) -> Figures {
    let (status, body) = get(port, path);
    assert_eq!(status, 200, "{body}");
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    };
    body.lines().filter(|line| !line.starts_with('#')).map(sample).collect()
}

#[track_caller]
fn scrape(port: u16) -> Figures {
    scrape_at(port, "/metrics")
}

/// The sum over all shards of what has this name and these labels.
#[track_caller]
fn sum(figures: &Figures, name: &str, labels: &str) -> f64 {
    let full = format!("ringlog_{name}{{");
    let matching: Vec<f64> =
        figures.iter().filter(|(key, _)| key.starts_with(&full) && key.contains(labels)).map(|(_, v)| *v).collect();
    assert!(!matching.is_empty(), "no {name} with {labels:?} in {:?}", figures.keys().collect::<Vec<_>>());
    matching.iter().sum()
}

/// Waits until a figure is as wanted.
#[track_caller]
fn wait_for(port: u16, name: &str, labels: &str, wanted: impl Fn(f64) -> bool) {
    let until = Instant::now() + LIMIT * 2;
    loop {
        let seen = sum(&scrape(port), name, labels);
        if wanted(seen) {
            return;
        }
        assert!(Instant::now() < until, "{name} stays {seen}");
        thread::sleep(Duration::from_millis(100));
    }
}

fn topic(broker: &Broker, name: &str, partitions: i32) -> Raw {
    let mut raw = Raw::connect(broker);
    requests::create_topic(&mut raw, name, partitions, &[]);
    requests::wait_for_leaders(&mut raw, name, partitions as usize);
    raw
}

#[test]
fn figures_move_by_exactly_what_was_sent() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let (broker, port) = start(&[]);
    assert_eq!(get(port, "/healthz"), (200, "ready\n".into()));
    let mut raw = topic(&broker, "t", 2);
    let before = scrape(port);
    let batch = Batch::of(&["one", "two", "three"]);
    let bytes = batch.encode().len() as f64;
    for partition in [0, 1, 0] {
        let mut produce = Produce::new("t", &batch);
        produce.partition = partition;
        assert_eq!(produce.code(&mut raw), 0);
    }
    let mut nowhere = Produce::new("t", &batch);
    nowhere.partition = 9;
    assert_ne!(nowhere.code(&mut raw), 0);
    let after = scrape(port);
    let moved = |name: &str, labels: &str| sum(&after, name, labels) - sum(&before, name, labels);
    assert_eq!(moved("appended_batches_total", ""), 3.0);
    assert_eq!(moved("appended_records_total", ""), 9.0);
    assert_eq!(moved("appended_bytes_total", ""), 3.0 * bytes);
    assert_eq!(moved("requests_total", "api=\"Produce\""), 4.0);
    assert_eq!(moved("request_latency_seconds_count", "api=\"Produce\""), 4.0);
    assert_eq!(sum(&after, "partition_errors_total", "error=\"UNKNOWN_TOPIC_OR_PARTITION\""), 1.0);
    assert!(moved("received_bytes_total", "") > 4.0 * bytes && moved("sent_bytes_total", "") > 0.0);
    let latency = moved("request_latency_seconds_sum", "api=\"Produce\"");
    assert!((0.0..LIMIT.as_secs_f64()).contains(&latency), "{latency}");
    let syncs = moved("sync_latency_seconds_count", "");
    assert!(syncs >= 2.0, "acknowledged means synced: {syncs}");
    let fetched = requests::fetch_batches(&mut raw, "t", 0);
    assert_eq!(fetched.len(), 2);
    assert_eq!(sum(&scrape(port), "fetched_bytes_total", "") - sum(&after, "fetched_bytes_total", ""), 2.0 * bytes);
    assert_eq!(sum(&after, "partitions", "state=\"led\""), 2.0);
    assert_eq!(sum(&after, "connections", ""), 1.0);
    let rows = scrape_at(port, "/metrics?partitions=1");
    assert_eq!(rows["ringlog_partition_high_watermark{topic=\"t\",partition=\"0\"}"], 6.0);
    assert_eq!(rows["ringlog_partition_log_start_offset{topic=\"t\",partition=\"1\"}"], 0.0);
}

#[test]
fn records_of_another_client_are_counted_one_by_one() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let (broker, port) = start(&[]);
    let _raw = topic(&broker, "t", 4);
    let before = sum(&scrape(port), "appended_records_total", "");
    let lines: String = (0..1_000).map(|at| format!("record {at}\n")).collect();
    kcat::produce(&broker, "t", &["-X", "enable.idempotence=true"], &lines);
    let after = scrape(port);
    assert_eq!(sum(&after, "appended_records_total", "") - before, 1_000.0);
    assert!(sum(&after, "producers", "") >= 1.0, "its sequences are remembered");
    assert_eq!(kcat::consume(&broker, "t", "%s\n").lines().count(), 1_000);
}

#[test]
fn the_journal_fills_and_comes_free() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let (broker, port) = start(&[("ringlog.shards", "1"), ("ringlog.journal.bytes", "8388608")]);
    let mut raw = topic(&broker, "t", 4);
    let batch = Batch::of(&[&*"x".repeat(60_000)]);
    let (mut most, mut least_behind, mut debt) = (0.0_f64, f64::MAX, 0.0_f64);
    for number in 0..400 {
        let mut produce = Produce::new("t", &batch);
        produce.partition = number % 4;
        assert_eq!(produce.code(&mut raw), 0);
        if number % 10 == 0 {
            let figures = scrape(port);
            let fill = sum(&figures, "journal_fill_bytes", "");
            most = most.max(fill);
            least_behind = if fill < most { least_behind.min(most - fill) } else { least_behind };
            debt = debt.max(sum(&figures, "journal_debt_bytes", ""));
            assert!(fill <= sum(&figures, "journal_capacity_bytes", ""), "{figures:?}");
        }
    }
    let figures = scrape(port);
    assert!(most > 1e6, "the ring filled: {most}");
    assert!(least_behind < f64::MAX && sum(&figures, "journal_recycles_total", "") > 0.0, "and came free: {figures:?}");
    assert!(debt > 1e5, "segments lag behind the ring: {debt}");
    assert!(sum(&figures, "commit_rounds_total", "way=\"journal\"") > 10.0);
    assert!(sum(&figures, "commit_written_bytes_total", "way=\"destage\"") > 1e6);
    // Nobody writes any more: in the end the segments have everything.
    wait_for(port, "journal_debt_bytes", "", |bytes| bytes == 0.0);
}

#[test]
fn a_damaged_partition_shows() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let (mut broker, port) = start(&[]);
    let mut raw = topic(&broker, "t", 1);
    for value in ["batch 0", "batch 1", "batch 2"] {
        requests::produce(&mut raw, "t", &Batch::of(&[value]));
    }
    assert_eq!(sum(&scrape(port), "partitions", "state=\"damaged\""), 0.0);
    drop(raw);
    broker.stop();
    let log = broker.partition_dir("t", 0).join("00000000000000000000.log");
    let mut bytes = std::fs::read(&log).unwrap();
    let at = bytes.windows(7).position(|window| window == b"batch 1").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&log, &bytes).unwrap();
    broker.start_again();
    let port = metrics_port(&mut broker);
    let mut raw = Raw::connect(&broker);
    requests::wait_for_leaders(&mut raw, "t", 1);
    assert_eq!(requests::fetch(&mut raw, "t", 1).error_code, STORAGE_ERROR);
    let figures = scrape(port);
    assert_eq!(sum(&figures, "partitions", "state=\"damaged\""), 1.0);
    assert_eq!(sum(&figures, "damaged_ranges_total", ""), 1.0);
    assert!(sum(&figures, "partition_errors_total", "error=\"KAFKA_STORAGE_ERROR\"") >= 1.0);
}

#[test]
fn bad_clients_are_bounded_and_the_broker_goes_on() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let (broker, port) = start(&[]);
    let mut raw = topic(&broker, "t", 1);
    assert_eq!(get(port, "/").0, 404);
    assert_eq!(get(port, "/metrics/more").0, 404);
    assert_eq!(get(port, &format!("/metrics?{}", "x".repeat(20_000))).0, 431);
    let mut crowd: Vec<TcpStream> = (0..200).map(|_| connect(port)).collect();
    for (number, stream) in crowd.iter_mut().enumerate() {
        // Half a head, garbage, or nothing; most were closed at once.
        let _ = match number % 3 {
            0 => stream.write_all(b"GET /metrics HTTP/1.1\r\nA: "),
            1 => stream.write_all(&[0xff; 64]),
            _ => Ok(()),
        };
    }
    assert!(requests::produce(&mut raw, "t", &Batch::of(&["still here"])) >= 0);
    drop(crowd);
    let until = Instant::now() + LIMIT;
    let served = || {
        let mut stream = connect(port);
        let mut answer = String::new();
        let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\n\r\n");
        let _ = stream.read_to_string(&mut answer);
        answer.ends_with("ready\n")
    };
    while !served() {
        assert!(Instant::now() < until, "nobody is served any more");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn two_scrapers_at_once_get_whole_pages() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let (broker, port) = start(&[]);
    let _raw = topic(&broker, "t", 8);
    let scrapers: Vec<_> = (0..2)
        .map(|_| {
            thread::spawn(move || {
                for _ in 0..25 {
                    let figures = scrape(port);
                    let up: Vec<f64> =
                        figures.iter().filter(|(k, _)| k.contains("shard_up")).map(|(_, v)| *v).collect();
                    assert!(!up.is_empty() && up.iter().all(|up| *up == 1.0), "{up:?}");
                    assert_eq!(sum(&figures, "partitions", "state=\"led\""), 8.0);
                }
            })
        })
        .collect();
    scrapers.into_iter().for_each(|scraper| scraper.join().unwrap());
}

#[test]
fn a_stop_waits_for_no_scrape() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let (mut broker, port) = start(&[]);
    let mut half = connect(port);
    half.write_all(b"GET /metrics HTTP/1.1\r\nHost: ").unwrap();
    let mut deaf = connect(port);
    deaf.write_all(b"GET /metrics?partitions=1 HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    let begun = Instant::now();
    broker.stop();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "nobody listens there any more");
}

#[test]
fn nothing_is_served_unless_it_is_asked_for_and_a_taken_address_is_told() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let (_broker, port) = start(&[]);
    let mut without = Broker::start();
    assert!(!without.process().lines().iter().any(|line| line.contains("/metrics")));
    let dir = ringlog_e2e::place::TempDir::new();
    let mut command = ringlog_e2e::broker::ringlog_serve(dir.path(), "127.0.0.1:0");
    command.arg("--set").arg(format!("ringlog.metrics.listen=127.0.0.1:{port}"));
    let ended = ringlog_e2e::process::run(&mut command, b"", LIMIT);
    assert!(!ended.status.success() && ended.errors().contains("ringlog.metrics.listen"), "{}", ended.all());
}

#[test]
fn a_data_folder_that_goes_away_shows() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let root = ringlog_e2e::place::TempDir::new();
    let folders = ["a", "b"].map(|name| root.path().join(name));
    let mut command = ringlog_e2e::broker::ringlog_serve(&folders[0], "127.0.0.1:0");
    command.arg("--data-dir").arg(&folders[1]).arg("--set").arg(format!("{}={}", LISTEN.0, LISTEN.1));
    let process = ringlog_e2e::process::Running::start("ringlog", &mut command);
    let clients = ringlog_e2e::broker::listening_port(&process).unwrap();
    let line = process.wait_for_line(LIMIT, "/metrics");
    let port: u16 = line.rsplit(':').next().and_then(|rest| rest.split('/').next()).unwrap().parse().unwrap();
    let mut raw = Raw::connect_to(clients);
    requests::create_topic(&mut raw, "t", 4, &[]);
    requests::wait_for_leaders(&mut raw, "t", 4);
    let figures = scrape(port);
    assert_eq!(sum(&figures, "folder_up", ""), 2.0);
    assert_eq!(sum(&figures, "folder_partitions", ""), 4.0);
    assert!(sum(&figures, "folder_free_bytes", "/a\"") > 0.0 && sum(&figures, "folder_reserve_bytes", "/b\"") > 0.0);
    let away = root.path().join("away");
    std::fs::rename(&folders[1], &away).unwrap();
    wait_for(port, "folder_up", "/b\"", |up| up == 0.0);
    assert_eq!(sum(&scrape(port), "folder_up", "/a\""), 1.0);
    std::fs::rename(&away, &folders[1]).unwrap();
}

#[test]
fn requests_that_close_their_connection_are_counted() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let (broker, port) = start(&[]);
    let _raw = topic(&broker, "t", 1);
    // No answer is wanted, and there is an error to tell: the only way is to close.
    let mut unheard = Raw::connect(&broker);
    let nowhere = Produce { acks: 0, partition: 9, ..Produce::new("t", &Batch::of(&["x"])) };
    unheard.send(nowhere.version, &nowhere.request());
    assert!(unheard.is_closed_within(LIMIT));
    let mut garbled = Raw::connect(&broker);
    garbled.send_bytes(&[0, 0, 0, 4, 0x7f, 0xff, 0, 0]);
    assert!(garbled.is_closed_within(LIMIT));
    let figures = scrape(port);
    assert_eq!(sum(&figures, "requests_closed_total", "api=\"Produce\""), 1.0);
    assert_eq!(sum(&figures, "connections_refused_total", ""), 1.0);
    assert_eq!(sum(&figures, "connections_accepted_total", ""), 3.0);
}
