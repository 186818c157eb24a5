//! Three voters over a network that loses, doubles, reorders and splits, on disks that forget: the same code as one voter,
//! another list in its configuration.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use model::NodeId;
use ringlog_metadata::peer::PeerMessageKind;
use ringlog_metadata::{DiskStep, Image, MetadataNode, PeerMessage, ProposalToken, Ready};
use support::{Disk, Rng, config, create, format, register, topic_id};

const VOTERS: i32 = 3;

struct Voter {
    node: MetadataNode,
    disk: Disk,
    /// Handed out, its steps not done.
    ready: Option<Ready>,
    proposals: BTreeMap<ProposalToken, u64>,
}

struct Cluster {
    rng: Rng,
    seed: u64,
    voters: Vec<Voter>,
    network: Vec<(u64, Vec<u8>)>,
    now: u64,
    /// Cut off from the others.
    isolated: Option<i32>,
    is_calm: bool,
    /// Elections and crashes all the time.
    is_stormy: bool,
    leaders: BTreeMap<u64, NodeId>,
    images: BTreeMap<u64, Arc<Image>>,
    acknowledged: Vec<u64>,
    next_topic: u64,
}

impl Cluster {
    fn new(seed: u64) -> Cluster {
        let mut rng = Rng(seed);
        let voters = (0..VOTERS)
            .map(|node| Voter {
                node: Disk::default().start(config(node, VOTERS, rng.next())).unwrap(),
                disk: Disk::default(),
                ready: None,
                proposals: BTreeMap::new(),
            })
            .collect();
        Cluster {
            rng,
            seed,
            voters,
            network: Vec::new(),
            now: 0,
            isolated: None,
            is_calm: false,
            is_stormy: false,
            leaders: BTreeMap::new(),
            images: BTreeMap::new(),
            acknowledged: Vec::new(),
            next_topic: 0,
        }
    }

    fn send(&mut self, message: &PeerMessage) {
        let lost = !self.is_calm && self.rng.one_in(12);
        let copies = if lost { 0 } else { 1 + u64::from(!self.is_calm && self.rng.one_in(20)) };
        for _ in 0..copies {
            let delay = if self.is_calm { 1 } else { 1 + self.rng.below(6) };
            self.network.push((self.now + delay, message.encode()));
        }
    }

    fn deliver(&mut self) {
        let (due, later): (Vec<_>, Vec<_>) = self.network.drain(..).partition(|(at, _)| *at <= self.now);
        self.network = later;
        for (_, bytes) in due {
            let message = PeerMessage::decode(&bytes).unwrap();
            let cut = self.isolated.is_some_and(|node| message.from.0 == node || message.to.0 == node);
            if !cut {
                // Stale ones may be refused; nothing else may happen.
                let _ = self.voters[message.to.0 as usize].node.step(message);
            }
        }
    }

    fn work(&mut self, at: usize) {
        if self.voters[at].ready.is_none() {
            let ready = self.voters[at].node.take_ready().unwrap();
            if let Some(ready) = &ready {
                ready.messages.iter().for_each(|message| self.send(message));
                self.observe(at, ready);
            }
            self.voters[at].ready = ready;
        }
        // A slow disk now and then.
        if !self.is_calm && self.rng.one_in(3) {
            return;
        }
        let voter = &mut self.voters[at];
        if let Some(ready) = voter.ready.take() {
            ready.steps.iter().for_each(|step| voter.disk.perform(step));
            voter.node.persisted(ready.number);
            if let Some(job) = ready.snapshot_job {
                voter.node.snapshot_encoded(job.run().unwrap());
            }
        }
    }

    fn observe(&mut self, at: usize, ready: &Ready) {
        if let Some(image) = &ready.new_image {
            let known = self.images.entry(image.version()).or_insert_with(|| Arc::clone(image));
            assert_eq!(known, image, "seed {}: images of one version differ", self.seed);
        }
        for (token, result) in &ready.outcomes {
            let topic = self.voters[at].proposals.remove(token);
            if let (Ok(committed), Some(topic)) = (result, topic) {
                assert!(committed.version <= self.voters[at].node.image().version());
                self.acknowledged.push(topic);
            }
        }
    }

