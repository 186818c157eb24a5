//! Takes partitions of another broker over into the data folders of a stopped node (`ringlog log import`).
//!
//! One shard, no listener. The data folder's lock is held throughout, so no node starts meanwhile. The order, and what a
//! crash leaves: copies are made under the names of deleted partitions (the next start removes them); the topic is agreed,
//! and its leader epochs are raised above those in the batches (the topic is there, empty: delete it and import again);
//! the copies get their names (a start finds and scans them); their ends and log starts reach the checkpoint. The source
//! is only read, so nothing is lost at any line.

use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use log::format::names;
use log::{
    CheckpointEntry, DataDir, DataDirs, Fill, Identity, LogError, LogShard, LogShardConfig, PartitionSpec, StartMode,
};
use metadata::{Command, DriverConfig, MetadataError};
use model::config::{BrokerConfig, TopicConfig};
use model::{LeaderEpoch, NodeId, Offset, PartitionIndex, PartitionKey, TopicId};
use runtime::{ChunkPool, HelperSpec, ShardSpec, checks, clock, fs, random};

use crate::boot::TICK_INTERVAL_MS;
use crate::cluster::Cluster;
use crate::folders::{self, METADATA_DIR};
use crate::limits::{IMPORT_EPOCHS_MAX, IMPORT_PROPOSALS};
use crate::node::StartError;
use crate::view::View;

/// A topic to be taken over.
#[derive(Clone, Debug)]
pub struct ImportTopic {
    pub name: String,
    /// `None`: it gets a new one.
    pub id: Option<TopicId>,
    pub configs: Vec<(String, String)>,
    /// By index; `None` where there is nothing to take over: such a partition begins empty.
    pub partitions: Vec<Option<ImportPartition>>,
}

#[derive(Clone, Copy, Debug)]
pub struct ImportPartition {
    /// Where it was known to begin later than its first segment does.
    pub log_start_offset: Option<Offset>,
    /// First offset of the last segment.
    pub last_segment: Offset,
    /// The highest in its batches and its history.
    pub leader_epoch: LeaderEpoch,
}

/// Where a partition's files have to be copied to.
#[derive(Clone, Debug)]
pub struct ImportTarget {
    pub topic: String,
    pub topic_id: TopicId,
    pub partition: i32,
    pub folder: PathBuf,
}

/// Makes the copies, durably, on a thread that may block. The error is a sentence.
pub type CopyAll = Box<dyn FnOnce(&[ImportTarget]) -> Result<(), String> + Send>;

/// What the log says of an imported partition.
#[derive(Clone, Debug)]
pub struct Imported {
    pub topic: String,
    pub partition: i32,
    pub folder: PathBuf,
    pub log_start_offset: Offset,
    pub log_end_offset: Offset,
}

/// Why nothing, or not all, was imported.
#[derive(Debug)]
pub enum ImportError {
    Start(StartError),
    NeverUsed(PathBuf),
    TopicExists(String),
    IdInUse { name: String, other: String },
    InvalidConfig { name: String, why: String },
    EpochTooHigh { name: String, leader_epoch: LeaderEpoch },
    InTheWay(PathBuf),
    Copy(String),
    Metadata(MetadataError),
    Log(LogError),
    Ended(String),
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportError::Start(error) => error.fmt(f),
            ImportError::NeverUsed(path) => {
                write!(
                    f,
                    "no node was ever started in {}: start it once, and stop it, before importing",
                    path.display()
                )
            }
            ImportError::TopicExists(name) => {
                write!(f, "topic {name} exists: delete it there, or leave it out with --topic")
            }
            ImportError::IdInUse { name, other } => {
                write!(
                    f,
                    "topic {name} has the id of topic {other} there: it was imported under that name, or is a copy"
                )
            }
            ImportError::InvalidConfig { name, why } => write!(f, "topic {name} cannot be made: {why}"),
            ImportError::EpochTooHigh { name, leader_epoch } => {
                write!(
                    f,
                    "topic {name} has leader epoch {leader_epoch}: more than {IMPORT_EPOCHS_MAX} are not taken over"
                )
            }
            ImportError::InTheWay(path) => {
                write!(f, "{} is in the way: it belongs to no topic; move it away", path.display())
            }
            ImportError::Copy(why) => write!(f, "{why}; nothing was imported"),
            ImportError::Metadata(error) => write!(f, "the topic cannot be made: {error}"),
            ImportError::Log(error) => write!(f, "an imported partition cannot be opened: {error}"),
            ImportError::Ended(why) => write!(f, "the import ended early: {why}"),
        }
    }
}

impl std::error::Error for ImportError {}

impl From<StartError> for ImportError {
    fn from(error: StartError) -> ImportError {
        ImportError::Start(error)
    }
}

impl From<LogError> for ImportError {
    fn from(error: LogError) -> ImportError {
        ImportError::Log(error)
    }
}

impl From<MetadataError> for ImportError {
    fn from(error: MetadataError) -> ImportError {
        ImportError::Metadata(error)
    }
}

