//! Fetch sessions through the handler, against one shard with a real log.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;

use log::{DataDir, DataDirs, LogShard, LogShardConfig};
use metadata::{Command, Image};
use model::NodeId;
use model::builder::BatchBuilder;
use runtime::mailbox::Mailboxes;
use runtime::testing::TempDir;
use runtime::{ChunkPool, Post};
use wire::Decode;
use wire::generated::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic};

use super::*;
use crate::handlers::admin::test_support;
use crate::handlers::fetch_rounds::{Rounds, Want};
use crate::limits::{FETCH_PAUSE, FETCH_READS_AT_ONCE};
use crate::mail::{ProduceMail, ProducePart, ShardReply, ShardRequest};
use crate::placement::Placement;
use crate::shard::{NodeFacts, Shard, ShardParts};
use crate::view::View;

/// The last version that names topics.
const VERSION: i16 = FIRST_WITH_TOPIC_ID - 1;

fn view(image: Image) -> View {
    placed_on(1, image)
}

fn placed_on(shards: usize, image: Image) -> View {
    let mut placement = Placement::new(shards);
    placement.follow(&Image::default(), &image);
    View { placement, ..test_support::view(image) }
}

async fn shard(folder: &Path, image: Image) -> Rc<Shard> {
    shards(1, folder, image).await.remove(0)
}

/// All on this thread.
async fn shards(count: usize, folder: &Path, image: Image) -> Vec<Rc<Shard>> {
    let facts = Arc::new(NodeFacts {
        node_id: NodeId(1),
        host: "broker.example".into(),
        port: 9_999,
        cluster_id: "c".into(),
        dirs: DataDirs::of_one(DataDir::open(folder).await.unwrap()),
        base_config: (*placed_on(count, image.clone()).config).clone(),
        next_id: AtomicU64::new(1),
        max_connections: Arc::default(),
    });
    let (boxes, pool) = (Mailboxes::new(count), ChunkPool::new(8 << 20));
    let make = |index: usize| {
        let mut log_config = LogShardConfig::new(index as u16, pool.clone());
        log_config.io_bytes = 2 << 20;
        let (post, log) = (Post::new(boxes.clone(), index), LogShard::new(log_config));
        let view = placed_on(count, image.clone());
        let shard = Shard::new(ShardParts { index, facts: facts.clone(), post, log, cluster: None, view });
        shard.serve();
        shard
    };
    (0..count).map(make).collect()
}

async fn stop(shards: &[Rc<Shard>]) {
    for shard in shards {
        shard.begin_stop();
        shard.log.stop_clean().await.unwrap();
    }
    shards[0].facts.dirs.metadata().close_clean().await.unwrap();
}

/// The answer's session and, for each topic in it, its name and its partitions' codes.
async fn fetch(shard: &Rc<Shard>, request: FetchRequest<'_>) -> (i16, i32, Vec<(String, Vec<i16>)>) {
    let chunks = wire::encode_request(1, Some("app"), VERSION, &request).unwrap();
    let frame = join(chunks.into_iter().filter_map(|chunk| memory(chunk, &[])));
    let frame = frame.slice(size_of::<i32>()..);
    let header = RequestHeader::decode(&mut Reader::new(&frame)).unwrap();
    let peer = SocketAddr::from(([127, 0, 0, 1], 5_000));
    let context = Context { shard, peer, version: VERSION, client_id: Some("app") };
    let answer = join(handle(&context, &header, &frame).await.unwrap().into_iter());
    // Behind the length, the correlation id and the header's empty tags.
    let mut reader = Reader::new(&answer);
    reader.i32().unwrap();
    reader.i32().unwrap();
    reader.skip_tagged_fields().unwrap();
    let response = FetchResponse::decode(&mut reader, VERSION).unwrap();
    let topic = |t: &wire::generated::fetch::FetchableTopicResponse<'_>| {
        (t.topic.to_string(), t.partitions.iter().map(|p| p.error_code).collect())
    };
    (response.error_code, response.session_id, response.responses.iter().map(topic).collect())
}

fn join(parts: impl Iterator<Item = Part>) -> Bytes {
    let mut bytes = BytesMut::new();
    for part in parts {
        let Part::Bytes(part) = part else { unreachable!("nothing was written to a file") };
        bytes.extend_from_slice(&part);
    }
    bytes.freeze()
}

