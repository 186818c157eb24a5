//! The driver against a scripted broker: what goes out in which order, and what the listener is told.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use model::batch::patch_position;
use model::builder::BatchBuilder;
use model::{LeaderEpoch, Offset};
use wire::generated::fetch::{FetchRequest, FetchResponse, FetchableTopicResponse, PartitionData};
use wire::generated::find_coordinator::{Coordinator, FindCoordinatorResponse};
use wire::generated::heartbeat::HeartbeatResponse;
use wire::generated::join_group::{JoinGroupRequest, JoinGroupResponse};
use wire::generated::leave_group::{LeaveGroupRequest, LeaveGroupResponse};
use wire::generated::list_offsets::{
    ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopicResponse,
};
use wire::generated::metadata::{MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic};
use wire::generated::offset_commit::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use wire::generated::offset_fetch::{
    OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
};
use wire::generated::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
};
use wire::generated::sync_group::{SyncGroupRequest, SyncGroupResponse};
use wire::{ApiKey, Decode, Reader};

use super::*;
use crate::ClientConfig;
use crate::client::fake_broker::{FakeBroker, Reply, Seen, metadata};
use crate::consumer::{AssignorKind, AutoOffsetReset, Consumer, ConsumerConfig};
use crate::consumer_protocol::Assignment;

const RECORDS: i64 = 3;

/// What the broker will do, and what it has done so far.
#[derive(Default)]
struct Script {
    /// Partitions that our member gets, by generation (from 1).
    assignments: Vec<Vec<i32>>,
    /// Heartbeats of a generation are answered with this.
    heartbeat_errors: Vec<(i32, i16)>,
    commit_errors: Vec<i16>,
    /// The first commit is answered after this long.
    commit_delay_ms: u64,
    /// Where a follower would listen that is in the metadata, and that whoever tells its rack is sent to.
    follower_port: Option<u16>,
    /// This many questions for committed offsets get an answer that leaves all partitions out.
    left_out: usize,
    /// The first join takes a while, and then makes another member of us.
    is_first_join_slow: bool,
    /// The second join takes a while.
    is_slow: bool,
    leader_epoch: i32,
    /// Where the log of older leaders ends, for who asks.
    epoch_end: i64,
    protocol: &'static str,
    generation: i32,
    committed: Vec<(i32, i32, i64)>,
    events: Vec<String>,
}

fn decoded<'a, T: Decode<'a>>(seen: &'a Seen) -> T {
    T::decode(&mut Reader::new(&seen.body), seen.version).unwrap()
}

fn answer(script: &Mutex<Script>, seen: &Seen, port: u16) -> Reply {
    let mut script = script.lock().unwrap();
    match seen.api {
        ApiKey::Metadata => {
            let mut answer = metadata(port, vec![topic(script.leader_epoch)]);
            let follower = script.follower_port.map(|port| MetadataResponseBroker {
                node_id: 2,
                port: port.into(),
                ..answer.brokers[0].clone()
            });
            answer.brokers.extend(follower);
            seen.answer(&answer)
        }
        ApiKey::FindCoordinator => {
            script.events.push("find".into());
            let found = Coordinator { key: "g".into(), node_id: 1, ..Coordinator::default() };
            seen.answer(&FindCoordinatorResponse { coordinators: vec![found], ..Default::default() })
        }
        ApiKey::JoinGroup => {
            let reply = join(&mut script, seen);
            let is_slow =
                script.is_slow && script.generation == 2 || script.is_first_join_slow && script.generation == 1;
            drop(script);
            std::thread::sleep(Duration::from_millis(if is_slow { 300 } else { 0 }));
            reply
        }
        ApiKey::SyncGroup => {
            let generation = decoded::<SyncGroupRequest<'_>>(seen).generation_id;
            let given = script.assignments.get(generation as usize - 1).cloned().unwrap_or_default();
            let partitions = given.into_iter().map(|index| TopicPartition::new("t", index)).collect();
            let assignment = Assignment { partitions, user_data: None }.encode();
            seen.answer(&SyncGroupResponse { assignment, ..Default::default() })
        }
        ApiKey::Heartbeat => {
            let generation = decoded::<wire::generated::heartbeat::HeartbeatRequest<'_>>(seen).generation_id;
            let error = script.heartbeat_errors.iter().find(|(of, _)| *of == generation);
            seen.answer(&HeartbeatResponse { error_code: error.map_or(0, |(_, code)| *code), ..Default::default() })
        }
        ApiKey::OffsetFetch if script.left_out > 0 => {
            script.left_out -= 1;
            let group = OffsetFetchResponseGroup { group_id: "g".into(), ..Default::default() };
            seen.answer(&OffsetFetchResponse { groups: vec![group], ..Default::default() })
        }
        ApiKey::OffsetFetch => seen.answer(&nothing_committed(&decoded(seen))),
        ApiKey::ListOffsets => seen.answer(&all_at_zero(&decoded(seen))),
        ApiKey::OffsetForLeaderEpoch => {
            script.events.push("epochs".into());
            seen.answer(&epochs_end_at(script.epoch_end, &decoded(seen)))
        }
        ApiKey::OffsetCommit => {
            let delay_ms = std::mem::take(&mut script.commit_delay_ms);
            let reply = commit(&mut script, seen);
            drop(script);
            std::thread::sleep(Duration::from_millis(delay_ms));
            reply
        }
        ApiKey::LeaveGroup => {
            let request: LeaveGroupRequest<'_> = decoded(seen);
            let is_other = request.members.iter().any(|member| member.member_id == "early");
            script.events.push(if is_other { "leave early" } else { "leave" }.into());
            seen.answer(&LeaveGroupResponse::default())
        }
        ApiKey::Fetch => {
            let has_follower = script.follower_port.is_some();
            drop(script);
            fetch(seen, has_follower)
        }
        _ => seen.usual(port),
    }
}

