//! Frames over real sockets of this machine.
#![allow(clippy::unwrap_used)]

use std::io::Write;

use bytes::Bytes;

use super::*;
use crate::connection::tests::pair;

const LIMIT: usize = 16 << 20;

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
        client.write_all(&frame(0, LIMIT)[..FIRST_READ_BYTES]).unwrap();
        let mut missing = 0;
        while frames.begun().len() < FIRST_READ_BYTES {
            let Split::Need(needed) = frames.next().unwrap() else { panic!("most of it is missing") };
            frames.receive(&socket, needed).await.unwrap();
            missing = PREFIX_LEN + LIMIT - frames.begun().len();
        }
        assert!(matches!(frames.next().unwrap(), Split::Need(needed) if needed == missing));
        assert_eq!(frames.make_room(missing), RECEIVE_BYTES);
        assert!(pool.bytes_out() <= 2 * FRAME_GROWTH_BYTES, "{} bytes for {FIRST_READ_BYTES}", pool.bytes_out());
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

#[test]
fn what_came_of_a_huge_frame_is_copied_a_few_times_not_at_each_receive() {
    runtime::testing::run(|| async {
        let (mut client, socket, _acceptor) = pair().await;
        let sent = frame(0, LIMIT);
        let whole = sent.clone();
        let sender = std::thread::spawn(move || client.write_all(&whole).unwrap());
        let mut frames = Frames::new(ChunkPool::new(64 << 20), LIMIT);
        let (mut moves, mut receives) = (0, 0);
        let got = loop {
            match frames.next().unwrap() {
                Split::Frame(frame) => break frame,
                Split::Need(missing) => {
                    let at = frames.chunk.published().as_ptr();
                    frames.receive(&socket, missing).await.unwrap();
                    receives += 1;
                    moves += usize::from(frames.chunk.published().as_ptr() != at);
                }
            }
        };
        assert!(got[..] == sent[PREFIX_LEN..]);
        assert!(receives >= LIMIT / RECEIVE_BYTES, "{receives} receives");
        assert!(moves <= 7, "{moves} moves");
        sender.join().unwrap();
    });
}
