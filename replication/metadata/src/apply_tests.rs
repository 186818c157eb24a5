#![allow(clippy::unwrap_used)]
use model::{ErrorCode, LeaderEpoch, PartitionIndex};

use super::*;
use crate::command::{ConfigChange, ConfigOp};
use crate::image::ConfigResource;

const CLUSTER: &str = "AAAAAAAAQACAAAAAAAAAAQ";

struct State(Image);

impl State {
    /// Three brokers and one topic of two partitions, three replicas each.
    fn new() -> State {
        let mut state = State(Image::default());
        state
            .ok(Command::FormatCluster { cluster_id: CLUSTER.into(), features: vec![("metadata.version".into(), 25)] });
        for node in 0..3 {
            state.ok(register(node, 1));
        }
        state.ok(topic("t", 1, &[&[0, 1, 2], &[1, 2, 0]]));
        state
    }

    fn ok(&mut self, command: Command) -> Outcome {
        let (image, outcome) =
            apply(&self.0, self.0.version() + 1, &command).unwrap_or_else(|e| panic!("{command:?}: {e}"));
        self.0 = image;
        outcome
    }

    fn refused(&self, command: Command) -> Rejection {
        apply(&self.0, self.0.version() + 1, &command).err().unwrap_or_else(|| panic!("{command:?} was not refused"))
    }

    fn partition(&self, index: i32) -> &crate::image::PartitionState {
        self.0.partition(id(1), PartitionIndex(index)).unwrap()
    }
}

fn id(number: u8) -> TopicId {
    TopicId([number; 16])
}

fn nodes(ids: &[i32]) -> Vec<NodeId> {
    ids.iter().copied().map(NodeId).collect()
}

fn topic(name: &str, number: u8, assignments: &[&[i32]]) -> Command {
    Command::CreateTopic {
        name: name.into(),
        id: id(number),
        assignments: assignments.iter().map(|ids| nodes(ids)).collect(),
        configs: vec![],
    }
}

fn register(node: i32, incarnation: u8) -> Command {
    Command::RegisterBroker {
        node: NodeId(node),
        incarnation: Incarnation([incarnation; 16]),
        host: "localhost".into(),
        port: 9092,
        rack: Some("r1".into()),
    }
}

fn isr(isr: &[i32], partition_epoch: i32) -> Command {
    Command::ChangeIsr {
        id: id(1),
        partition: PartitionIndex(0),
        leader: NodeId(0),
        leader_epoch: LeaderEpoch(0),
        partition_epoch,
        isr: nodes(isr),
    }
}

fn leader(node: i32, partition_epoch: i32, unclean: bool) -> Command {
    Command::ChangeLeader { id: id(1), partition: PartitionIndex(0), partition_epoch, leader: NodeId(node), unclean }
}

fn alter(resource: ConfigResource, ops: Vec<(&str, ConfigOp)>) -> Command {
    let ops = ops.into_iter().map(|(key, op)| (key.into(), op)).collect();
    Command::AlterConfigs { resource, change: ConfigChange::Incremental(ops) }
}

#[test]
fn nothing_happens_before_the_cluster_is_formatted() {
    let state = State(Image::default());
    assert_eq!(state.refused(register(0, 1)), Rejection::NotFormatted);
    let bad = Command::FormatCluster { cluster_id: "x".into(), features: vec![] };
    assert_eq!(state.refused(bad), Rejection::InvalidClusterId);
}

#[test]
fn formatting_twice_is_the_same_cluster_or_an_error() {
    let mut state = State::new();
    assert_eq!(state.ok(Command::FormatCluster { cluster_id: CLUSTER.into(), features: vec![] }), Outcome::Done);
    assert_eq!(state.0.feature("metadata.version"), Some(25));
    let other = Command::FormatCluster { cluster_id: "BAAAAAAAQACAAAAAAAAAAQ".into(), features: vec![] };
    assert!(matches!(state.refused(other), Rejection::ClusterIdMismatch { .. }));
}

#[test]
fn features_rise_and_level_zero_takes_them_out() {
    let mut state = State::new();
    state.ok(Command::SetFeature { name: "group.version".into(), level: 1 });
    assert_eq!(state.0.feature("group.version"), Some(1));
    state.ok(Command::SetFeature { name: "group.version".into(), level: 0 });
    assert_eq!(state.0.feature("group.version"), None);
    assert_eq!(state.refused(Command::SetFeature { name: "x".into(), level: -1 }), Rejection::InvalidFeature);
}

#[test]
fn a_broker_keeps_its_epoch_within_an_incarnation() {
    let mut state = State::new();
    let epoch = state.0.broker(NodeId(0)).unwrap().epoch;
    assert_eq!(state.ok(register(0, 1)), Outcome::BrokerRegistered { epoch });
    let Outcome::BrokerRegistered { epoch: next } = state.ok(register(0, 2)) else { panic!() };
    assert!(next > epoch);
    assert!(matches!(state.refused(register(-1, 1)), Rejection::InvalidBroker(_)));
}

