//! One shard: its partitions, its log, its coordinators, its fetch sessions, and the post to the others.
//!
//! Owned by its thread, shared by its tasks through `Rc`. State changes between awaits only; nothing is borrowed across
//! one. The other shards reach it through [`Shard::on`] and the mailbox, never directly.

mod awaits;
mod cleaner;
mod fetch;
mod freed;
mod housekeeping;
mod partitions;
mod produce;
mod scrub;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use log::{DataDirs, LogShard};
use model::NodeId;
use model::config::BrokerConfig;
use replica::ProducerStates;
use runtime::sync::Budget;
use runtime::{Notify, Post, Responder, TaskGroup, clock, sync};

use crate::cluster::Cluster;
use crate::connection::Connections;
use crate::groups::Groups;
use crate::handlers::admin::producer_ids::ProducerIds;
use crate::handlers::fetch_standing::Standings;
use crate::mail::{Job, ShardReply, ShardRequest};
use crate::metrics::Counters;
use crate::sessions::Sessions;
use crate::view::View;

pub use cleaner::CleanerStats;
pub(crate) use fetch::await_parts;
pub use partitions::Partitions;

/// What is true of the process from its start to its end; shared by all shards.
#[derive(Debug)]
pub struct NodeFacts {
    pub node_id: NodeId,
    /// What clients are told to connect to.
    pub host: String,
    pub port: u16,
    pub cluster_id: String,
    pub dirs: Arc<DataDirs>,
    /// The configuration from file and command line, without what was set while running.
    pub base_config: BrokerConfig,
    /// Ids that are unique over all shards: fetch sessions, waits.
    pub next_id: AtomicU64,
    /// `max.connections` in force, for the acceptor; shard 0 keeps it current.
    pub max_connections: Arc<AtomicUsize>,
}

impl NodeFacts {
    pub fn unique(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }
}

/// One shard's state. See the module.
pub struct Shard {
    pub index: usize,
    pub facts: Arc<NodeFacts>,
    pub post: Rc<Post<ShardRequest, ShardReply>>,
    pub log: Rc<LogShard>,
    pub partitions: Partitions,
    /// What the partitions remember of idempotent producers.
    pub producers: Rc<ProducerStates>,
    pub groups: Groups,
    pub sessions: Sessions,
    pub connections: Connections,
    /// What its connections' fetches left under way.
    pub standings: Standings,
    /// Of connections and requests, for metrics.
    pub counters: Rc<Counters>,
    /// On shard 0: the metadata quorum's driver.
    pub cluster: Option<Rc<Cluster>>,
    pub inflight: Rc<Budget>,
    pub producer_ids: ProducerIds,
    pub tasks: TaskGroup,
    view: RefCell<Rc<View>>,
    stopping: Cell<bool>,
    stop: Notify,
    pub(crate) awaits: awaits::Awaits,
    pub(crate) braked: produce::Braked,
    freed: freed::Freed,
    pub(crate) cleaner_stats: Cell<CleanerStats>,
}

impl std::fmt::Debug for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shard({})", self.index)
    }
}

/// What a shard is made of.
pub struct ShardParts {
    pub index: usize,
    pub facts: Arc<NodeFacts>,
    pub post: Rc<Post<ShardRequest, ShardReply>>,
    pub log: Rc<LogShard>,
    pub cluster: Option<Rc<Cluster>>,
    pub view: View,
}

impl Shard {
    pub fn new(parts: ShardParts) -> Rc<Shard> {
        let config = parts.view.config.clone();
        Rc::new(Shard {
            index: parts.index,
            facts: parts.facts,
            post: parts.post,
            log: parts.log,
            partitions: Partitions::default(),
            producers: Rc::new(ProducerStates::new(config.groups.producer_state_max)),
            groups: Groups::default(),
            sessions: Sessions::new(config.connections.fetch_session_slots),
            connections: Connections::default(),
            standings: Standings::default(),
            counters: Rc::default(),
            cluster: parts.cluster,
            inflight: Budget::new(config.connections.max_inflight_bytes_per_shard),
            producer_ids: ProducerIds::default(),
            tasks: TaskGroup::new(),
            view: RefCell::new(Rc::new(parts.view)),
            stopping: Cell::new(false),
            stop: Notify::new(),
            awaits: awaits::Awaits::default(),
            braked: produce::Braked::default(),
            freed: freed::Freed::default(),
            cleaner_stats: Cell::default(),
        })
    }

