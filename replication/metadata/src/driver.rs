//! A node on a shard: performs its disk steps, sends its messages, publishes its images, answers its proposals.
//!
//! One task of the metadata shard works off one `Ready` after the other; while a round is on disk, new proposals gather for
//! the next. File work runs on the shard's pool thread. Other shards reach [`MetadataHandle::propose`] through the mailbox.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use model::{NodeId, TopicId};
use runtime::sync::{OneshotSender, before, oneshot};
use runtime::{IoError, Notify, TaskGroup, TaskHandle, clock, fs, random, spawn, spawn_blocking};

use crate::command::Command;
use crate::disk_steps::{DiskStep, plan_recovery};
use crate::error::MetadataError;
use crate::image::Image;
use crate::journal_format::{Recovered, recover};
use crate::limits::{MAX_JOURNAL_LEN, MAX_SNAPSHOT_LEN};
use crate::node::{MetadataNode, NodeConfig, ProposalResult, ProposalToken};
use crate::node_ready::Ready;
use crate::peer::{PeerMessage, PeerTransport};
use crate::snapshot::SnapshotJob;
use crate::status::QuorumStatus;

/// Where and as whom the node lives.
#[derive(Clone, Debug)]
pub struct DriverConfig {
    /// Of the metadata alone; made if it is not there.
    pub folder: PathBuf,
    pub node: NodeId,
    pub voters: Vec<NodeId>,
    /// For a first start; `None` makes a random one. Several voters must be given the same.
    pub cluster_id: Option<Arc<str>>,
    pub tick_interval_ms: u64,
}

/// No other voter to send to.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPeers;

impl PeerTransport for NoPeers {
    fn send(&self, _message: PeerMessage) {}
}

/// The metadata shard's way to its node. Cheap to clone; does not leave the shard.
#[derive(Clone)]
pub struct MetadataHandle {
    shared: Rc<Shared>,
}

struct Shared {
    node: RefCell<MetadataNode>,
    folder: PathBuf,
    /// As many as the node has proposals, which it bounds.
    waiting: RefCell<BTreeMap<ProposalToken, OneshotSender<ProposalResult>>>,
    /// Something may be ready.
    work: Notify,
    /// A `Ready` was worked off.
    progress: Notify,
    has_stopped: Cell<bool>,
    stop: Notify,
    tasks: TaskGroup,
}

/// Recovers the node from its folder and starts its tasks. `publish` takes each new image, in order, before the proposals that
/// made it are answered: when it awaits every shard, an answer means that all have the image. It must not wait for a proposal.
///
/// The task ends after [`MetadataHandle::stop`], or with an error after which the process must end.
pub async fn open<P>(
    config: DriverConfig,
    publish: P,
    transport: Rc<dyn PeerTransport>,
) -> Result<(MetadataHandle, TaskHandle<Result<(), MetadataError>>), MetadataError>
where
    P: AsyncFn(Arc<Image>) + 'static,
{
    let recovered = recover_folder(&config.folder).await?;
    let found = recovered.identity().map(|identity| Arc::clone(&identity.cluster_id));
    let cluster_id = found.or(config.cluster_id).unwrap_or_else(new_cluster_id);
    let mut node =
        MetadataNode::new(NodeConfig::new(config.node, config.voters, cluster_id, random::u64()), recovered)?;
    if node.is_lone_voter() {
        node.campaign()?;
    }
    let shared = Rc::new(Shared {
        node: RefCell::new(node),
        folder: config.folder,
        waiting: RefCell::default(),
        work: Notify::new(),
        progress: Notify::new(),
        has_stopped: Cell::new(false),
        stop: Notify::new(),
        tasks: TaskGroup::new(),
    });
    shared.tasks.spawn("metadata ticks", tick(Rc::clone(&shared), config.tick_interval_ms));
    let task = spawn("metadata", run(Rc::clone(&shared), publish, transport));
    Ok((MetadataHandle { shared }, task))
}

