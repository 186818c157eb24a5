#![allow(clippy::unwrap_used)]
//! Processes, shards and the network between them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::*;
use crate::mailbox::{Mailboxes, Post};
use crate::net::Bound;
use crate::sync::before;
use crate::{ShardSpec, Socket, clock, fs, shard, spawn};

const PORT: u16 = 4000;

fn address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], PORT))
}

/// A process that sends back what it is sent.
fn echo() -> Process<()> {
    Process::start("echo", async {
        let (_acceptor, mut queues) =
            Bound::bind(address(), 10).unwrap().accept(1, Arc::new(AtomicUsize::new(100)), None).unwrap();
        let queue = queues.remove(0);
        while let Some(socket) = queue.next().await {
            spawn("echo one", async move {
                let mut buffer = BytesMut::new();
                while socket.read(&mut buffer, 5000).await.is_ok_and(|count| count > 0) {
                    if socket.send_bytes(vec![buffer.split().freeze()]).await.is_err() {
                        break;
                    }
                }
            });
        }
    })
}

async fn connect() -> std::io::Result<Socket> {
    Socket::connect(address(), Duration::from_secs(1)).await
}

async fn pause(ms: u64) {
    clock::sleep(Duration::from_millis(ms)).await;
}

/// Sends `bytes` and reads as many.
async fn exchange(socket: Rc<Socket>, bytes: Bytes) -> std::io::Result<Vec<u8>> {
    let writer = socket.clone();
    let count = bytes.len();
    spawn("send", async move { writer.send_bytes(vec![bytes]).await });
    let mut got = BytesMut::new();
    while got.len() < count {
        if socket.read(&mut got, 70_000).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(got.to_vec())
}

fn a_talk(seed: u64) -> (u64, u64) {
    let mut simulation = Simulation::new(seed, Config::default());
    let ended = simulation.life(async {
        let _echo = echo();
        pause(1).await;
        let bytes: Bytes = (0..200_000u32).map(|n| (n * 7 + n / 251) as u8).collect();
        let socket = Rc::new(connect().await.unwrap());
        assert_eq!(exchange(socket, bytes.clone()).await.unwrap(), bytes);
    });
    assert!(matches!(ended, Ended::Finished(())), "{ended:?}");
    (simulation.trace_hash(), simulation.steps())
}

#[test]
fn bytes_arrive_in_order_and_a_seed_is_one_run() {
    for seed in 0..10 {
        assert_eq!(a_talk(seed), a_talk(seed));
    }
    assert_ne!(a_talk(1), a_talk(2));
}

#[test]
fn a_killed_process_closes_its_connections_and_another_takes_its_place() {
    for seed in 0..20 {
        run(seed, Config::default(), async {
            assert_eq!(connect().await.unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
            let first = echo();
            pause(1).await;
            let socket = Rc::new(connect().await.unwrap());
            exchange(socket.clone(), Bytes::from_static(b"there?")).await.unwrap();
            first.kill(Death::Killed);
            let mut buffer = BytesMut::new();
            let heard = before(clock::now_ms() + 1_000, socket.read(&mut buffer, 100)).await;
            assert!(matches!(heard, Some(Ok(0) | Err(_))), "{heard:?}");
            assert_eq!(first.ended().await, ProcessEnd::Killed);
            assert!(connect().await.is_err());
            let _second = echo();
            pause(1).await;
            let again = Rc::new(connect().await.unwrap());
            exchange(again, Bytes::from_static(b"again")).await.unwrap();
        });
    }
}

#[test]
fn a_power_cut_is_heard_of_only_by_who_sends_to_the_machine_that_came_back() {
    for seed in 0..20 {
        run(seed, Config::default(), async {
            let first = echo();
            pause(1).await;
            let (quiet, talker) = (connect().await.unwrap(), connect().await.unwrap());
            pause(5).await;
            first.kill(Death::PowerCut);
            assert_eq!(first.ended().await, ProcessEnd::Killed);
            power_cut();
            let mut buffer = BytesMut::new();
            assert!(before(clock::now_ms() + 5_000, quiet.read(&mut buffer, 1)).await.is_none());
            talker.send_bytes(vec![Bytes::from_static(b"hello?")]).await.unwrap();
            assert!(before(clock::now_ms() + 5_000, talker.read(&mut buffer, 1)).await.is_none());
            let _second = echo();
            let heard = before(clock::now_ms() + 5_000, talker.read(&mut buffer, 1)).await;
            assert_eq!(heard.unwrap().unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
            assert!(before(clock::now_ms() + 5_000, quiet.read(&mut buffer, 1)).await.is_none());
        });
    }
}

#[test]
fn faults_befall_the_connections_that_they_were_dealt() {
    for seed in 0..20 {
        run(seed, Config::default(), async {
            let _echo = echo();
            pause(1).await;
            let kinds = [
                NetworkFaultKind::NoAnswer,
                NetworkFaultKind::Reset,
                NetworkFaultKind::Silence,
                NetworkFaultKind::StallMs(700),
            ];
            for (connection, kind) in kinds.into_iter().enumerate() {
                inject_network(NetworkFault { connection: connection as u64, after_bytes: 5, kind });
            }
            assert_eq!(connect().await.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
            let reset = Rc::new(connect().await.unwrap());
            assert!(exchange(reset, vec![1; 100_000].into()).await.is_err());
            let silent = Rc::new(connect().await.unwrap());
            let heard = before(clock::now_ms() + 5_000, exchange(silent, vec![1; 100].into())).await;
            assert!(heard.is_none(), "{heard:?}");
            let (slow, begun_ms) = (Rc::new(connect().await.unwrap()), clock::now_ms());
            exchange(slow, vec![1; 100].into()).await.unwrap();
            assert!(clock::now_ms() >= begun_ms + 700);
            let well = Rc::new(connect().await.unwrap());
            exchange(well, vec![1; 100].into()).await.unwrap();
            assert_eq!(clear_network_faults(), 4);
        });
    }
}

#[test]
fn shards_of_a_process_talk_by_mail() {
    for seed in 0..20 {
        run(seed, Config::default(), async {
            let boxes = Mailboxes::<u64, u64>::new(3);
            let running = shard::start(&vec![ShardSpec::default(); 3], Default::default(), move |context| {
                let boxes = boxes.clone();
                async move {
                    let post = Post::new(boxes, context.index);
                    let index = context.index as u64;
                    post.serve(move |asked, responder| responder.send(asked * 10 + index));
                    let mut got = Vec::new();
                    for to in 0..context.count {
                        got.push(post.call(to, index).await);
                    }
                    // The others may still ask.
                    pause(100).await;
                    got
                }
            });
            let results = running.unwrap().joined().await.unwrap();
            for (index, got) in results.into_iter().enumerate() {
                let expected = (0..3).map(|to| Some(index as u64 * 10 + to)).collect::<Vec<_>>();
                assert_eq!(got, expected);
            }
        });
    }
}

#[test]
fn a_process_ends_as_it_was_told_and_gives_its_locks_back() {
    run(3, Config::default(), async {
        let lock = Path::new("/lock");
        let holder = Process::start("holder", async move {
            let _lock = fs::LockedFile::take(lock).unwrap().unwrap();
            std::future::pending::<()>().await;
        });
        pause(1).await;
        assert!(fs::LockedFile::take(lock).unwrap().is_none());
        holder.kill_after(1, Death::Killed);
        holder.kill(Death::Killed);
        assert_eq!(holder.ended().await, ProcessEnd::Killed);
        assert!(fs::LockedFile::take(lock).unwrap().is_some());
        assert_eq!(Process::start("short", async { 7 }).ended().await, ProcessEnd::Finished(7));
        let exits = Process::start("exits", async {
            at_process_end(|| note("last", [0, 0], String::new));
            crate::task::end_process("It cannot go on.")
        });
        assert_eq!(exits.ended().await, ProcessEnd::<()>::Exited("It cannot go on.".to_string()));
    });
}

#[test]
fn a_write_may_go_astray_by_a_page() {
    let mut simulation = Simulation::new(1, Config::default());
    let ended = simulation.life(async {
        let path = Path::new("/astray");
        let file = crate::DirectFile::open(path, crate::OpenMode::Create).await.unwrap();
        file.write(&[1; 4096], 0).await.unwrap();
        lead_astray("astray", 0);
        file.write(&[2; 4096], 0).await.unwrap();
        assert_eq!(clear_faults(), 1);
        fs::read(path, 1 << 20).await.unwrap()
    });
    let Ended::Finished(bytes) = ended else { panic!("{ended:?}") };
    assert_eq!((bytes.len(), bytes[0], bytes[4096]), (8192, 1, 2));
}
