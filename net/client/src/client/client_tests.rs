#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use wire::generated::api_versions::ApiVersionsResponse;
use wire::generated::describe_cluster::{DescribeClusterRequest, DescribeClusterResponse};
use wire::generated::metadata::{MetadataResponsePartition, MetadataResponseTopic};

use super::fake_broker::{FakeBroker, Reply, Seen, all_versions, metadata, nobody};
use super::*;

fn config(addresses: &[String]) -> ClientConfig {
    ClientConfig {
        bootstrap: addresses.to_vec(),
        client_id: "test".to_string(),
        request_timeout_ms: 2_000,
        default_api_timeout_ms: 3_000,
        reconnect_backoff_ms: 20,
        reconnect_backoff_max_ms: 100,
        retry_backoff_ms: 10,
        retry_backoff_max_ms: 50,
        allow_auto_create_topics: false,
        ..ClientConfig::default()
    }
}

fn client(broker: &FakeBroker) -> Client {
    Client::new(config(&[broker.address()])).unwrap()
}

/// DescribeCluster is this test's question, for an answer can be told by its cluster id.
fn about(seen: &Seen, id: &str) -> Reply {
    seen.answer(&DescribeClusterResponse { cluster_id: id.to_string().into(), ..DescribeClusterResponse::default() })
}

fn question() -> DescribeClusterRequest {
    DescribeClusterRequest::default()
}

async fn ready(client: &Client, node: i32) {
    client.refresh().await.unwrap();
    while !client.is_ready(node) {
        client.changed().changed().await;
    }
}

async fn until(mut condition: impl FnMut() -> bool) {
    for _ in 0..500 {
        if condition() {
            return;
        }
        clock::sleep(Duration::from_millis(10)).await;
    }
    panic!("what was waited for did not come");
}

fn run<F, T>(main: impl Fn() -> F + Clone + Send + 'static) -> T
where
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    runtime::testing::run(main)
}

#[test]
fn a_broker_that_does_not_know_our_version_of_the_question_is_asked_again() {
    let broker = FakeBroker::start(|seen, port| match (seen.api, seen.version) {
        (ApiKey::ApiVersions, 0) => vec![seen.answer(&all_versions())],
        (ApiKey::ApiVersions, _) => {
            vec![seen.answer_as(0, &ApiVersionsResponse { error_code: 35, ..ApiVersionsResponse::default() })]
        }
        _ => vec![seen.usual(port)],
    });
    let seen = broker.clone();
    run(move || {
        let broker = broker.clone();
        async move {
            let cluster = client(&broker).refresh().await.unwrap();
            assert_eq!((cluster.controller, cluster.brokers.len()), (1, 1));
        }
    });
    let versions: Vec<i16> = seen.asked_for(ApiKey::ApiVersions).iter().map(|one| one.version).collect();
    assert_eq!(versions, [3, 0]);
    assert_eq!(seen.asked()[0].client_id, "test");
}

#[test]
fn the_bootstrap_connection_becomes_the_nodes() {
    let broker = FakeBroker::start(|seen, port| match seen.api {
        ApiKey::DescribeCluster => vec![about(seen, "c")],
        _ => vec![seen.usual(port)],
    });
    let seen = broker.clone();
    run(move || {
        let client = client(&broker);
        async move {
            ready(&client, 1).await;
            let answer = client.ask(Destination::Node(1), None, &question()).await.unwrap();
            assert_eq!((answer.node, &*answer.decode().unwrap().cluster_id), (1, "c"));
        }
    });
    assert_eq!(seen.connections(), 1);
}

#[test]
fn requests_leave_in_call_order_and_each_gets_its_answer() {
    let held: Arc<Mutex<Vec<Reply>>> = Arc::default();
    let broker = FakeBroker::start(move |seen, port| match seen.api {
        ApiKey::DescribeCluster => {
            let mut held = held.lock().unwrap();
            let id = held.len().to_string();
            held.push(about(seen, &id));
            if held.len() == 3 { held.drain(..).collect() } else { Vec::new() }
        }
        _ => vec![seen.usual(port)],
    });
    run(move || {
        let client = client(&broker);
        async move {
            ready(&client, 1).await;
            assert_eq!(client.version(1, ApiKey::DescribeCluster, Some(0..=1)), Some(1));
            let pending: Vec<_> = (0..3).map(|_| client.send(1, None, &question(), 1_000).unwrap()).collect();
            for (index, answer) in runtime::sync::all(pending).await.into_iter().enumerate() {
                assert_eq!(answer.unwrap().decode().unwrap().cluster_id, index.to_string());
            }
        }
    });
}

