//! One voter, killed anywhere: what was acknowledged is there, and the image is the model's.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use model::NodeId;
use ringlog_metadata::{
    Command, ConfigChange, ConfigOp, ConfigResource, Image, MetadataError, MetadataNode, ProposalToken, SnapshotJob,
    apply,
};
use support::{Disk, Rng, config, create, format, register, settle, topic_id};

/// What must be true of a lone voter, told from outside.
#[derive(Default)]
struct Model {
    /// The state that was acknowledged.
    confirmed: Image,
    /// Proposed since, in order; some prefix of it may have happened.
    pending: Vec<(u64, Command)>,
    by_token: BTreeMap<ProposalToken, u64>,
    acknowledged: u64,
}

impl Model {
    fn acknowledge(&mut self, token: ProposalToken, result: &Result<ringlog_metadata::Committed, MetadataError>) {
        let index = self.by_token.remove(&token).unwrap();
        let (first, command) = self.pending.remove(0);
        assert_eq!(first, index, "outcomes come in order");
        match apply(&self.confirmed, index, &command) {
            Ok((image, outcome)) => {
                assert_eq!(result.as_ref().unwrap().outcome, outcome);
                self.confirmed = image;
            }
            Err(rejection) => assert_eq!(*result, Err(MetadataError::Rejected(rejection))),
        }
        self.acknowledged += 1;
    }

    /// After a crash the image must be the confirmed one with some of the pending commands.
    fn reconcile(&mut self, found: &Image, seed: u64) {
        let mut image = self.confirmed.clone();
        let mut candidates = vec![image.clone()];
        for (index, command) in self.pending.drain(..) {
            if let Ok((next, _)) = apply(&image, index, &command) {
                image = next;
                candidates.push(image.clone());
            }
        }
        assert!(candidates.contains(found), "seed {seed}: the image is none that could be");
        self.confirmed = found.clone();
        self.by_token.clear();
    }
}

fn random_command(rng: &mut Rng) -> Command {
    let number = rng.below(40);
    match rng.below(9) {
        0 => register(0),
        1 => Command::DeleteTopic { id: topic_id(number) },
        2 => Command::AllocateProducerIds { node: NodeId(0), block_len: 1000 },
        3 => Command::RaiseLeaderEpochs { node: NodeId(0) },
        4 => Command::AlterConfigs {
            resource: ConfigResource::Topic(topic_id(number)),
            change: ConfigChange::Incremental(vec![(
                "cleanup.policy".into(),
                ConfigOp::Append { items: Arc::from(rng.below(5).to_string()), default: "delete".into() },
            )]),
        },
        _ => create(number),
    }
}

/// Runs until it crashes; `false` when the life ended without a crash.
fn live(node: &mut MetadataNode, disk: &mut Disk, model: &mut Model, rng: &mut Rng) -> bool {
    let mut next_index = node.status().applied + 1;
    let mut job: Option<SnapshotJob> = None;
    for _ in 0..rng.below(60) {
        for _ in 0..rng.below(4) {
            let command = random_command(rng);
            let token = node.propose(&command).unwrap();
            model.pending.push((next_index, command));
            model.by_token.insert(token, next_index);
            next_index += 1;
        }
        if job.is_some() && rng.one_in(3) {
            node.snapshot_encoded(job.take().unwrap().run().unwrap());
        }
        let Some(ready) = node.take_ready().unwrap() else { continue };
        for (token, result) in &ready.outcomes {
            model.acknowledge(*token, result);
        }
        job = job.or(ready.snapshot_job);
        for step in &ready.steps {
            if rng.one_in(30) {
                disk.perform_partly(step, rng);
                return true;
            }
            disk.perform(step);
        }
        if rng.one_in(60) {
            return true;
        }
        node.persisted(ready.number);
    }
    false
}