/// Imports `topics` into the folders that `config` names; without `copy` it only checks whether that could be done.
/// Blocks until it is done.
pub fn import(
    config: BrokerConfig,
    topics: Vec<ImportTopic>,
    copy: Option<CopyAll>,
) -> Result<Vec<Imported>, ImportError> {
    checks::check_host().map_err(StartError::Host)?;
    let job = Arc::new(Mutex::new(Some((config, topics, copy))));
    let spec = ShardSpec::default();
    let running = runtime::shard::start(&[spec], HelperSpec::default(), move |_| {
        let job = job.lock().unwrap_or_else(PoisonError::into_inner).take();
        async move {
            match job {
                Some((config, topics, copy)) => run(config, topics, copy).await,
                None => unreachable!("one shard runs once"),
            }
        }
    });
    let running = running.map_err(StartError::Shards)?;
    let mut results = running.join().map_err(|error| ImportError::Ended(error.to_string()))?;
    results.pop().unwrap_or_else(|| Err(ImportError::Ended("no shard answered".into())))
}

async fn run(
    mut config: BrokerConfig,
    mut topics: Vec<ImportTopic>,
    copy: Option<CopyAll>,
) -> Result<Vec<Imported>, ImportError> {
    let (cluster, dirs, node) = open(&mut config).await?;
    let view = cluster.view();
    for topic in &mut topics {
        topic.id.get_or_insert_with(|| TopicId::from_random(random::bytes()));
        check(&view, topic)?;
    }
    let mut imported = Vec::new();
    if let Some(copy) = copy {
        let targets = targets(&dirs, &topics).await?;
        let asked: Vec<ImportTarget> = targets.iter().map(|(target, _)| target.clone()).collect();
        let copied = runtime::spawn_blocking(move || copy(&asked)).await;
        copied.unwrap_or_else(|panic| Err(panic.to_string())).map_err(ImportError::Copy)?;
        for topic in &topics {
            create(&cluster, node, topic).await?;
        }
        for (target, place) in &targets {
            fs::rename(&target.folder, place).await.map_err(LogError::from)?;
        }
        imported = settle(&cluster, &dirs, &topics, &targets).await?;
    }
    stop(&cluster).await?;
    Ok(imported)
}

/// The node's metadata and folders, as a start opens them.
async fn open(config: &mut BrokerConfig) -> Result<(Rc<Cluster>, Arc<DataDirs>, NodeId), ImportError> {
    let plan = folders::plan(config)?;
    if !checks::exists(&plan.metadata.join(log::data_dir::META)) {
        return Err(ImportError::NeverUsed(plan.metadata));
    }
    let reserve_bytes = config.shards.disk_reserve_bytes;
    let data_dir = DataDir::open_with(&plan.metadata, reserve_bytes).await.map_err(StartError::DataDir)?;
    let Some(owner) = data_dir.identity().cloned() else { return Err(ImportError::NeverUsed(plan.metadata)) };
    data_dir.adopt(&owner).await.map_err(StartError::DataDir)?;
    config.node.node_id = owner.node_id;
    let cluster = open_cluster(&plan.metadata, config, &owner).await?;
    let dirs = folders::open(&plan, config, data_dir, &owner, &cluster.view()).await?;
    Ok((cluster, dirs, owner.node_id))
}

async fn open_cluster(metadata: &Path, config: &BrokerConfig, owner: &Identity) -> Result<Rc<Cluster>, ImportError> {
    let driver = DriverConfig {
        folder: metadata.join(METADATA_DIR),
        node: owner.node_id,
        voters: vec![owner.node_id],
        cluster_id: Some(Arc::from(owner.cluster_id.as_str())),
        tick_interval_ms: TICK_INTERVAL_MS,
    };
    Cluster::open(driver, config, 1).await.map_err(ImportError::Metadata)
}

/// What can be refused is, before anything is copied.
fn check(view: &View, topic: &ImportTopic) -> Result<(), ImportError> {
    let name = topic.name.clone();
    if view.image.topic_by_name(&name).is_some() {
        return Err(ImportError::TopicExists(name));
    }
    if let Some(other) = topic.id.and_then(|id| view.image.topic(id)) {
        return Err(ImportError::IdInUse { name, other: other.name.to_string() });
    }
    let pairs = topic.configs.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    if let Err(error) = TopicConfig::resolve(&view.config, pairs) {
        return Err(ImportError::InvalidConfig { name, why: error.to_string() });
    }
    let highest = topic.partitions.iter().flatten().map(|partition| partition.leader_epoch).max();
    match highest {
        Some(leader_epoch) if leader_epoch.0 > IMPORT_EPOCHS_MAX => {
            Err(ImportError::EpochTooHigh { name, leader_epoch })
        }
        _ => Ok(()),
    }
}

