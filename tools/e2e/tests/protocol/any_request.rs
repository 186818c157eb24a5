//! Requests that are well-formed and mean nothing: every API in every version, every field drawn at random, among them
//! names and numbers that exist. The node answers each in its own version's form, or ends that connection; it never dies,
//! and others notice nothing.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::Bytes;
use ringlog_e2e::Broker;
use ringlog_e2e::batch::Batch;
use ringlog_e2e::broker::skip_on_kafka;
use ringlog_e2e::raw::Raw;
use ringlog_e2e::requests::{Produce, api_versions, create_topics, new_topic};
use wire::generated::{AnyRequest, AnyResponse};
use wire::sample::SampleSource;
use wire::{ApiKey, Encode, Reader, Records, RequestHeader, Writer, decode_response_header};

/// Of each version of each API.
const SEEDS: u64 = 60;
/// Names that samples are made of.
const TOPICS: [&str; 3] = ["a", "orders", "clicks.v1-eu_west"];
/// An answer may take so long, but for requests that say themselves how long they wait.
const LIMIT: Duration = Duration::from_secs(20);
const WAIT_LIMIT: Duration = Duration::from_millis(30);

fn frame(api: ApiKey, version: i16, seed: u64) -> Bytes {
    let mut source = SampleSource::new(seed);
    let mut request = AnyRequest::sample(api, &mut source, version);
    if let AnyRequest::CreateTopics(request) = &mut request {
        request.topics.iter_mut().for_each(|topic| topic.num_partitions = topic.num_partitions.min(3));
    }
    if let AnyRequest::CreatePartitions(request) = &mut request {
        request.topics.iter_mut().for_each(|topic| topic.count = topic.count.min(5));
    }
    let mut writer = Writer::new_frame();
    let header = RequestHeader { api_key: api, api_version: version, correlation_id: 9, client_id: Some("any") };
    header.encode(&mut writer).unwrap();
    request.encode(&mut writer, version).unwrap();
    Records::Chunks(writer.finish_frame().unwrap()).to_bytes().unwrap()
}

fn waits_as_asked(api: ApiKey) -> bool {
    matches!(api, ApiKey::Fetch | ApiKey::JoinGroup | ApiKey::SyncGroup | ApiKey::Produce)
}

/// What the broker answers; `None` where it ends the connection, or where nothing comes from a request that waits.
fn ask(port: u16, api: ApiKey, frame: &[u8]) -> Option<Bytes> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the node accepts connections");
    stream.set_read_timeout(Some(if waits_as_asked(api) { WAIT_LIMIT } else { LIMIT })).unwrap();
    stream.write_all(frame).unwrap();
    let mut size = [0; 4];
    if let Err(error) = stream.read_exact(&mut size) {
        let silent = matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut);
        assert!(!silent || waits_as_asked(api), "no answer and no end of the connection");
        return None;
    }
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let mut body = vec![0; u32::from_be_bytes(size) as usize];
    stream.read_exact(&mut body).expect("a whole answer");
    Some(body.into())
}

#[test]
fn any_request_gets_an_answer_or_the_end_of_its_connection() {
    if skip_on_kafka("its answers to requests that mean nothing are not ours to judge") {
        return;
    }
    let broker = Broker::with(&[("group.initial.rebalance.delay.ms", "0")]);
    let mut bystander = Raw::connect(&broker);
    let served: Vec<_> = api_versions(&mut bystander, 3).api_keys;
    let mut answered = 0;
    for one in served {
        let api = ApiKey::from_i16(one.api_key).unwrap();
        create_topics(&mut bystander, TOPICS.iter().map(|name| new_topic(name, 3, &[])).collect(), false);
        let mut bare = 0;
        // Produce is advertised from 0 on, for old clients' sake, and served from 3 on.
        for version in (one.min_version..=one.max_version).filter(|&version| api.check_version(version).is_ok()) {
            for seed in 0..SEEDS {
                let what = format!("{api:?} v{version}, seed {seed}");
                let frame = frame(api, version, seed * 1_000 + version as u64);
                let Some(answer) = std::panic::catch_unwind(|| ask(broker.port(), api, &frame))
                    .unwrap_or_else(|_| panic!("{what}: {frame:02x?}"))
                else {
                    bare += 1;
                    continue;
                };
                let mut reader = Reader::new(&answer);
                assert_eq!(decode_response_header(&mut reader, api.response_header_version(version)), Ok(9), "{what}");
                let decoded = AnyResponse::decode(api, &mut reader, version);
                assert!(decoded.is_ok() && reader.remaining() == 0, "{what}: {decoded:?}");
                answered += 1;
            }
        }
        println!("{api:?}: {bare} without an answer");
        // Others are served as before.
        api_versions(&mut bystander, 3);
    }
    assert!(answered > 1_000, "{answered} answers");
    create_topics(&mut bystander, vec![new_topic("after", 1, &[])], false);
    ringlog_e2e::requests::wait_for_leaders(&mut bystander, "after", 1);
    assert_eq!(Produce::new("after", &Batch::of(&["unharmed"])).code(&mut bystander), 0);
}
