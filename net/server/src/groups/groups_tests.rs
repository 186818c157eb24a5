//! The handlers against one shard with a real log: a `Start` is one start of the process on a data folder.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use log::{DataDir, DataDirs, LogShard, LogShardConfig};
use metadata::{Command, Image, Incarnation};
use model::config::BrokerConfig;
use model::{NodeId, TopicId};
use runtime::mailbox::Mailboxes;
use runtime::testing::TempDir;
use runtime::{ChunkPool, Post};
use wire::generated::delete_groups::DeleteGroupsRequest;
use wire::generated::describe_groups::{DescribeGroupsRequest, DescribedGroup};
use wire::generated::find_coordinator::FindCoordinatorRequest;
use wire::generated::heartbeat::HeartbeatRequest;
use wire::generated::join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse};
use wire::generated::list_groups::ListGroupsRequest;
use wire::generated::offset_commit::{OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use wire::generated::offset_delete::{OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use wire::generated::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use wire::generated::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment};

use super::*;
use crate::handlers::{self, Context};
use crate::placement::Placement;
use crate::shard::{NodeFacts, ShardParts};

const TOPIC: TopicId = TopicId([0x11; 16]);
const OFFSETS: TopicId = TopicId([0x22; 16]);
const NODE: NodeId = NodeId(1);

fn image(topics: &[(&str, TopicId, usize)]) -> Arc<Image> {
    let mut commands = vec![
        Command::FormatCluster { cluster_id: "QUFBQUFBQUFBQUFBQUFBQQ".into(), features: Vec::new() },
        Command::RegisterBroker {
            node: NODE,
            incarnation: Incarnation([1; 16]),
            host: "localhost".into(),
            port: 9092,
            rack: None,
        },
    ];
    commands.extend(topics.iter().map(|&(name, id, partitions)| Command::CreateTopic {
        name: name.into(),
        id,
        assignments: vec![vec![NODE]; partitions],
        configs: Vec::new(),
    }));
    let mut image = Image::default();
    for (index, command) in commands.iter().enumerate() {
        image = metadata::apply(&image, index as u64 + 1, command).unwrap().0;
    }
    Arc::new(image)
}

fn both() -> Arc<Image> {
    image(&[("t", TOPIC, 2), (OFFSETS_TOPIC, OFFSETS, 4)])
}

fn view(image: Arc<Image>) -> View {
    let config =
        BrokerConfig::from_pairs([("group.initial.rebalance.delay.ms", "0"), ("group.min.session.timeout.ms", "1")]);
    let mut placement = Placement::new(1);
    placement.follow(&Image::default(), &image);
    View { image, placement, config: Arc::new(config.unwrap()) }
}

struct Start {
    shard: Rc<Shard>,
}

impl Start {
    async fn new(path: &Path, image: Arc<Image>) -> Start {
        let view = view(image);
        let facts = NodeFacts {
            node_id: NODE,
            host: "broker.example".into(),
            port: 9_999,
            cluster_id: "c".into(),
            dirs: DataDirs::of_one(DataDir::open(path).await.unwrap()),
            base_config: (*view.config).clone(),
            next_id: AtomicU64::new(1),
            max_connections: Arc::default(),
        };
        let mut log_config = LogShardConfig::new(0, ChunkPool::new(8 << 20));
        log_config.io_bytes = 2 << 20;
        let parts = ShardParts {
            index: 0,
            facts: Arc::new(facts),
            post: Post::new(Mailboxes::new(1), 0),
            log: LogShard::new(log_config),
            cluster: None,
            view,
        };
        Start { shard: Shard::new(parts) }
    }

    async fn stop(self) {
        self.shard.begin_stop();
        stop(&self.shard).await;
        self.shard.log.stop_clean().await.unwrap();
        self.shard.facts.dirs.metadata().close_clean().await.unwrap();
    }

    fn at(&self, version: i16) -> Context<'_> {
        let peer = SocketAddr::from(([127, 0, 0, 1], 5_000));
        Context { shard: &self.shard, peer, connection: 1, version, client_id: Some("app") }
    }

    async fn join(&self, member_id: &str, session_timeout_ms: i32) -> JoinGroupResponse<'static> {
        let protocols = vec![JoinGroupRequestProtocol { name: "range", metadata: Bytes::from_static(b"subscribed") }];
        let request = JoinGroupRequest {
            group_id: "g",
            session_timeout_ms,
            rebalance_timeout_ms: 1_000,
            member_id,
            protocol_type: "other",
            protocols,
            ..JoinGroupRequest::default()
        };
        handlers::join_group::handle(&self.at(9), request).await
    }

    /// A member of its own in a stable group; its id and generation.
    async fn member(&self, session_timeout_ms: i32) -> (String, i32) {
        let told = self.join("", session_timeout_ms).await;
        assert_eq!(told.error_code, ErrorCode::MemberIdRequired.code());
        let joined = self.join(&told.member_id, session_timeout_ms).await;
        assert_eq!((joined.error_code, &joined.leader), (0, &joined.member_id));
        let request = SyncGroupRequest {
            group_id: "g",
            generation_id: joined.generation_id,
            member_id: &joined.member_id,
            protocol_type: Some("other"),
            protocol_name: Some("range"),
            assignments: vec![SyncGroupRequestAssignment {
                member_id: &joined.member_id,
                assignment: Bytes::from_static(b"everything"),
            }],
            ..SyncGroupRequest::default()
        };
        let synced = handlers::sync_group::handle(&self.at(5), request).await;
        assert_eq!((synced.error_code, &synced.assignment[..]), (0, &b"everything"[..]));
        (joined.member_id.into_owned(), joined.generation_id)
    }

    /// Commits by topic name (v9) and gives each partition's code, in the answer's order.
    async fn commit(&self, who: (&str, i32), topic: &str, offsets: &[(i32, i64)]) -> Vec<(i32, i16)> {
        let partition = |&(partition_index, committed_offset): &(i32, i64)| OffsetCommitRequestPartition {
            partition_index,
            committed_offset,
            committed_metadata: Some("note"),
            ..OffsetCommitRequestPartition::default()
        };
        let partitions = offsets.iter().map(partition).collect();
        let request = OffsetCommitRequest {
            group_id: "g",
            generation_id_or_member_epoch: who.1,
            member_id: who.0,
            topics: vec![OffsetCommitRequestTopic { name: topic, partitions, ..Default::default() }],
            ..OffsetCommitRequest::default()
        };
        let answer = handlers::offset_commit::handle(&self.at(9), request).await;
        answer.topics.iter().flat_map(|t| t.partitions.iter().map(|p| (p.partition_index, p.error_code))).collect()
    }

    /// Offsets of `t` by id (v10).
    async fn fetch(&self, partitions: &[i32]) -> Vec<i64> {
        let topic = OffsetFetchRequestTopics { topic_id: TOPIC.0, partition_indexes: partitions.to_vec(), name: "" };
        let group = OffsetFetchRequestGroup { group_id: "g", topics: Some(vec![topic]), ..Default::default() };
        let request = OffsetFetchRequest { groups: vec![group], require_stable: true, ..Default::default() };
        let answer = handlers::offset_fetch::handle(&self.at(10), request).await;
        assert_eq!(answer.groups[0].error_code, 0);
        answer.groups[0].topics.iter().flat_map(|t| t.partitions.iter().map(|p| p.committed_offset)).collect()
    }

    /// Names, offsets and notes of everything committed, as v7 shows it.
    async fn fetch_all(&self) -> Vec<(String, i64, String)> {
        let request = OffsetFetchRequest { group_id: "g", topics: None, ..Default::default() };
        let answer = handlers::offset_fetch::handle(&self.at(7), request).await;
        assert_eq!(answer.error_code, 0);
        let mut all = Vec::new();
        for topic in answer.topics {
            for p in topic.partitions {
                all.push((topic.name.to_string(), p.committed_offset, p.metadata.unwrap().into_owned()));
            }
        }
        all
    }

    async fn describe(&self, version: i16) -> DescribedGroup<'static> {
        let request = DescribeGroupsRequest { groups: vec!["g"], include_authorized_operations: true };
        handlers::describe_groups::handle(&self.at(version), request).await.groups.remove(0)
    }

    async fn list(&self, states: Vec<&str>) -> Vec<(String, String)> {
        let request = ListGroupsRequest { states_filter: states, types_filter: vec!["Classic"] };
        let answer = handlers::list_groups::handle(&self.at(5), request).await;
        assert_eq!(answer.error_code, 0);
        answer.groups.into_iter().map(|g| (g.group_id.into_owned(), g.group_state.into_owned())).collect()
    }

    async fn delete(&self) -> i16 {
        let request = DeleteGroupsRequest { groups_names: vec!["g", "g"] };
        let answer = handlers::delete_groups::handle(&self.at(2), request).await;
        assert_eq!(answer.results.len(), 1);
        answer.results[0].error_code
    }

    async fn heartbeat(&self, member_id: &str, generation_id: i32) -> i16 {
        let request = HeartbeatRequest { group_id: "g", generation_id, member_id, group_instance_id: None };
        handlers::heartbeat::handle(&self.at(4), request).await.error_code
    }
}

