//! A broker for tests: a listener on a thread, whose answers a closure gives. It forgets nothing that it was asked.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use wire::generated::api_versions::{ApiVersion, ApiVersionsResponse};
use wire::generated::metadata::{MetadataResponse, MetadataResponseBroker, MetadataResponseTopic};
use wire::{ApiKey, Chunk, Encode, Reader, RequestHeader, encode_response};

#[derive(Clone, Debug)]
pub struct Seen {
    /// Counted from 0.
    pub connection: usize,
    pub api: ApiKey,
    pub version: i16,
    pub correlation_id: i32,
    pub client_id: String,
    /// The message behind the header.
    pub body: Bytes,
}

impl Seen {
    pub fn answer(&self, response: &impl Encode) -> Reply {
        self.answer_as(self.version, response)
    }

    pub fn answer_as(&self, version: i16, response: &impl Encode) -> Reply {
        let header = self.api.response_header_version(version);
        let chunks = encode_response(self.correlation_id, header, version, response).unwrap();
        let bytes = chunks.into_iter().flat_map(|chunk| match chunk {
            Chunk::Bytes(bytes) => bytes.to_vec(),
            Chunk::External { .. } => panic!("an answer in memory"),
        });
        Reply::Bytes(bytes.collect())
    }

    /// What a broker with node id 1 at `port` says, and no topics.
    pub fn usual(&self, port: u16) -> Reply {
        match self.api {
            ApiKey::ApiVersions => self.answer(&all_versions()),
            ApiKey::Metadata => self.answer(&metadata(port, Vec::new())),
            _ => Reply::Nothing,
        }
    }
}

pub fn all_versions() -> ApiVersionsResponse<'static> {
    let keys = ApiKey::ALL.iter().map(|api| {
        let versions = api.versions();
        ApiVersion { api_key: *api as i16, min_version: *versions.start(), max_version: *versions.end() }
    });
    ApiVersionsResponse { api_keys: keys.collect(), ..ApiVersionsResponse::default() }
}

pub fn metadata(port: u16, topics: Vec<MetadataResponseTopic<'static>>) -> MetadataResponse<'static> {
    let broker = MetadataResponseBroker { node_id: 1, host: "127.0.0.1".into(), port: port.into(), rack: None };
    MetadataResponse { brokers: vec![broker], controller_id: 1, topics, ..MetadataResponse::default() }
}

#[derive(Clone, Debug)]
pub enum Reply {
    Bytes(Vec<u8>),
    Nothing,
    Close,
}

type Answers = dyn Fn(&Seen, u16) -> Vec<Reply> + Send + Sync;

#[derive(Clone)]
pub struct FakeBroker {
    pub port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
}

impl FakeBroker {
    pub fn start(answers: impl Fn(&Seen, u16) -> Vec<Reply> + Send + Sync + 'static) -> FakeBroker {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let broker = FakeBroker {
            port: listener.local_addr().unwrap().port(),
            seen: Arc::default(),
            connections: Arc::default(),
            open: Arc::default(),
        };
        let (answers, accepting): (Arc<Answers>, _) = (Arc::new(answers), broker.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answers, broker) = (answers.clone(), accepting.clone());
                let connection = broker.connections.fetch_add(1, Ordering::SeqCst);
                broker.open.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    broker.serve(stream, connection, &*answers);
                    broker.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        broker
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// What was asked so far, ApiVersions left out.
    pub fn asked(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().iter().filter(|seen| seen.api != ApiKey::ApiVersions).cloned().collect()
    }

    pub fn asked_for(&self, api: ApiKey) -> Vec<Seen> {
        self.seen.lock().unwrap().iter().filter(|seen| seen.api == api).cloned().collect()
    }

    fn serve(&self, mut stream: TcpStream, connection: usize, answers: &Answers) {
        while let Some(frame) = read_frame(&mut stream) {
            let mut reader = Reader::new(&frame);
            let header = RequestHeader::decode(&mut reader).unwrap();
            let seen = Seen {
                connection,
                api: header.api_key,
                version: header.api_version,
                correlation_id: header.correlation_id,
                client_id: header.client_id.unwrap_or_default().to_string(),
                body: frame.slice(reader.position()..),
            };
            self.seen.lock().unwrap().push(seen.clone());
            for reply in answers(&seen, self.port) {
                match reply {
                    Reply::Bytes(bytes) => stream.write_all(&bytes).unwrap_or_default(),
                    Reply::Nothing => {}
                    Reply::Close => return,
                }
            }
        }
    }
}

fn read_frame(stream: &mut TcpStream) -> Option<Bytes> {
    let mut size = [0; 4];
    stream.read_exact(&mut size).ok()?;
    let mut frame = vec![0; u32::from_be_bytes(size) as usize];
    stream.read_exact(&mut frame).ok()?;
    Some(frame.into())
}

/// An address where nobody listens.
pub fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}