    fn check_leader(&mut self, at: usize) {
        let status = self.voters[at].node.status();
        if status.is_leader {
            let leader = *self.leaders.entry(status.leader_epoch).or_insert(NodeId(at as i32));
            assert_eq!(leader, NodeId(at as i32), "seed {}: two leaders in one term", self.seed);
        }
    }

    fn propose(&mut self, at: usize) {
        let voter = &mut self.voters[at];
        if !voter.node.status().is_current_leader {
            return;
        }
        if voter.node.image().cluster_id().is_none() {
            voter.node.propose(&format()).unwrap();
            voter.node.propose(&register(0)).unwrap();
        }
        let token = voter.node.propose(&create(self.next_topic)).unwrap();
        voter.proposals.insert(token, self.next_topic);
        self.next_topic += 1;
    }

    fn crash(&mut self, at: usize) {
        let voter = &mut self.voters[at];
        if let Some(ready) = voter.ready.take() {
            let done = self.rng.below(ready.steps.len() as u64 + 1) as usize;
            ready.steps[..done].iter().for_each(|step| voter.disk.perform(step));
            if let Some(step) = ready.steps.get(done) {
                voter.disk.perform_partly(step, &mut self.rng);
            }
        }
        voter.disk.crash(&mut self.rng);
        let config = config(at as i32, VOTERS, self.rng.next());
        voter.node = voter.disk.start(config).unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        voter.proposals.clear();
    }

    fn round(&mut self) {
        self.now += 1;
        if !self.is_calm {
            if self.rng.one_in(60) {
                self.isolated = (!self.rng.one_in(3)).then(|| self.rng.below(VOTERS as u64) as i32);
            }
            if self.rng.one_in(if self.is_stormy { 20 } else { 150 }) {
                let at = self.rng.below(VOTERS as u64) as usize;
                self.crash(at);
            }
            for at in 0..VOTERS as usize {
                if self.is_stormy && self.rng.one_in(10) {
                    // Refused while it leads.
                    let _ = self.voters[at].node.campaign();
                }
            }
        }
        self.deliver();
        for at in 0..VOTERS as usize {
            self.voters[at].node.tick();
            if self.rng.one_in(4) {
                self.propose(at);
            }
            self.work(at);
            self.check_leader(at);
        }
    }

    fn run(&mut self, rounds: u64) {
        (0..rounds).for_each(|_| self.round());
    }

    /// No more faults: everybody must arrive at one image that holds all that was acknowledged.
    fn finish(&mut self) {
        self.is_calm = true;
        self.isolated = None;
        let mut settled = false;
        for _ in 0..2_000 {
            self.now += 1;
            self.deliver();
            for at in 0..VOTERS as usize {
                self.voters[at].node.tick();
                self.work(at);
                self.check_leader(at);
            }
            let applied: Vec<u64> = self.voters.iter().map(|voter| voter.node.status().applied).collect();
            settled = self.voters.iter().any(|voter| voter.node.status().is_current_leader)
                && applied.iter().all(|a| *a == applied[0]);
            if settled {
                break;
            }
        }
        assert!(settled, "seed {}: the voters do not agree in the end", self.seed);
        let image = self.voters[0].node.image();
        assert!(self.voters.iter().all(|voter| voter.node.image() == image), "seed {}", self.seed);
        for topic in &self.acknowledged {
            assert!(image.topic(topic_id(*topic)).is_some(), "seed {}: topic {topic} is lost", self.seed);
        }
    }
}

#[test]
fn three_voters_never_diverge_and_lose_nothing_acknowledged() {
    let (mut acknowledged, mut terms) = (0, 0);
    for seed in 0..60 {
        let mut cluster = Cluster::new(seed);
        cluster.run(1_500);
        cluster.finish();
        acknowledged += cluster.acknowledged.len();
        terms += cluster.leaders.len();
    }
    assert!(acknowledged > 3_000, "only {acknowledged} acknowledged");
    assert!(terms > 200, "only {terms} leaderships");
}