/// Runs a test on one shard with a data folder.
fn on_a_shard<F: Future<Output = ()> + 'static>(
    name: &str,
    test: impl Fn(std::path::PathBuf) -> F + Clone + Send + 'static,
) {
    let dir = TempDir::new(name);
    let path = dir.path().to_path_buf();
    runtime::testing::run(move || test(path.clone()));
}

#[test]
fn group_and_offsets_are_there_after_a_restart() {
    on_a_shard("groups-restart", |path| async move {
        let start = Start::new(&path, both()).await;
        let (member, generation) = start.member(30_000).await;
        assert_eq!(start.heartbeat(&member, generation).await, 0);
        assert_eq!(start.heartbeat(&member, generation + 1).await, ErrorCode::IllegalGeneration.code());
        assert_eq!(
            start.commit((&member, generation), "t", &[(0, 42), (7, 1), (1, 43)]).await,
            [(7, 3), (0, 0), (1, 0)]
        );
        assert_eq!(start.commit(("", -1), "t", &[(0, 1)]).await, [(0, 25)]);
        assert_eq!(start.commit((&member, generation), "nope", &[(0, 1)]).await, [(0, 3)]);
        assert_eq!(start.fetch(&[0, 1, 5]).await, [42, 43, -1]);
        assert_eq!(start.delete().await, ErrorCode::NonEmptyGroup.code());
        start.stop().await;

        let start = Start::new(&path, both()).await;
        load_all_found(&start.shard).await;
        assert_eq!(start.fetch(&[0, 1]).await, [42, 43]);
        assert_eq!(start.fetch_all().await, [("t".into(), 42, "note".into()), ("t".into(), 43, "note".into())]);
        let described = start.describe(6).await;
        assert_eq!((described.error_code, &*described.group_state), (0, "Stable"));
        assert_eq!((&*described.protocol_data, described.authorized_operations), ("range", 3_400));
        assert_eq!(described.members[0].client_host, "/127.0.0.1");
        assert_eq!(&described.members[0].member_assignment[..], b"everything");
        assert_eq!(start.list(vec!["stable "]).await, [("g".into(), "Stable".into())]);
        assert!(start.list(vec!["Empty"]).await.is_empty());
        assert_eq!(start.heartbeat(&member, generation).await, 0);
        start.stop().await;
    });
}

