//! A disk that forgets what was not synced, a seeded random source, and the smallest driver there can be.
#![allow(dead_code, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{NodeId, TopicId};
use ringlog_metadata::image::Incarnation;
use ringlog_metadata::{Command, DiskStep, Image, MetadataError, MetadataNode, NodeConfig, disk_steps, journal_format};

pub const CLUSTER: &str = "AAAAAAAAQACAAAAAAAAAAQ";

/// splitmix64.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn one_in(&mut self, chance: u64) -> bool {
        self.below(chance) == 0
    }
}

#[derive(Clone, Default)]
struct Content {
    live: Vec<u8>,
    durable: Vec<u8>,
}

#[derive(Clone)]
enum NameOp {
    Set(String, usize),
    Remove(String),
}

/// One folder. Contents and names become durable separately.
#[derive(Clone, Default)]
pub struct Disk {
    contents: Vec<Content>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    pending_names: Vec<NameOp>,
}

impl Disk {
    pub fn perform(&mut self, step: &DiskStep) {
        parts(step).into_iter().for_each(|part| self.part(part));
    }

    /// As far as it comes before the power goes.
    pub fn perform_partly(&mut self, step: &DiskStep, rng: &mut Rng) {
        let parts = parts(step);
        let done = rng.below(parts.len() as u64) as usize;
        parts.into_iter().take(done).for_each(|part| self.part(part));
    }

    fn part(&mut self, part: Part) {
        match part {
            Part::Write(file, bytes) => match self.names.get(&file) {
                Some(id) => self.contents[*id].live = bytes,
                None => {
                    self.contents.push(Content { live: bytes, durable: Vec::new() });
                    self.name_op(NameOp::Set(file, self.contents.len() - 1));
                }
            },
            Part::Append(file, offset, bytes) => {
                let content = self.content(&file);
                assert_eq!(content.live.len() as u64, offset, "appends go to the end");
                content.live.extend_from_slice(&bytes);
            }
            Part::Truncate(file, len) => self.content(&file).live.truncate(len as usize),
            Part::Sync(file) => {
                let content = self.content(&file);
                content.durable = content.live.clone();
            }
            Part::Rename(from, to) => {
                let id = self.names[&from];
                self.name_op(NameOp::Remove(from));
                self.name_op(NameOp::Set(to, id));
            }
            Part::SyncFolder => {
                self.durable_names = self.names.clone();
                self.pending_names.clear();
            }
            Part::Remove(file) => self.name_op(NameOp::Remove(file)),
        }
    }

    fn content(&mut self, file: &str) -> &mut Content {
        let id = self.names[file];
        &mut self.contents[id]
    }

    fn name_op(&mut self, op: NameOp) {
        run(&mut self.names, &op);
        self.pending_names.push(op);
    }

    /// Power goes: of what was not synced some of the names and any part of the bytes survives.
    pub fn crash(&mut self, rng: &mut Rng) {
        let kept = rng.below(self.pending_names.len() as u64 + 1) as usize;
        let mut names = self.durable_names.clone();
        for op in &self.pending_names[..kept] {
            run(&mut names, op);
        }
        for content in &mut self.contents {
            content.live = torn(content, rng);
            content.durable = content.live.clone();
        }
        self.names = names.clone();
        self.durable_names = names;
        self.pending_names.clear();
    }

    pub fn names(&self) -> Vec<&str> {
        self.names.keys().map(String::as_str).collect()
    }

    pub fn read(&self, file: &str) -> Option<&[u8]> {
        self.names.get(file).map(|id| self.contents[*id].live.as_slice())
    }

    pub fn start(&self, config: NodeConfig) -> Result<MetadataNode, MetadataError> {
        let plan = disk_steps::plan_recovery(self.names())?;
        let journal = plan.journal.as_deref().and_then(|name| self.read(name));
        let snapshot = plan.snapshot.as_deref().and_then(|name| self.read(name));
        MetadataNode::new(config, journal_format::recover(&plan, journal, snapshot)?)
    }
}