#[test]
fn elections_and_crashes_without_end_elect_one_leader_a_term() {
    let mut terms = 0;
    for seed in 0..150 {
        let mut cluster = Cluster::new(seed);
        cluster.is_stormy = true;
        cluster.run(400);
        cluster.finish();
        terms += cluster.leaders.len();
    }
    assert!(terms > 500, "only {terms} leaderships");
}

/// The simulation rarely kills a voter in just this moment.
#[test]
fn a_vote_leaves_only_after_it_is_durable_and_survives_a_crash() {
    let mut disk = Disk::default();
    let mut voter = disk.start(config(2, VOTERS, 1)).unwrap();
    support::settle(&mut voter, &mut disk);
    let ask = |from: i32| PeerMessage {
        kind: PeerMessageKind::RequestVote,
        from: NodeId(from),
        to: NodeId(2),
        term: 5,
        log_term: 0,
        index: 0,
        commit: 0,
        commit_term: 0,
        reject: false,
        reject_hint: 0,
        context: Default::default(),
        entries: Vec::new(),
        snapshot: None,
    };
    voter.step(ask(0)).unwrap();
    let ready = voter.take_ready().unwrap().unwrap();
    assert!(ready.messages.is_empty(), "the vote must not leave yet");
    assert!(matches!(ready.steps[..], [DiskStep::Append { .. }]));
    ready.steps.iter().for_each(|step| disk.perform(step));
    voter.persisted(ready.number);
    let vote = voter.take_ready().unwrap().unwrap().messages;
    assert!(vote.len() == 1 && !vote[0].reject && vote[0].to == NodeId(0));

    disk.crash(&mut Rng(1));
    let mut voter = disk.start(config(2, VOTERS, 2)).unwrap();
    voter.step(ask(1)).unwrap();
    let mut answers = Vec::new();
    while let Some(ready) = voter.take_ready().unwrap() {
        answers.extend(ready.messages);
        voter.persisted(ready.number);
    }
    assert!(answers.iter().all(|answer| answer.reject), "one vote a term: {answers:?}");
}

#[test]
fn three_voters_agree_on_a_calm_network() {
    let mut cluster = Cluster::new(1);
    cluster.is_calm = true;
    cluster.run(600);
    cluster.finish();
    assert_eq!(cluster.leaders.len(), 1, "one leader, once");
    assert!(cluster.acknowledged.len() > 100);
    let leader = *cluster.leaders.values().next().unwrap();
    let status = cluster.voters[leader.0 as usize].node.status();
    assert_eq!(status.voters.len(), 3);
    assert!(status.voters.iter().all(|voter| voter.log_end_offset == Some(status.high_watermark)), "{status:?}");
}

#[test]
fn a_voter_that_lost_its_disk_is_brought_back_by_a_snapshot() {
    let mut cluster = Cluster::new(2);
    cluster.is_calm = true;
    cluster.run(300);
    let follower = (0..3).find(|at| !cluster.voters[*at].node.status().is_leader).unwrap();
    cluster.voters[follower].disk = Disk::default();
    cluster.voters[follower].ready = None;
    cluster.voters[follower].node = Disk::default().start(config(follower as i32, VOTERS, 9)).unwrap();
    cluster.run(400);
    cluster.finish();
    assert!(cluster.voters[follower].disk.names().iter().any(|name| name.starts_with("snapshot-")));
}

#[test]
fn a_lone_voter_waits_for_its_timeout_unless_told_to_campaign() {
    let start = || Disk::default().start(config(0, 1, 5)).unwrap();
    let mut node = start();
    let mut ticks = 0;
    while !node.status().is_leader {
        node.tick();
        ticks += 1;
    }
    assert!((10..=20).contains(&ticks), "{ticks}");
    let mut node = start();
    node.campaign().unwrap();
    assert!(node.status().is_leader);
}
