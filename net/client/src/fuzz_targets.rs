//! Entry points for the fuzzer (`cargo xtask fuzz`): plain functions over bytes, so that any engine can drive them. A
//! panic is a finding.

use bytes::BytesMut;
use wire::generated::api_versions::{ApiVersion, ApiVersionsResponse};
use wire::generated::metadata::MetadataRequest;
use wire::{ApiKey, Chunk, encode_response};

use crate::consumer_protocol::{Assignment, Subscription};
use crate::link::core::{Deadline, LinkCore, Phase};

const QUESTIONS: u32 = 5;

/// Arbitrary bytes in arbitrary pieces on a connection with several requests under way. The first byte says whether the
/// broker's versions come first as they should, the second how long the pieces are.
pub fn link_answers(data: &[u8]) {
    let [start, piece, bytes @ ..] = data else { return };
    let mut core = LinkCore::new(0, "fuzz", 1_000);
    core.connected(0);
    let mut buffer = BytesMut::new();
    if start % 4 != 0 {
        buffer.extend_from_slice(&versions());
        core.received(&mut buffer, 0);
    }
    let mut asked = 0;
    for waiter in 0..QUESTIONS {
        let sent = core.send(&MetadataRequest::default(), None, Deadline::after(0, 1_000), waiter);
        asked += u32::from(sent.is_ok());
    }
    let taken: usize = core.take_output().iter().map(bytes::Bytes::len).sum();
    core.wrote(taken);
    for piece in bytes.chunks(usize::from(*piece).max(1)) {
        buffer.extend_from_slice(piece);
        let more = core.received(&mut buffer, 0);
        assert!(core.phase() == Phase::Ended || more > 0, "a connection that goes on says how much it waits for");
    }
    core.expire(1_000);
    core.end("the bytes are at an end");
    let done = core.take_done();
    assert_eq!(done.len() as u32, asked, "every question has one outcome");
    assert!(done.iter().map(|(waiter, _)| *waiter).eq(0..asked), "outcomes come in the order of the questions");
}

/// What members of a group tell each other, as either kind; what was written once is written the same again. (Reading may
/// find partitions of a topic apart, writing puts them together.)
pub fn consumer_protocol(data: &[u8]) {
    if let Ok(subscription) = Subscription::decode(data) {
        let bytes = subscription.encode();
        assert_eq!(Subscription::decode(&bytes).map(|again| again.encode()), Ok(bytes));
    }
    if let Ok(assignment) = Assignment::decode(data) {
        let bytes = assignment.encode();
        assert_eq!(Assignment::decode(&bytes).map(|again| again.encode()), Ok(bytes));
    }
}

fn versions() -> Vec<u8> {
    let all = ApiKey::ALL.iter().map(|api| {
        let versions = api.versions();
        ApiVersion { api_key: *api as i16, min_version: *versions.start(), max_version: *versions.end() }
    });
    let answer = ApiVersionsResponse { api_keys: all.collect(), ..ApiVersionsResponse::default() };
    let chunks = encode_response(0, 0, 3, &answer).unwrap_or_default();
    let bytes = chunks.iter().filter_map(|chunk| match chunk {
        Chunk::Bytes(bytes) => Some(&bytes[..]),
        Chunk::External { .. } => None,
    });
    bytes.collect::<Vec<_>>().concat()
}