fn request(session: (i32, i32), topics: &[&'static str]) -> FetchRequest<'static> {
    let partition = FetchPartition { partition_max_bytes: 1024, ..FetchPartition::default() };
    let topic = |&topic: &&'static str| FetchTopic { topic, partitions: vec![partition.clone()], ..Default::default() };
    FetchRequest {
        session_id: session.0,
        session_epoch: session.1,
        topics: topics.iter().map(topic).collect(),
        ..FetchRequest::default()
    }
}

#[test]
fn a_topic_that_is_gone_keeps_its_name_in_the_session_and_can_be_forgotten() {
    let folder = TempDir::new("fetch-session");
    let path = folder.path().to_path_buf();
    runtime::testing::run(move || {
        let path = path.clone();
        async move {
            let left = test_support::with_topic(&test_support::cluster(1), "left", 1, &[]);
            let both = test_support::with_topic(&left, "gone", 1, &[]);
            let shard = shard(&path, both.clone()).await;
            let all = vec![("gone".to_string(), vec![0]), ("left".to_string(), vec![0])];
            let (code, first, topics) = fetch(&shard, request((0, 0), &["gone", "left"])).await;
            assert_eq!((code, topics), (0, all.clone()));
            let (code, second, topics) = fetch(&shard, request((0, 0), &["gone", "left"])).await;
            assert_eq!((code, topics), (0, all));
            assert!(first != 0 && second != 0 && first != second);
            shard.apply(view(test_support::then(&both, delete("gone")))).await;

            let (code, id, topics) = fetch(&shard, request((first, 1), &[])).await;
            let unknown = ErrorCode::UnknownTopicOrPartition.code();
            assert_eq!((code, id, topics), (0, first, vec![("gone".to_string(), vec![unknown])]));

            let gone = ForgottenTopic { topic: "gone", partitions: vec![0], ..Default::default() };
            let forget = FetchRequest { forgotten_topics_data: vec![gone], ..request((second, 1), &[]) };
            assert_eq!(fetch(&shard, forget).await, (0, second, Vec::new()));
            assert_eq!(fetch(&shard, request((second, 2), &[])).await, (0, second, Vec::new()), "and goes on");

            stop(&[shard]).await;
        }
    });
}

fn delete(name: &str) -> Command {
    Command::DeleteTopic { id: test_support::topic_id(name) }
}

/// A topic of two partitions, one on each of two shards, and what a Fetch on the first shard asks of them.
struct Pair {
    shards: Vec<Rc<Shard>>,
    planned: Vec<Planned>,
    _folder: TempDir,
}

impl Pair {
    async fn new() -> Pair {
        let folder = TempDir::new("fetch-pair");
        let image = test_support::with_topic(&test_support::cluster(1), "pair", 2, &[]);
        let shards = shards(2, folder.path(), image).await;
        let mut keys = [0, 1]
            .map(|index| PartitionKey { topic_id: test_support::topic_id("pair"), partition: PartitionIndex(index) });
        keys.sort_by_key(|key| shards[0].view().placement.shard_of(*key));
        let plan = |(slot, &key): (usize, &PartitionKey)| {
            assert_eq!(shards[0].view().placement.shard_of(key), Some(slot));
            let part = FetchPart {
                slot,
                key,
                offset: Offset(0),
                current_leader_epoch: -1,
                last_fetched_epoch: -1,
                max_bytes: 1 << 20,
            };
            Planned { key, name: None, part: Ok(part) }
        };
        let planned = keys.iter().enumerate().map(plan).collect();
        let pair = Pair { shards, planned, _folder: folder };
        // Both are open from here on.
        pair.fetch(1, 0).await;
        pair
    }

    /// The first partition in this slot, asked for no more than so many bytes.
    fn planned_as(&self, slot: usize, max_bytes: usize) -> Planned {
        let Planned { key, part, .. } = &self.planned[0];
        Planned { key: *key, name: None, part: part.map(|part| FetchPart { slot, max_bytes, ..part }) }
    }

    /// Bytes by partition, whether the waits were kept, and the messages it took, there and back.
    async fn fetch(&self, min_bytes: i32, wait_ms: i64) -> (Vec<usize>, bool, (u64, u64)) {
        let hops = || (self.shards[0].post.hops(), self.shards[1].post.hops());
        let before = hops();
        let want = Want::new(min_bytes, 1 << 20, clock::now_ms() + wait_ms);
        let (results, kept) = Rounds::new(&self.shards[0], &self.planned, true).run(want).await;
        let now = hops();
        assert!(results.iter().all(|result| result.error_code == 0), "{results:?}");
        let bytes = results.iter().map(|result| result.bytes).collect();
        (bytes, kept.is_some(), (now.0 - before.0, now.1 - before.1))
    }

    /// One record for the partition of this shard, acknowledged.
    async fn produce(&self, owner: usize) {
        let batch = BatchBuilder::new().record(clock::wall_ms(), None, Some(b"news")).finish();
        let part = ProducePart { slot: 0, key: self.planned[owner].key, batch: batch.into() };
        let mail = ProduceMail { parts: vec![part], acks: -1, timeout_ms: 10_000 };
        let answer = self.shards[owner].post.call(owner, ShardRequest::Produce(mail)).await;
        let Some(ShardReply::Produce(results)) = answer else { unreachable!("produce mail has such an answer") };
        assert_eq!(results[0].error_code, 0);
    }

    /// A Fetch that waits, with a record for the partition of this shard once it does.
    async fn fetch_and_produce(&self, min_bytes: i32, owner: usize) -> (Vec<usize>, bool, (u64, u64)) {
        let produce = async {
            while self.shards.iter().any(|shard| shard.awaits.waiting() == 0) {
                clock::sleep(std::time::Duration::from_millis(1)).await;
            }
            self.produce(owner).await;
        };
        let (fetched, ()) = futures_lite::future::zip(self.fetch(min_bytes, 60_000), produce).await;
        fetched
    }
}

fn with_pair<F: Future<Output = ()>>(test: impl Fn(Rc<Pair>) -> F + Clone + Send + 'static) {
    runtime::testing::run(move || {
        let test = test.clone();
        async move {
            let pair = Rc::new(Pair::new().await);
            test(pair.clone()).await;
            assert!(pair.shards.iter().all(|shard| shard.awaits.waiting() == 0), "no wait outlives its fetch");
            stop(&pair.shards).await;
        }
    });
}

#[test]
fn news_of_another_shard_cost_a_message_each_way() {
    with_pair(|pair| async move {
        let (bytes, kept, hops) = pair.fetch_and_produce(1, 1).await;
        assert!(bytes[0] == 0 && bytes[1] > 0 && !kept, "{bytes:?}");
        assert_eq!(hops, (1, 1));
    });
}

#[test]
fn news_of_the_own_shard_call_the_others_off() {
    with_pair(|pair| async move {
        let (bytes, kept, hops) = pair.fetch_and_produce(1, 0).await;
        assert!(bytes[0] > 0 && bytes[1] == 0 && !kept, "{bytes:?}");
        assert_eq!(hops, (2, 1), "the question and its end, one answer");
    });
}

#[test]
fn what_is_there_comes_at_once_from_everyone() {
    with_pair(|pair| async move {
        pair.produce(0).await;
        pair.produce(1).await;
        let (bytes, _, hops) = pair.fetch(1, 60_000).await;
        assert!(bytes[0] > 0 && bytes[1] > 0, "{bytes:?}");
        assert_eq!(hops, (1, 1), "nobody is called off");
    });
}

#[test]
fn silence_until_the_deadline_keeps_all_waits() {
    with_pair(|pair| async move {
        let (bytes, kept, hops) = pair.fetch(1, 20).await;
        assert_eq!((bytes, kept, hops), (vec![0, 0], true, (1, 1)));
    });
}

#[test]
fn who_wants_more_than_a_byte_reads_again_until_there_is_enough() {
    with_pair(|pair| async move {
        pair.produce(0).await;
        let one = pair.fetch(1, 0).await.0[0];
        let (bytes, ..) = pair.fetch_and_produce(one as i32 + 1, 1).await;
        assert_eq!(bytes, [one, one]);
    });
}

#[test]
fn news_that_no_read_finds_are_not_looked_for_without_a_pause() {
    with_pair(|pair| async move {
        pair.produce(0).await;
        // Behind those that are read at the same time the last one's batch is always news and never has room.
        let slots = 0..=FETCH_READS_AT_ONCE;
        let planned: Vec<Planned> = slots.map(|slot| pair.planned_as(slot, FETCH_READS_AT_ONCE - slot)).collect();
        let waits = || pair.shards[0].facts.next_id.load(std::sync::atomic::Ordering::Relaxed);
        let (wait_ms, before) = (40, waits());
        let want = Want::new(i32::MAX, 1 << 20, clock::now_ms() + wait_ms);
        let (results, _) = Rounds::new(&pair.shards[0], &planned, false).run(want).await;
        assert!(results[0].bytes > 0 && results[FETCH_READS_AT_ONCE].bytes == 0);
        let most = std::time::Duration::from_millis(wait_ms as u64).as_micros() / FETCH_PAUSE.as_micros() + 10;
        assert!(u128::from(waits() - before) <= most, "{} rounds", waits() - before);
    });
}
