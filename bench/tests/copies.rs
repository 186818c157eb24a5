//! Zero copies, counted: what decoding, appending, committing and fetching do with record bytes in user space.
//!
//! | step | record bytes copied |
//! |---|---|
//! | receive a frame | none; of a large one that follows another its first 16 KiB (`connection/frames.rs` of the server) |
//! | cut a frame from the connection's bytes, walk a Produce request | none, nothing allocated |
//! | append | once, into the partition's tail chunk |
//! | commit straight to the segment | none but of blocks that a range does not fill: two, and one for each chunk it spans |
//! | commit through the journal | once, into the round; no more when it goes to its segment |
//! | fetch what is in memory, until the answer is handed to the socket | none |
//!
//! So a record byte is copied once before it is acknowledged, and twice where it is small: a round's pieces do not begin at blocks.
//! The first copy could only go if batches were kept in the connection's buffer. What the kernel copies between sockets and
//! memory is not counted.
#![allow(clippy::unwrap_used)]

mod counting;
#[path = "../benches/shared/partition.rs"]
mod partition;

use bytes::{Bytes, BytesMut};
use counting::{CANARY, Cost, begin, cost_of, end, in_turn};
use log::{JournalConfig, LogShard, LogShardConfig, PartitionLog, Patch, ReadLimits, Slice};
use model::builder::BatchBuilder;
use model::{LeaderEpoch, Offset};
use partition::partition;
use runtime::ChunkPool;
use runtime::testing::{TempDir, run};
use wire::generated::fetch::{FetchableTopicResponse, PartitionData};
use wire::generated::produce::{PartitionProduceData, TopicProduceData};
use wire::generated::{FetchResponse, ProduceRequest};
use wire::produce::ProduceWalk;
use wire::{Chunk, Encode, Reader, Records, RequestHeader, Split, Writer, encode_request, split_frame};

/// Of a write's first and last partial block.
const BLOCK: usize = 4_096;
/// Batches that are appended before a clean stop; with a journal their segment gets them then.
const LEFT_FOR_STOP: usize = 16;
/// Bytes that happen to look like records': of headers, checksums, addresses.
const CHANCE: usize = 100;

fn batch(bytes: usize) -> Bytes {
    BatchBuilder::new().record(0, None, Some(&vec![CANARY; bytes])).finish().into()
}

/// A request as it lies in a connection's buffer.
fn request(partitions: i32, batch: &Bytes) -> BytesMut {
    let data = |index| PartitionProduceData { index, records: Records::from(batch.clone()) };
    let partition_data = (0..partitions).map(data).collect();
    let topic_data = vec![TopicProduceData { name: "t", topic_id: [0; 16], partition_data }];
    let request = ProduceRequest { transactional_id: None, acks: -1, timeout_ms: 1, topic_data };
    let chunks = encode_request(1, Some("c"), 8, &request).unwrap();
    BytesMut::from(&Records::Chunks(chunks).to_bytes().unwrap()[..])
}

#[test]
fn the_counters_count() {
    in_turn(|| {
        let costs = |cost: Cost, copied, allocations| assert_eq!(cost, Cost { copied, allocations });
        let source = vec![CANARY; 3_000];
        let (cost, copy) = cost_of(|| source.clone());
        costs(cost, copy.len(), 1);
        let mut moved = source;
        costs(cost_of(|| moved.copy_within(0..2_000, 7)).0, 2_000, 0);
        costs(cost_of(|| moved.copy_within(7..1_000, 0)).0, 993, 0);
        let other = vec![1u8; 3_000];
        costs(cost_of(|| other.clone()).0, 0, 1);
        let scattered: Vec<u8> = (0..3_000).map(|at| if at % 8 == 7 { 0 } else { CANARY }).collect();
        costs(cost_of(|| scattered.clone()).0, 0, 1);
    });
}

#[test]
fn decoding_a_produce_request_copies_nothing_and_allocates_nothing_for_its_partitions() {
    in_turn(|| {
        let batch = batch(1_000);
        let cost = |partitions| {
            let mut socket = request(partitions, &batch);
            let (cost, seen) = cost_of(|| {
                let Split::Frame(frame) = split_frame(&mut socket, 64 << 20).unwrap() else { panic!("a whole frame") };
                let mut reader = Reader::new(&frame);
                let header = RequestHeader::decode(&mut reader).unwrap();
                let walk = ProduceWalk::open(reader, header.api_version).unwrap();
                walk.partitions().map(|one| one.unwrap().records.unwrap().len()).sum::<usize>()
            });
            assert_eq!(seen, partitions as usize * batch.len());
            cost
        };
        let (one, many) = (cost(1), cost(1_000));
        assert!(one.copied < CHANCE && many.copied < CHANCE, "{one:?} {many:?}");
        // Cutting the first frame from a connection's buffer makes the buffer shared: one allocation for the connection.
        assert_eq!(one.allocations, many.allocations);
        assert!(many.allocations <= 1, "{many:?}");
    });
}