#[test]
fn offsets_of_a_deleted_topic_go_and_stay_away() {
    on_a_shard("groups-topic", |path| async move {
        let start = Start::new(&path, both()).await;
        assert_eq!(start.commit(("", -1), "t", &[(0, 5), (1, 6)]).await, [(0, 0), (1, 0)]);
        start.shard.apply(view(image(&[(OFFSETS_TOPIC, OFFSETS, 4), ("u", TopicId([3; 16]), 1)]))).await;
        assert_eq!(start.commit(("", -1), "u", &[(0, 9)]).await, [(0, 0)]);
        topic_deleted(&start.shard, TOPIC, "t").await;
        start.shard.apply(view(both())).await;
        assert_eq!(start.fetch(&[0, 1]).await, [-1, -1]);
        start.stop().await;

        // The other topic was deleted too, and the process ended before the tombstones were written.
        let start = Start::new(&path, both()).await;
        assert!(start.fetch_all().await.is_empty());
        for driver in start.shard.groups.all() {
            driver.flushed().await;
            assert_eq!(driver.look(|coordinator, _| coordinator.offset_count()), Ok(0));
        }
        assert_eq!(start.delete().await, 0);
        start.stop().await;

        let start = Start::new(&path, both()).await;
        assert!(start.list(Vec::new()).await.is_empty());
        assert_eq!(start.describe(6).await.error_code, ErrorCode::GroupIdNotFound.code());
        start.stop().await;
    });
}

