//! A connection that sends what it is told, whole or broken, and reads answers with a time limit.
//!
//! Valid requests are encoded by the crate `kafka-protocol`, which knows nothing of our own codec.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::RequestHeader;
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};

use crate::Broker;

/// How long an answer may take; a group's rebalance is the longest wait.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(30);

pub struct Raw {
    stream: TcpStream,
    next_id: i32,
}

impl Raw {
    pub fn connect(broker: &Broker) -> Self {
        Self::connect_to(broker.port())
    }

    pub fn connect_to(port: u16) -> Self {
        Self::try_connect_to(port).expect("the broker accepts connections")
    }

    pub fn try_connect_to(port: u16) -> Option<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_read_timeout(Some(ANSWER_LIMIT)).and_then(|()| stream.set_nodelay(true)).expect("socket options");
        Some(Raw { stream, next_id: 1 })
    }

    /// One request and its answer.
    #[track_caller]
    pub fn call<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        let id = self.send(version, request);
        let (answered, response) = self.receive::<R>(version);
        assert_eq!(answered, id, "answers come in the order of the requests");
        response
    }

    /// One request and its answer; None where the connection broke, as it does when the broker is killed.
    pub fn try_call<R: Request>(&mut self, version: i16, request: &R) -> Option<R::Response> {
        let id = self.next_id;
        self.next_id += 1;
        self.stream.write_all(&frame(id, version, request)).ok()?;
        let answer = self.receive_frame()?;
        Some(decode::<R>(version, answer).1)
    }

    /// Sends without waiting; the correlation id.
    #[track_caller]
    pub fn send<R: Request>(&mut self, version: i16, request: &R) -> i32 {
        let id = self.next_id;
        self.next_id += 1;
        self.send_bytes(&frame(id, version, request));
        id
    }

    /// The next answer, which must be to a request of type `R`.
    #[track_caller]
    pub fn receive<R: Request>(&mut self, version: i16) -> (i32, R::Response) {
        decode::<R>(version, self.receive_frame().expect("an answer"))
    }

    /// The next frame without its size; None where the broker closed the connection.
    pub fn receive_frame(&mut self) -> Option<Bytes> {
        let mut size = [0; 4];
        self.read_or_closed(&mut size)?;
        let size = usize::try_from(i32::from_be_bytes(size)).expect("a frame's size is not negative");
        let mut body = vec![0; size];
        self.read_or_closed(&mut body)?;
        Some(body.into())
    }

    fn read_or_closed(&mut self, into: &mut [u8]) -> Option<()> {
        match self.stream.read_exact(into) {
            Ok(()) => Some(()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("no answer and no end of the connection within the time limit")
            }
            Err(_) => None,
        }
    }

    #[track_caller]
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the broker takes the bytes");
    }

    /// Sends as much as the broker takes within `limit`; how many bytes that was.
    pub fn send_until_full(&mut self, bytes: &[u8], limit: Duration) -> usize {
        self.stream.set_write_timeout(Some(Duration::from_millis(100))).expect("a socket option");
        let end = Instant::now() + limit;
        let mut sent = 0;
        while sent < bytes.len() && Instant::now() < end {
            match self.stream.write(&bytes[sent..]) {
                Ok(count) => sent += count,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => break,
            }
        }
        sent
    }

    /// No more requests from this side.
    pub fn finish_sending(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// True where the broker ends the connection, without an answer, within `limit`.
    pub fn is_closed_within(&mut self, limit: Duration) -> bool {
        self.is_silent_for(limit) == Some(false)
    }

    /// Some(true) where nothing came for `time`, Some(false) where the connection ended, None where bytes came.
    pub fn is_silent_for(&mut self, time: Duration) -> Option<bool> {
        self.stream.set_read_timeout(Some(time)).expect("a socket option");
        let read = self.stream.read(&mut [0]);
        self.stream.set_read_timeout(Some(ANSWER_LIMIT)).expect("a socket option");
        match read {
            Ok(0) => Some(false),
            Ok(_) => None,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Some(true),
            Err(_) => Some(false),
        }
    }
}

#[track_caller]
fn decode<R: Request>(version: i16, mut frame: Bytes) -> (i32, R::Response) {
    let id = frame.get_i32();
    if R::Response::header_version(version) >= 1 {
        assert_eq!(frame.get_u8(), 0, "no tagged fields in the response header");
    }
    let response = R::Response::decode(&mut frame, version);
    let response = response.unwrap_or_else(|error| panic!("undecodable answer to key {} v{version}: {error}", R::KEY));
    assert!(!frame.has_remaining(), "{} bytes left over in the answer to key {} v{version}", frame.len(), R::KEY);
    (id, response)
}

/// A request as it goes over the wire, its size first.
pub fn frame<R: Request>(id: i32, version: i16, request: &R) -> Bytes {
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version)
        .with_correlation_id(id)
        .with_client_id(Some(StrBytes::from_static_str("ringlog-e2e")));
    let mut body = BytesMut::new();
    header.encode(&mut body, R::header_version(version)).expect("an encodable header");
    request.encode(&mut body, version).unwrap_or_else(|error| panic!("key {} v{version}: {error}", R::KEY));
    sized(&body)
}

/// Any bytes as a frame.
pub fn sized(body: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(4 + body.len());
    out.put_i32(i32::try_from(body.len()).expect("a frame below 2 GiB"));
    out.put_slice(body);
    out.freeze()
}

/// A request header of the oldest form, for bodies written by hand.
pub fn old_header(key: i16, version: i16, id: i32) -> BytesMut {
    let mut out = BytesMut::new();
    out.put_i16(key);
    out.put_i16(version);
    out.put_i32(id);
    out.put_i16(-1);
    out
}