fn topic(leader_epoch: i32) -> MetadataResponseTopic<'static> {
    let partition = |index| MetadataResponsePartition {
        partition_index: index,
        leader_id: 1,
        leader_epoch,
        replica_nodes: vec![1],
        isr_nodes: vec![1],
        ..Default::default()
    };
    MetadataResponseTopic {
        name: Some("t".into()),
        topic_id: [7; 16],
        partitions: (0..4).map(partition).collect(),
        ..Default::default()
    }
}

fn join(script: &mut Script, seen: &Seen) -> Reply {
    let request: JoinGroupRequest<'_> = decoded(seen);
    if script.is_first_join_slow && script.generation == 0 {
        script.generation = 1;
        script.events.push("join early".into());
        return seen.answer(&JoinGroupResponse {
            generation_id: 1,
            protocol_name: Some(script.protocol.into()),
            leader: "other".into(),
            member_id: "early".into(),
            ..Default::default()
        });
    }
    if request.member_id.is_empty() && request.group_instance_id.is_none() {
        let given = JoinGroupResponse { error_code: 79, member_id: "m".into(), ..Default::default() };
        return seen.answer(&given);
    }
    script.generation += 1;
    let generation = script.generation;
    script.events.push(format!("join {generation}"));
    seen.answer(&JoinGroupResponse {
        generation_id: generation,
        protocol_name: Some(script.protocol.into()),
        leader: "other".into(),
        member_id: "m".into(),
        ..Default::default()
    })
}

fn commit(script: &mut Script, seen: &Seen) -> Reply {
    let request: OffsetCommitRequest<'_> = decoded(seen);
    let code = if script.commit_errors.is_empty() { 0 } else { script.commit_errors.remove(0) };
    let generation = request.generation_id_or_member_epoch;
    let mut text = Vec::new();
    let mut partitions = Vec::new();
    for one in request.topics.iter().flat_map(|topic| &topic.partitions) {
        text.push(format!("{}@{}", one.partition_index, one.committed_offset));
        if code == 0 {
            script.committed.push((generation, one.partition_index, one.committed_offset));
        }
        partitions.push(OffsetCommitResponsePartition { partition_index: one.partition_index, error_code: code });
    }
    script.events.push(format!("commit {generation} {}", text.join(" ")));
    let topic = OffsetCommitResponseTopic { name: "t".into(), partitions, ..Default::default() };
    seen.answer(&OffsetCommitResponse { topics: vec![topic], ..Default::default() })
}