    /// Starts answering mail. Once, after the shard is whole.
    pub fn serve(self: &Rc<Self>) {
        // The post belongs to the shard, and must not keep it alive.
        let shard = Rc::downgrade(self);
        self.post.serve(move |request, responder| {
            if let Some(shard) = shard.upgrade() {
                shard.receive(request, responder);
            }
        });
        #[cfg(feature = "sim")]
        self.take_apart_at_end();
    }

    /// A killed process of a simulation leaves its memory to the simulator's own.
    #[cfg(feature = "sim")]
    fn take_apart_at_end(self: &Rc<Self>) {
        let shard = self.clone();
        runtime::sim::at_process_end(move || {
            shard.log.abandon();
            if let Some(cluster) = &shard.cluster {
                cluster.stop();
            }
        });
    }

    fn receive(self: Rc<Self>, request: ShardRequest, responder: Responder<ShardRequest, ShardReply>) {
        match request {
            ShardRequest::Produce(mail) => self.on_produce(mail, responder),
            ShardRequest::Fetch(mail) => self.on_fetch(mail, responder),
            ShardRequest::Await(mail) => self.on_await(mail, responder),
            ShardRequest::CancelAwait { ticket } => self.awaits.cancel(ticket),
            ShardRequest::Run(job) => {
                let work = job(self);
                runtime::spawn("job", async move { responder.send(ShardReply::Ran(work.await)) });
            }
        }
    }

    /// Runs `work` on shard `to` with that shard's state, and gives its result. `None`: the shard is stopping.
    pub async fn on<R, F>(self: &Rc<Self>, to: usize, work: impl FnOnce(Rc<Shard>) -> F + Send + 'static) -> Option<R>
    where
        F: Future<Output = R> + 'static,
        R: Send + 'static,
    {
        if to == self.index {
            return Some(work(self.clone()).await);
        }
        let job: Job =
            Box::new(move |shard| Box::pin(async move { Box::new(work(shard).await) as Box<dyn Any + Send> }));
        match self.post.call(to, ShardRequest::Run(job)).await? {
            ShardReply::Ran(result) => result.downcast::<R>().ok().map(|r| *r),
            _ => unreachable!("a job is answered with its result"),
        }
    }

    /// Runs `work` on every shard at once, results by shard.
    pub async fn on_all<R, F>(self: &Rc<Self>, work: impl Fn(Rc<Shard>) -> F + Clone + Send + 'static) -> Vec<Option<R>>
    where
        F: Future<Output = R> + 'static,
        R: Send + 'static,
    {
        let calls = (0..self.post.shards()).map(|to| self.on(to, work.clone())).collect();
        runtime::sync::all(calls).await
    }

    /// The newest view. Hold it for one step of work, not across long waits.
    pub fn view(&self) -> Rc<View> {
        self.view.borrow().clone()
    }

    pub fn config(&self) -> Arc<BrokerConfig> {
        self.view.borrow().config.clone()
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    pub fn begin_stop(self: &Rc<Self>) {
        self.stopping.set(true);
        self.log.hold_cleaning();
        self.stop.notify();
        self.awaits.view_changed();
        self.standings.end_all(self);
    }

    /// Resolves when the shard begins to stop.
    pub async fn stopped(&self) {
        while !self.is_stopping() {
            self.stop.changed().await;
        }
    }

    /// Sleeps, but no longer than until the shard stops.
    pub async fn pause_ms(&self, duration_ms: i64) {
        if !self.is_stopping() {
            sync::before(clock::now_ms() + duration_ms, self.stop.changed()).await;
        }
    }

    /// Takes a newer view: replicas follow, partitions of deleted topics go. Called through shard 0's publishing only, so
    /// views arrive in order.
    pub async fn apply(self: &Rc<Self>, view: View) {
        if self.index == 0 {
            self.facts.max_connections.store(view.config.connections.max_connections, Ordering::Relaxed);
        }
        let old = self.view.replace(Rc::new(view));
        self.awaits.view_changed();
        self.standings.end_all(self);
        self.follow(&old).await;
    }
}