#[test]
fn a_silent_member_is_thrown_out_by_the_timer() {
    on_a_shard("groups-session", |path| async move {
        let start = Start::new(&path, both()).await;
        let (member, generation) = start.member(50).await;
        let mut state = String::new();
        for _ in 0..200 {
            state = start.describe(5).await.group_state.into_owned();
            if state == "Empty" {
                break;
            }
            clock::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(state, "Empty");
        assert_eq!(start.heartbeat(&member, generation).await, ErrorCode::UnknownMemberId.code());
        start.stop().await;
    });
}

#[test]
fn a_stop_answers_who_waits() {
    on_a_shard("groups-stop", |path| async move {
        let start = Start::new(&path, both()).await;
        let (_member, _) = start.member(30_000).await;
        // A second member waits for the first one to come back.
        let told = start.join("", 30_000).await;
        let again = Start { shard: start.shard.clone() };
        let waiting = runtime::spawn("join", async move { again.join(&told.member_id, 30_000).await.error_code });
        while start.describe(5).await.group_state != "PreparingRebalance" {
            clock::sleep(Duration::from_millis(5)).await;
        }
        stop(&start.shard).await;
        assert_eq!(waiting.join().await, Some(ErrorCode::NotCoordinator.code()));
        assert_eq!(start.heartbeat("m", 1).await, ErrorCode::NotCoordinator.code());
        start.stop().await;
    });
}

#[test]
fn without_the_offsets_topic_groups_are_unknown() {
    on_a_shard("groups-none", |path| async move {
        let start = Start::new(&path, image(&[("t", TOPIC, 2)])).await;
        assert_eq!(&*start.describe(5).await.group_state, "Dead");
        assert_eq!(start.describe(6).await.error_code, ErrorCode::GroupIdNotFound.code());
        assert_eq!(start.fetch(&[0]).await, [-1]);
        assert!(start.list(Vec::new()).await.is_empty());
        assert_eq!(start.delete().await, ErrorCode::GroupIdNotFound.code());
        assert_eq!(start.heartbeat("m", 1).await, ErrorCode::NotCoordinator.code());
        // The topic cannot be made here: there is no quorum.
        assert_eq!(start.join("", 30_000).await.error_code, ErrorCode::CoordinatorNotAvailable.code());
        start.stop().await;
    });
}

#[test]
fn coordinators_are_this_node_for_groups_only() {
    on_a_shard("groups-find", |path| async move {
        let start = Start::new(&path, both()).await;
        let find = |version: i16, key_type: i8| {
            let context = start.at(version);
            async move {
                let request = FindCoordinatorRequest { key: "g", key_type, coordinator_keys: vec!["g", "h"] };
                handlers::find_coordinator::handle(&context, request).await
            }
        };
        let old = find(3, 0).await;
        assert_eq!(
            (old.node_id, &*old.host, old.port, old.error_message.as_deref()),
            (1, "broker.example", 9_999, Some("NONE"))
        );
        let new = find(6, 0).await;
        assert_eq!(
            new.coordinators.iter().map(|c| (&*c.key, c.port)).collect::<Vec<_>>(),
            [("g", 9_999), ("h", 9_999)]
        );
        let codes = [1, 2, 9].map(|kind| find(6, kind));
        let codes: Vec<i16> = all(codes.into()).await.iter().map(|r| r.coordinators[0].error_code).collect();
        assert_eq!(codes, [53, 42, 42]);
        assert_eq!(find(2, 1).await.node_id, -1);
        start.stop().await;
    });
}

#[test]
fn offsets_are_deleted_where_nobody_reads_them() {
    on_a_shard("groups-offset-delete", |path| async move {
        let start = Start::new(&path, both()).await;
        let delete = || async {
            let partitions = [0, 9].map(|partition_index| OffsetDeleteRequestPartition { partition_index });
            let topic = OffsetDeleteRequestTopic { name: "t", partitions: partitions.into() };
            let request = OffsetDeleteRequest { group_id: "g", topics: vec![topic] };
            handlers::offset_delete::handle(&start.at(0), request).await
        };
        let unknown = delete().await;
        assert_eq!((unknown.error_code, unknown.topics.len()), (ErrorCode::GroupIdNotFound.code(), 0));
        assert_eq!(start.commit(("", -1), "t", &[(0, 5), (1, 6)]).await, [(0, 0), (1, 0)]);
        let deleted = delete().await;
        let codes: Vec<(i32, i16)> =
            deleted.topics[0].partitions.iter().map(|p| (p.partition_index, p.error_code)).collect();
        assert_eq!((deleted.error_code, codes), (0, vec![(9, 3), (0, 0)]));
        assert_eq!(start.fetch(&[0, 1]).await, [-1, 6]);
        start.stop().await;
    });
}
