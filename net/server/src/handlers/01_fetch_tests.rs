//! Fetch sessions through the handler, against one shard with a real log.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

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
use crate::handlers::fetch_standing::{Head, Known, Standing};
use crate::limits::{FETCH_PAUSE, FETCH_READS_AT_ONCE, STANDING_MS};
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
    let topic = |t: &wire::generated::fetch::FetchableTopicResponse<'_>| {
        (t.topic.to_string(), t.partitions.iter().map(|p| p.error_code).collect())
    };
    ask(shard, request, |response| {
        (response.error_code, response.session_id, response.responses.iter().map(topic).collect())
    })
    .await
}

async fn ask<R>(shard: &Rc<Shard>, request: FetchRequest<'_>, look: impl FnOnce(FetchResponse<'_>) -> R) -> R {
    let chunks = wire::encode_request(1, Some("app"), VERSION, &request).unwrap();
    let frame = join(chunks.into_iter().filter_map(|chunk| memory(chunk, &[])));
    let frame = frame.slice(size_of::<i32>()..);
    let header = RequestHeader::decode(&mut Reader::new(&frame)).unwrap();
    let peer = SocketAddr::from(([127, 0, 0, 1], 5_000));
    let context = Context { shard, peer, connection: 1, version: VERSION, client_id: Some("app") };
    let answer = join(handle(&context, &header, &frame).await.unwrap().into_iter());
    // Behind the length, the correlation id and the header's empty tags.
    let mut reader = Reader::new(&answer);
    reader.i32().unwrap();
    reader.i32().unwrap();
    reader.skip_tagged_fields().unwrap();
    look(FetchResponse::decode(&mut reader, VERSION).unwrap())
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
        let want = Want::new(min_bytes, 1 << 20, clock::now_ms() + wait_ms);
        self.fetch_from([0, 0], want, &Known::Nothing, &mut Standing::default()).await
    }

    async fn fetch_from(
        &self,
        offsets: [i64; 2],
        want: Want,
        known: &Known<'_>,
        standing: &mut Standing,
    ) -> (Vec<usize>, bool, (u64, u64)) {
        let hops = || (self.shards[0].post.hops(), self.shards[1].post.hops());
        let before = hops();
        let plan = |(plan, offset): (&Planned, i64)| Planned {
            key: plan.key,
            name: None,
            part: plan.part.map(|part| FetchPart { offset: Offset(offset), ..part }),
        };
        let planned: Vec<Planned> = self.planned.iter().zip(offsets).map(plan).collect();
        let (results, kept) = Rounds::new(&self.shards[0], &planned, true).run(want, known, standing).await;
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

    /// A record for the partition of this shard once a Fetch waits at both.
    async fn produce_once_waited_for(&self, owner: usize) {
        while self.shards.iter().any(|shard| shard.awaits.waiting() == 0) {
            clock::sleep(Duration::from_millis(1)).await;
        }
        self.produce(owner).await;
    }

    async fn fetch_and_produce(&self, min_bytes: i32, owner: usize) -> (Vec<usize>, bool, (u64, u64)) {
        let fetch = self.fetch(min_bytes, 60_000);
        futures_lite::future::zip(fetch, self.produce_once_waited_for(owner)).await.0
    }

    /// What a client was told of both partitions while they were empty.
    fn told_of_nothing(&self) -> Vec<(PartitionKey, Option<Head>)> {
        let mut standing = Standing::default();
        let empty = |plan: &Planned| FetchResult {
            high_watermark: 0,
            log_start_offset: 0,
            ..FetchResult::error(plan.part.unwrap().slot, ErrorCode::None)
        };
        let results: Vec<FetchResult> = self.planned.iter().map(empty).collect();
        standing.tell(self.planned.iter().map(|plan| plan.key), &results);
        standing.take_told()
    }

    /// A Fetch from these offsets that stands at the other shard once news of the own one have ended it, and the deadline of it.
    async fn stand(&self, wait_ms: i64, told: &Known<'_>) -> (Standing, (u64, u64)) {
        let mut standing = Standing::default();
        let want = Want::new(1, 1 << 20, clock::now_ms() + wait_ms);
        let fetch = self.fetch_from([0, 0], want, told, &mut standing);
        let ((bytes, kept, hops), ()) = futures_lite::future::zip(fetch, self.produce_once_waited_for(0)).await;
        assert!(bytes[0] > 0 && bytes[1] == 0 && !kept, "{bytes:?}");
        (standing, hops)
    }

    async fn until(&self, condition: impl Fn() -> bool) {
        while !condition() {
            clock::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn with_pair<F: Future<Output = ()>>(test: impl Fn(Rc<Pair>) -> F + Clone + Send + 'static) {
    runtime::testing::run(move || {
        let test = test.clone();
        async move {
            let pair = Rc::new(Pair::new().await);
            test(pair.clone()).await;
            // Who called a wait off did not wait for that.
            pair.until(|| pair.shards.iter().all(|shard| shard.awaits.waiting() == 0)).await;
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
        let (results, _) =
            Rounds::new(&pair.shards[0], &planned, false).run(want, &Known::Nothing, &mut Standing::default()).await;
        assert!(results[0].bytes > 0 && results[FETCH_READS_AT_ONCE].bytes == 0);
        let most = Duration::from_millis(wait_ms as u64).as_micros() / FETCH_PAUSE.as_micros() + 10;
        assert!(u128::from(waits() - before) <= most, "{} rounds", waits() - before);
    });
}

#[test]
fn owners_without_news_are_asked_once_for_all_that_comes_before_theirs() {
    with_pair(|pair| async move {
        let told = pair.told_of_nothing();
        let told = Known::Told(&told);
        let (mut standing, hops) = pair.stand(60_000, &told).await;
        assert_eq!(hops, (1, 0), "the question");
        let want = || Want::new(1, 1 << 20, clock::now_ms() + 60_000);
        pair.produce(0).await;
        let (bytes, _, hops) = pair.fetch_from([1, 0], want(), &told, &mut standing).await;
        assert!(bytes[0] > 0 && bytes[1] == 0, "{bytes:?}");
        assert_eq!(hops, (0, 0), "it is known that there is nothing yet");
        let fetch = pair.fetch_from([2, 0], want(), &told, &mut standing);
        let ((bytes, _, hops), ()) = futures_lite::future::zip(fetch, pair.produce_once_waited_for(1)).await;
        assert!(bytes[0] == 0 && bytes[1] > 0, "{bytes:?}");
        assert_eq!(hops, (0, 1), "the answer");
        // By now the own shard's read stands.
        let fetch = pair.fetch_from([2, 1], want(), &told, &mut standing);
        let ((bytes, _, hops), ()) = futures_lite::future::zip(fetch, pair.produce_once_waited_for(0)).await;
        assert!(bytes[0] > 0 && bytes[1] == 0, "{bytes:?}");
        assert_eq!(hops, (1, 0));
        standing.call_off(&pair.shards[0]);
    });
}

#[test]
fn who_asks_for_something_else_is_not_given_what_stands() {
    with_pair(|pair| async move {
        let told = pair.told_of_nothing();
        let told = Known::Told(&told);
        pair.produce(1).await;
        let mut standing = Standing::default();
        let want = |bytes| Want::new(1, bytes, clock::now_ms() + 60_000);
        let fetch = pair.fetch_from([0, 1], want(1 << 20), &told, &mut standing);
        futures_lite::future::zip(fetch, pair.produce_once_waited_for(0)).await;
        // From an offset before: what stands would be given nothing.
        let (bytes, _, hops) = pair.fetch_from([0, 0], want(1 << 20), &told, &mut standing).await;
        assert!(bytes[0] > 0 && bytes[1] > 0, "{bytes:?}");
        assert_eq!(hops, (1, 2), "asked, with what stood called off, and both answered");
        let (bytes, ..) = pair.fetch_from([0, 1], want(1 << 10), &told, &mut standing).await;
        assert!(bytes[0] > 0 && bytes[1] == 0, "{bytes:?}");
        standing.call_off(&pair.shards[0]);
    });
}

#[test]
fn what_stood_to_an_earlier_deadline_is_asked_again() {
    with_pair(|pair| async move {
        let told = pair.told_of_nothing();
        let told = Known::Told(&told);
        let (mut standing, _) = pair.stand(20, &told).await;
        pair.until(|| pair.shards[1].awaits.waiting() == 0).await;
        let want = || Want::new(1, 1 << 20, clock::now_ms() + 20);
        let (bytes, kept, hops) = pair.fetch_from([1, 0], want(), &told, &mut standing).await;
        assert_eq!((bytes, kept), (vec![0, 0], true), "silence until the new deadline keeps all waits");
        assert_eq!(hops, (1, 1), "asked again, with the kept one let go");
        let (_, _, hops) = pair.fetch_from([1, 0], want(), &told, &mut standing).await;
        assert_eq!(hops, (1, 1), "nothing stands");
    });
}

/// The session, and the index, the high watermark and the log's start of each partition in an answer.
fn heads(response: FetchResponse<'_>) -> (i32, Vec<(i32, i64, i64)>) {
    let partition = |p: &wire::generated::fetch::PartitionData| {
        assert_eq!(p.error_code, 0);
        (p.partition_index, p.high_watermark, p.log_start_offset)
    };
    let mut partitions: Vec<_> = response.responses.iter().flat_map(|t| t.partitions.iter().map(partition)).collect();
    partitions.sort_by_key(|(index, ..)| *index);
    (response.session_id, partitions)
}

impl Pair {
    /// Partition index and offset of each that the request names.
    fn request(&self, session: (i32, i32), from: &[(usize, i64)]) -> FetchRequest<'static> {
        let partition = |&(owner, fetch_offset): &(usize, i64)| FetchPartition {
            partition: self.index(owner),
            fetch_offset,
            partition_max_bytes: 1 << 20,
            ..FetchPartition::default()
        };
        let partitions: Vec<FetchPartition> = from.iter().map(partition).collect();
        let topics = vec![FetchTopic { topic: "pair", partitions, ..Default::default() }];
        FetchRequest {
            session_id: session.0,
            session_epoch: session.1,
            max_wait_ms: 60_000,
            min_bytes: 1,
            topics: if from.is_empty() { Vec::new() } else { topics },
            ..FetchRequest::default()
        }
    }

    fn index(&self, owner: usize) -> i32 {
        self.planned[owner].key.partition.0
    }

    async fn ask_and_produce(&self, request: FetchRequest<'_>, owner: usize) -> (i32, Vec<(i32, i64, i64)>) {
        let answer = ask(&self.shards[0], request, heads);
        futures_lite::future::zip(answer, self.produce_once_waited_for(owner)).await.0
    }

    fn waits_of_the_other(&self) -> usize {
        self.shards[1].awaits.waiting()
    }
}

#[test]
fn without_a_session_owners_that_stand_are_said_to_be_as_before() {
    with_pair(|pair| async move {
        pair.produce(1).await;
        let shard = &pair.shards[0];
        let (_, first) = ask(shard, pair.request((0, -1), &[(0, 0), (1, 0)]), heads).await;
        assert_eq!(first.iter().map(|(_, hw, start)| (*hw, *start)).max(), Some((1, 0)), "{first:?}");
        let (_, second) = pair.ask_and_produce(pair.request((0, -1), &[(0, 0), (1, 1)]), 0).await;
        assert_eq!(second.iter().map(|(_, hw, start)| (*hw, *start)).collect::<Vec<_>>(), [(1, 0), (1, 0)]);
        assert_eq!((shard.standings.reads(), pair.waits_of_the_other()), (1, 1));
        // The client does not come back.
        shard.standings.sweep(shard, clock::now_ms());
        assert_eq!(shard.standings.reads(), 1);
        shard.standings.sweep(shard, clock::now_ms() + STANDING_MS + 1);
        assert_eq!(shard.standings.reads(), 0);
    });
}

#[test]
fn a_session_is_told_nothing_of_owners_that_stand_until_they_have_news() {
    with_pair(|pair| async move {
        let shard = &pair.shards[0];
        let (id, all) = pair.ask_and_produce(pair.request((0, 0), &[(0, 0), (1, 0)]), 0).await;
        assert_eq!(all.len(), 2, "a full answer names all: nothing stands yet");
        assert_eq!(shard.standings.reads(), 0);
        let (_, news) = pair.ask_and_produce(pair.request((id, 1), &[(0, 1)]), 0).await;
        assert_eq!(news.iter().map(|(index, hw, ..)| (*index, *hw)).collect::<Vec<_>>(), [(pair.index(0), 2)]);
        assert_eq!((shard.standings.reads(), pair.waits_of_the_other()), (1, 1));
        let (_, news) = pair.ask_and_produce(pair.request((id, 2), &[(0, 2)]), 1).await;
        assert_eq!(news.iter().map(|(index, hw, ..)| (*index, *hw)).collect::<Vec<_>>(), [(pair.index(1), 1)]);
        assert_eq!(shard.standings.reads(), 1, "the own shard's");
        // Leaders may have changed: who asks next hears of it from everyone.
        let image = test_support::with_topic(&test_support::cluster(1), "pair", 2, &[]);
        shard.apply(placed_on(2, image)).await;
        assert_eq!(shard.standings.reads(), 0);
    });
}