#[test]
fn a_new_topic_is_led_by_its_first_replicas() {
    let state = State::new();
    let partition = state.partition(1);
    assert_eq!((partition.leader, partition.leader_epoch, partition.partition_epoch), (NodeId(1), LeaderEpoch(0), 0));
    assert_eq!(*partition.isr, *nodes(&[1, 2, 0]));
    assert_eq!(state.0.topic_by_name("t").unwrap().id, id(1));
}

#[test]
fn names_are_unique_valid_and_do_not_collide() {
    let mut state = State::new();
    assert_eq!(state.refused(topic("t", 2, &[&[0]])), Rejection::TopicExists { id: id(1) });
    assert_eq!(state.refused(topic("u", 1, &[&[0]])), Rejection::TopicIdInUse);
    for name in ["", ".", "..", "a b", "ü"] {
        let refused = state.refused(topic(name, 2, &[&[0]]));
        assert_eq!(refused.error_code(), ErrorCode::InvalidTopicException, "{name}");
    }
    state.ok(topic("a.b", 2, &[&[0]]));
    let refused = state.refused(topic("a_b", 3, &[&[0]]));
    assert_eq!(refused, Rejection::NameCollision { existing: "a.b".into() });
    assert_eq!(refused.error_code(), ErrorCode::InvalidTopicException);
    state.ok(topic("ab", 3, &[&[0]]));
    state.ok(Command::DeleteTopic { id: id(2) });
    state.ok(topic("a_b", 4, &[&[0]]));
}

#[test]
fn assignments_are_checked() {
    let state = State::new();
    assert!(matches!(state.refused(topic("u", 2, &[])), Rejection::InvalidPartitions(_)));
    for wrong in [&[&[0, 0][..]][..], &[&[][..]], &[&[9][..]], &[&[0, 1][..], &[0][..]]] {
        assert!(matches!(state.refused(topic("u", 2, wrong)), Rejection::InvalidReplicaAssignment(_)), "{wrong:?}");
    }
    let many = vec![&[0][..]; 10_001];
    assert_eq!(state.refused(topic("u", 2, &many)), Rejection::TooManyPartitions);
}

#[test]
fn a_topic_made_again_is_another_topic() {
    let mut state = State::new();
    state.ok(Command::DeleteTopic { id: id(1) });
    assert_eq!(state.refused(Command::DeleteTopic { id: id(1) }), Rejection::UnknownTopic);
    assert_eq!(state.0.partition_count(), 0);
    state.ok(topic("t", 2, &[&[0]]));
    assert_eq!(state.0.topic_by_name("t").unwrap().id, id(2));
}

#[test]
fn partitions_are_added_once() {
    let mut state = State::new();
    let add = |first| Command::AddPartitions {
        id: id(1),
        first: PartitionIndex(first),
        assignments: vec![nodes(&[2, 0, 1])],
    };
    state.ok(add(2));
    assert_eq!(state.partition(2).leader, NodeId(2));
    assert_eq!(state.0.partition_count(), 3);
    assert!(matches!(state.refused(add(2)), Rejection::InvalidPartitions(_)));
    assert!(matches!(state.refused(add(-1)), Rejection::InvalidPartitions(_)));
    let thin = Command::AddPartitions { id: id(1), first: PartitionIndex(3), assignments: vec![nodes(&[0])] };
    assert!(matches!(state.refused(thin), Rejection::InvalidReplicaAssignment(_)));
}

#[test]
fn configurations_change_one_by_one_or_whole() {
    let mut state = State::new();
    let resource = ConfigResource::Topic(id(1));
    let get = |state: &State, key: &str| state.0.configs(&ConfigResource::Topic(id(1))).unwrap().get(key).cloned();
    state.ok(alter(resource.clone(), vec![("a", ConfigOp::Set("1".into())), ("b", ConfigOp::Set("2".into()))]));
    state.ok(alter(resource.clone(), vec![("a", ConfigOp::Delete)]));
    assert_eq!((get(&state, "a"), get(&state, "b").as_deref()), (None, Some("2")));
    let append = |items: &str| ConfigOp::Append { items: items.into(), default: "delete".into() };
    state.ok(alter(resource.clone(), vec![("cleanup.policy", append("compact,delete"))]));
    assert_eq!(get(&state, "cleanup.policy").as_deref(), Some("delete,compact"));
    let subtract = ConfigOp::Subtract { items: "delete".into(), default: "delete".into() };
    state.ok(alter(resource.clone(), vec![("cleanup.policy", subtract)]));
    assert_eq!(get(&state, "cleanup.policy").as_deref(), Some("compact"));
    let replace = ConfigChange::Replace(vec![("c".into(), "3".into())]);
    state.ok(Command::AlterConfigs { resource: resource.clone(), change: replace });
    assert_eq!((get(&state, "b"), get(&state, "c").as_deref()), (None, Some("3")));
    let partly = alter(resource, vec![("d", ConfigOp::Set("4".into())), ("", ConfigOp::Set("5".into()))]);
    assert!(matches!(state.refused(partly), Rejection::InvalidConfig(_)));
    assert_eq!(get(&state, "d"), None, "all or none");
}

