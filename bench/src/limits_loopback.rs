//! The bare cost of loopback: one thread writes, one reads, plain sockets, nothing else. Each thread's CPU time is its own,
//! what the kernel does in its name included.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use crate::gauge::thread_seconds;

/// Of one write and one read, as a broker's connections use.
const PIECE: usize = 128 << 10;
const GIB: f64 = (1u64 << 30) as f64;

#[derive(Clone, Copy, Debug)]
pub struct Loopback {
    pub mib_per_s: f64,
    pub send_s_per_gib: f64,
    pub receive_s_per_gib: f64,
}

pub fn measure(bytes: u64) -> io::Result<Loopback> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut sender = TcpStream::connect(listener.local_addr()?)?;
    let (mut receiver, _) = listener.accept()?;
    let begun = Instant::now();
    let receiving = std::thread::spawn(move || {
        let before = thread_seconds();
        let (mut piece, mut received) = (vec![0; PIECE], 0u64);
        loop {
            match receiver.read(&mut piece)? {
                0 => return Ok::<_, io::Error>((received, thread_seconds() - before)),
                count => received += count as u64,
            }
        }
    });
    let before = thread_seconds();
    let piece = vec![0xa5; PIECE];
    let mut sent = 0;
    while sent < bytes {
        sender.write_all(&piece)?;
        sent += PIECE as u64;
    }
    let sending = thread_seconds() - before;
    drop(sender);
    let (received, receiving) = receiving.join().map_err(|_| io::Error::other("the receiver panicked"))??;
    if received != sent {
        return Err(io::Error::other(format!("{sent} bytes were sent, {received} received")));
    }
    let gib = sent as f64 / GIB;
    let mib_per_s = gib * 1_024.0 / begun.elapsed().as_secs_f64();
    Ok(Loopback { mib_per_s, send_s_per_gib: sending / gib, receive_s_per_gib: receiving / gib })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_byte_arrives_and_costs_something() {
        let found = measure(64 << 20).unwrap();
        assert!(found.mib_per_s > 1.0 && found.send_s_per_gib > 0.0 && found.receive_s_per_gib > 0.0, "{found:?}");
    }
}
