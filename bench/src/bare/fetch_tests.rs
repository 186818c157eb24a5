#![allow(clippy::unwrap_used)]

use wire::generated::FetchRequest;
use wire::generated::fetch::{FetchPartition, FetchTopic};

use super::*;
use crate::answers::{FETCH_VERSION, fetched};
use crate::bare::out::Piece;
use crate::bare::topics::Entry;
use crate::client::frame;

const LEN: u64 = 8 << 20;
const BATCH: usize = 1_000;
const ID: i32 = 5;

struct Bench {
    topics: Topics,
    memory: Memory,
    session: Session,
}

impl Bench {
    /// A topic of three partitions with so many batches of ten records each in partition 1.
    fn new(batches: u64) -> Bench {
        let (mut topics, mut memory) = (Topics::default(), Memory::new(LEN));
        assert!(topics.create("other", 2) && topics.create("t", 3));
        for at in 0..batches {
            let (position, base_offset) = (memory.head(), at as i64 * 10);
            memory.take(BATCH as u64).fill(at as u8);
            let entry = Entry { base_offset, next_offset: base_offset + 10, position, len: BATCH as u32 };
            topics.append(3, entry, memory.oldest());
        }
        Bench { topics, memory, session: Session::default() }
    }

    fn ask(&mut self, session: (i32, i32), offset: i64, max_bytes: i32) -> Fetch {
        let partition =
            FetchPartition { partition: 1, fetch_offset: offset, partition_max_bytes: max_bytes, ..Default::default() };
        let topics = vec![FetchTopic { topic: "t", topic_id: [0; 16], partitions: vec![partition] }];
        self.ask_for(session, topics)
    }

    fn ask_for(&mut self, session: (i32, i32), topics: Vec<FetchTopic<'_>>) -> Fetch {
        let (session_id, session_epoch) = session;
        let request = FetchRequest {
            max_wait_ms: 100,
            min_bytes: 1,
            max_bytes: 50 << 20,
            session_id,
            session_epoch,
            topics,
            ..FetchRequest::default()
        };
        let bytes = Bytes::from(frame(9, FETCH_VERSION, &request).unwrap()).slice(4..);
        self.session.ask(&self.topics, &bytes, ID).unwrap()
    }

    fn answer(&mut self, fetch: &Fetch, at_last: bool) -> Option<Out> {
        let durable = self.memory.head();
        self.session.answer(fetch, &self.topics, &mut self.memory, durable, at_last).unwrap()
    }
}

/// What leaves, with zeros for what lies in the log's memory, and the ranges of it.
fn wire_bytes(out: &Out) -> (Vec<u8>, Vec<Piece>) {
    let (mut bytes, mut lent) = (Vec::new(), Vec::new());
    out.left(usize::MAX, |piece| match &piece {
        Piece::Own(range) => bytes.extend_from_slice(&out.bytes()[range.clone()]),
        Piece::Lent { len, .. } => {
            bytes.resize(bytes.len() + len, 0);
            lent.push(piece);
        }
    });
    (bytes, lent)
}

/// Error, session, and of each partition index, error, high watermark and bytes of records.
type Answered = (i16, i32, Vec<(i32, i16, i64, usize)>);

fn read(out: &Out) -> Answered {
    let (bytes, _) = wire_bytes(out);
    let mut partitions = Vec::new();
    let (error, session) = fetched(&bytes[8..], |one| {
        partitions.push((one.partition, one.error, one.high_watermark, one.records.len()));
    })
    .unwrap();
    (error, session, partitions)
}

#[test]
fn batches_leave_as_ranges_of_the_logs_memory() {
    let mut bench = Bench::new(5);
    let fetch = bench.ask((0, 0), 15, 1 << 20);
    let out = bench.answer(&fetch, false).unwrap();
    assert_eq!(read(&out), (0, ID, vec![(1, 0, 50, 4 * BATCH)]));
    let lent = Piece::Lent { position: BATCH as u64, len: 4 * BATCH };
    assert_eq!((wire_bytes(&out).1, out.lent()), (vec![lent], &[BATCH as u64][..]));
}

#[test]
fn limits_count_but_a_batch_is_always_given() {
    let mut bench = Bench::new(5);
    for (max_bytes, given) in [(1, 1), (2_500, 2), (3_000, 3)] {
        let fetch = bench.ask((0, 0), 0, max_bytes);
        let out = bench.answer(&fetch, false).unwrap();
        assert_eq!(read(&out).2, [(1, 0, 50, given * BATCH)]);
    }
}

#[test]
fn a_session_names_only_what_changed_and_waits_for_it() {
    let mut bench = Bench::new(2);
    let first = bench.ask((0, 0), 0, 1 << 20);
    assert!(bench.answer(&first, false).is_some());
    let next = bench.ask((ID, 1), 20, 1 << 20);
    assert!(bench.answer(&next, false).is_none(), "there is nothing at the tail yet");
    assert_eq!(read(&bench.answer(&next, true).unwrap()), (0, ID, vec![]));
    let silent = bench.ask_for((ID, 2), Vec::new());
    let position = bench.memory.head();
    bench.memory.take(BATCH as u64).fill(9);
    let entry = Entry { base_offset: 20, next_offset: 30, position, len: BATCH as u32 };
    bench.topics.append(3, entry, 0);
    assert_eq!(read(&bench.answer(&silent, false).unwrap()), (0, ID, vec![(1, 0, 30, BATCH)]));
}

#[test]
fn a_first_request_is_answered_with_every_partition_at_last() {
    let mut bench = Bench::new(0);
    let fetch = bench.ask((0, 0), 0, 1 << 20);
    assert!(bench.answer(&fetch, false).is_none());
    assert_eq!(read(&bench.answer(&fetch, true).unwrap()), (0, ID, vec![(1, 0, 0, 0)]));
}

#[test]
fn what_is_not_there_is_refused() {
    let mut bench = Bench::new(2);
    let fetch = bench.ask((0, 0), 21, 1 << 20);
    assert_eq!(read(&bench.answer(&fetch, false).unwrap()).2, [(1, OFFSET_OUT_OF_RANGE, 20, 0)]);
    let lost = bench.ask((ID + 1, 4), 0, 1 << 20);
    assert_eq!(read(&bench.answer(&lost, false).unwrap()), (FETCH_SESSION_ID_NOT_FOUND, 0, vec![]));
    let unknown = vec![FetchTopic { topic: "u", topic_id: [0; 16], partitions: vec![FetchPartition::default()] }];
    let fetch = bench.ask_for((0, 0), unknown);
    assert_eq!(read(&bench.answer(&fetch, false).unwrap()).0, UNKNOWN_TOPIC_OR_PARTITION);
}
