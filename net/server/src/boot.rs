//! A shard's main task: from nothing to serving, and to its clean end.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};

use log::{
    DataDir, DataDirs, DeviceLimits, FoundPartition, Identity, JournalConfig, LogError, LogShard, LogShardConfig,
    WriteClock,
};
use metadata::{Command, DriverConfig, Incarnation, MetadataError, Rejection};
use model::PartitionKey;
use model::config::{BrokerConfig, ShardConfig};
use runtime::mailbox::Mailboxes;
use runtime::{AcceptQueue, ChunkPool, Post, ShardContext, checks, random};

use crate::cluster::Cluster;
use crate::connection::{self, Connections};
use crate::folders::{self, FolderPlan, METADATA_DIR};
use crate::groups;
use crate::limits::{JOURNAL_FILES, SAVES_AT_ONCE};
use crate::mail::{ShardReply, ShardRequest};
use crate::metrics;
use crate::mutants::{Mutant, active};
use crate::node::StartError;
use crate::shard::{NodeFacts, Shard, ShardParts};
use crate::view::View;

/// The quorum's clock.
pub(crate) const TICK_INTERVAL_MS: u64 = 100;
/// What the length of a journal's file is a multiple of. The simulator fills such files too.
const JOURNAL_UNIT: u64 = if cfg!(feature = "sim") { 64 << 10 } else { 1 << 20 };
/// Feature levels that a new cluster begins with.
const FEATURES: [(&str, i16); 0] = [];

/// What all shards of a process are started with.
pub struct Boot {
    pub mailboxes: Arc<Mailboxes<ShardRequest, ShardReply>>,
    pub queues: Vec<Mutex<Option<AcceptQueue>>>,
    pub stop_receivers: Vec<flume::Receiver<()>>,
    /// Questions about each shard's figures.
    pub asks: Vec<flume::Receiver<metrics::Ask>>,
    /// Shard 0's facts and view, to each other shard.
    pub fact_senders: Vec<flume::Sender<(Arc<NodeFacts>, View)>>,
    pub fact_receivers: Vec<flume::Receiver<(Arc<NodeFacts>, View)>>,
    pub ready: flume::Sender<Result<Option<Summary>, StartError>>,
    /// Each shard but 0 says when its log is closed, and which folders may not be called clean; shard 0 goes last.
    pub stopped: flume::Sender<BTreeSet<PathBuf>>,
    pub stopped_others: flume::Receiver<BTreeSet<PathBuf>>,
    pub pool: ChunkPool,
    pub writes: WriteClock,
    pub config: BrokerConfig,
    pub folders: FolderPlan,
    pub advertised: (String, u16),
    /// `max.connections` as the acceptor sees it.
    pub max_connections: Arc<AtomicUsize>,
}

/// What shard 0 found.
#[derive(Clone, Debug)]
pub struct Summary {
    pub cluster_id: String,
    pub topics: usize,
    pub partitions: u64,
    pub was_clean: bool,
}

/// The whole life of a shard. The error is a sentence about its end.
pub async fn run_shard(boot: Arc<Boot>, context: ShardContext) -> Result<bool, String> {
    let shard = match begin(&boot, &context).await {
        Ok((shard, summary)) => {
            let _ = boot.ready.send(Ok(summary));
            shard
        }
        Err(error) => {
            let text = error.to_string();
            let _ = boot.ready.send(Err(error));
            return Err(text);
        }
    };
    let queue = take(&boot.queues[context.index]);
    runtime::spawn("accept", accept(shard.clone(), queue));
    shard.tasks.spawn("idle sweep", Connections::sweep(shard.clone()));
    shard.tasks.spawn("housekeeping", shard.clone().keep_house());
    if shard.index == 0 {
        shard.tasks.spawn("data folders", shard.clone().mind_folders());
        shard.tasks.spawn("free chunks", shard.clone().mind_free_chunks());
        shard.tasks.spawn("freed memory", shard.clone().mind_freed_memory());
    }
    shard.tasks.spawn("scrub", shard.clone().scrub());
    if shard.config().node.metrics_listen.is_some() {
        let asks = boot.asks[context.index].clone();
        shard.tasks.spawn("figures", metrics::answer(shard.clone(), asks, context.pulse.clone()));
    }
    shard.tasks.spawn("open found partitions", open_found(shard.clone()));
    let _ = boot.stop_receivers[context.index].recv_async().await;
    end(&boot, &shard).await
}

/// In the background: partitions that have data, then the groups whose offsets may expire.
async fn open_found(shard: Rc<Shard>) {
    shard.clone().open_found().await;
    groups::load_all_found(&shard).await;
}