#[test]
fn configurations_of_brokers_and_groups_vanish_with_their_last_entry() {
    let mut state = State::new();
    for resource in
        [ConfigResource::Broker(NodeId(1)), ConfigResource::BrokerDefault, ConfigResource::Group("g".into())]
    {
        state.ok(alter(resource.clone(), vec![("a", ConfigOp::Set("1".into()))]));
        assert_eq!(state.0.config_resources().count(), 1);
        state.ok(alter(resource.clone(), vec![("a", ConfigOp::Delete)]));
        assert_eq!(state.0.configs(&resource), None);
    }
    assert_eq!(
        state.refused(alter(ConfigResource::Topic(id(9)), vec![("a", ConfigOp::Delete)])),
        Rejection::UnknownTopic
    );
}

#[test]
fn producer_id_blocks_never_overlap() {
    let mut state = State::new();
    let ask = |block_len| Command::AllocateProducerIds { node: NodeId(0), block_len };
    assert_eq!(state.ok(ask(1000)), Outcome::ProducerIds { first: ProducerId(0), len: 1000 });
    assert_eq!(state.ok(ask(1000)), Outcome::ProducerIds { first: ProducerId(1000), len: 1000 });
    assert_eq!(state.refused(ask(0)), Rejection::InvalidBlock);
    let unknown = Command::AllocateProducerIds { node: NodeId(9), block_len: 1 };
    assert_eq!(state.refused(unknown), Rejection::UnknownBroker(NodeId(9)));
    state.0.next_producer_id = i64::MAX;
    assert_eq!(state.refused(ask(1)), Rejection::Exhausted("producer ids"));
}

#[test]
fn a_start_raises_the_epochs_of_what_the_node_leads() {
    let mut state = State::new();
    assert_eq!(state.ok(Command::RaiseLeaderEpochs { node: NodeId(0) }), Outcome::EpochsRaised { partitions: 1 });
    assert_eq!((state.partition(0).leader_epoch, state.partition(0).partition_epoch), (LeaderEpoch(1), 1));
    assert_eq!(state.partition(1).leader_epoch, LeaderEpoch(0));
    assert_eq!(state.ok(Command::RaiseLeaderEpochs { node: NodeId(7) }), Outcome::EpochsRaised { partitions: 0 });
}

#[test]
fn the_isr_changes_only_under_its_epochs() {
    let mut state = State::new();
    let outcome = state.ok(isr(&[0, 1], 0));
    assert_eq!(outcome, Outcome::PartitionChanged { leader_epoch: LeaderEpoch(0), partition_epoch: 1 });
    assert_eq!(*state.partition(0).isr, *nodes(&[0, 1]));
    assert_eq!(state.refused(isr(&[0], 0)), Rejection::StalePartitionEpoch { current: 1 });
    for wrong in [&[1][..], &[0, 0], &[0, 9], &[]] {
        assert!(matches!(state.refused(isr(wrong, 1)), Rejection::InvalidIsr(_)), "{wrong:?}");
    }
    state.ok(leader(1, 1, false));
    assert_eq!(state.refused(isr(&[0], 2)), Rejection::StaleLeaderEpoch { current: LeaderEpoch(1) });
}

#[test]
fn the_leader_comes_from_the_isr_unless_unclean() {
    let mut state = State::new();
    state.ok(isr(&[0, 1], 0));
    assert_eq!(state.refused(leader(2, 1, false)), Rejection::IneligibleLeader);
    assert_eq!(state.refused(leader(9, 1, true)), Rejection::IneligibleLeader);
    state.ok(leader(-1, 1, false));
    assert_eq!((state.partition(0).leader, &*state.partition(0).isr), (NodeId::NONE, &*nodes(&[0, 1])));
    state.ok(leader(2, 2, true));
    assert_eq!((state.partition(0).leader, &*state.partition(0).isr), (NodeId(2), &*nodes(&[2])));
    assert_eq!(state.partition(0).leader_epoch, LeaderEpoch(2));
    let gone = Command::ChangeLeader {
        id: id(1),
        partition: PartitionIndex(5),
        partition_epoch: 0,
        leader: NodeId(0),
        unclean: false,
    };
    assert_eq!(state.refused(gone), Rejection::UnknownPartition);
}

#[test]
fn a_refused_command_leaves_the_image_alone() {
    let state = State::new();
    let before = state.0.clone();
    state.refused(topic("t", 2, &[&[0]]));
    assert_eq!(state.0, before);
}