/// Homes for the partitions: where their copies are made, and the names that those get.
async fn targets(dirs: &DataDirs, topics: &[ImportTopic]) -> Result<Vec<(ImportTarget, PathBuf)>, ImportError> {
    let mut targets = Vec::new();
    for topic in topics {
        let Some(topic_id) = topic.id else { continue };
        dirs.place(&[(topic_id, topic.partitions.len())]).await.map_err(LogError::from)?;
        for (index, _) in topic.partitions.iter().enumerate().filter(|(_, partition)| partition.is_some()) {
            let partition = PartitionIndex(index as i32);
            let home = dirs.home(PartitionKey { topic_id, partition })?;
            let place = home.path().join(names::partition_dir(&topic.name, partition));
            if fs::stat(&place).await.map_err(LogError::from)?.is_some() {
                return Err(ImportError::InTheWay(place));
            }
            let aside = names::deleted_dir(&topic.name, partition, TopicId(random::bytes()));
            let folder = home.path().join(aside);
            targets.push((ImportTarget { topic: topic.name.clone(), topic_id, partition: partition.0, folder }, place));
        }
    }
    Ok(targets)
}

/// Agrees on the topic and raises its leader epochs: a batch of an epoch below one before it would end the log.
async fn create(cluster: &Cluster, node: NodeId, topic: &ImportTopic) -> Result<(), ImportError> {
    let id = topic.id.unwrap_or(TopicId::ZERO);
    let text = |(key, value): &(String, String)| (Arc::from(key.as_str()), Arc::from(value.as_str()));
    let command = Command::CreateTopic {
        name: topic.name.as_str().into(),
        id,
        assignments: vec![vec![node]; topic.partitions.len()],
        configs: topic.configs.iter().map(text).collect(),
    };
    cluster.change(&command).await?;
    let view = cluster.view();
    let mut raises = Vec::new();
    for (index, partition) in topic.partitions.iter().enumerate() {
        let partition_index = PartitionIndex(index as i32);
        let state = view.image.partition(id, partition_index);
        let (Some(partition), Some(state)) = (partition, state) else { continue };
        let steps = partition.leader_epoch.0 + 1 - state.leader_epoch.0;
        raises.extend((0..steps.max(0)).map(|step| Command::ChangeLeader {
            id,
            partition: partition_index,
            partition_epoch: state.partition_epoch + step,
            leader: node,
            unclean: false,
        }));
    }
    for some in raises.chunks(IMPORT_PROPOSALS) {
        for raised in runtime::sync::all(some.iter().map(|command| cluster.change(command)).collect()).await {
            raised?;
        }
    }
    Ok(())
}

/// Opens each partition once, as after a crash, and closes it: the checkpoint then has its end and its log start.
async fn settle(
    cluster: &Cluster,
    dirs: &DataDirs,
    topics: &[ImportTopic],
    targets: &[(ImportTarget, PathBuf)],
) -> Result<Vec<Imported>, ImportError> {
    let view = cluster.view();
    let shard = LogShard::new(LogShardConfig::new(0, ChunkPool::new(8 << 20)));
    let mut imported = Vec::with_capacity(targets.len());
    for (target, place) in targets {
        let topic = topics.iter().find(|topic| topic.name == target.topic);
        let partition = topic.and_then(|topic| topic.partitions[target.partition as usize]);
        let (Some(partition), Some(stored)) = (partition, view.image.topic(target.topic_id)) else { continue };
        let key = PartitionKey { topic_id: target.topic_id, partition: PartitionIndex(target.partition) };
        let config = view
            .topic_config(stored)
            .map_err(|error| ImportError::InvalidConfig { name: target.topic.clone(), why: error.to_string() })?;
        let spec = PartitionSpec {
            data_dir: dirs.home(key)?.clone(),
            topic: target.topic.clone(),
            key,
            config: replica::log_config(&config),
            uses_reserve: false,
        };
        let start = StartMode::Unclean(Some(Box::new(begin(key, &target.topic, &partition))));
        let opened = shard.open_partition(spec, start).await?;
        imported.push(Imported {
            topic: target.topic.clone(),
            partition: target.partition,
            folder: place.clone(),
            log_start_offset: opened.log.log_start_offset(),
            log_end_offset: opened.log.log_end_offset(),
        });
    }
    shard.stop_clean().await?;
    for dir in dirs.online() {
        dir.close_clean().await?;
    }
    Ok(imported)
}

/// What is known before the scan: the log start, and where the last segment begins. It vouches for no byte.
fn begin(key: PartitionKey, topic: &str, partition: &ImportPartition) -> CheckpointEntry {
    let now_ms = clock::wall_ms();
    CheckpointEntry {
        key,
        topic: topic.to_string(),
        log_start_offset: partition.log_start_offset.unwrap_or(Offset::ZERO),
        segment_base: partition.last_segment,
        fill: Fill::empty(partition.last_segment),
        index_entries: 0,
        time_entries: 0,
        closed_count: 0,
        closed_bytes: 0,
        created_ms: now_ms,
        last_append_ms: now_ms,
        snapshot_at: None,
        epochs: None,
    }
}

async fn stop(cluster: &Cluster) -> Result<(), ImportError> {
    cluster.stop();
    match cluster.take_task() {
        Some(task) => Ok(task.join().await.unwrap_or(Ok(()))?),
        None => Ok(()),
    }
}
