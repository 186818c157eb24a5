#![allow(clippy::unwrap_used)]
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn every_command() -> Vec<Command> {
    let id = TopicId([3; 16]);
    let nodes = |ids: &[i32]| ids.iter().copied().map(NodeId).collect::<Vec<_>>();
    let items = |text: &str| (Arc::<str>::from(text), Arc::<str>::from("delete"));
    let op = |op| vec![(Arc::<str>::from("k"), op)];
    let alter = |resource, change| Command::AlterConfigs { resource, change };
    let (append, subtract) = (items("a,b"), items("c"));
    vec![
        Command::FormatCluster { cluster_id: "c".into(), features: vec![("f".into(), -3), ("g".into(), 7)] },
        Command::SetFeature { name: "f".into(), level: 2 },
        Command::RegisterBroker {
            node: NodeId(5),
            incarnation: Incarnation([9; 16]),
            host: "häuser".into(),
            port: 65_535,
            rack: Some("r".into()),
        },
        Command::RegisterBroker {
            node: NodeId(-1),
            incarnation: Incarnation([0; 16]),
            host: "".into(),
            port: 0,
            rack: None,
        },
        Command::CreateTopic {
            name: "t".into(),
            id,
            assignments: vec![nodes(&[1, 2]), nodes(&[]), nodes(&[i32::MAX])],
            configs: vec![("a".into(), "".into())],
        },
        Command::DeleteTopic { id },
        Command::AddPartitions { id, first: PartitionIndex(3), assignments: vec![nodes(&[1])] },
        alter(ConfigResource::Topic(id), ConfigChange::Replace(vec![("a".into(), "b".into())])),
        alter(ConfigResource::Broker(NodeId(1)), ConfigChange::Incremental(op(ConfigOp::Set("v".into())))),
        alter(ConfigResource::BrokerDefault, ConfigChange::Incremental(op(ConfigOp::Delete))),
        alter(
            ConfigResource::Group("g".into()),
            ConfigChange::Incremental(op(ConfigOp::Append { items: append.0, default: append.1 })),
        ),
        alter(
            ConfigResource::ClientMetrics("m".into()),
            ConfigChange::Incremental(op(ConfigOp::Subtract { items: subtract.0, default: subtract.1 })),
        ),
        Command::AllocateProducerIds { node: NodeId(1), block_len: 1000 },
        Command::RaiseLeaderEpochs { node: NodeId(1) },
        Command::ChangeIsr {
            id,
            partition: PartitionIndex(1),
            leader: NodeId(2),
            leader_epoch: LeaderEpoch(3),
            partition_epoch: 4,
            isr: nodes(&[2, 5]),
        },
        Command::ChangeLeader {
            id,
            partition: PartitionIndex(1),
            partition_epoch: 4,
            leader: NodeId::NONE,
            unclean: true,
        },
    ]
}

#[test]
fn every_command_comes_back_as_it_was() {
    for command in every_command() {
        assert_eq!(decode_command(&encode_command(&command).unwrap(), 1).unwrap(), command);
    }
}

#[test]
fn damaged_commands_are_errors() {
    for command in every_command() {
        let bytes = encode_command(&command).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            assert!(decode_command(&damaged, 1).is_err());
            assert!(decode_command(&bytes[..at], 1).is_err());
        }
    }
}

#[test]
fn a_command_of_a_newer_version_is_named() {
    let bytes = envelope::seal(Kind::Command, COMMAND_VERSION + 1, 0, b"whatever");
    assert_eq!(
        decode_command(&bytes, 1),
        Err(MetadataError::NewerVersion { what: "metadata command", version: 2, newest: 1 })
    );
}

#[test]
fn a_command_that_is_too_large_is_refused_before_it_is_proposed() {
    let configs = (0..100).map(|i| (format!("k{i}").into(), "x".repeat(60_000).into())).collect();
    let command =
        Command::CreateTopic { name: "t".into(), id: TopicId([1; 16]), assignments: vec![vec![NodeId(0)]], configs };
    assert!(matches!(encode_command(&command), Err(MetadataError::CommandTooLarge { .. })));
}

proptest! {
    /// A right cover around anything: the structure is checked, not trusted.
    #[test]
    fn any_bytes_are_read_or_refused(payload in vec(any::<u8>(), 0..400)) {
        let _ = decode_command(&payload, 1);
        let _ = decode_command(&envelope::seal(Kind::Command, COMMAND_VERSION, 0, &payload), 1);
    }

    /// A valid command with a few bytes changed, under a right checksum.
    #[test]
    fn changed_bytes_are_read_or_refused(which in 0..16usize, changes in vec((any::<u16>(), any::<u8>()), 1..6)) {
        let commands = every_command();
        let bytes = encode_command(&commands[which % commands.len()]).unwrap();
        let mut payload = bytes[envelope::HEADER_LEN..].to_vec();
        for (at, value) in changes {
            let at = usize::from(at) % payload.len();
            payload[at] = value;
        }
        let _ = decode_command(&envelope::seal(Kind::Command, COMMAND_VERSION, 0, &payload), 1);
    }
}
