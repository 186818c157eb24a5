//! How a shard turns: what wakes it, what goes on beside work, and what becomes of operations whose caller went away.
#![allow(clippy::unwrap_used)]
#![cfg(not(feature = "sim"))]

use std::cell::{Cell, RefCell};
use std::io::{Read, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use ringlog_runtime::net::Bound;
use ringlog_runtime::shard::{HelperSpec, ShardSpec, start};
use ringlog_runtime::testing::{TempDir, run};
use ringlog_runtime::{ChunkPool, DirectFile, OpenMode, TaskGroup, clock, spawn, sync, task};

/// Another thread asks, the shard answers, 20 000 times, so that the shard is about to sleep at most of them.
#[test]
fn a_wake_from_another_thread_is_never_lost() {
    const ROUNDS: u64 = 20_000;
    let (ask, asked) = flume::bounded::<u64>(1);
    let (answer, answered) = flume::bounded::<u64>(1);
    let asker = std::thread::spawn(move || {
        for round in 0..ROUNDS {
            ask.send(round).unwrap();
            let got = answered.recv_timeout(Duration::from_secs(10)).expect("the shard answers");
            assert_eq!(got, round);
            if round % 64 == 0 {
                std::thread::sleep(Duration::from_micros(round % 300));
            }
        }
    });
    run(move || {
        let (asked, answer) = (asked.clone(), answer.clone());
        async move {
            while let Ok(round) = asked.recv_async().await {
                answer.send(round).unwrap();
            }
        }
    });
    asker.join().unwrap();
}

#[test]
fn timers_fire_in_order_and_those_that_are_dropped_do_not() {
    run(|| async {
        let fired = Rc::new(RefCell::new(Vec::new()));
        let group = TaskGroup::new();
        for ms in [30u64, 10, 20, 0] {
            let fired = fired.clone();
            group.spawn("timer", async move {
                let begun = Instant::now();
                clock::sleep(Duration::from_millis(ms)).await;
                assert!(begun.elapsed() >= Duration::from_millis(ms));
                fired.borrow_mut().push(ms);
            });
        }
        // Gives its long timer up after 5 ms.
        let given_up = sync::before(clock::now_ms() + 5, clock::sleep(Duration::from_secs(3600))).await;
        assert_eq!(given_up, None);
        group.wait().await;
        assert_eq!(*fired.borrow(), [0, 10, 20, 30]);
    });
}

/// Runs `check` on a shard with a new direct file.
fn with_file<F: Future<Output = ()> + 'static>(name: &str, check: impl Fn(DirectFile) -> F + Clone + Send + 'static) {
    let dir = TempDir::new(name);
    let path = dir.path().join("file");
    run(move || {
        let (path, check) = (path.clone(), check.clone());
        async move { check(DirectFile::open(&path, OpenMode::CreateNew).await.unwrap()).await }
    });
}

/// A task that never waits for anything but its next turn holds up neither timers, nor files, nor the pool.
#[test]
fn work_without_end_lets_the_ring_turn() {
    with_file("turns", |file| async move {
        let ended = Rc::new(Cell::new(false));
        let busy = ended.clone();
        let spinning = spawn("spins", async move {
            while !busy.get() {
                task::yield_now().await;
            }
        });
        let begun = Instant::now();
        clock::sleep(Duration::from_millis(5)).await;
        file.write(&[7; 4096], 0).await.unwrap();
        file.fdatasync().await.unwrap();
        assert_eq!(task::spawn_blocking(|| 3).await.unwrap(), 3);
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        ended.set(true);
        spinning.join().await.unwrap();
    });
}

/// More operations at once than the ring has places for.
#[test]
fn operations_beyond_the_rings_places_wait_their_turn() {
    const BLOCKS: u64 = 3000;
    with_file("many", |file| async move {
        let block = |n: u64| vec![(n % 251) as u8; 4096];
        let writes = (0..BLOCKS).map(|n| {
            let (file, bytes) = (file.clone(), block(n));
            async move { file.write(&bytes, n * 4096).await }
        });
        assert!(sync::all(writes.collect()).await.into_iter().all(|written| written.is_ok()));
        let pool = ChunkPool::new(1 << 20);
        let reads = (0..BLOCKS).map(|n| file.read_pooled(n * 4096 + 10, 100, &pool));
        for (n, read) in (0..BLOCKS).zip(sync::all(reads.collect()).await) {
            assert_eq!(read.unwrap(), block(n)[10..110]);
        }
    });
}