#[test]
fn a_dropped_question_keeps_its_place() {
    let held: Arc<Mutex<Option<Reply>>> = Arc::default();
    let broker = FakeBroker::start(move |seen, port| match seen.api {
        // The first answer comes with the second, so late that nobody waits for it.
        ApiKey::DescribeCluster => {
            let mut held = held.lock().unwrap();
            match held.take() {
                Some(first) => vec![first, about(seen, "second")],
                None => {
                    *held = Some(about(seen, "first"));
                    Vec::new()
                }
            }
        }
        _ => vec![seen.usual(port)],
    });
    let seen = broker.clone();
    run(move || {
        let client = client(&broker);
        async move {
            ready(&client, 1).await;
            let request = question();
            let first = client.ask(Destination::Node(1), None, &request);
            assert!(before(clock::now_ms() + 50, first).await.is_none());
            let second = client.ask(Destination::Node(1), None, &question()).await.unwrap();
            assert_eq!(second.decode().unwrap().cluster_id, "second");
        }
    });
    assert_eq!(seen.connections(), 1);
}

#[test]
fn a_deadline_ends_the_connection_and_the_next_question_gets_a_new_one() {
    let broker = FakeBroker::start(|seen, port| match seen.api {
        ApiKey::DescribeCluster if seen.connection > 0 => vec![about(seen, "new")],
        ApiKey::DescribeCluster => Vec::new(),
        _ => vec![seen.usual(port)],
    });
    run(move || {
        let client = client(&broker);
        async move {
            ready(&client, 1).await;
            let behind = client.send(1, None, &question(), 10_000).unwrap();
            let error = client.ask_within(Destination::Node(1), None, &question(), 50).await.unwrap_err();
            assert_eq!(error, ClientError::TimedOut { what: "DescribeCluster", after_ms: 50 });
            assert!(matches!(behind.await, Err(ClientError::Disconnected { node: 1, .. })));
            assert!(!client.is_ready(1));
            let answer = client.ask(Destination::Node(1), None, &question()).await.unwrap();
            assert_eq!(answer.decode().unwrap().cluster_id, "new");
        }
    });
}

#[test]
fn an_end_within_an_answer_is_a_disconnect() {
    let broker = FakeBroker::start(|seen, port| match seen.api {
        ApiKey::DescribeCluster => match about(seen, "cut") {
            Reply::Bytes(bytes) => vec![Reply::Bytes(bytes[..9].to_vec()), Reply::Close],
            other => vec![other],
        },
        _ => vec![seen.usual(port)],
    });
    run(move || {
        let client = client(&broker);
        async move {
            let error = client.ask(Destination::Any, None, &question()).await.unwrap_err();
            assert!(matches!(error, ClientError::Disconnected { .. }), "{error}");
        }
    });
}

#[test]
fn attempts_to_connect_are_spaced() {
    let broker = FakeBroker::start(|seen, port| match seen.connection {
        0 => vec![seen.usual(port)],
        _ => vec![Reply::Close],
    });
    let seen = broker.clone();
    run(move || {
        let client = client(&broker);
        async move {
            client.refresh().await.unwrap();
            client.shared.nodes.borrow().existing(Place::Node(1), Lane::Main).unwrap().end("test");
            let end = clock::now_ms() + 600;
            while clock::now_ms() < end {
                assert!(!client.is_ready(1));
                before(end, client.changed().changed()).await;
            }
        }
    });
    // 20, 40, 80, 100, 100.. milliseconds, each a fifth more or less.
    assert!((4..=12).contains(&seen.connections()), "{}", seen.connections());
}

#[test]
fn the_second_address_is_tried_when_the_first_is_dead() {
    let broker = FakeBroker::start(|seen, port| vec![seen.usual(port)]);
    run(move || {
        let client = Client::new(config(&[nobody(), broker.address(), nobody()])).unwrap();
        async move { assert_eq!(client.refresh().await.unwrap().brokers.len(), 1) }
    });
}

#[test]
fn nobody_at_all_is_said_at_once() {
    run(|| async {
        let addresses = [nobody(), nobody()];
        let client = Client::new(config(&addresses)).unwrap();
        let begun = clock::now_ms();
        let error = client.ask(Destination::Any, None, &question()).await.unwrap_err().to_string();
        assert!(clock::now_ms() - begun < 1_000);
        assert!(addresses.iter().all(|address| error.contains(address)), "{error}");
        assert!(error.contains("refused") && error.contains("ringlog serve"), "{error}");
        assert!(matches!(client.resolve(&["t"]).await, Err(ClientError::NoBroker { .. })));
        assert!(clock::now_ms() - begun < 1_000);
    });
}

#[test]
fn a_peer_that_is_no_broker_is_named() {
    let broker = FakeBroker::start(|_, _| vec![Reply::Bytes(b"HTTP/1.1 400 Bad Request\r\n".to_vec())]);
    run(move || {
        let client = client(&broker);
        async move {
            let error = client.refresh().await.unwrap_err().to_string();
            assert!(error.contains("its bytes are no answer"), "{error}");
        }
    });
}