fn nothing_committed(request: &OffsetFetchRequest<'_>) -> OffsetFetchResponse<'static> {
    let topics = request.groups[0].topics.as_ref().unwrap();
    let partition = |index: &i32| OffsetFetchResponsePartitions {
        partition_index: *index,
        committed_offset: -1,
        ..Default::default()
    };
    let topic = |topic: &wire::generated::offset_fetch::OffsetFetchRequestTopics<'_>| OffsetFetchResponseTopics {
        name: "t".into(),
        partitions: topic.partition_indexes.iter().map(partition).collect(),
        ..Default::default()
    };
    let group = OffsetFetchResponseGroup {
        group_id: "g".into(),
        topics: topics.iter().map(topic).collect(),
        ..Default::default()
    };
    OffsetFetchResponse { groups: vec![group], ..Default::default() }
}

fn all_at_zero(request: &ListOffsetsRequest<'_>) -> ListOffsetsResponse<'static> {
    let partition = |one: &wire::generated::list_offsets::ListOffsetsPartition| ListOffsetsPartitionResponse {
        partition_index: one.partition_index,
        offset: 0,
        ..Default::default()
    };
    let partitions = request.topics.iter().flat_map(|topic| topic.partitions.iter().map(partition)).collect();
    let topic = ListOffsetsTopicResponse { name: "t".into(), partitions };
    ListOffsetsResponse { topics: vec![topic], ..Default::default() }
}

fn epochs_end_at(end_offset: i64, request: &OffsetForLeaderEpochRequest<'_>) -> OffsetForLeaderEpochResponse<'static> {
    let partition = |one: &OffsetForLeaderPartition| EpochEndOffset {
        partition: one.partition,
        leader_epoch: one.leader_epoch,
        end_offset,
        error_code: 0,
    };
    let partitions = request.topics.iter().flat_map(|topic| topic.partitions.iter().map(partition)).collect();
    let topic = OffsetForLeaderTopicResult { topic: "t".into(), partitions };
    OffsetForLeaderEpochResponse { topics: vec![topic], ..Default::default() }
}

/// Every partition holds a few records and ends there. It keeps no session.
fn fetch(seen: &Seen, has_follower: bool) -> Reply {
    let request: FetchRequest<'_> = decoded(seen);
    let is_sent_on = has_follower && !request.rack_id.is_empty();
    let mut partitions = Vec::new();
    for one in request.topics.iter().flat_map(|topic| &topic.partitions) {
        let mut batch = BatchBuilder::new().base_offset(Offset(one.fetch_offset));
        for _ in one.fetch_offset..if is_sent_on { 0 } else { RECORDS } {
            batch = batch.record(1, None, Some(b"v"));
        }
        let mut records = if batch.is_empty() { Vec::new() } else { batch.finish() };
        if !records.is_empty() {
            patch_position(&mut records, Offset(one.fetch_offset), LeaderEpoch(0));
        }
        let records = Bytes::from(records);
        partitions.push(PartitionData {
            partition_index: one.partition,
            high_watermark: RECORDS,
            preferred_read_replica: if is_sent_on { 2 } else { -1 },
            records: records.into(),
            ..Default::default()
        });
    }
    if partitions.iter().all(|one| one.records.is_empty()) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let topic = FetchableTopicResponse { topic_id: [7; 16], partitions, ..Default::default() };
    seen.answer(&FetchResponse { responses: vec![topic], ..Default::default() })
}

struct Listener(Arc<Mutex<Script>>);

impl Listener {
    fn note(&self, what: &str, partitions: &[TopicPartition]) {
        let list: Vec<i32> = partitions.iter().map(|one| one.partition).collect();
        self.0.lock().unwrap().events.push(format!("{what} {list:?}"));
    }
}

impl RebalanceListener for Listener {
    fn revoked(&mut self, partitions: &[TopicPartition]) {
        self.note("revoked", partitions);
    }

    fn assigned(&mut self, partitions: &[TopicPartition]) {
        self.note("assigned", partitions);
    }

    fn lost(&mut self, partitions: &[TopicPartition]) {
        self.note("lost", partitions);
    }
}

fn config() -> ConsumerConfig {
    ConsumerConfig {
        group_id: Some("g".into()),
        heartbeat_interval_ms: 50,
        auto_offset_reset: AutoOffsetReset::Earliest,
        ..ConsumerConfig::default()
    }
}

fn cooperative() -> ConsumerConfig {
    ConsumerConfig { partition_assignors: vec![AssignorKind::CooperativeSticky], ..config() }
}

/// Runs `main` with a consumer of a broker that follows `script`; gives what happened.
fn with<F>(
    script: Script,
    config: ConsumerConfig,
    main: impl Fn(Consumer, Arc<Mutex<Script>>) -> F + Clone + Send + 'static,
) -> (Vec<String>, FakeBroker)
where
    F: Future<Output = ()> + 'static,
{
    let script = Arc::new(Mutex::new(script));
    let answers = script.clone();
    let broker = FakeBroker::start(move |seen, port| vec![answer(&answers, seen, port)]);
    let (address, running) = (broker.address(), script.clone());
    runtime::testing::run(move || {
        let client = Client::new(ClientConfig {
            bootstrap: vec![address.clone()],
            request_timeout_ms: 5_000,
            default_api_timeout_ms: 5_000,
            retry_backoff_ms: 10,
            ..ClientConfig::default()
        });
        let consumer = Consumer::new(&client.unwrap(), config.clone()).unwrap();
        main(consumer, running.clone())
    });
    let events = script.lock().unwrap().events.clone();
    (events, broker)
}

/// Polls until `count` records came and `done` says so.
async fn poll_until(consumer: &Consumer, count: usize, done: impl Fn() -> bool) -> usize {
    let mut got = 0;
    for _ in 0..200 {
        got += consumer.poll(20).await.unwrap().len();
        if got >= count && done() {
            return got;
        }
    }
    panic!("what was waited for did not come");
}

fn has(script: &Arc<Mutex<Script>>, event: &'static str) -> impl Fn() -> bool {
    let script = script.clone();
    move || script.lock().unwrap().events.iter().any(|one| one == event)
}

/// From here on, in the first generation.
fn heartbeats_fail(script: &Arc<Mutex<Script>>, code: i16) {
    script.lock().unwrap().heartbeat_errors.push((1, code));
}

fn script(protocol: &'static str, assignments: &[&[i32]]) -> Script {
    let assignments = assignments.iter().map(|one| one.to_vec()).collect();
    Script { protocol, assignments, ..Script::default() }
}

#[path = "liveness_tests.rs"]
mod liveness;

#[test]
fn an_eager_member_commits_and_lets_go_of_all_before_it_joins_again() {
    let (events, _) = with(script("range", &[&[0, 1], &[1]]), config(), |consumer, script| async move {
        consumer.subscribe(&["t"], Some(Box::new(Listener(script.clone())))).unwrap();
        poll_until(&consumer, 6, || true).await;
        heartbeats_fail(&script, 27);
        poll_until(&consumer, 0, has(&script, "assigned [1]")).await;
        assert_eq!(consumer.assignment(), [TopicPartition::new("t", 1)]);
    });
    let expected =
        ["find", "join 1", "assigned [0, 1]", "commit 1 0@3 1@3", "revoked [0, 1]", "join 2", "assigned [1]"];
    assert_eq!(events, expected);
}

#[test]
fn a_cooperative_member_lets_go_of_what_it_must_and_joins_again() {
    let begin = script("cooperative-sticky", &[&[0, 1], &[0], &[0]]);
    let (events, _) = with(begin, cooperative(), |consumer, script| async move {
        consumer.subscribe(&["t"], Some(Box::new(Listener(script.clone())))).unwrap();
        poll_until(&consumer, 6, || true).await;
        heartbeats_fail(&script, 27);
        poll_until(&consumer, 0, has(&script, "join 3")).await;
        poll_until(&consumer, 0, || consumer.assignment().len() == 1).await;
        consumer.poll(100).await.unwrap();
    });
    let expected = [
        "find",
        "join 1",
        "assigned [0, 1]",
        "commit 1 0@3 1@3",
        "join 2",
        "commit 2 1@3",
        "revoked [1]",
        "assigned []",
        "commit 2 0@3",
        "join 3",
        "assigned []",
    ];
    assert_eq!(events, expected);
}

#[test]
fn a_member_that_was_forgotten_loses_its_partitions_without_a_commit() {
    let (events, _) = with(script("range", &[&[0], &[0]]), config(), |consumer, script| async move {
        consumer.subscribe(&["t"], Some(Box::new(Listener(script.clone())))).unwrap();
        poll_until(&consumer, 3, || true).await;
        heartbeats_fail(&script, 25);
        poll_until(&consumer, 0, has(&script, "join 2")).await;
        poll_until(&consumer, 0, || consumer.assignment().len() == 1).await;
    });
    assert_eq!(events, ["find", "join 1", "assigned [0]", "lost [0]", "join 2", "assigned [0]"]);
}

#[test]
fn close_commits_lets_go_and_leaves() {
    let (events, _) = with(script("range", &[&[2]]), config(), |consumer, script| async move {
        consumer.subscribe(&["t"], Some(Box::new(Listener(script)))).unwrap();
        poll_until(&consumer, 3, || true).await;
        consumer.close().await;
        assert_eq!(consumer.poll(0).await, Err(ClientError::Closed));
    });
    assert_eq!(events, ["find", "join 1", "assigned [2]", "commit 1 2@3", "revoked [2]", "leave"]);
}

#[test]
fn a_static_member_stays_in_the_group_when_it_closes() {
    let config = ConsumerConfig { group_instance_id: Some("i".into()), enable_auto_commit: false, ..config() };
    let (events, _) = with(script("range", &[&[2]]), config, |consumer, script| async move {
        consumer.subscribe(&["t"], Some(Box::new(Listener(script)))).unwrap();
        poll_until(&consumer, 3, || true).await;
        consumer.close().await;
    });
    assert_eq!(events, ["find", "join 1", "assigned [2]", "revoked [2]"]);
}

#[test]
fn a_program_that_stops_polling_leaves_the_group_by_itself() {
    let config = ConsumerConfig { max_poll_interval_ms: 300, ..config() };
    let (events, _) = with(script("range", &[&[0], &[0]]), config, |consumer, script| async move {
        consumer.subscribe(&["t"], Some(Box::new(Listener(script.clone())))).unwrap();
        poll_until(&consumer, 3, || true).await;
        runtime::clock::sleep(Duration::from_millis(600)).await;
        assert!(has(&script, "leave")());
        let refused = consumer.commit_sync(None).await.unwrap_err();
        assert_eq!(refused.code(), Some(model::ErrorCode::UnknownMemberId));
        poll_until(&consumer, 0, has(&script, "join 2")).await;
        poll_until(&consumer, 0, || consumer.assignment().len() == 1).await;
    });
    assert_eq!(events, ["find", "join 1", "assigned [0]", "leave", "lost [0]", "join 2", "assigned [0]"]);
}

#[test]
fn a_commit_finds_a_coordinator_that_moved() {
    let begin = Script { commit_errors: vec![16, 14], ..script("range", &[]) };
    let (events, _) = with(begin, config(), |consumer, script| async move {
        consumer.assign(vec![TopicPartition::new("t", 0)]).unwrap();
        poll_until(&consumer, 3, || true).await;
        consumer.commit_sync(None).await.unwrap();
        assert_eq!(script.lock().unwrap().committed, [(-1, 0, 3)]);
    });
    assert_eq!(events, ["find", "commit -1 0@3", "find", "commit -1 0@3", "commit -1 0@3"]);
}

struct Committing(Consumer);

impl RebalanceListener for Committing {
    fn revoked(&mut self, _: &[TopicPartition]) {
        let offset = crate::consumer::OffsetAndMetadata::new(77);
        self.0.commit_async(Some([(TopicPartition::new("t", 0), offset)].into())).unwrap();
    }

    fn assigned(&mut self, _: &[TopicPartition]) {}
}

#[test]
fn what_a_listener_commits_goes_out_before_the_next_join() {
    let config = ConsumerConfig { enable_auto_commit: false, ..config() };
    let (events, _) = with(script("range", &[&[0], &[0]]), config, |consumer, script| async move {
        consumer.subscribe(&["t"], Some(Box::new(Committing(consumer.clone())))).unwrap();
        poll_until(&consumer, 3, || true).await;
        heartbeats_fail(&script, 27);
        poll_until(&consumer, 0, has(&script, "join 2")).await;
    });
    assert_eq!(events[..4], ["find", "join 1", "commit 1 0@77", "join 2"]);
}

#[test]
fn all_partitions_of_a_node_are_asked_for_in_one_request() {
    let config = ConsumerConfig { group_id: None, ..config() };
    let (_, broker) = with(script("range", &[]), config, |consumer, _| async move {
        consumer.assign((0..4).map(|index| TopicPartition::new("t", index)).collect()).unwrap();
        assert_eq!(poll_until(&consumer, 12, || true).await, 12);
        assert_eq!(consumer.lag(&TopicPartition::new("t", 3)), Some(0));
        assert_eq!(consumer.position(&TopicPartition::new("t", 3)).await, Ok(3));
    });
    let sizes: Vec<usize> = broker
        .asked_for(ApiKey::Fetch)
        .iter()
        .map(|seen| decoded::<FetchRequest<'_>>(seen).topics.iter().map(|topic| topic.partitions.len()).sum())
        .collect();
    assert_eq!(sizes[0], 4);
    assert!(sizes.len() < 12, "{sizes:?}");
}

#[test]
fn matching_topics_are_found_and_joined_with() {
    let (events, broker) = with(script("range", &[&[0]]), config(), |consumer, _| async move {
        consumer.subscribe_matching(|name| name.starts_with('t'), None).unwrap();
        poll_until(&consumer, 3, || true).await;
    });
    assert_eq!(events, ["find", "join 1"]);
    let join = broker.asked_for(ApiKey::JoinGroup).pop().unwrap();
    let request: JoinGroupRequest<'_> = decoded(&join);
    let said = crate::consumer_protocol::Subscription::decode(&request.protocols[0].metadata).unwrap();
    assert_eq!(said.topics, ["t".into()]);
}

#[test]
fn misuse_is_refused_in_a_sentence() {
    let config = ConsumerConfig { group_id: None, ..config() };
    with(script("range", &[]), config, |consumer, _| async move {
        let tp = TopicPartition::new("t", 0);
        assert!(matches!(consumer.poll(0).await, Err(ClientError::BadRequest { .. })));
        assert!(matches!(consumer.subscribe(&["t"], None), Err(ClientError::BadConfig { key: "group_id", .. })));
        assert!(matches!(consumer.commit_sync(None).await, Err(ClientError::BadConfig { key: "group_id", .. })));
        assert!(matches!(consumer.seek(&tp, 0), Err(ClientError::BadRequest { .. })));
        consumer.assign(vec![tp.clone()]).unwrap();
        assert!(matches!(consumer.seek(&tp, -1), Err(ClientError::BadRequest { .. })));
    });
}

#[test]
fn a_log_that_was_truncated_is_read_again_from_where_it_parts() {
    let config = ConsumerConfig { group_id: None, ..config() };
    let begin = Script { epoch_end: 2, ..script("range", &[]) };
    let (events, _) = with(begin, config, |consumer, script| async move {
        let tp = TopicPartition::new("t", 0);
        consumer.assign(vec![tp.clone()]).unwrap();
        assert_eq!(poll_until(&consumer, 3, || true).await, 3);
        script.lock().unwrap().leader_epoch = 1;
        consumer.inner.client.refresh().await.unwrap();
        assert_eq!(poll_until(&consumer, 1, || true).await, 1, "the record at 2 is another one now");
        assert_eq!(consumer.position(&tp).await, Ok(3));
    });
    assert_eq!(events, ["epochs"]);
}

#[test]
fn a_truncated_log_is_told_where_there_is_no_policy() {
    let config = ConsumerConfig { group_id: None, auto_offset_reset: AutoOffsetReset::None, ..config() };
    let begin = Script { epoch_end: 2, ..script("range", &[]) };
    with(begin, config, |consumer, script| async move {
        let tp = TopicPartition::new("t", 0);
        consumer.assign(vec![tp.clone()]).unwrap();
        consumer.seek(&tp, 0).unwrap();
        poll_until(&consumer, 3, || true).await;
        script.lock().unwrap().leader_epoch = 1;
        consumer.inner.client.refresh().await.unwrap();
        let mut told = None;
        while told.is_none() {
            told = consumer.poll(50).await.err();
        }
        let text = told.unwrap().to_string();
        assert!(text.contains("truncated") && text.contains("offset 3") && text.contains("offset 2"), "{text}");
        consumer.seek(&tp, 2).unwrap();
        assert_eq!(poll_until(&consumer, 1, || true).await, 1);
    });
}

#[test]
fn a_cooperative_member_that_closes_while_it_joins_commits_in_its_new_generation() {
    let begin = Script { is_slow: true, ..script("cooperative-sticky", &[&[0], &[0]]) };
    let (events, _) = with(begin, cooperative(), |consumer, script| async move {
        consumer.subscribe(&["t"], Some(Box::new(Listener(script.clone())))).unwrap();
        poll_until(&consumer, 3, || true).await;
        heartbeats_fail(&script, 27);
        poll_until(&consumer, 0, has(&script, "join 2")).await;
        consumer.close().await;
    });
    let end = ["join 2", "assigned []", "commit 2 0@3", "revoked [0]", "leave"];
    assert_eq!(events[events.len() - 5..], end);
}