/// Polls once and drops.
async fn begin_and_leave(operation: impl Future) {
    let begun = async {
        operation.await;
    };
    futures_lite::future::or(begun, async {}).await;
}

#[test]
fn an_operation_whose_caller_went_away_still_happens_and_harms_nothing() {
    with_file("left", |file| async move {
        for n in 0..200u64 {
            begin_and_leave(file.write(&[n as u8; 8192], n * 8192)).await;
            begin_and_leave(file.read(n * 8192, 8192)).await;
        }
        file.fdatasync().await.unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while file.size().await.unwrap() < 200 * 8192 {
            assert!(Instant::now() < deadline, "what was begun ends");
            clock::sleep(Duration::from_millis(1)).await;
        }
        for n in 0..200u64 {
            assert_eq!(file.read(n * 8192, 8192).await.unwrap(), [n as u8; 8192][..]);
        }
    });
}

#[test]
fn whole_blocks_are_written_from_where_they_lie() {
    with_file("parts", |file| async move {
        let pool = ChunkPool::new(1 << 20);
        let content: Vec<u8> = (0..150_000u32).map(|i| (i / 3 + i / 4096) as u8).collect();
        // Two chunks that agree with the file modulo a block, as a partition's tail has them.
        let cut = 70_001;
        let mut first = pool.take(cut);
        first.append(&content[..cut]);
        let mut second = pool.take(content.len());
        second.append(&content[cut / 4096 * 4096..]);
        let parts = vec![first.slice(0..cut), second.slice(cut % 4096..second.len())];
        file.write_parts(parts, 8192).await.unwrap();
        file.write_parts(vec![Bytes::from_static(b"little")], 0).await.unwrap();
        assert_eq!(file.read(8192, content.len()).await.unwrap(), content);
        assert_eq!(file.size().await.unwrap(), 8192 + (content.len() as u64).next_multiple_of(4096));
        assert_eq!(&file.read(0, 8).await.unwrap()[..], b"little\0\0");
    });
}

/// Nobody reads for a while, so that the sender's buffer is full; what waits is not lost, and a reader that goes away while
/// it waits leaves the connection to others.
#[test]
fn waiting_for_a_socket_may_be_given_up() {
    const BYTES: usize = 8 << 20;
    let bound = Bound::bind("127.0.0.1:0".parse().unwrap(), 128).unwrap();
    let address = bound.local_addr().unwrap();
    let (acceptor, queues) = bound.accept(1, Arc::new(AtomicUsize::new(10)), None).unwrap();
    let queues = Arc::new(std::sync::Mutex::new(queues));
    let sent = Arc::new(AtomicU64::new(0));
    let told = sent.clone();
    let running = start(&[ShardSpec::default()], HelperSpec::default(), move |_| {
        let queue = queues.lock().unwrap().pop().unwrap();
        let told = told.clone();
        async move {
            let socket = queue.next().await.unwrap();
            let mut buffer = BytesMut::new();
            for _ in 0..50 {
                let read = socket.read(&mut buffer, 100);
                assert!(sync::before(clock::now_ms() + 2, read).await.is_none(), "nothing was sent yet");
            }
            told.store(1, Ordering::SeqCst);
            assert_eq!(socket.read(&mut buffer, 100).await.unwrap(), 5);
            assert_eq!(&buffer[..], b"hello");
            let content: Vec<u8> = (0..BYTES).map(|i| (i * 3 + i / 1000) as u8).collect();
            socket.send_bytes(vec![Bytes::from(content)]).await.unwrap();
            drop(socket);
        }
    })
    .unwrap();
    let mut client = std::net::TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    while sent.load(Ordering::SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    client.write_all(b"hello").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    assert!(got.len() == BYTES && got.iter().enumerate().all(|(i, &b)| b == (i * 3 + i / 1000) as u8));
    running.join().unwrap();
    drop(acceptor);
}