fn device_limits(shards: &ShardConfig) -> DeviceLimits {
    DeviceLimits {
        // The log's bound is the table's, but smaller in a simulation.
        write_max_bytes: shards.disk_write_max_bytes.min(DeviceLimits::default().write_max_bytes),
        queue_depth: shards.disk_queue_depth,
        stall_after_us: log::stall_after_us(shards.disk_expected_write_us),
    }
}

/// A shard's ring. What of it is not in the segments yet is pinned in the batch cache, in half of that at most.
fn journal(limits: &ShardConfig, shards: usize) -> Option<JournalConfig> {
    let bytes = limits.journal_bytes / shards as u64;
    let memory_bytes = limits.batch_cache_bytes as u64 / 2 / shards as u64;
    let units = if cfg!(feature = "sim") { 1 } else { bytes / JOURNAL_FILES as u64 / JOURNAL_UNIT };
    let file_bytes = units.max(1) * JOURNAL_UNIT;
    let config = JournalConfig { file_bytes, files_max: JOURNAL_FILES, memory_bytes, ..JournalConfig::default() };
    limits.journal.then_some(config)
}

fn take<T>(slot: &Mutex<Option<T>>) -> T {
    slot.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take().expect("each shard takes its own, once")
}

async fn accept(shard: Rc<Shard>, queue: AcceptQueue) {
    while let Some(socket) = queue.next().await {
        runtime::spawn("connection", connection::serve(shard.clone(), socket));
    }
}

async fn begin(boot: &Boot, context: &ShardContext) -> Result<(Rc<Shard>, Option<Summary>), StartError> {
    let (facts, view, cluster) = if context.index == 0 {
        let (facts, cluster) = lead(boot, context.count).await?;
        let view = cluster.view();
        discard_orphans(&facts.dirs, &view).await.map_err(|e| StartError::Orphans(e.to_string()))?;
        for sender in &boot.fact_senders[1..] {
            let _ = sender.send((facts.clone(), view.clone()));
        }
        (facts, view, Some(cluster))
    } else {
        let received = boot.fact_receivers[context.index].recv_async().await;
        let (facts, view) = received.map_err(|_| StartError::Ended)?;
        (facts, view, None)
    };
    let limits = &boot.config.shards;
    let mut log_config = LogShardConfig::new(context.index as u16, boot.pool.clone());
    log_config.cache_bytes = (limits.batch_cache_bytes / context.count).max(1 << 20);
    log_config.writes = boot.writes.clone();
    log_config.open_files = (limits.open_segments(checks::open_files_limit()) / context.count).max(32);
    log_config.io_bytes = limits.io_memory_bytes;
    log_config.device = device_limits(limits);
    log_config.journal = journal(limits, context.count);
    let summary = cluster.as_ref().map(|_| Summary {
        cluster_id: facts.cluster_id.clone(),
        topics: view.image.topic_count(),
        partitions: view.image.partition_count(),
        // A folder that was never used has nothing to recover.
        was_clean: facts.dirs.online().all(|dir| dir.was_clean() || dir.identity().is_none()),
    });
    let shard = Shard::new(ShardParts {
        index: context.index,
        facts,
        post: Post::new(boot.mailboxes.clone(), context.index),
        log: LogShard::new(log_config),
        cluster,
        view,
    });
    shard.serve();
    if let Some(cluster) = &shard.cluster {
        cluster.attach(&shard);
        watch(cluster);
    }
    Ok((shard, summary))
}

/// If the quorum's driver fails, nothing it says can be believed any more: the process ends with its sentence.
fn watch(cluster: &Rc<Cluster>) {
    let Some(task) = cluster.take_task() else { return };
    runtime::spawn("metadata watch", async move {
        if let Some(Err(error)) = task.join().await {
            runtime::task::end_process(&format!("{error} The process ends now; what was acknowledged is on disk."));
        }
    });
}

