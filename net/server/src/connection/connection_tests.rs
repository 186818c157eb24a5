//! Connections over real sockets of this machine.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use log::{DataDir, DataDirs, LogShard, LogShardConfig};
use metadata::Image;
use model::NodeId;
use runtime::mailbox::Mailboxes;
use runtime::net::{Acceptor, Bound};
use runtime::testing::TempDir;
use runtime::{ChunkPool, Post};

use super::*;
use crate::handlers::admin::test_support;
use crate::shard::{NodeFacts, ShardParts};

/// A client, and this side's end of it.
pub(super) async fn pair() -> (TcpStream, Socket, Acceptor) {
    let bound = Bound::bind(SocketAddr::from(([127, 0, 0, 1], 0)), 16).unwrap();
    let address = bound.local_addr().unwrap();
    let (acceptor, queues) = bound.accept(1, std::sync::Arc::new(10.into()), None).unwrap();
    let client = TcpStream::connect(address).unwrap();
    let socket = queues[0].next().await.unwrap();
    (client, socket, acceptor)
}

/// An answer of `len` bytes that holds as much of `budget`.
async fn outgoing(connection: &Connection, budget: &Rc<Budget>, len: usize) -> Outgoing {
    let answer = Answer::Ready(Some(vec![Part::Bytes(Bytes::from(vec![7; len]))]));
    connection.open.set(connection.open.get() + 1);
    let bytes = [budget.take(answer.memory_bytes()).await, budget.take(0).await, budget.take(0).await];
    Outgoing { answer, api: ApiKey::Fetch, received_ns: 0, _bytes: bytes, _depth: budget.take(0).await }
}

async fn until(condition: impl Fn() -> bool) {
    let deadline_ms = clock::now_ms() + 20_000;
    while !condition() {
        assert!(clock::now_ms() < deadline_ms, "what is waited for does not come");
        clock::sleep(Duration::from_millis(2)).await;
    }
}

async fn shard(folder: &std::path::Path) -> Rc<Shard> {
    let view = test_support::view(Image::default());
    let facts = NodeFacts {
        node_id: NodeId(1),
        host: "broker.example".into(),
        port: 9_999,
        cluster_id: "c".into(),
        dirs: DataDirs::of_one(DataDir::open(folder).await.unwrap()),
        base_config: (*view.config).clone(),
        next_id: AtomicU64::new(1),
        max_connections: Arc::default(),
    };
    let mut log_config = LogShardConfig::new(0, ChunkPool::new(8 << 20));
    log_config.io_bytes = 2 << 20;
    let post = Post::new(Mailboxes::new(1), 0);
    let log = LogShard::new(log_config);
    Shard::new(ShardParts { index: 0, facts: Arc::new(facts), post, log, cluster: None, view })
}

#[test]
fn a_client_that_does_not_read_is_overdue_and_what_it_held_comes_back() {
    runtime::testing::run(|| async {
        let (client, socket, _acceptor) = pair().await;
        let connection = Connection::new(socket, Rc::default());
        let budget = Budget::new(64 << 20);
        let held = outgoing(&connection, &budget, 32 << 20).await;
        connection.outgoing.push(held);
        let writer = runtime::spawn("connection writer", writer::run(connection.clone()));
        until(|| connection.sending_since_ms.get().is_some()).await;
        clock::sleep(Duration::from_millis(200)).await;
        let since_ms = connection.sending_since_ms.get().unwrap();
        assert_eq!(budget.left(), 32 << 20, "an answer holds its bytes until it has left");
        assert!(!connection.is_overdue(since_ms + SEND_STALL_MS, Some(1)), "being answered is not being idle");
        assert!(connection.is_overdue(since_ms + SEND_STALL_MS + 1, None));
        connection.close();
        until(|| connection.failed.get()).await;
        // The reader pushes what it had under way; nobody may wait for the room of an answer that cannot leave.
        let late = outgoing(&connection, &budget, 1 << 20).await;
        connection.outgoing.push(late);
        until(|| budget.left() == 64 << 20).await;
        connection.outgoing.close();
        writer.join().await;
        drop(client);
    });
}

#[test]
fn a_slow_client_gets_its_whole_answer_and_is_never_overdue() {
    runtime::testing::run(|| async {
        const LEN: usize = 24 << 20;
        let (mut client, socket, _acceptor) = pair().await;
        let reader = std::thread::spawn(move || {
            let (mut total, mut buffer) = (0, vec![0; 1 << 20]);
            while total < LEN {
                std::thread::sleep(Duration::from_millis(2));
                total += client.read(&mut buffer).unwrap();
            }
            total
        });
        let connection = Connection::new(socket, Rc::default());
        let budget = Budget::new(LEN);
        let held = outgoing(&connection, &budget, LEN).await;
        connection.outgoing.push(held);
        let writer = runtime::spawn("connection writer", writer::run(connection.clone()));
        let mut renewed = std::collections::BTreeSet::new();
        while budget.left() == 0 {
            renewed.extend(connection.sending_since_ms.get());
            clock::sleep(Duration::from_millis(1)).await;
        }
        connection.outgoing.close();
        writer.join().await;
        assert_eq!(reader.join().unwrap(), LEN);
        assert!(renewed.len() > 2, "progress is noted while the answer leaves: {renewed:?}");
    });
}

#[test]
fn a_client_that_leaves_in_the_middle_of_a_pipeline_ends_its_connection() {
    let folder = TempDir::new("connection");
    let path = folder.path().to_path_buf();
    runtime::testing::run(move || {
        let path = path.clone();
        async move {
            let shard = shard(&path).await;
            let (client, socket, acceptor) = pair().await;
            // ApiVersions v0 without a client id, far more than may be outstanding.
            let frame = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff];
            let flood = frame.repeat(PIPELINE_DEPTH * 2_000);
            let sender = std::thread::spawn(move || {
                let mut client = client;
                client.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
                // Stops when this side reads no more; then the client goes, with answers unread.
                let _ = client.write_all(&flood);
            });
            let serving = runtime::spawn("connection", serve(shard.clone(), socket));
            until(|| sender.is_finished()).await;
            until(|| acceptor.connections() == 0).await;
            serving.join().await;
            assert_eq!(shard.connections.len(), 0);
            let total = shard.config().connections.max_inflight_bytes_per_shard;
            assert_eq!(shard.inflight.left(), total as i64);
            shard.log.stop_clean().await.unwrap();
            shard.facts.dirs.metadata().close_clean().await.unwrap();
        }
    });
}

#[test]
fn file_ranges_hold_no_memory() {
    let part = |len: usize| Part::Bytes(Bytes::from(vec![0; len]));
    assert_eq!(Answer::Ready(Some(vec![part(3), part(4)])).memory_bytes(), 7);
    assert_eq!(Answer::Ready(None).memory_bytes(), 0);
}
