#![allow(clippy::unwrap_used)]

use std::net::TcpListener;

use super::*;

fn pair() -> (Link, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let link = Link::connect(listener.local_addr().unwrap().port()).unwrap();
    (link, listener.accept().unwrap().0)
}

fn answer(body: &[u8]) -> Vec<u8> {
    let mut out = (body.len() as u32 + 4).to_be_bytes().to_vec();
    out.extend_from_slice(&7i32.to_be_bytes());
    out.extend_from_slice(body);
    out
}

/// Until `wanted` answers were given; each is checked by length and last byte.
fn read_all(link: &mut Link, sizes: &[usize]) {
    let mut next = 0;
    while next < sizes.len() {
        link.fill().unwrap();
        while let Some(answer) = link.answer() {
            assert_eq!(answer.len(), sizes[next]);
            assert!(answer.iter().all(|&byte| byte == next as u8));
            next += 1;
        }
    }
}

#[test]
fn answers_of_all_sizes_come_whole_and_in_order() {
    let (mut link, mut peer) = pair();
    let sizes = [1, 100, READ_BYTES, 3, 2 * READ_BYTES + 17, READ_BYTES - 8, 5, 1 << 20, 9];
    let writer = std::thread::spawn(move || {
        for (number, size) in sizes.into_iter().enumerate() {
            peer.write_all(&answer(&vec![number as u8; size])).unwrap();
        }
        peer
    });
    read_all(&mut link, &sizes);
    drop(writer.join().unwrap());
    let gone = loop {
        match link.fill() {
            Ok(()) => std::thread::yield_now(),
            Err(error) => break error,
        }
    };
    assert_eq!(gone.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn frames_larger_than_the_socket_leave_in_order() {
    let (mut link, mut peer) = pair();
    let frames: Vec<Bytes> = (0..8u8).map(|number| vec![number; 1 << 20].into()).collect();
    for frame in &frames {
        link.send(frame.clone()).unwrap();
    }
    assert!(link.wants_write());
    let reader = std::thread::spawn(move || {
        let mut all = vec![0; 8 << 20];
        peer.read_exact(&mut all).unwrap();
        all
    });
    while link.wants_write() {
        link.flush().unwrap();
    }
    assert_eq!(reader.join().unwrap(), frames.concat());
}

#[test]
fn an_absurd_size_is_refused() {
    let (mut link, mut peer) = pair();
    peer.write_all(&[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]).unwrap();
    let refused = loop {
        match link.fill() {
            Ok(()) => std::thread::yield_now(),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
}
