//! Fetch sessions through the handler, against one shard with a real log.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;

use log::{DataDir, DataDirs, LogShard, LogShardConfig};
use metadata::{Command, Image};
use model::NodeId;
use runtime::mailbox::Mailboxes;
use runtime::testing::TempDir;
use runtime::{ChunkPool, Post};
use wire::Decode;
use wire::generated::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic};

use super::*;
use crate::handlers::admin::test_support;
use crate::placement::Placement;
use crate::shard::{NodeFacts, Shard, ShardParts};
use crate::view::View;

/// The last version that names topics.
const VERSION: i16 = FIRST_WITH_TOPIC_ID - 1;

fn view(image: Image) -> View {
    let mut placement = Placement::new(1);
    placement.follow(&Image::default(), &image);
    View { placement, ..test_support::view(image) }
}

async fn shard(folder: &Path, image: Image) -> Rc<Shard> {
    let view = view(image);
    let facts = NodeFacts {
        node_id: NodeId(1),
        host: "broker.example".into(),
        port: 9_999,
        cluster_id: "c".into(),
        dirs: DataDirs::of_one(DataDir::open(folder).await.unwrap()),
        base_config: (*view.config).clone(),
        next_id: AtomicU64::new(1),
        max_connections: Arc::default(),
    };
    let mut log_config = LogShardConfig::new(0, ChunkPool::new(8 << 20));
    log_config.io_bytes = 2 << 20;
    let (post, log) = (Post::new(Mailboxes::new(1), 0), LogShard::new(log_config));
    let shard = Shard::new(ShardParts { index: 0, facts: Arc::new(facts), post, log, cluster: None, view });
    shard.serve();
    shard
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

            shard.begin_stop();
            shard.log.stop_clean().await.unwrap();
            shard.facts.dirs.metadata().close_clean().await.unwrap();
        }
    });
}

fn delete(name: &str) -> Command {
    Command::DeleteTopic { id: test_support::topic_id(name) }
}
