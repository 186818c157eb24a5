//! Frames over real sockets of this machine.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use bytes::Bytes;
use runtime::net::{Acceptor, Bound};

use super::*;

const LIMIT: usize = 16 << 20;

async fn pair() -> (TcpStream, Socket, Acceptor) {
    let bound = Bound::bind(SocketAddr::from(([127, 0, 0, 1], 0)), 16).unwrap();
    let address = bound.local_addr().unwrap();
    let (acceptor, queues) = bound.accept(1, std::sync::Arc::new(10.into()), None).unwrap();
    let client = TcpStream::connect(address).unwrap();
    let socket = queues[0].next().await.unwrap();
    (client, socket, acceptor)
}

/// A frame whose bytes say where they are.
fn frame(number: usize, len: usize) -> Vec<u8> {
    let body = (0..len).map(|at| (number * 31 + at * 7 + at / 251) as u8);
    (len as u32).to_be_bytes().into_iter().chain(body).collect()
}

async fn next(frames: &mut Frames, socket: &Socket) -> Option<Bytes> {
    loop {
        match frames.next().unwrap() {
            Split::Frame(frame) => return Some(frame),
            Split::Need(missing) => {
                if frames.receive(socket, missing).await.unwrap() == 0 {
                    return None;
                }
            }
        }
    }
}

/// Sends frames of these lengths in pieces of `piece` bytes; all come out as they went in, also those that are kept.
fn come_through(lens: Vec<usize>, piece: usize, keep: usize) {
    runtime::testing::run(move || {
        let lens = lens.clone();
        async move {
            let (mut client, socket, _acceptor) = pair().await;
            let sent: Vec<Vec<u8>> = lens.iter().enumerate().map(|(number, &len)| frame(number, len)).collect();
            let all = sent.concat();
            let sender = std::thread::spawn(move || all.chunks(piece).for_each(|some| client.write_all(some).unwrap()));
            let pool = ChunkPool::new(64 << 20);
            let mut frames = Frames::new(pool.clone(), LIMIT);
            let mut kept = std::collections::VecDeque::new();
            for (number, sent) in sent.iter().enumerate() {
                let got = next(&mut frames, &socket).await.unwrap();
                assert!(got[..] == sent[PREFIX_LEN..], "frame {number}");
                kept.push_back((number, got));
                if kept.len() > keep {
                    kept.pop_front();
                }
            }
            for (number, got) in &kept {
                assert!(got[..] == sent[*number][PREFIX_LEN..], "frame {number}, kept");
            }
            assert!(next(&mut frames, &socket).await.is_none());
            assert!(frames.chunk.capacity() <= READ_BYTES, "nothing large is held while nothing has begun");
            drop((kept, frames));
            assert_eq!(pool.bytes_out(), 0);
            sender.join().unwrap();
        }
    });
}

#[test]
fn frames_of_all_sizes_come_through() {
    let sizes = [1, 2, 3, 4, 100, 8_187, 8_188, 8_189, 16_379, 65_531, 65_532, 65_533, 70_000, 1 << 20, 3, 5 << 20, 9];
    come_through(sizes.to_vec(), 1 << 20, 3);
}

#[test]
fn small_pieces_make_no_difference() {
    come_through(vec![5, 30_000, 1, 40_000, 200], 613, 0);
}

#[test]
fn many_small_frames_use_the_same_memory_again() {
    come_through(vec![120; 5_000], 120 + PREFIX_LEN, 0);
    come_through(vec![1_000; 5_000], 1 << 20, 100);
}

#[test]
fn large_frames_in_a_row_are_received_in_place() {
    come_through(vec![1_000_000; 8], 1 << 20, 5);
    come_through(vec![3_000_000; 4], 1 << 20, 5);
}

#[test]
fn memory_grows_as_bytes_come() {
    runtime::testing::run(|| async {
        let (mut client, socket, _acceptor) = pair().await;
        let pool = ChunkPool::new(64 << 20);
        let mut frames = Frames::new(pool.clone(), LIMIT);
        client.write_all(&frame(0, LIMIT)[..40]).unwrap();
        let Split::Need(missing) = frames.next().unwrap() else { panic!("nothing is there") };
        assert_eq!(frames.receive(&socket, missing).await.unwrap(), 40);
        let Split::Need(missing) = frames.next().unwrap() else { panic!("most of it is missing") };
        assert_eq!(missing, LIMIT - 36);
        assert_eq!(frames.make_room(missing), RECEIVE_BYTES);
        assert!(pool.bytes_out() <= 2 * FRAME_GROWTH_BYTES, "{} bytes for 40", pool.bytes_out());
    });
}

#[test]
fn a_length_that_is_none_is_refused() {
    runtime::testing::run(|| async {
        let (mut client, socket, _acceptor) = pair().await;
        let mut frames = Frames::new(ChunkPool::new(0), LIMIT);
        client.write_all(&(LIMIT as u32 + 1).to_be_bytes()).unwrap();
        let Split::Need(missing) = frames.next().unwrap() else { panic!("nothing is there") };
        assert_eq!(frames.receive(&socket, missing).await.unwrap(), PREFIX_LEN);
        assert!(frames.next().is_err());
    });
}
