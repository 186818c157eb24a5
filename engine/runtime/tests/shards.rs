//! What the event loop promises, driven on real shards.
#![allow(clippy::unwrap_used)]
#![cfg(not(feature = "sim"))]

use std::cell::Cell;
use std::io::{Read, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use ringlog_runtime::net::{Bound, Part};
use ringlog_runtime::shard::{HelperSpec, ShardSpec, start};
use ringlog_runtime::testing::{TempDir, run};
use ringlog_runtime::{
    DirectFile, OpenMode, Post, SharedFile, Socket, clock, fs, mailbox::Mailboxes, spawn, sync, task,
};

fn two() -> Vec<ShardSpec> {
    vec![ShardSpec::default(); 2]
}

/// 200 000 round trips between two shards at a 1 ms preempt timer, 64 outstanding: none is lost and none waits long
/// enough for a client to notice. The bound is wide because test machines are busy; a lost wake-up waits for ever.
#[test]
fn round_trips_between_shards_never_hang() {
    const CALLS: u64 = 100_000;
    const OUTSTANDING: u64 = 64;
    let boxes = Mailboxes::<u64, u64>::new(2);
    let running = start(&two(), HelperSpec::default(), move |shard| {
        let boxes = boxes.clone();
        async move {
            let post = Post::new(boxes, shard.index);
            let served = Rc::new(Cell::new(0u64));
            let counter = served.clone();
            post.serve(move |q, answer| {
                counter.set(counter.get() + 1);
                answer.send(q + 1);
            });
            let group = ringlog_runtime::TaskGroup::new();
            let worst = Rc::new(Cell::new(0u64));
            for lane in 0..OUTSTANDING {
                let (post, worst) = (post.clone(), worst.clone());
                let to = 1 - shard.index;
                group.spawn("caller", async move {
                    for i in 0..CALLS / OUTSTANDING {
                        let asked = clock::now_ns();
                        let value = lane << 32 | i;
                        assert_eq!(post.call(to, value).await, Some(value + 1));
                        worst.set(worst.get().max(clock::now_ns() - asked));
                    }
                });
            }
            group.wait().await;
            // The other shard may still be asking.
            while served.get() < CALLS / OUTSTANDING * OUTSTANDING {
                clock::sleep(Duration::from_millis(1)).await;
            }
            clock::sleep(Duration::from_millis(20)).await;
            worst.get()
        }
    })
    .unwrap();
    for worst in running.join().unwrap() {
        assert!(worst < 5_000_000_000, "a round trip took {} ms", worst / 1_000_000);
    }
}

#[test]
fn an_unanswered_call_ends_instead_of_waiting() {
    run(|| async {
        let post = Post::<u8, u8>::new(Mailboxes::new(1), 0);
        post.serve(|_, answer| drop(answer));
        assert_eq!(post.call(0, 1).await, None);
    });
}

#[test]
fn direct_files_write_read_and_pad() {
    let dir = TempDir::new("direct");
    let path = dir.path().to_path_buf();
    run(move || {
        let path = path.clone();
        async move {
            let file = DirectFile::open(&path.join("a"), OpenMode::CreateNew).await.unwrap();
            file.preallocate(8 << 20).await.unwrap();
            let big: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
            file.write(&big, 4096).await.unwrap();
            file.write_piece(&[b"ab", b"cd"], 0).await.unwrap();
            file.fdatasync().await.unwrap();
            assert_eq!(&file.read(0, 6).await.unwrap()[..], b"abcd\0\0");
            assert_eq!(&file.read(4096, big.len()).await.unwrap()[..], &big[..]);
            assert_eq!(&file.read(5000, 777).await.unwrap()[..], &big[904..1681]);
            assert_eq!(file.size().await.unwrap(), 8 << 20);
            file.truncate(4098).await.unwrap();
            assert_eq!(file.read(4090, 100).await.unwrap().len(), 8);
            assert_eq!(file.read(9000, 100).await.unwrap().len(), 0);
            file.close().await.unwrap();
            let missing = DirectFile::open(&path.join("none"), OpenMode::Read).await.unwrap_err();
            assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
        }
    });
}

#[test]
fn durable_replacement_leaves_no_trace() {
    let dir = TempDir::new("fs");
    let path = dir.path().to_path_buf();
    run(move || {
        let path = path.clone();
        async move {
            let file = path.join("checkpoint");
            fs::write_durable(&file, b"one".to_vec()).await.unwrap();
            fs::write_durable(&file, b"two".to_vec()).await.unwrap();
            assert_eq!(fs::read(&file, 10).await.unwrap(), b"two");
            assert!(fs::read(&file, 2).await.is_err(), "a larger file than the bound is an error");
            fs::write_tail(&file, 1, b"hree".to_vec(), true).await.unwrap();
            assert_eq!(fs::read(&file, 10).await.unwrap(), b"three"[..].replace_first(b't'));
            let names: Vec<_> = fs::read_dir(&path).await.unwrap().into_iter().map(|e| e.name).collect();
            assert_eq!(names, ["checkpoint"]);
            fs::remove_file(&file).await.unwrap();
            fs::remove_file(&file).await.unwrap();
            assert_eq!(fs::stat(&file).await.unwrap(), None);
        }
    });
}

trait ReplaceFirst {
    fn replace_first(&self, byte: u8) -> Vec<u8>;
}

impl ReplaceFirst for [u8] {
    fn replace_first(&self, byte: u8) -> Vec<u8> {
        let mut out = self.to_vec();
        out[0] = byte;
        out
    }
}

/// Many clients send at once at a 1 ms preempt timer; what they send comes back whole, also through `sendfile` and
/// when the socket buffer is full.
#[test]
fn sockets_echo_under_load() {
    const CLIENTS: usize = 8;
    const BYTES: usize = 6 << 20;
    let dir = TempDir::new("echo");
    let path = dir.path().join("file");
    let content: Vec<u8> = (0..1_000_000u32).map(|i| (i % 253) as u8).collect();
    std::fs::write(&path, &content).unwrap();
    let bound = Bound::bind("127.0.0.1:0".parse().unwrap(), 128).unwrap();
    let address = bound.local_addr().unwrap();
    let (acceptor, queues) = bound.accept(2, Arc::new(AtomicUsize::new(100)), None).unwrap();
    let queues = std::sync::Arc::new(std::sync::Mutex::new(queues));
    let running = start(&two(), HelperSpec::default(), move |_shard| {
        let queue = queues.lock().unwrap().pop().unwrap();
        let path = path.clone();
        async move {
            let connections = ringlog_runtime::TaskGroup::new();
            let file = SharedFile::open(&path).await.unwrap();
            while let Some(socket) = queue.next().await {
                let file = file.clone();
                connections.spawn("echo", async move {
                    let mut buffer = BytesMut::new();
                    loop {
                        if socket.read(&mut buffer, 64 << 10).await.unwrap() == 0 {
                            break;
                        }
                        socket.send_bytes(vec![Bytes::new(), buffer.split().freeze()]).await.unwrap();
                    }
                    let parts = vec![
                        Part::Bytes(Bytes::from_static(b"file:")),
                        Part::File { file, position: 10, len: 999_990 },
                        Part::Bytes(Bytes::from_static(b":end")),
                    ];
                    socket.send(parts).await.unwrap();
                });
            }
            connections.wait().await;
        }
    })
    .unwrap();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|seed| {
            let content = content.clone();
            std::thread::spawn(move || {
                let stream = std::net::TcpStream::connect(address).unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
                let mut writer = stream.try_clone().unwrap();
                let sent: Vec<u8> = (0..BYTES).map(|i| (i * 7 + seed) as u8).collect();
                let copy = sent.clone();
                let sender = std::thread::spawn(move || {
                    writer.write_all(&copy).unwrap();
                    writer.shutdown(std::net::Shutdown::Write).unwrap();
                });
                let mut got = Vec::new();
                (&stream).read_to_end(&mut got).unwrap();
                sender.join().unwrap();
                assert!(got[..BYTES] == sent[..], "the echo differs");
                assert_eq!(&got[BYTES..BYTES + 5], b"file:");
                assert!(got[BYTES + 5..BYTES + 999_995] == content[10..], "the file differs");
                assert_eq!(&got[BYTES + 999_995..], b":end");
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    drop(acceptor);
    running.join().unwrap();
}

#[test]
fn connections_beyond_the_bound_are_closed() {
    let bound = Bound::bind("127.0.0.1:0".parse().unwrap(), 128).unwrap();
    let address = bound.local_addr().unwrap();
    let bound_on_connections = Arc::new(AtomicUsize::new(2));
    let (acceptor, queues) = bound.accept(1, bound_on_connections.clone(), None).unwrap();
    let first = std::net::TcpStream::connect(address).unwrap();
    let second = std::net::TcpStream::connect(address).unwrap();
    let mut third = std::net::TcpStream::connect(address).unwrap();
    third.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    assert_eq!(third.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(acceptor.connections(), 2);
    // Raised while running: the next one stays.
    bound_on_connections.store(3, Ordering::Relaxed);
    let fourth = std::net::TcpStream::connect(address).unwrap();
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while acceptor.connections() < 3 {
        assert!(std::time::Instant::now() < deadline, "the raised bound is not followed");
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(fourth);
    drop((first, second, queues));
}

#[test]
fn blocking_work_that_panics_is_an_error() {
    run(|| async {
        let error = task::spawn_blocking(|| panic!("on purpose")).await.unwrap_err();
        assert_eq!(error.0, "on purpose");
        assert_eq!(task::spawn_blocking(|| 5).await.unwrap(), 5);
    });
}

#[test]
fn waiting_has_deadlines_budgets_and_order() {
    run(|| async {
        let notify = Rc::new(sync::Notify::new());
        assert_eq!(sync::before(clock::now_ms() + 5, notify.changed()).await, None);
        assert_eq!(notify.waiting(), 0, "a waiter that gave up leaves nothing behind");
        let chained = Rc::new(sync::Notify::new());
        let seen = chained.version();
        let subscription = notify.subscribe(&chained);
        notify.notify();
        chained.changed_since(seen).await;
        drop(subscription);
        let budget = sync::Budget::new(10);
        let first = budget.take(25).await;
        let waiting = budget.clone();
        let second = spawn("taker", async move { waiting.take(5).await });
        clock::sleep(Duration::from_millis(2)).await;
        assert_eq!(budget.left(), -15);
        drop(first);
        let second = second.join().await.unwrap();
        assert_eq!(budget.left(), 5);
        drop(second);
        let queue = Rc::new(sync::LocalQueue::new());
        queue.push(1);
        queue.push(2);
        queue.close();
        assert_eq!((queue.pop().await, queue.pop().await, queue.pop().await), (Some(1), Some(2), None));
    });
}

/// A listener whose queue is full: the kernel drops further attempts, as a host does that went dark.
fn dark_listener() -> (std::net::TcpListener, Vec<std::net::TcpStream>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // std asks for a queue of 128; connections beyond it stay half open.
    let mut waiting = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
        waiting.push(stream);
        assert!(waiting.len() < 10_000, "the queue never fills");
    }
    (listener, waiting)
}

#[test]
fn a_connection_to_a_dark_host_times_out_and_holds_up_no_other() {
    let (dark, _waiting) = dark_listener();
    let dark = dark.local_addr().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let good = listener.local_addr().unwrap();
    run(move || async move {
        let begun = Instant::now();
        let timeout = Duration::from_secs(2);
        let hanging = spawn("dark", Socket::connect(dark, timeout));
        for _ in 0..20 {
            Socket::connect(good, timeout).await.unwrap();
        }
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
        let error = hanging.join().await.unwrap().unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "{error}");
        assert!(begun.elapsed() >= timeout, "{:?}", begun.elapsed());
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let refused = Socket::connect(free, timeout).await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused, "{refused}");
    });
}
