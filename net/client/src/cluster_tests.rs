#![allow(clippy::unwrap_used)]

use wire::generated::metadata::MetadataResponseBroker;

use super::*;

fn broker(id: i32, port: i32) -> MetadataResponseBroker<'static> {
    MetadataResponseBroker { node_id: id, host: "h".into(), port, rack: None }
}

fn partition(index: i32, leader: i32, epoch: i32) -> MetadataResponsePartition {
    MetadataResponsePartition {
        partition_index: index,
        leader_id: leader,
        leader_epoch: epoch,
        ..MetadataResponsePartition::default()
    }
}

fn topic(name: &'static str, id: u8, partitions: Vec<MetadataResponsePartition>) -> MetadataResponseTopic<'static> {
    MetadataResponseTopic {
        name: Some(name.into()),
        topic_id: [id; 16],
        partitions,
        ..MetadataResponseTopic::default()
    }
}

fn answer(topics: Vec<MetadataResponseTopic<'static>>) -> MetadataResponse<'static> {
    MetadataResponse { brokers: vec![broker(1, 9), broker(2, 9)], topics, ..MetadataResponse::default() }
}

fn these(names: &[&str]) -> Asked {
    Asked::These(names.iter().map(|name| Rc::from(*name)).collect())
}

fn after(cluster: &Cluster, topics: Vec<MetadataResponseTopic<'static>>) -> Cluster {
    cluster.merged(&these(&["t"]), &answer(topics)).unwrap()
}

#[test]
fn a_leader_goes_forward_only() {
    let first = after(&Cluster::default(), vec![topic("t", 1, vec![partition(0, 1, 5)])]);
    assert_eq!(first.leader("t", 0), Some(1));
    let lagging = after(&first, vec![topic("t", 1, vec![partition(0, 2, 4)])]);
    assert_eq!(lagging.leader("t", 0), Some(1));
    let next = after(&first, vec![topic("t", 1, vec![partition(0, 2, 6)])]);
    assert_eq!(next.leader("t", 0), Some(2));
}

#[test]
fn a_topic_made_again_starts_anew() {
    let first = after(&Cluster::default(), vec![topic("t", 1, vec![partition(0, 1, 5), partition(1, 1, 5)])]);
    let again = after(&first, vec![topic("t", 2, vec![partition(0, 2, 0)])]);
    assert_eq!(again.topic("t").unwrap().partitions.len(), 1);
    assert_eq!(again.leader("t", 0), Some(2));
}

#[test]
fn a_lagging_answer_takes_no_partition_away() {
    let first = after(&Cluster::default(), vec![topic("t", 1, vec![partition(0, 1, 5), partition(1, 1, 5)])]);
    let lagging = after(&first, vec![topic("t", 1, vec![partition(0, 1, 5)])]);
    assert_eq!(lagging.topic("t").unwrap().partitions.len(), 2);
}

#[test]
fn a_topic_that_is_gone_goes_and_one_without_leader_stays() {
    let first = after(&Cluster::default(), vec![topic("t", 1, vec![partition(0, 1, 5)])]);
    let failing = |code| MetadataResponseTopic { error_code: code, ..topic("t", 0, Vec::new()) };
    let electing = after(&first, vec![failing(5)]);
    assert!(electing.topic("t").is_some());
    assert_eq!(electing.failed_topics.get("t"), Some(&5));
    let gone = after(&electing, vec![failing(3)]);
    assert!(gone.topic("t").is_none());
    let back = after(&gone, vec![topic("t", 1, vec![partition(0, 1, 5)])]);
    assert!(back.failed_topics.is_empty());
}

#[test]
fn topics_not_asked_for_stay_and_an_answer_about_all_ends_the_rest() {
    let first =
        Cluster::default().merged(&these(&["a", "t"]), &answer(vec![topic("a", 1, vec![]), topic("t", 2, vec![])]));
    let second = after(&first.unwrap(), vec![topic("t", 2, vec![])]);
    assert!(second.topic("a").is_some());
    let all = second.merged(&Asked::All, &answer(vec![topic("t", 2, vec![])])).unwrap();
    assert!(all.topic("a").is_none() && all.topic("t").is_some());
}

#[test]
fn the_version_moves_only_with_the_content() {
    let first = after(&Cluster::default(), vec![topic("t", 1, vec![partition(0, 1, 5)])]);
    assert_eq!(first.version, 1);
    let same = after(&first, vec![topic("t", 1, vec![partition(0, 1, 5)])]);
    assert_eq!(same, first);
}

#[test]
fn a_hostile_answer_is_refused_whole() {
    let gap = answer(vec![topic("t", 1, vec![partition(0, 1, 5), partition(2, 1, 5)])]);
    let twice = answer(vec![topic("t", 1, vec![partition(0, 1, 5), partition(0, 1, 5)])]);
    let unnamed = answer(vec![MetadataResponseTopic { name: None, ..topic("t", 1, vec![]) }]);
    let port = MetadataResponse { brokers: vec![broker(1, 70_000)], ..answer(vec![]) };
    let nobody = MetadataResponse { brokers: Vec::new(), ..answer(vec![]) };
    for answer in [gap, twice, unnamed, port, nobody] {
        let error = Cluster::default().merged(&these(&["t"]), &answer).unwrap_err();
        assert!(matches!(error, ClientError::BadAnswer { .. }), "{error}");
    }
}

#[test]
fn a_leader_that_is_no_broker_is_no_leader() {
    let cluster = after(&Cluster::default(), vec![topic("t", 1, vec![partition(0, 9, 5), partition(1, -1, 5)])]);
    assert_eq!((cluster.leader("t", 0), cluster.leader("t", 1), cluster.leader("t", 2)), (None, None, None));
}

#[test]
fn the_partitions_of_a_topic_are_all_of_them_and_none_of_an_unknown_one() {
    let asked = Asked::All;
    let answer = answer(vec![topic("t", 1, vec![partition(0, 1, 0), partition(1, 1, 0)])]);
    let cluster = Cluster::default().merged(&asked, &answer).unwrap();
    assert_eq!(cluster.partitions_of("t"), [TopicPartition::new("t", 0), TopicPartition::new("t", 1)]);
    assert!(cluster.partitions_of("u").is_empty());
}
