#![allow(clippy::unwrap_used)]
use super::*;
use crate::command::Rejection;
use crate::limits::{SNAPSHOT_QUIET_PART, SNAPSHOT_QUIET_TICKS};
use crate::snapshot::SnapshotJob;

const CLUSTER: &str = "AAAAAAAAQACAAAAAAAAAAQ";

fn lone_leader() -> MetadataNode {
    let config = NodeConfig::new(NodeId(4), vec![NodeId(4)], CLUSTER.into(), 3);
    let mut node = MetadataNode::new(config, Recovered::fresh()).unwrap();
    node.campaign().unwrap();
    settle(&mut node);
    node
}

fn settle(node: &mut MetadataNode) -> Vec<(ProposalToken, ProposalResult)> {
    let mut outcomes = Vec::new();
    while let Some(ready) = node.take_ready().unwrap() {
        node.persisted(ready.number);
        outcomes.extend(ready.outcomes);
    }
    outcomes
}

fn format() -> Command {
    Command::FormatCluster { cluster_id: CLUSTER.into(), features: vec![] }
}

#[test]
fn proposals_of_a_round_share_one_write_and_one_sync() {
    let mut node = lone_leader();
    let tokens: Vec<_> = (0..100).map(|_| node.propose(&format()).unwrap()).collect();
    let ready = node.take_ready().unwrap().unwrap();
    assert!(matches!(ready.steps[..], [DiskStep::Append { .. }]));
    node.persisted(ready.number);
    let outcomes = settle(&mut node);
    assert_eq!(outcomes.iter().map(|(token, _)| *token).collect::<Vec<_>>(), tokens);
}

#[test]
fn refusals_are_outcomes_and_change_nothing() {
    let mut node = lone_leader();
    let image = Arc::clone(node.image());
    let token = node.propose(&Command::RaiseLeaderEpochs { node: NodeId(4) }).unwrap();
    let outcomes = settle(&mut node);
    assert_eq!(outcomes, vec![(token, Err(MetadataError::Rejected(Rejection::NotFormatted)))]);
    assert!(Arc::ptr_eq(&image, node.image()));
}

#[test]
fn who_does_not_lead_proposes_nothing() {
    let voters = vec![NodeId(0), NodeId(1), NodeId(2)];
    let config = NodeConfig::new(NodeId(1), voters, CLUSTER.into(), 3);
    let mut node = MetadataNode::new(config, Recovered::fresh()).unwrap();
    assert_eq!(node.propose(&format()), Err(MetadataError::NotLeader { leader: None }));
}

#[test]
fn waiting_proposals_are_bounded() {
    let mut node = lone_leader();
    for _ in 0..MAX_PENDING_PROPOSALS {
        node.propose(&format()).unwrap();
    }
    assert_eq!(node.propose(&format()), Err(MetadataError::Busy));
    settle(&mut node);
    assert!(node.propose(&format()).is_ok());
}

#[test]
fn election_timeouts_differ_between_voters_whatever_the_seeds() {
    for seed in 0..50 {
        for count in [1, 3, 5, 9] {
            let voters: Vec<NodeId> = (0..count).map(NodeId).collect();
            let mut timeouts: Vec<usize> = voters
                .iter()
                .map(|node| {
                    let seed = seed * 31 + node.0 as u64;
                    NodeConfig::new(*node, voters.clone(), CLUSTER.into(), seed).election_timeout()
                })
                .collect();
            timeouts.sort_unstable();
            timeouts.dedup();
            assert_eq!(timeouts.len(), count as usize);
            assert!(timeouts[0] >= 10 && timeouts.last().unwrap() < &20);
        }
    }
}

#[test]
fn the_status_counts_as_kafka_does() {
    let mut node = lone_leader();
    node.propose(&format()).unwrap();
    settle(&mut node);
    let status = node.status();
    assert!(status.is_current_leader);
    assert_eq!((status.leader, status.leader_epoch, status.high_watermark), (Some(NodeId(4)), 1, 3));
    assert_eq!(status.voters, vec![VoterStatus { node: NodeId(4), log_end_offset: Some(3) }]);
}

#[test]
fn a_journal_that_grows_asks_for_a_snapshot_once() {
    let mut node = lone_leader();
    node.config.snapshot_after_entries = 5;
    for _ in 0..10 {
        node.propose(&format()).unwrap();
    }
    let mut jobs = Vec::new();
    while let Some(ready) = node.take_ready().unwrap() {
        node.persisted(ready.number);
        jobs.extend(ready.snapshot_job);
    }
    assert_eq!(jobs.len(), 1);
    node.snapshot_encoded(jobs.remove(0).run().unwrap());
    let ready = node.take_ready().unwrap().unwrap();
    let [DiskStep::Replace { file: first, .. }, DiskStep::Replace { file: second, .. }, DiskStep::Remove { .. }] =
        &ready.steps[..]
    else {
        panic!("{:?}", ready.steps);
    };
    assert!(first.starts_with("snapshot-") && second.starts_with("metadata-"));
}

/// Works off what is ready; gives the snapshots that were asked for.
fn work_off(node: &mut MetadataNode) -> Vec<SnapshotJob> {
    let mut jobs = Vec::new();
    while let Some(ready) = node.take_ready().unwrap() {
        node.persisted(ready.number);
        jobs.extend(ready.snapshot_job);
    }
    jobs
}

#[test]
fn a_quiet_while_asks_for_a_snapshot_of_fewer_entries() {
    let mut node = lone_leader();
    node.config.snapshot_quiet_entries = 5;
    for _ in 0..10 {
        node.propose(&format()).unwrap();
    }
    assert!(work_off(&mut node).is_empty(), "not while there are changes");
    let quiet = |node: &mut MetadataNode, ticks| {
        let mut jobs = Vec::new();
        for _ in 0..ticks {
            node.tick();
            jobs.extend(work_off(node));
        }
        jobs
    };
    assert!(quiet(&mut node, SNAPSHOT_QUIET_TICKS).is_empty(), "not yet");
    let mut jobs = quiet(&mut node, 1 + SNAPSHOT_QUIET_TICKS);
    assert_eq!(jobs.len(), 1, "one, until it is made");
    node.snapshot_encoded(jobs.remove(0).run().unwrap());
    assert!(work_off(&mut node).is_empty());
    assert_eq!(node.raw.store().last(), node.raw.store().base.index, "no entry stays in memory");
    assert!(quiet(&mut node, 3 * SNAPSHOT_QUIET_TICKS).is_empty(), "nothing changed since");
}

#[test]
fn few_entries_or_a_short_journal_are_left_alone_in_the_quiet() {
    let mut node = lone_leader();
    for _ in 0..10 {
        node.propose(&format()).unwrap();
    }
    let quiet = |node: &mut MetadataNode| {
        (0..2 * SNAPSHOT_QUIET_TICKS).for_each(|_| node.tick());
        work_off(node).len()
    };
    assert_eq!(quiet(&mut node), 0, "ten entries hold nothing worth a snapshot");
    node.config.snapshot_quiet_entries = 5;
    node.snapshot_len = node.writer.len * SNAPSHOT_QUIET_PART + SNAPSHOT_QUIET_PART;
    assert_eq!(quiet(&mut node), 0, "a large image is not written for a few changes");
    node.snapshot_len = 0;
    assert_eq!(quiet(&mut node), 1);
}