fn topic(name: &'static str, error_code: i16) -> MetadataResponseTopic<'static> {
    let partition = MetadataResponsePartition { leader_id: 1, ..MetadataResponsePartition::default() };
    let partitions = if error_code == 0 { vec![partition] } else { Vec::new() };
    MetadataResponseTopic { error_code, name: Some(name.into()), partitions, ..MetadataResponseTopic::default() }
}

#[test]
fn a_topic_is_waited_for_until_it_has_a_leader() {
    let rounds = AtomicU16::new(0);
    let broker = FakeBroker::start(move |seen, port| match seen.api {
        ApiKey::Metadata => {
            let code = if rounds.fetch_add(1, Ordering::SeqCst) < 2 { 5 } else { 0 };
            vec![seen.answer(&metadata(port, vec![topic("t", code)]))]
        }
        _ => vec![seen.usual(port)],
    });
    let seen = broker.clone();
    run(move || {
        let client = client(&broker);
        async move { assert_eq!(client.resolve(&["t"]).await.unwrap().leader("t", 0), Some(1)) }
    });
    assert_eq!(seen.asked_for(ApiKey::Metadata).len(), 3);
}

#[test]
fn a_topic_that_does_not_exist_is_given_up_soon_and_not_asked_for_again() {
    let broker = FakeBroker::start(|seen, port| match seen.api {
        ApiKey::Metadata => vec![seen.answer(&metadata(port, vec![topic("t", 3)]))],
        _ => vec![seen.usual(port)],
    });
    run(move || {
        let client = client(&broker);
        async move {
            let error = client.resolve(&["t"]).await.unwrap_err();
            assert_eq!(error, ClientError::UnknownTopic { topic: "t".to_string() });
            assert!(!client.shared.metadata.watched.borrow().contains("t"));
        }
    });
}

#[test]
fn what_others_watch_stays_watched_when_a_topic_beside_it_does_not_exist() {
    let broker = FakeBroker::start(|seen, port| match seen.api {
        ApiKey::Metadata => vec![seen.answer(&metadata(port, vec![topic("known", 0), topic("missing", 3)]))],
        _ => vec![seen.usual(port)],
    });
    run(move || {
        let client = client(&broker);
        async move {
            client.watch_topics(&["known"]);
            client.resolve(&["known", "missing"]).await.unwrap_err();
            let watched = client.shared.metadata.watched.borrow();
            assert!(watched.contains("known") && !watched.contains("missing"), "{watched:?}");
        }
    });
}

#[test]
fn refreshes_that_are_wanted_together_are_one() {
    let broker = FakeBroker::start(|seen, port| vec![seen.usual(port)]);
    let seen = broker.clone();
    run(move || {
        let client = client(&broker);
        async move {
            client.refresh().await.unwrap();
            let together: Vec<_> = (0..10).map(|_| client.refresh()).collect();
            assert!(runtime::sync::all(together).await.iter().all(Result::is_ok));
            (0..10).for_each(|_| client.want_refresh());
            clock::sleep(Duration::from_millis(200)).await;
        }
    });
    // One, one begun by the first of ten and one that the other nine share, one for all that want it some time.
    assert_eq!(seen.asked_for(ApiKey::Metadata).len(), 4);
}

#[test]
fn what_is_known_is_renewed_by_age() {
    let broker = FakeBroker::start(|seen, port| vec![seen.usual(port)]);
    let seen = broker.clone();
    run(move || {
        let client = Client::new(ClientConfig { metadata_max_age_ms: 100, ..config(&[broker.address()]) }).unwrap();
        let broker = broker.clone();
        async move {
            client.refresh().await.unwrap();
            until(|| broker.asked_for(ApiKey::Metadata).len() >= 3).await;
        }
    });
    assert!(seen.asked_for(ApiKey::Metadata).len() >= 3);
}

#[test]
fn a_broker_that_moved_is_found_at_its_new_place() {
    let second = FakeBroker::start(|seen, port| match seen.api {
        ApiKey::DescribeCluster => vec![about(seen, "second")],
        _ => vec![seen.usual(port)],
    });
    let (moved, to) = (Arc::new(AtomicU16::new(0)), second.port);
    let place = moved.clone();
    let first = FakeBroker::start(move |seen, port| match (seen.api, place.load(Ordering::SeqCst)) {
        (ApiKey::Metadata, to) if to > 0 => vec![seen.answer(&metadata(to, Vec::new()))],
        _ => vec![seen.usual(port)],
    });
    let old = first.clone();
    run(move || {
        let (client, moved, first) = (client(&first), moved.clone(), first.clone());
        async move {
            ready(&client, 1).await;
            moved.store(to, Ordering::SeqCst);
            client.refresh().await.unwrap();
            let answer = client.ask(Destination::Node(1), None, &question()).await.unwrap();
            assert_eq!(answer.decode().unwrap().cluster_id, "second");
            until(|| first.open() == 0).await;
        }
    });
    assert_eq!(old.connections(), 1);
}

#[test]
fn the_last_handle_ends_the_connections() {
    let broker = FakeBroker::start(|seen, port| vec![seen.usual(port)]);
    run(move || {
        let (client, broker) = (client(&broker), broker.clone());
        async move {
            ready(&client, 1).await;
            let shared = Rc::downgrade(&client.shared);
            let other = client.clone();
            drop(client);
            assert!(other.is_ready(1));
            let pending = other.send(1, None, &question(), 1_000).unwrap();
            drop(other);
            assert!(matches!(pending.await, Err(ClientError::Disconnected { .. } | ClientError::NotConnected { .. })));
            until(|| broker.open() == 0 && shared.strong_count() == 0).await;
        }
    });
}

#[test]
fn a_closed_client_says_so() {
    let broker = FakeBroker::start(|seen, port| vec![seen.usual(port)]);
    run(move || {
        let client = client(&broker);
        async move {
            ready(&client, 1).await;
            client.close().await;
            assert!(!client.is_ready(1));
            assert_eq!(client.ask(Destination::Any, None, &question()).await.unwrap_err(), ClientError::Closed);
            assert_eq!(client.send(1, None, &question(), 10).unwrap_err(), ClientError::Closed);
        }
    });
}

#[test]
fn a_request_that_is_held_back_holds_up_no_other() {
    use wire::generated::fetch::FetchRequest;
    let broker = FakeBroker::start(|seen, port| match seen.api {
        ApiKey::DescribeCluster => vec![about(seen, "c")],
        _ => vec![seen.usual(port)],
    });
    let seen = broker.clone();
    run(move || {
        let client = client(&broker);
        async move {
            ready(&client, 1).await;
            let fetch = FetchRequest::default();
            assert!(client.send(1, Some(4..=12), &fetch, 1_000).is_err());
            while !client.is_ready(1) {
                client.changed().changed().await;
            }
            let _held = client.send(1, Some(4..=12), &fetch, 1_000).unwrap();
            client.ask(Destination::Node(1), None, &question()).await.unwrap();
        }
    });
    assert_eq!(seen.connections(), 2);
}

#[test]
fn a_configuration_that_cannot_be_used_is_refused_with_its_key() {
    let bad = |change: fn(&mut ClientConfig)| {
        let mut config = ClientConfig::default();
        change(&mut config);
        Client::new(config).unwrap_err().to_string()
    };
    assert!(bad(|config| config.bootstrap.clear()).contains("bootstrap.servers"));
    assert!(bad(|config| config.bootstrap = vec!["nowhere".to_string()]).contains("nowhere"));
    assert!(bad(|config| config.request_timeout_ms = 0).contains("request.timeout.ms"));
    assert!(bad(|config| config.retry_backoff_ms = -1).contains("retry.backoff.ms"));
}

#[test]
fn a_broker_that_went_away_is_looked_for_by_itself() {
    let second = FakeBroker::start(|seen, port| vec![seen.usual(port)]);
    let to = second.port;
    // The first broker answers one connection, which says where the cluster is from then on, and no other.
    let first = FakeBroker::start(move |seen, port| match (seen.connection, seen.api) {
        (0, _) => vec![seen.usual(port)],
        (_, ApiKey::Metadata) => vec![seen.answer(&metadata(to, Vec::new()))],
        _ => vec![seen.usual(port)],
    });
    run(move || {
        let client = client(&first);
        async move {
            ready(&client, 1).await;
            client.shared.nodes.borrow().existing(Place::Node(1), Lane::Main).unwrap().end("test");
            assert!(!client.is_ready(1));
            until(|| client.cluster().brokers[&1].port == to && client.is_ready(1)).await;
        }
    });
}

#[test]
fn a_cluster_that_asks_for_it_is_begun_anew() {
    let rounds = AtomicU16::new(0);
    let broker = FakeBroker::start(move |seen, port| match seen.api {
        ApiKey::Metadata => {
            let error_code = if rounds.fetch_add(1, Ordering::SeqCst) == 1 { 129 } else { 0 };
            vec![seen.answer(&wire::generated::metadata::MetadataResponse { error_code, ..metadata(port, Vec::new()) })]
        }
        _ => vec![seen.usual(port)],
    });
    let seen = broker.clone();
    run(move || {
        let client = client(&broker);
        async move {
            client.refresh().await.unwrap();
            let error = client.refresh().await.unwrap_err();
            assert_eq!(error.code(), Some(ErrorCode::RebootstrapRequired));
            until(|| client.is_ready(1)).await;
        }
    });
    assert_eq!(seen.connections(), 2);
}