impl MetadataHandle {
    /// Resolves when the command is durable on a majority, applied and published; or with the reason why not.
    pub async fn propose(&self, command: &Command) -> ProposalResult {
        if self.shared.has_stopped.get() {
            return Err(MetadataError::Stopped);
        }
        let token = self.shared.node.borrow_mut().propose(command)?;
        let (sender, receiver) = oneshot();
        self.shared.waiting.borrow_mut().insert(token, sender);
        self.shared.work.notify();
        receiver.await.unwrap_or(Err(MetadataError::Stopped))
    }

    pub fn image(&self) -> Arc<Image> {
        Arc::clone(self.shared.node.borrow().image())
    }

    pub fn status(&self) -> QuorumStatus {
        self.shared.node.borrow().status()
    }

    /// That of the journal, whether the cluster is formatted already or not.
    pub fn cluster_id(&self) -> Arc<str> {
        Arc::clone(&self.shared.node.borrow().identity.cluster_id)
    }

    /// Resolves once this node leads and its image has everything that was ever acknowledged.
    pub async fn leading(&self) -> Result<(), MetadataError> {
        loop {
            let seen = self.shared.progress.version();
            if self.status().is_current_leader {
                return Ok(());
            }
            if self.shared.has_stopped.get() {
                return Err(MetadataError::Stopped);
            }
            self.shared.progress.changed_since(seen).await;
        }
    }

    /// A message from another voter; invalid ones are dropped with an error.
    pub fn step(&self, message: PeerMessage) -> Result<(), MetadataError> {
        let result = self.shared.node.borrow_mut().step(message);
        self.shared.work.notify();
        result
    }

    pub fn report_unreachable(&self, node: NodeId) {
        self.shared.node.borrow_mut().report_unreachable(node);
        self.shared.work.notify();
    }

    /// Ends the tasks after the round in flight. Proposals without an outcome are answered with `Stopped`.
    pub fn stop(&self) {
        self.shared.has_stopped.set(true);
        self.shared.stop.notify();
        self.shared.work.notify();
    }
}

fn new_cluster_id() -> Arc<str> {
    TopicId::from_random(random::bytes()).to_string().into()
}

async fn recover_folder(folder: &Path) -> Result<Recovered, MetadataError> {
    if fs::stat(folder).await.map_err(on_disk)?.is_none() {
        fs::create_dir_durable(folder).await.map_err(on_disk)?;
    } else if let Some(parent) = folder.parent() {
        // Whoever made it may have been killed before its name was durable, and what is in it goes with its name.
        fs::sync_dir(parent).await.map_err(on_disk)?;
        // Nor may the names of its files be: a kill between a rename and the sync after it leaves them so.
        fs::sync_dir(folder).await.map_err(on_disk)?;
    }
    load(folder, true).await
}

/// Changes nothing.
pub(crate) async fn read_folder(folder: &Path) -> Result<Recovered, MetadataError> {
    load(folder, false).await
}

/// `rewrite`: what is believed is made durable first.
async fn load(folder: &Path, rewrite: bool) -> Result<Recovered, MetadataError> {
    let entries = fs::read_dir(folder).await.map_err(on_disk)?;
    let plan = plan_recovery(entries.iter().map(|entry| entry.name.as_str()))?;
    let journal = read(folder, plan.journal.as_deref(), MAX_JOURNAL_LEN).await?;
    let snapshot = read(folder, plan.snapshot.as_deref(), MAX_SNAPSHOT_LEN + (1 << 20)).await?;
    if let (true, Some(name), Some(bytes)) = (rewrite, plan.journal.as_deref(), &journal) {
        // A sync that failed may have left bytes that every reader sees and that never reach the disk: the kernel tries no
        // page twice. Written again in their place they do, and nothing is built on them before.
        fs::write_tail(&folder.join(name), 0, bytes.clone(), true).await.map_err(on_disk)?;
    }
    // Milliseconds for ten thousand topics, before the shard has anything else to do.
    recover(&plan, journal.as_deref(), snapshot.as_deref())
}

