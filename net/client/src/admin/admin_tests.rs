#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicUsize, Ordering};

use wire::generated::api_versions::{ApiVersion, ApiVersionsResponse};
use wire::generated::create_topics::{CreatableTopicResult, CreateTopicsResponse};
use wire::generated::delete_groups::{DeletableGroupResult, DeleteGroupsResponse};
use wire::generated::find_coordinator::{Coordinator, FindCoordinatorResponse};
use wire::generated::list_offsets::ListOffsetsTopicResponse;
use wire::generated::list_offsets::{ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse};
use wire::generated::metadata::{
    MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use wire::generated::offset_commit::{OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use wire::{ApiKey, Decode, Reader};

use super::*;
use crate::ClientConfig;
use crate::client::fake_broker::{FakeBroker, Reply, Seen, metadata};

fn admin(broker: &FakeBroker) -> Admin {
    let config = ClientConfig {
        bootstrap: vec![broker.address()],
        default_api_timeout_ms: 2_000,
        request_timeout_ms: 1_000,
        reconnect_backoff_ms: 10,
        retry_backoff_ms: 5,
        retry_backoff_max_ms: 20,
        ..ClientConfig::default()
    };
    Admin::new(Client::new(config).unwrap())
}

/// Runs `test` against a fake broker whose answers `answers` gives; `None`: the usual ones.
fn run<F>(
    answers: impl Fn(&Seen, u16) -> Option<Reply> + Send + Sync + 'static,
    test: impl Fn(Admin) -> F + Clone + Send + 'static,
) -> FakeBroker
where
    F: Future<Output = ()> + 'static,
{
    let broker = FakeBroker::start(move |seen, port| vec![answers(seen, port).unwrap_or_else(|| seen.usual(port))]);
    let given = broker.clone();
    runtime::testing::run(move || test(admin(&given)));
    broker
}

fn created(name: &str, error_code: i16) -> CreatableTopicResult<'_> {
    CreatableTopicResult { name: name.into(), error_code, ..CreatableTopicResult::default() }
}

#[test]
fn what_fails_in_passing_is_tried_again_and_nothing_else() {
    let rounds = AtomicUsize::new(0);
    let broker = run(
        move |seen, _| {
            let first = rounds.load(Ordering::SeqCst) == 0;
            (seen.api == ApiKey::CreateTopics).then(|| {
                rounds.fetch_add(1, Ordering::SeqCst);
                let topics = if first {
                    vec![created("a", 0), created("b", 41), created("c", 36)]
                } else {
                    vec![created("b", 0)]
                };
                seen.answer(&CreateTopicsResponse { topics, ..CreateTopicsResponse::default() })
            })
        },
        |admin| async move {
            let topics = ["c", "b", "a"].map(NewTopic::new);
            let results = admin.create_topics(&topics, false).await.unwrap();
            let ok: Vec<_> = results.iter().map(|(name, result)| (name.as_str(), result.is_ok())).collect();
            assert_eq!(ok, [("c", false), ("b", true), ("a", true)]);
        },
    );
    assert_eq!(broker.asked_for(ApiKey::CreateTopics).len(), 2);
}

#[test]
fn a_call_ends_at_its_deadline_with_what_stood_in_the_way() {
    run(
        |seen, _| {
            let topics = vec![created("a", 41)];
            (seen.api == ApiKey::CreateTopics)
                .then(|| seen.answer(&CreateTopicsResponse { topics, ..CreateTopicsResponse::default() }))
        },
        |admin| async move {
            let begun = runtime::clock::now_ms();
            let results = admin.create_topics(&[NewTopic::new("a")], false).await.unwrap();
            assert_eq!(results[0].1.as_ref().unwrap_err().code(), Some(model::ErrorCode::NotController));
            assert!((1_500..4_000).contains(&(runtime::clock::now_ms() - begun)));
        },
    );
}

#[test]
fn an_answer_that_leaves_a_topic_out_or_adds_one_is_seen_through() {
    run(
        |seen, _| {
            let topics = vec![created("z", 0)];
            (seen.api == ApiKey::CreateTopics)
                .then(|| seen.answer(&CreateTopicsResponse { topics, ..CreateTopicsResponse::default() }))
        },
        |admin| async move {
            let results = admin.create_topics(&[NewTopic::new("a")], false).await.unwrap();
            assert_eq!(results.len(), 1);
            assert!(matches!(results[0].1, Err(ClientError::BadAnswer { .. })));
        },
    );
}

fn three_partitions(port: u16) -> MetadataResponse<'static> {
    // Nodes 1 and 2 are the same process; 1 leads partitions 0 and 2.
    let partition = |index: i32| MetadataResponsePartition {
        partition_index: index,
        leader_id: 1 + index % 2,
        ..MetadataResponsePartition::default()
    };
    let topic = MetadataResponseTopic {
        name: Some("t".into()),
        partitions: (0..3).map(partition).collect(),
        ..MetadataResponseTopic::default()
    };
    let second = MetadataResponseBroker { node_id: 2, host: "127.0.0.1".into(), port: port.into(), rack: None };
    let mut answer = metadata(port, vec![topic]);
    answer.brokers.push(second);
    answer
}

fn offsets(seen: &Seen) -> Reply {
    let request = ListOffsetsRequest::decode(&mut Reader::new(&seen.body), seen.version).unwrap();
    let topics = request.topics.iter().map(|topic| ListOffsetsTopicResponse {
        name: topic.name.into(),
        partitions: topic
            .partitions
            .iter()
            .map(|one| ListOffsetsPartitionResponse {
                partition_index: one.partition_index,
                offset: 100 + i64::from(one.partition_index),
                ..ListOffsetsPartitionResponse::default()
            })
            .collect(),
    });
    seen.answer(&ListOffsetsResponse { topics: topics.collect(), ..ListOffsetsResponse::default() })
}