/// What a file system is really asked for.
enum Part {
    Write(String, Vec<u8>),
    Append(String, u64, Vec<u8>),
    Truncate(String, u64),
    Sync(String),
    Rename(String, String),
    SyncFolder,
    Remove(String),
}

fn parts(step: &DiskStep) -> Vec<Part> {
    match step.clone() {
        DiskStep::Replace { file, bytes } => {
            let aside = format!("{file}.tmp");
            let (write, sync) = (Part::Write(aside.clone(), bytes), Part::Sync(aside.clone()));
            vec![write, sync, Part::Rename(aside, file), Part::SyncFolder]
        }
        DiskStep::Append { file, offset, bytes } => vec![Part::Append(file.clone(), offset, bytes), Part::Sync(file)],
        DiskStep::Truncate { file, len } => vec![Part::Truncate(file.clone(), len), Part::Sync(file)],
        DiskStep::Remove { file } => vec![Part::Remove(file)],
    }
}

fn run(names: &mut BTreeMap<String, usize>, op: &NameOp) {
    match op {
        NameOp::Set(name, id) => {
            names.insert(name.clone(), *id);
        }
        NameOp::Remove(name) => {
            names.remove(name);
        }
    }
}

/// What synced bytes are followed by after a crash: nothing, some, all, with holes of zeros.
fn torn(content: &Content, rng: &mut Rng) -> Vec<u8> {
    let common = content.live.iter().zip(&content.durable).take_while(|(a, b)| a == b).count();
    if content.live.len() < content.durable.len() || common < content.durable.len() {
        return if rng.one_in(2) { content.live.clone() } else { content.durable.clone() };
    }
    let unsynced = content.live.len() - common;
    let mut bytes = content.live[..common + rng.below(unsynced as u64 + 1) as usize].to_vec();
    let tail = bytes.len() - common;
    if tail > 0 && rng.one_in(2) {
        let from = common + rng.below(tail as u64) as usize;
        let to = (from + 1 + rng.below(512) as usize).min(bytes.len());
        bytes[from..to].fill(0);
    }
    bytes
}

pub fn config(node: i32, voters: i32, seed: u64) -> NodeConfig {
    let voters = (0..voters).map(NodeId).collect();
    let mut config = NodeConfig::new(NodeId(node), voters, Arc::from(CLUSTER), seed);
    config.snapshot_after_entries = 9;
    config
}

pub fn format() -> Command {
    Command::FormatCluster { cluster_id: CLUSTER.into(), features: vec![("metadata.version".into(), 1)] }
}

pub fn register(node: i32) -> Command {
    Command::RegisterBroker {
        node: NodeId(node),
        incarnation: Incarnation([7; 16]),
        host: "localhost".into(),
        port: 9092,
        rack: None,
    }
}

pub fn create(number: u64) -> Command {
    let mut id = [0x40; 16];
    id[..8].copy_from_slice(&(number + 1).to_be_bytes());
    Command::CreateTopic {
        name: format!("topic-{number}").into(),
        id: TopicId(id),
        assignments: vec![vec![NodeId(0)]; 1 + (number % 3) as usize],
        configs: vec![("retention.ms".into(), number.to_string().into())],
    }
}

pub fn topic_id(number: u64) -> TopicId {
    match create(number) {
        Command::CreateTopic { id, .. } => id,
        _ => unreachable!(),
    }
}

/// Performs everything at once until nothing is left; gives the outcomes.
pub fn settle(
    node: &mut MetadataNode,
    disk: &mut Disk,
) -> Vec<(ringlog_metadata::ProposalToken, ringlog_metadata::node::ProposalResult)> {
    let mut outcomes = Vec::new();
    while let Some(ready) = node.take_ready().unwrap() {
        ready.steps.iter().for_each(|step| disk.perform(step));
        node.persisted(ready.number);
        outcomes.extend(ready.outcomes);
        if let Some(job) = ready.snapshot_job {
            node.snapshot_encoded(job.run().unwrap());
        }
    }
    outcomes
}

pub fn names(image: &Image) -> Vec<String> {
    image.topics_by_name().map(|topic| topic.name.to_string()).collect()
}