/// Shard 0: data folder, quorum, and this start's commands.
async fn lead(boot: &Boot, shards: usize) -> Result<(Arc<NodeFacts>, Rc<Cluster>), StartError> {
    let node_id = boot.config.node.node_id;
    let path = &boot.folders.metadata;
    // Before anything in any folder is changed.
    for spec in &boot.folders.specs {
        log::versions::refuse_newer(&spec.path).await.map_err(StartError::DataDir)?;
    }
    metadata::versions::refuse_newer(&path.join(METADATA_DIR)).await.map_err(StartError::Metadata)?;
    let reserve_bytes = boot.config.shards.disk_reserve_bytes;
    let data_dir = DataDir::open_with(path, reserve_bytes).await.map_err(StartError::DataDir)?;
    let folder = path.join(METADATA_DIR);
    let known = data_dir.identity().map(|identity| identity.cluster_id.clone());
    if let Some(cluster_id) = &known {
        let ours = Identity { cluster_id: cluster_id.clone(), node_id };
        data_dir.adopt(&ours).await.map_err(StartError::DataDir)?;
        if runtime::fs::stat(&folder).await.map_err(StartError::Io)?.is_none() {
            return Err(StartError::MetadataMissing { path: folder });
        }
    }
    let driver = DriverConfig {
        folder,
        node: node_id,
        voters: vec![node_id],
        cluster_id: known.map(Arc::from),
        tick_interval_ms: TICK_INTERVAL_MS,
    };
    let cluster = Cluster::open(driver, &boot.config, shards).await.map_err(StartError::Metadata)?;
    register(boot, &cluster).await.map_err(StartError::Metadata)?;
    let cluster_id = cluster.cluster_id().to_string();
    let ours = Identity { cluster_id: cluster_id.clone(), node_id };
    data_dir.adopt(&ours).await.map_err(StartError::DataDir)?;
    let dirs = folders::open(&boot.folders, &boot.config, data_dir, &ours, &cluster.view()).await?;
    let facts = Arc::new(NodeFacts {
        node_id,
        host: boot.advertised.0.clone(),
        port: boot.advertised.1,
        cluster_id,
        dirs,
        base_config: boot.config.clone(),
        next_id: AtomicU64::new(1),
        max_connections: boot.max_connections.clone(),
    });
    Ok((facts, cluster))
}

