//! Journals, snapshots and commands, written by the metadata crate itself.

use std::sync::Arc;

use metadata::stored::encode_command;
use metadata::stored_image::encode_snapshot;
use metadata::{
    Command, ConfigChange, ConfigOp, ConfigResource, DiskStep, Image, Incarnation, MetadataNode, NodeConfig, Recovered,
};
use model::{LeaderEpoch, NodeId, PartitionIndex, TopicId};

pub const CLUSTER: &str = "AAAAAAAAQACAAAAAAAAAAQ";
pub const VOTERS: i32 = 3;

fn topic_id(number: u8) -> TopicId {
    TopicId([0x40 | number; 16])
}

fn register(node: i32) -> Command {
    Command::RegisterBroker {
        node: NodeId(node),
        incarnation: Incarnation([node as u8; 16]),
        host: "localhost".into(),
        port: 9092,
        rack: (node == 1).then(|| "rack-1".into()),
    }
}

fn create(number: u8) -> Command {
    Command::CreateTopic {
        name: format!("topic.{number}").into(),
        id: topic_id(number),
        assignments: vec![vec![NodeId(0), NodeId(1), NodeId(2)]; usize::from(number % 4) + 1],
        configs: vec![("retention.ms".into(), "1000".into())],
    }
}

fn config_commands() -> Vec<Command> {
    let alter = |resource, change| Command::AlterConfigs { resource, change };
    let (items, default): (Arc<str>, Arc<str>) = ("compact,delete".into(), "delete".into());
    let ops = vec![
        ("cleanup.policy".into(), ConfigOp::Append { items: Arc::clone(&items), default: Arc::clone(&default) }),
        ("cleanup.policy".into(), ConfigOp::Subtract { items, default }),
        ("retention.ms".into(), ConfigOp::Delete),
        ("segment.bytes".into(), ConfigOp::Set("1048576".into())),
    ];
    let replaced = ConfigChange::Replace(vec![("a".into(), "b".into()), ("c".into(), "".into())]);
    vec![
        alter(ConfigResource::Topic(topic_id(1)), ConfigChange::Incremental(ops)),
        alter(ConfigResource::Broker(NodeId(1)), replaced.clone()),
        alter(ConfigResource::BrokerDefault, replaced.clone()),
        alter(ConfigResource::Group("group".into()), replaced.clone()),
        alter(ConfigResource::ClientMetrics("metrics".into()), replaced),
    ]
}

/// One of each kind at least; each is taken by the image that those before it make.
pub fn commands() -> Vec<Command> {
    let features = vec![("metadata.version".into(), 1), ("kraft.version".into(), 1)];
    let mut commands = vec![Command::FormatCluster { cluster_id: CLUSTER.into(), features }];
    commands.extend((0..VOTERS).map(register));
    commands.extend((0..4).map(create));
    commands.extend(config_commands());
    commands.extend([
        Command::SetFeature { name: "group.version".into(), level: 1 },
        Command::AddPartitions {
            id: topic_id(0),
            first: PartitionIndex(1),
            assignments: vec![vec![NodeId(2), NodeId(1), NodeId(0)]; 2],
        },
        Command::AllocateProducerIds { node: NodeId(1), block_len: 1000 },
        Command::ChangeIsr {
            id: topic_id(2),
            partition: PartitionIndex(0),
            leader: NodeId(0),
            leader_epoch: LeaderEpoch(0),
            partition_epoch: 0,
            isr: vec![NodeId(0), NodeId(1)],
        },
        Command::ChangeLeader {
            id: topic_id(2),
            partition: PartitionIndex(0),
            partition_epoch: 1,
            leader: NodeId(1),
            unclean: false,
        },
        Command::RaiseLeaderEpochs { node: NodeId(0) },
        Command::DeleteTopic { id: topic_id(3) },
    ]);
    commands
}

/// The states that the first commands, some more and all of them lead to.
fn images() -> Vec<(u64, Image)> {
    let (mut image, mut images) = (Image::default(), vec![(1, Image::default())]);
    for (command, index) in commands().iter().zip(1..) {
        image = metadata::apply(&image, index, command).expect("the commands fit each other").0;
        images.push((index, image.clone()));
    }
    images
}

/// Snapshots and commands: the target reads the same bytes as both.
pub fn snapshots() -> Vec<Vec<u8>> {
    let images = images();
    let chosen = images.iter().step_by(4).chain(images.last());
    let snapshots = chosen.map(|(index, image)| encode_snapshot(*index, 3, image).expect("an image encodes"));
    let encoded = commands().iter().map(|command| encode_command(command).expect("a command encodes")).collect();
    snapshots.chain::<Vec<Vec<u8>>>(encoded).collect()
}

/// The journals of a lone voter that wrote the first commands, and of one that made snapshots on the way.
pub fn journals() -> Vec<Vec<u8>> {
    let all = commands().len();
    let mut journals: Vec<Vec<u8>> = [0, 2, 6, all].into_iter().map(|count| journal(count, u64::MAX)).collect();
    journals.push(journal(all, 5));
    let torn = [&journals[2][..], &[0; 100]].concat();
    journals.push(torn);
    journals
}

fn journal(count: usize, snapshot_after_entries: u64) -> Vec<u8> {
    let mut config = NodeConfig::new(NodeId(0), vec![NodeId(0)], CLUSTER.into(), 7);
    config.snapshot_after_entries = snapshot_after_entries;
    let mut node = MetadataNode::new(config, Recovered::fresh()).expect("the configuration is valid");
    let mut journal = Vec::new();
    settle(&mut node, &mut journal);
    node.campaign().expect("a fresh node may stand for election");
    settle(&mut node, &mut journal);
    for command in commands().iter().take(count) {
        node.propose(command).expect("a lone voter leads");
        settle(&mut node, &mut journal);
    }
    journal
}

/// Performs what the node wants done on the bytes of its newest journal.
fn settle(node: &mut MetadataNode, journal: &mut Vec<u8>) {
    while let Some(ready) = node.take_ready().expect("a healthy node goes on") {
        for step in ready.steps {
            match step {
                DiskStep::Replace { file, bytes } if file.ends_with(".log") => *journal = bytes,
                DiskStep::Append { bytes, .. } => journal.extend(bytes),
                _ => {}
            }
        }
        node.persisted(ready.number);
        if let Some(job) = ready.snapshot_job {
            node.snapshot_encoded(job.run().expect("an image encodes"));
        }
    }
}