/// Copies of an append, of its way to the disk, of a fetch of it, and of a clean stop.
fn costs(bytes: usize, journal: Option<JournalConfig>) -> [Cost; 4] {
    let dir = TempDir::new("copies");
    let path = dir.path().to_path_buf();
    run(move || {
        let path = path.clone();
        async move {
            let config = LogShardConfig { journal, ..LogShardConfig::new(0, ChunkPool::new(64 << 20)) };
            let shard = LogShard::new(config);
            let log = partition(&shard, &path).await;
            let batch = batch(bytes);
            // Files, chunks and, where there is one, the journal are made by the first few.
            for _ in 0..2_000 {
                let appended = log.append(&batch, Patch::leader(LeaderEpoch(0))).unwrap();
                log.wait_durable(appended.next_offset).await.unwrap();
                if shard.stats().journal.rounds > 0 || (journal.is_none() && appended.next_offset > Offset(3)) {
                    break;
                }
            }
            let rounds = shard.stats().journal.rounds;
            assert_eq!(rounds > 0, journal.is_some(), "the way that was asked for is taken");
            let (append, appended) = cost_of(|| log.append(&batch, Patch::leader(LeaderEpoch(0))).unwrap());
            begin();
            log.wait_durable(appended.next_offset).await.unwrap();
            let commit = end();
            assert_eq!(shard.stats().journal.rounds > rounds, journal.is_some());
            let fetch = fetch(&log, Offset(appended.next_offset.0 - 1), batch.len()).await;
            // So much that a copy of it would show.
            for _ in 0..LEFT_FOR_STOP {
                let appended = log.append(&batch, Patch::leader(LeaderEpoch(0))).unwrap();
                log.wait_durable(appended.next_offset).await.unwrap();
            }
            begin();
            shard.stop_clean().await.unwrap();
            [append, commit, fetch, end()]
        }
    })
}

/// Until the answer's pieces are what the connection gives to `sendmsg`. They are the same memory at every fetch: the log's.
async fn fetch(log: &PartitionLog, offset: Offset, len: usize) -> Cost {
    let limits = ReadLimits { max_bytes: 1 << 20, min_one_batch: true, upper_bound: log.durable_end() };
    let mut places = Vec::new();
    let mut cost = None;
    for _ in 0..2 {
        begin();
        let read = log.read(offset, limits).await.unwrap();
        let slices: Vec<Bytes> = read
            .slices
            .into_iter()
            .map(|slice| match slice {
                Slice::Bytes(bytes) => bytes,
                Slice::File { .. } => panic!("it was just written"),
            })
            .collect();
        let first = slices[0].as_ptr();
        let data = PartitionData { records: Records::Bytes(slices), ..PartitionData::default() };
        let topic = FetchableTopicResponse { topic: "t".into(), partitions: vec![data], ..Default::default() };
        let response = FetchResponse { responses: vec![topic], ..FetchResponse::default() };
        let mut writer = Writer::new();
        response.encode(&mut writer, 11).unwrap();
        let pieces = writer.finish();
        cost = Some(end());
        let same =
            |piece: &Chunk| matches!(piece, Chunk::Bytes(bytes) if bytes.as_ptr() == first && bytes.len() == len);
        assert!(pieces.iter().any(same), "a piece of the answer is the log's own memory");
        places.push(first as usize);
    }
    assert_eq!(places[0], places[1]);
    cost.unwrap()
}

#[test]
fn the_direct_way_copies_a_large_batch_once_and_a_fetch_does_not() {
    in_turn(|| {
        for bytes in [64 << 10, 900_000] {
            let [append, commit, fetch, stop] = costs(bytes, None);
            println!("direct, {bytes} bytes: append {append:?}, commit {commit:?}, fetch {fetch:?}, stop {stop:?}");
            assert!((bytes..bytes + CHANCE).contains(&append.copied), "append: {append:?}");
            assert!(commit.copied <= 2 * BLOCK + CHANCE, "commit: {commit:?}");
            assert!(fetch.copied < CHANCE, "fetch: {fetch:?}");
            assert!(stop.copied <= 2 * BLOCK + CHANCE, "stop: {stop:?}");
        }
    });
}

#[test]
fn the_journal_copies_a_small_batch_twice_and_its_way_to_the_segment_does_not() {
    in_turn(|| {
        let journal = JournalConfig {
            file_bytes: 1 << 20,
            files_max: 3,
            small_bytes: 16 << 10,
            after_commits: 1,
            ..JournalConfig::default()
        };
        let bytes = 8_000;
        let [append, commit, fetch, stop] = costs(bytes, Some(journal));
        println!("journal, {bytes} bytes: append {append:?}, commit {commit:?}, fetch {fetch:?}, stop {stop:?}");
        assert!((bytes..bytes + CHANCE).contains(&append.copied), "append: {append:?}");
        assert!((bytes..bytes + BLOCK + CHANCE).contains(&commit.copied), "commit: {commit:?}");
        assert!(fetch.copied < CHANCE, "fetch: {fetch:?}");
        // What the journal holds goes to the segments: this batch, and those before it.
        assert!(stop.copied <= 2 * BLOCK + CHANCE, "stop: {stop:?}");
    });
}
