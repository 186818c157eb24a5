#![allow(clippy::unwrap_used)]
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use model::config::Listener;

use super::super::limits::{CONNECTIONS, HEAD_BYTES};
use super::super::{Metrics, Phase};
use super::*;

fn server() -> Metrics {
    Metrics::start(&Listener { host: "127.0.0.1".into(), port: 0 }, None).unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Everything that comes back until the server closes.
fn talk(address: SocketAddr, request: &str) -> String {
    let mut stream = connect(address);
    // It may close before it has read everything.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(address: SocketAddr, path: &str) -> String {
    talk(address, &format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"))
}

#[test]
fn health_follows_the_node() {
    let metrics = server();
    let starting = get(metrics.address(), "/healthz");
    assert!(starting.starts_with("HTTP/1.1 503") && starting.ends_with("starting\n"), "{starting}");
    let (source, _asks) = server::metrics::FiguresSource::for_tests(1);
    *metrics.shared.lock() = Phase::Ready(Facts { source, node_id: 1, cluster_id: "c".into() });
    let ready = get(metrics.address(), "/healthz");
    assert!(ready.starts_with("HTTP/1.1 200") && ready.ends_with("ready\n"), "{ready}");
    metrics.stopping();
    let stopping = get(metrics.address(), "/metrics");
    assert!(stopping.starts_with("HTTP/1.1 503") && stopping.ends_with("stopping\n"), "{stopping}");
}

#[test]
fn a_shard_that_does_not_answer_is_said_to_be_down_in_time() {
    let metrics = server();
    // The questions are kept and never answered.
    let (source, asks) = server::metrics::FiguresSource::for_tests(2);
    *metrics.shared.lock() = Phase::Ready(Facts { source, node_id: 1, cluster_id: "c".into() });
    let begun = Instant::now();
    let page = get(metrics.address(), "/metrics");
    assert!(page.contains("ringlog_shard_up{shard=\"1\"} 0\n"), "{page}");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("text/plain; version=0.0.4"), "{page}");
    assert!((SCRAPE_WAIT..SCRAPE_WAIT * 4).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    drop(asks);
}

#[test]
fn what_is_no_request_for_a_page_is_refused() {
    let metrics = server();
    let at = metrics.address();
    assert!(get(at, "/").starts_with("HTTP/1.1 404"));
    assert!(get(at, "/metrics/../etc").starts_with("HTTP/1.1 404"));
    let post = talk(at, "POST /metrics HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
    assert!(post.starts_with("HTTP/1.1 405") && post.to_lowercase().contains("allow: get, head"), "{post}");
    assert!(talk(at, "\x16\x03\x01\x02 hello\r\n\r\n").starts_with("HTTP/1.1 400"));
    let long = format!("GET /healthz HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(HEAD_BYTES * 2));
    assert!(talk(at, &long).starts_with("HTTP/1.1 431"));
    let many: String = (0..HEADERS + 1).map(|at| format!("h{at}: 1\r\n")).collect();
    assert!(talk(at, &format!("GET /healthz HTTP/1.1\r\n{many}\r\n")).starts_with("HTTP/1.1 431"));
    // And it still serves.
    assert!(get(at, "/healthz").starts_with("HTTP/1.1 503"));
}

#[test]
fn connections_are_bounded_and_come_free_again() {
    let metrics = server();
    let idle: Vec<TcpStream> = (0..CONNECTIONS).map(|_| connect(metrics.address())).collect();
    let mut refused = connect(metrics.address());
    assert_eq!(refused.read(&mut [0; 1]).unwrap_or(0), 0, "one too many is closed at once");
    drop(idle);
    let until = Instant::now() + Duration::from_secs(10);
    while !get(metrics.address(), "/healthz").contains("starting") {
        assert!(Instant::now() < until, "no room came free");
    }
}

#[test]
fn a_client_that_says_nothing_is_closed() {
    let metrics = server();
    let mut silent = connect(metrics.address());
    silent.write_all(b"GET /healthz HT").unwrap();
    let begun = Instant::now();
    let mut rest = Vec::new();
    let _ = silent.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("200"), "{rest:?}");
    assert!(begun.elapsed() < HEAD_WAIT * 3, "{:?}", begun.elapsed());
}

#[test]
fn a_stop_waits_for_nobody() {
    let metrics = server();
    let (source, _asks) = server::metrics::FiguresSource::for_tests(1);
    *metrics.shared.lock() = Phase::Ready(Facts { source, node_id: 1, cluster_id: "c".into() });
    let mut hanging = connect(metrics.address());
    hanging.write_all(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let begun = Instant::now();
    drop(metrics);
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[test]
fn an_address_in_use_is_a_sentence() {
    let metrics = server();
    let again = Metrics::start(&Listener { host: "127.0.0.1".into(), port: metrics.address().port() }, None);
    let error = again.unwrap_err();
    assert!(error.contains("ringlog.metrics.listen") && !error.contains("PLAINTEXT"), "{error}");
}

#[test]
fn the_query_is_read() {
    assert!(query(Some("partitions=1")).partitions && query(Some("a=b&partitions=1")).partitions);
    assert!(
        !query(None).partitions && !query(Some("partitions=0")).partitions && !query(Some("partitions")).partitions
    );
}
