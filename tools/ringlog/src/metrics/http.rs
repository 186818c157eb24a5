//! The HTTP side: hyper's HTTP/1 connection on a current-thread tokio runtime.
//!
//! A connection carries one request, has [`limits::HEAD_WAIT`] for its head and [`limits::CONNECTION_TIME`] in all, and there
//! are [`limits::CONNECTIONS`] at most: whatever comes, memory and descriptors are bounded. Bodies of requests are not read.
//! The runtime is dropped with everything under way when the server is stopped.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use server::metrics::{Query, ShardFigures};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::limits::{ACCEPT_PAUSE, CONNECTION_TIME, CONNECTIONS, HEAD_BYTES, HEAD_WAIT, HEADERS, SCRAPE_WAIT};
use super::text::{self, Scrape};
use super::{Facts, Phase, Shared};

const PLAIN: &str = "text/plain; charset=utf-8";

type Page = Response<Full<Bytes>>;

/// Serves until the other end of `stop` goes away.
pub fn run(listener: std::net::TcpListener, shared: Shared, stop: &flume::Receiver<()>) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return eprintln!("ringlog: metrics are not served: {error}"),
    };
    runtime.block_on(async {
        match TcpListener::from_std(listener) {
            Ok(listener) => drop(tokio::spawn(accept(listener, shared))),
            Err(error) => eprintln!("ringlog: metrics are not served: {error}"),
        }
        let _ = stop.recv_async().await;
    });
}

async fn accept(listener: TcpListener, shared: Shared) {
    // Each connection holds one more of these.
    let open = Arc::new(());
    loop {
        match listener.accept().await {
            Ok((stream, _)) if Arc::strong_count(&open) <= CONNECTIONS => {
                let (shared, held) = (shared.clone(), open.clone());
                tokio::spawn(async move {
                    serve(stream, shared).await;
                    drop(held);
                });
            }
            Ok((stream, _)) => drop(stream),
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn serve(stream: TcpStream, shared: Shared) {
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(answer(&shared, &request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .max_buf_size(HEAD_BYTES)
        .max_header_size(HEAD_BYTES)
        .max_headers(HEADERS)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // What became of it is the client's affair.
    let _ = timeout(CONNECTION_TIME, connection).await;
}

fn page(status: StatusCode, kind: &'static str, body: String) -> Page {
    let mut page = Response::new(Full::new(Bytes::from(body)));
    *page.status_mut() = status;
    page.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    page
}

async fn answer(shared: &Shared, request: &Request<Incoming>) -> Page {
    let known = matches!(request.uri().path(), "/metrics" | "/healthz");
    if !known {
        return page(StatusCode::NOT_FOUND, PLAIN, "There are /metrics and /healthz here.\n".into());
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = page(StatusCode::METHOD_NOT_ALLOWED, PLAIN, "This is for reading: use GET.\n".into());
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    match shared.phase() {
        Phase::Starting => page(StatusCode::SERVICE_UNAVAILABLE, PLAIN, "starting\n".into()),
        Phase::Stopping => page(StatusCode::SERVICE_UNAVAILABLE, PLAIN, "stopping\n".into()),
        Phase::Ready(_) if request.uri().path() == "/healthz" => page(StatusCode::OK, PLAIN, "ready\n".into()),
        Phase::Ready(facts) => metrics(facts, query(request.uri().query())).await,
    }
}

fn query(text: Option<&str>) -> Query {
    Query { partitions: text.unwrap_or_default().split('&').any(|pair| pair == "partitions=1") }
}

async fn metrics(facts: Facts, query: Query) -> Page {
    let began = Instant::now();
    let shards = scrape(&facts, query, began + SCRAPE_WAIT).await;
    let turned_away = facts.source.turned_away();
    let Facts { node_id, cluster_id, .. } = facts;
    let scrape = Scrape { node_id, cluster_id, shards, turned_away, took: began.elapsed(), query };
    page(StatusCode::OK, text::CONTENT_TYPE, text::page(scrape))
}

/// The figures of each shard that answers by the deadline.
async fn scrape(facts: &Facts, query: Query, deadline: Instant) -> Vec<Option<ShardFigures>> {
    let mut shards: Vec<Option<ShardFigures>> = (0..facts.source.shards()).map(|_| None).collect();
    let answers = facts.source.ask(query);
    while let Ok(Ok(figures)) = timeout_at(deadline, answers.recv_async()).await {
        if let Some(place) = shards.get_mut(figures.shard) {
            *place = Some(figures);
        }
    }
    shards
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