#[test]
fn offsets_take_one_request_a_leader() {
    let broker = run(
        |seen, port| match seen.api {
            ApiKey::Metadata => Some(seen.answer(&three_partitions(port))),
            ApiKey::ListOffsets => Some(offsets(seen)),
            _ => None,
        },
        |admin| async move {
            let wanted: Vec<_> = (0..4).map(|index| (TopicPartition::new("t", index), OffsetSpec::Latest)).collect();
            let results = admin.list_offsets(&wanted, false).await.unwrap();
            let found: Vec<_> = results.iter().map(|(_, result)| result.as_ref().ok().map(|one| one.offset)).collect();
            assert_eq!(found, [Some(100), Some(101), Some(102), None]);
        },
    );
    assert_eq!(broker.asked_for(ApiKey::ListOffsets).len(), 2);
}

fn coordinator(seen: &Seen, node_id: i32, error_code: i16) -> Reply {
    if seen.version < 4 {
        return seen.answer(&FindCoordinatorResponse { error_code, node_id, ..FindCoordinatorResponse::default() });
    }
    let one = Coordinator { key: "g".into(), node_id, error_code, ..Coordinator::default() };
    seen.answer(&FindCoordinatorResponse { coordinators: vec![one], ..FindCoordinatorResponse::default() })
}

#[test]
fn a_coordinator_that_is_not_there_yet_is_waited_for() {
    let rounds = AtomicUsize::new(0);
    run(
        move |seen, _| {
            (seen.api == ApiKey::FindCoordinator)
                .then(|| coordinator(seen, 1, if rounds.fetch_add(1, Ordering::SeqCst) < 2 { 15 } else { 0 }))
        },
        |admin| async move { assert_eq!(coordinator::find(admin.client(), "g").await, Ok(1)) },
    );
}

#[test]
fn an_older_broker_is_asked_for_one_group_at_a_time() {
    let broker = run(
        |seen, _| match seen.api {
            ApiKey::ApiVersions => {
                let range = |api_key, max_version| ApiVersion { api_key, min_version: 0, max_version };
                let api_keys = vec![range(3, 9), range(10, 3), range(18, 3)];
                Some(seen.answer(&ApiVersionsResponse { api_keys, ..ApiVersionsResponse::default() }))
            }
            ApiKey::FindCoordinator => Some(coordinator(seen, 1, 0)),
            _ => None,
        },
        |admin| async move { assert_eq!(coordinator::find(admin.client(), "g").await, Ok(1)) },
    );
    assert_eq!(broker.asked_for(ApiKey::FindCoordinator)[0].version, 3);
}

#[test]
fn a_coordinator_that_moved_is_looked_for_again() {
    let rounds = AtomicUsize::new(0);
    let broker = run(
        move |seen, _| match seen.api {
            ApiKey::FindCoordinator => Some(coordinator(seen, 1, 0)),
            ApiKey::DeleteGroups => {
                let error_code = if rounds.fetch_add(1, Ordering::SeqCst) == 0 { 16 } else { 0 };
                let results = vec![DeletableGroupResult { group_id: "g".into(), error_code, error_message: None }];
                Some(seen.answer(&DeleteGroupsResponse { results, ..DeleteGroupsResponse::default() }))
            }
            _ => None,
        },
        |admin| async move {
            assert_eq!(admin.delete_groups(&["g"]).await.unwrap(), [("g".to_string(), Ok(()))]);
        },
    );
    assert_eq!(broker.asked_for(ApiKey::FindCoordinator).len(), 2);
}

#[test]
fn a_commit_at_a_coordinator_that_moved_is_made_at_the_new_one() {
    let rounds = AtomicUsize::new(0);
    run(
        move |seen, _| match seen.api {
            ApiKey::FindCoordinator => Some(coordinator(seen, 1, 0)),
            ApiKey::OffsetCommit => {
                let error_code = if rounds.fetch_add(1, Ordering::SeqCst) == 0 { 16 } else { 0 };
                let partitions = vec![OffsetCommitResponsePartition { partition_index: 0, error_code }];
                let topics = vec![OffsetCommitResponseTopic { name: "t".into(), partitions, ..Default::default() }];
                Some(seen.answer(&OffsetCommitResponse { topics, ..OffsetCommitResponse::default() }))
            }
            _ => None,
        },
        |admin| async move {
            let partition = TopicPartition::new("t", 0);
            let offset = NewOffset { partition: partition.clone(), offset: 5, metadata: None };
            assert_eq!(admin.alter_group_offsets("g", &[offset]).await.unwrap(), [(partition, Ok(()))]);
        },
    );
}

#[test]
fn nobody_at_all_is_said_at_once() {
    runtime::testing::run(|| async {
        let bootstrap = vec![crate::client::fake_broker::nobody()];
        let admin = Admin::new(Client::new(ClientConfig { bootstrap, ..ClientConfig::default() }).unwrap());
        let begun = runtime::clock::now_ms();
        assert!(matches!(admin.describe_cluster().await, Err(ClientError::NoBroker { .. })));
        assert!(matches!(admin.list_topics().await, Err(ClientError::NoBroker { .. })));
        assert!(runtime::clock::now_ms() - begun < 1_000);
    });
}