async fn read(folder: &Path, name: Option<&str>, limit: usize) -> Result<Option<Vec<u8>>, MetadataError> {
    match name {
        Some(name) => fs::read(&folder.join(name), limit).await.map(Some).map_err(on_disk),
        None => Ok(None),
    }
}

fn on_disk(error: IoError) -> MetadataError {
    MetadataError::Disk(error.to_string())
}

async fn tick(shared: Rc<Shared>, interval_ms: u64) {
    while !shared.has_stopped.get() {
        let deadline = clock::now_ms().saturating_add_unsigned(interval_ms.max(1));
        before(deadline, shared.stop.changed()).await;
        shared.node.borrow_mut().tick();
        shared.work.notify();
    }
}

async fn run<P>(shared: Rc<Shared>, publish: P, transport: Rc<dyn PeerTransport>) -> Result<(), MetadataError>
where
    P: AsyncFn(Arc<Image>) + 'static,
{
    let result = drive(&shared, &publish, &*transport).await;
    shared.has_stopped.set(true);
    shared.stop.notify();
    shared.waiting.borrow_mut().clear();
    shared.progress.notify();
    shared.tasks.wait().await;
    result
}

async fn drive<P>(shared: &Rc<Shared>, publish: &P, transport: &dyn PeerTransport) -> Result<(), MetadataError>
where
    P: AsyncFn(Arc<Image>) + 'static,
{
    loop {
        let seen = shared.work.version();
        if shared.has_stopped.get() {
            return Ok(());
        }
        let ready = shared.node.borrow_mut().take_ready()?;
        match ready {
            Some(ready) => work_off(shared, ready, publish, transport).await?,
            None => shared.work.changed_since(seen).await,
        }
    }
}

/// Disk and publication go on together: what a round publishes was durable before it.
async fn work_off<P>(
    shared: &Rc<Shared>,
    ready: Ready,
    publish: &P,
    transport: &dyn PeerTransport,
) -> Result<(), MetadataError>
where
    P: AsyncFn(Arc<Image>) + 'static,
{
    ready.messages.into_iter().for_each(|message| transport.send(message));
    if let Some(job) = ready.snapshot_job {
        shared.tasks.spawn("metadata snapshot", encode_snapshot(Rc::clone(shared), job));
    }
    let answer = async {
        if let Some(image) = ready.new_image {
            publish(image).await;
        }
        for (token, result) in ready.outcomes {
            let waiting = shared.waiting.borrow_mut().remove(&token);
            if let Some(sender) = waiting {
                sender.send(result);
            }
        }
    };
    let ((), persisted) = futures_lite::future::zip(answer, perform(&shared.folder, ready.steps)).await;
    persisted?;
    shared.node.borrow_mut().persisted(ready.number);
    shared.progress.notify();
    Ok(())
}

async fn encode_snapshot(shared: Rc<Shared>, job: SnapshotJob) {
    // A snapshot that cannot be made is no loss: the journal stays, and grows. It is tried again at the next start.
    if let Ok(Ok(encoded)) = spawn_blocking(move || job.run()).await {
        shared.node.borrow_mut().snapshot_encoded(encoded);
        shared.work.notify();
    }
}

async fn perform(folder: &Path, steps: Vec<DiskStep>) -> Result<(), MetadataError> {
    for step in steps {
        match step {
            DiskStep::Replace { file, bytes } => fs::write_durable(&folder.join(file), bytes).await.map_err(on_disk)?,
            DiskStep::Append { file, offset, bytes } => {
                fs::write_tail(&folder.join(file), offset, bytes, true).await.map_err(on_disk)?;
            }
            DiskStep::Truncate { file, len } => {
                fs::truncate_durable(&folder.join(file), len).await.map_err(on_disk)?;
            }
            // What stays is stale at the next start, too.
            DiskStep::Remove { file } => drop(fs::remove_file(&folder.join(file)).await),
        }
    }
    Ok(())
}