#[test]
fn acknowledged_commands_survive_every_crash() {
    let (mut acknowledged, mut crashes, mut rotations) = (0, 0, 0);
    for seed in 0..400 {
        let mut rng = Rng(seed);
        let mut disk = Disk::default();
        let mut model = Model::default();
        for life in 0..6 {
            let mut node =
                disk.start(config(0, 1, rng.next())).unwrap_or_else(|e| panic!("seed {seed} life {life}: {e}"));
            node.campaign().unwrap();
            // A crash during recovery itself.
            if rng.one_in(5) {
                let ready = node.take_ready().unwrap().unwrap();
                if let Some((last, whole)) = ready.steps.split_last() {
                    whole.iter().for_each(|step| disk.perform(step));
                    disk.perform_partly(last, &mut rng);
                }
                disk.crash(&mut rng);
                node = disk.start(config(0, 1, rng.next())).unwrap();
                node.campaign().unwrap();
            }
            settle(&mut node, &mut disk);
            assert!(node.status().is_current_leader, "seed {seed}");
            model.reconcile(node.image(), seed);
            if model.confirmed.cluster_id().is_none() {
                node.propose(&format()).unwrap();
                node.propose(&register(0)).unwrap();
                settle(&mut node, &mut disk);
                model.confirmed = Image::clone(node.image());
            }
            crashes += u64::from(live(&mut node, &mut disk, &mut model, &mut rng));
            disk.crash(&mut rng);
            rotations += u64::from(disk.names().iter().any(|name| name.starts_with("snapshot-")));
        }
        acknowledged += model.acknowledged;
    }
    assert!(acknowledged > 20_000 && crashes > 500 && rotations > 500, "{acknowledged} {crashes} {rotations}");
}

#[test]
fn a_clean_restart_finds_the_same_image_and_raises_the_term() {
    let mut disk = Disk::default();
    let mut node = disk.start(config(0, 1, 1)).unwrap();
    node.campaign().unwrap();
    settle(&mut node, &mut disk);
    for command in [format(), register(0)].into_iter().chain((0..30).map(create)) {
        node.propose(&command).unwrap();
    }
    let outcomes = settle(&mut node, &mut disk);
    assert_eq!(outcomes.len(), 32);
    assert!(outcomes.iter().all(|(_, result)| result.is_ok()));
    let before = Arc::clone(node.image());
    let mut node = disk.start(config(0, 1, 2)).unwrap();
    node.campaign().unwrap();
    settle(&mut node, &mut disk);
    assert_eq!(before, *node.image());
    assert_eq!(node.status().leader_epoch, 2);
    assert_eq!(node.status().leader, Some(NodeId(0)));
    assert_eq!(disk.names().len(), 2, "{:?}", disk.names());
}

#[test]
fn nothing_is_acknowledged_before_it_is_durable() {
    let mut disk = Disk::default();
    let mut node = disk.start(config(0, 1, 1)).unwrap();
    node.campaign().unwrap();
    settle(&mut node, &mut disk);
    node.propose(&format()).unwrap();
    let ready = node.take_ready().unwrap().unwrap();
    assert!(ready.outcomes.is_empty() && ready.new_image.is_none());
    assert_eq!(ready.steps.len(), 1, "one write and its sync");
    assert!(node.take_ready().unwrap().is_none(), "one round at a time");
    node.persisted(ready.number);
    let ready = node.take_ready().unwrap().unwrap();
    assert!(ready.steps.is_empty(), "a commit alone is not written");
    assert_eq!(ready.outcomes.len(), 1);
    assert_eq!(ready.new_image.unwrap().version(), 2);
}

#[test]
fn the_journal_of_another_node_or_cluster_is_refused() {
    let mut disk = Disk::default();
    let mut node = disk.start(config(0, 1, 1)).unwrap();
    settle(&mut node, &mut disk);
    let mut other_node = config(1, 2, 1);
    let mut other_cluster = config(0, 1, 1);
    other_cluster.cluster_id = "BAAAAAAAQACAAAAAAAAAAQ".into();
    for config in [other_node.clone(), other_cluster] {
        assert!(matches!(disk.start(config), Err(MetadataError::ForeignJournal { .. })));
    }
    other_node.voters.clear();
    assert!(matches!(disk.start(other_node), Err(MetadataError::InvalidConfiguration(_))));
}
