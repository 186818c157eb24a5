//! A proxy that passes frames on and writes down what was asked, so that a test can count requests on the wire.
//!
//! Clients connect to the address that the broker advertises: the proxy takes its port first, the broker is started with
//! `advertised.listeners` set to it ([`Proxy::setting`]), and [`Proxy::forward_to`] tells the proxy where the broker is.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use bytes::Bytes;
use kafka_protocol::messages::{ProduceRequest, RequestHeader};
use kafka_protocol::protocol::{Decodable, HeaderVersion};

const PRODUCE: i16 = 0;
/// No request of a well-behaved client is larger.
const MAX_FRAME_BYTES: usize = 128 << 20;

/// One request that went through.
#[derive(Clone, Debug)]
pub struct Seen {
    pub api_key: i16,
    pub api_version: i16,
    pub body: Bytes,
}

impl Seen {
    /// How many partitions a Produce request has records of.
    #[track_caller]
    pub fn produced_partitions(&self) -> usize {
        assert_eq!(self.api_key, PRODUCE, "only of Produce requests");
        let mut body = self.body.clone();
        RequestHeader::decode(&mut body, ProduceRequest::header_version(self.api_version)).expect("a request header");
        let request = ProduceRequest::decode(&mut body, self.api_version).expect("a Produce request");
        request.topic_data.iter().map(|topic| topic.partition_data.len()).sum()
    }
}

type Log = Arc<Mutex<Vec<Seen>>>;

/// Its threads end with the connections; the listening one with the test's process.
pub struct Proxy {
    listener: TcpListener,
    seen: Log,
}

impl Proxy {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        Proxy { listener, seen: Log::default() }
    }

    pub fn address(&self) -> String {
        self.listener.local_addr().expect("a bound socket has an address").to_string()
    }

    /// What a broker has to be told so that its clients come here.
    pub fn setting(&self) -> (&'static str, String) {
        ("advertised.listeners", format!("PLAINTEXT://{}", self.address()))
    }

    pub fn forward_to(&self, port: u16) {
        let (listener, seen) = (self.listener.try_clone().expect("a socket can be shared"), Arc::clone(&self.seen));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(broker) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                pass(client, broker, &seen);
            }
        });
    }

    /// Every request so far, in the order of arrival.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn produce_requests(&self) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.api_key == PRODUCE).collect()
    }
}

impl Default for Proxy {
    fn default() -> Self {
        Self::new()
    }
}

fn pass(mut client: TcpStream, mut broker: TcpStream, seen: &Log) {
    let (Ok(mut requests), Ok(mut to_broker)) = (client.try_clone(), broker.try_clone()) else { return };
    let seen = Arc::clone(seen);
    thread::spawn(move || {
        while let Some(frame) = read_frame(&mut requests) {
            seen.lock().unwrap().push(noted(&frame));
            if to_broker.write_all(&frame).is_err() {
                break;
            }
        }
        let _ = to_broker.shutdown(Shutdown::Both);
    });
    thread::spawn(move || {
        let _ = std::io::copy(&mut broker, &mut client);
        let _ = client.shutdown(Shutdown::Both);
    });
}

/// A frame with its size in front; None at the end of the connection.
fn read_frame(from: &mut TcpStream) -> Option<Bytes> {
    let mut size = [0; 4];
    from.read_exact(&mut size).ok()?;
    let len = usize::try_from(i32::from_be_bytes(size)).ok().filter(|len| (8..=MAX_FRAME_BYTES).contains(len))?;
    let mut frame = vec![0; 4 + len];
    frame[..4].copy_from_slice(&size);
    from.read_exact(&mut frame[4..]).ok()?;
    Some(frame.into())
}

fn noted(frame: &Bytes) -> Seen {
    let number = |at: usize| i16::from_be_bytes([frame[at], frame[at + 1]]);
    Seen { api_key: number(4), api_version: number(6), body: frame.slice(4..) }
}