/// The commands of every start. Leader epochs rise before the first append: after a crash offsets may be handed out
/// again, and followers and consumers have to see that. All three share the quorum's rounds.
async fn register(boot: &Boot, cluster: &Cluster) -> Result<(), MetadataError> {
    let node = boot.config.node.node_id;
    let format = Command::FormatCluster {
        cluster_id: cluster.cluster_id(),
        features: FEATURES.iter().map(|&(name, level)| (Arc::from(name), level)).collect(),
    };
    let broker = Command::RegisterBroker {
        node,
        incarnation: Incarnation(random::bytes()),
        host: boot.advertised.0.as_str().into(),
        port: boot.advertised.1,
        rack: boot.config.node.rack.as_deref().map(Arc::from),
    };
    let raise = Command::RaiseLeaderEpochs { node };
    let mut commands = vec![format, broker, raise];
    if active(Mutant::EpochNotRaised) {
        commands.pop();
    }
    for result in runtime::sync::all(commands.iter().map(|command| cluster.change(command)).collect()).await {
        match result {
            Ok(_) | Err(MetadataError::Rejected(Rejection::UnknownBroker(_))) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The clean end. Shard 0 waits for the others before a folder is called clean.
/// Gives whether all folders are.
async fn end(boot: &Boot, shard: &Rc<Shard>) -> Result<bool, String> {
    shard.begin_stop();
    shard.connections.close_all().await;
    groups::stop(shard).await;
    shard.tasks.wait().await;
    let dirs = &shard.facts.dirs;
    let unopened = dirs.online().filter(|dir| !all_found_are_open(shard, dir));
    let mut unclean: BTreeSet<PathBuf> = unopened.map(|dir| dir.path().to_path_buf()).collect();
    unclean.extend(save_producers(shard).await);
    for (dir, error) in shard.log.stop_clean_by_folder().await {
        let path = dir.path();
        eprintln!("ringlog: shard {} could not close its logs in {} cleanly: {error}", shard.index, path.display());
        unclean.insert(path.to_path_buf());
    }
    if shard.index != 0 {
        let is_clean = unclean.is_empty();
        let _ = boot.stopped.send(unclean);
        return Ok(is_clean);
    }
    for _ in 1..shard.post.shards() {
        match boot.stopped_others.recv_async().await {
            Ok(others) => unclean.extend(others),
            Err(_) => unclean.extend(dirs.online().map(|dir| dir.path().to_path_buf())),
        }
    }
    if let Some(cluster) = &shard.cluster {
        cluster.stop();
    }
    close_folders(dirs, &unclean).await
}

/// Each folder has its own clean mark. An error is told after the others are closed.
async fn close_folders(dirs: &DataDirs, unclean: &BTreeSet<PathBuf>) -> Result<bool, String> {
    let mut failed = None;
    let mut clean = unclean.is_empty();
    for dir in dirs.online() {
        if dir.failure().is_some() || unclean.contains(dir.path()) {
            clean = false;
        } else if let Err(error) = dir.close_clean().await {
            failed.get_or_insert(error.to_string());
        }
    }
    failed.map_or(Ok(clean), Err)
}

/// Whether this shard knows the end of every log in `dir` that is its own. After a clean start the checkpoint does; after an
/// unclean one a partition that was not opened has an end that only its scan will tell, and the folder must not be called
/// clean.
fn all_found_are_open(shard: &Shard, dir: &DataDir) -> bool {
    let view = shard.view();
    let known = |found: &FoundPartition| {
        // A crash may have left a folder without its metadata. Whose it is, its name says; what is nobody's is no log of ours.
        let named = || view.image.topic_by_name(&found.topic).map(|topic| topic.id);
        let Some(topic_id) = found.topic_id.or_else(named) else { return true };
        let key = PartitionKey { topic_id, partition: found.partition };
        let is_ours = view.placement.shard_of(key) == Some(shard.index) && shard.facts.dirs.is_home(dir, key);
        !is_ours || shard.partitions.get(key).is_some()
    };
    dir.was_clean() || dir.found().iter().all(known)
}

/// Producers of the partitions that changed since the start. Gives the folders in which one could not be saved.
async fn save_producers(shard: &Shard) -> BTreeSet<PathBuf> {
    let open = shard.partitions.open();
    let changed: Vec<_> = open.iter().filter(|replica| replica.log().is_touched()).collect();
    let mut failed = BTreeSet::new();
    for some in changed.chunks(SAVES_AT_ONCE) {
        let results = runtime::sync::all(some.iter().map(|replica| replica.save_producers()).collect()).await;
        let unsaved = some.iter().zip(results).filter(|(_, result)| result.is_err());
        failed.extend(unsaved.filter_map(|(replica, _)| Some(replica.log().dir().parent()?.to_path_buf())));
    }
    failed
}

/// Takes folders out of the way whose topics are gone or were made again with another id: their deletion was agreed, and
/// the process ended before the files went. Before any shard serves, so that no live folder can be meant.
async fn discard_orphans(dirs: &DataDirs, view: &View) -> Result<(), LogError> {
    for dir in dirs.online() {
        let discarded = discard_orphans_in(dir, view).await;
        match discarded {
            // Its topic is in nobody's way: the folder takes no new partitions any more.
            Err(error) if !Arc::ptr_eq(dir, dirs.metadata()) => dir.fail(&error.to_string()),
            other => other?,
        }
    }
    Ok(())
}

async fn discard_orphans_in(dir: &DataDir, view: &View) -> Result<(), LogError> {
    for found in dir.found() {
        let Some(topic_id) = found.topic_id else { continue };
        if view.image.topic(topic_id).is_none() {
            dir.discard(&found.topic, found.partition, Some(topic_id)).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logs_defaults_are_the_tables() {
        assert_eq!(device_limits(&BrokerConfig::default().shards), DeviceLimits::default());
    }

    /// The log asserts its bounds: what the table lets through must pass.
    #[test]
    fn what_the_table_allows_the_log_takes() {
        let pool = || runtime::ChunkPool::new(1 << 20);
        for (write, depth, us) in [("65536", "1", "1"), ("1048576", "256", "60000000")] {
            let pairs = [
                ("ringlog.disk.write.max.bytes", write),
                ("ringlog.disk.queue.depth", depth),
                ("ringlog.disk.expected.write.us", us),
            ];
            let config = BrokerConfig::from_pairs(pairs).unwrap_or_else(|error| panic!("{error}"));
            let device = device_limits(&config.shards);
            assert_eq!(
                (device.write_max_bytes.to_string(), device.queue_depth.to_string()),
                (write.into(), depth.into())
            );
            assert!(device.stall_after_us.is_some_and(|us| us >= 100_000));
            runtime::testing::run(move || async move {
                let log_config = LogShardConfig { device, ..LogShardConfig::new(0, pool()) };
                assert!(LogShard::new(log_config).stop_clean().await.is_ok());
            });
        }
        for (bytes, shards) in [("8388608", 64), ("134217728", 2), ("8589934592", 1), ("8589934592", 3)] {
            let config = BrokerConfig::from_pairs([("ringlog.journal.bytes", bytes)]);
            let config = config.unwrap_or_else(|error| panic!("{error}"));
            let Some(journal) = journal(&config.shards, shards) else { panic!("it is on where nothing is said") };
            assert!(journal.fits(), "{journal:?}");
            let most: u64 = bytes.parse().unwrap_or(0);
            let made = journal.file_bytes * journal.files_max as u64 * shards as u64;
            assert!(made <= most.max(JOURNAL_UNIT * JOURNAL_FILES as u64 * shards as u64), "{journal:?}");
        }
    }
}
