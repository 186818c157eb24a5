//! Connections to all brokers of one cluster, what is known about it, and requests by node.
//!
//! [`Shared`] owns everything; it lives as long as its tasks, and they end when the last [`Client`] handle is dropped or
//! the client is closed. What can go on at the same time: any number of requests to any number of brokers.
//!
//! | file | noun |
//! |---|---|
//! | `nodes.rs` | connections by node and lane, reconnects |
//! | `metadata.rs` | refreshes of the cluster's metadata |
//! | `answer.rs` | answers and answers to come |
//! | `backoff.rs` | how long to wait after a failure |

mod answer;
pub(crate) mod backoff;
pub(crate) mod metadata;
mod nodes;

use std::cell::{Cell, RefCell};
use std::ops::RangeInclusive;
use std::rc::Rc;

use model::ErrorCode;
use runtime::sync::before;
use runtime::{Notify, TaskGroup, clock};
use wire::{ApiKey, Request};

pub use self::answer::{Answer, Pending};
use self::metadata::Metadata;
use self::nodes::{Lane, Nodes, Place};
use crate::cluster::Asked;
use crate::limits::MAX_BOOTSTRAP;
use crate::link::core::Deadline;
use crate::link::{Address, Link};
use crate::{ClientError, Cluster};

/// Names and defaults as in Kafka's clients; all times in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// HOST:PORT, tried in order from a seeded place.
    pub bootstrap: Vec<String>,
    pub client_id: String,
    pub request_timeout_ms: i64,
    /// How long a call that retries by itself goes on.
    pub default_api_timeout_ms: i64,
    pub reconnect_backoff_ms: i64,
    pub reconnect_backoff_max_ms: i64,
    pub retry_backoff_ms: i64,
    pub retry_backoff_max_ms: i64,
    pub metadata_max_age_ms: i64,
    pub connection_setup_timeout_ms: i64,
    /// Whether Metadata may create topics that are asked for and do not exist.
    pub allow_auto_create_topics: bool,
}

impl Default for ClientConfig {
    fn default() -> ClientConfig {
        ClientConfig {
            bootstrap: vec!["127.0.0.1:9092".to_string()],
            client_id: "ringlog".to_string(),
            request_timeout_ms: 30_000,
            default_api_timeout_ms: 60_000,
            reconnect_backoff_ms: 50,
            reconnect_backoff_max_ms: 1_000,
            retry_backoff_ms: 100,
            retry_backoff_max_ms: 1_000,
            metadata_max_age_ms: 300_000,
            connection_setup_timeout_ms: 10_000,
            allow_auto_create_topics: true,
        }
    }
}

impl ClientConfig {
    /// The bootstrap addresses, if everything can be used.
    fn check(&self) -> Result<Vec<Address>, ClientError> {
        let positive = [
            ("request.timeout.ms", self.request_timeout_ms),
            ("default.api.timeout.ms", self.default_api_timeout_ms),
            ("metadata.max.age.ms", self.metadata_max_age_ms),
            ("socket.connection.setup.timeout.ms", self.connection_setup_timeout_ms),
        ];
        let waits = [
            ("reconnect.backoff.ms", self.reconnect_backoff_ms),
            ("reconnect.backoff.max.ms", self.reconnect_backoff_max_ms),
            ("retry.backoff.ms", self.retry_backoff_ms),
            ("retry.backoff.max.ms", self.retry_backoff_max_ms),
        ];
        let least = positive.map(|(key, value)| (key, value, 1)).into_iter().chain(waits.map(|(k, v)| (k, v, 0)));
        for (key, value, least) in least {
            if value < least {
                return Err(ClientError::BadConfig { key, reason: format!("{value} is less than {least}") });
            }
        }
        if self.client_id.len() > i16::MAX as usize {
            return Err(ClientError::BadConfig {
                key: "client.id",
                reason: "it is longer than 32767 bytes".to_string(),
            });
        }
        if self.bootstrap.is_empty() || self.bootstrap.len() > MAX_BOOTSTRAP {
            let reason = format!("{} addresses, where 1 to {MAX_BOOTSTRAP} can be used", self.bootstrap.len());
            return Err(ClientError::BadConfig { key: "bootstrap.servers", reason });
        }
        self.bootstrap.iter().map(|text| Address::parse(text)).collect()
    }
}

/// Whom to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Any broker that is up: a connected one first, then bootstrap addresses.
    Any,
    Node(i32),
    Controller,
}

/// A handle; clones share one client.
///
/// A broker answers a member's JoinGroup when the whole group has joined, and one connection's requests one after the
/// other: members of groups need a client each.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Rc<Shared>,
    _last: Rc<LastHandle>,
}

/// Closes the client with the last handle: the tasks hold [`Shared`] only.
#[derive(Debug)]
struct LastHandle(Rc<Shared>);

impl Drop for LastHandle {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    config: Rc<ClientConfig>,
    bootstrap: Vec<Address>,
    nodes: RefCell<Nodes>,
    metadata: Metadata,
    changed: Rc<Notify>,
    tasks: TaskGroup,
    closed: Cell<bool>,
}

impl Client {
    /// Checks the configuration; connects when something is asked.
    pub fn new(config: ClientConfig) -> Result<Client, ClientError> {
        let mut bootstrap = config.check()?;
        let first = runtime::random::u64() % bootstrap.len() as u64;
        bootstrap.rotate_left(first as usize);
        let config = Rc::new(config);
        let changed = Rc::new(Notify::new());
        let tasks = TaskGroup::new();
        let shared = Rc::new(Shared {
            nodes: RefCell::new(Nodes::new(config.clone(), changed.clone(), tasks.clone())),
            config,
            bootstrap,
            metadata: Metadata::new(),
            changed,
            tasks,
            closed: Cell::new(false),
        });
        Ok(Client { _last: Rc::new(LastHandle(shared.clone())), shared })
    }

    pub fn config(&self) -> &ClientConfig {
        &self.shared.config
    }

    /// Asks and waits: connects if need be, negotiates the highest version that both sides and `versions` allow
    /// (`None`: all that we speak), and ends at `request_timeout_ms`. It does not retry. Dropping the future forgets the
    /// answer, never the pairing of later ones.
    pub async fn ask<R: Request>(
        &self,
        to: Destination,
        versions: Option<RangeInclusive<i16>>,
        request: &R,
    ) -> Result<Answer<R>, ClientError> {
        self.shared.ask(to, versions, request, self.shared.config.request_timeout_ms).await
    }

    /// The same with another deadline, for requests that the broker holds back (Fetch, JoinGroup).
    pub async fn ask_within<R: Request>(
        &self,
        to: Destination,
        versions: Option<RangeInclusive<i16>>,
        request: &R,
        timeout_ms: i64,
    ) -> Result<Answer<R>, ClientError> {
        self.shared.ask(to, versions, request, timeout_ms).await
    }

    /// Whether `send` to `node` would be taken now. If it would not, a connection is being made (with back-off) and
    /// [`Client::changed`] tells when to look again. A connection of a kind that was never used (the first Fetch, the
    /// first request of a group's member) is only begun by the `send` that needs it.
    pub fn is_ready(&self, node: i32) -> bool {
        let mut lanes = self.shared.nodes.borrow().lanes(node);
        if !lanes.contains(&Lane::Main) {
            lanes.push(Lane::Main);
        }
        // Every lane is looked at, so that all that are down come up at the same time.
        lanes.into_iter().fold(true, |ready, lane| match self.shared.node_link(node, lane) {
            Ok(link) => ready && link.has_room(),
            Err(_) => false,
        })
    }

    /// The version that `send` would use; `None` while the node is not ready or does not serve it.
    pub fn version(&self, node: i32, api: ApiKey, versions: Option<RangeInclusive<i16>>) -> Option<i16> {
        let nodes = self.shared.nodes.borrow();
        let lanes = [Lane::of(api), Lane::Main];
        let link =
            lanes.iter().filter_map(|lane| nodes.existing(Place::Node(node), *lane)).find(|link| link.is_ready());
        link?.version(api, versions.as_ref()).ok()
    }

    /// Puts a request on `node`'s connection at once, behind those sent before. `Err`: nothing was sent.
    pub fn send<R: Request>(
        &self,
        node: i32,
        versions: Option<RangeInclusive<i16>>,
        request: &R,
        timeout_ms: i64,
    ) -> Result<Pending<R>, ClientError> {
        self.shared.send(node, versions, request, timeout_ms, true)
    }

    /// For requests that have no answer (Produce with acks=0): resolves once the bytes are handed to the kernel.
    pub fn send_unanswered<R: Request>(
        &self,
        node: i32,
        versions: Option<RangeInclusive<i16>>,
        request: &R,
    ) -> Result<Pending<R>, ClientError> {
        self.shared.send(node, versions, request, self.shared.config.request_timeout_ms, false)
    }

    /// Told whenever a node's readiness or the cluster changed.
    pub fn changed(&self) -> &Rc<Notify> {
        &self.shared.changed
    }

    /// What is known now.
    pub fn cluster(&self) -> Rc<Cluster> {
        self.shared.metadata.cluster()
    }

    /// Adds topics to those that refreshes ask for.
    pub fn watch_topics(&self, topics: &[&str]) {
        self.shared.metadata.watch(topics);
    }

    /// Takes topics away from those that refreshes ask for. What is known of them stays.
    pub fn unwatch_topics(&self, topics: &[&str]) {
        self.shared.metadata.unwatch(topics);
    }

    /// Asks for metadata in the background, soon (calls are merged; with back-off). Call it whenever an answer says
    /// that what is known is stale.
    pub fn want_refresh(&self) {
        metadata::want(&self.shared);
    }

    /// Refreshes and waits until every topic of `topics` is known with a leader for each partition, or fails with what
    /// is in the way at `default_api_timeout_ms`; sooner for a topic that does not exist (and is not watched any more
    /// then), and where no broker was ever reached.
    pub async fn resolve(&self, topics: &[&str]) -> Result<Rc<Cluster>, ClientError> {
        metadata::resolve(&self.shared, topics).await
    }

    /// One refresh of the watched topics, now.
    pub async fn refresh(&self) -> Result<Rc<Cluster>, ClientError> {
        metadata::refresh(&self.shared).await
    }

    /// A refresh of all topics, for consumers that subscribe by pattern and for `topic list`.
    pub async fn refresh_all(&self) -> Result<Rc<Cluster>, ClientError> {
        metadata::ask(&self.shared, &Asked::All).await?;
        Ok(self.cluster())
    }

    /// Ends every connection; what is under way ends as disconnected.
    pub async fn close(&self) {
        self.shared.close();
        self.shared.tasks.wait().await;
    }
}

impl Shared {
    fn close(&self) {
        if !self.closed.replace(true) {
            self.nodes.borrow_mut().end_all("the client was closed");
            self.metadata.wake();
            self.changed.notify();
        }
    }

    /// Every connection is given up: the cluster says that this is not the one we began with.
    fn rebootstrap(&self) {
        self.nodes.borrow_mut().end_all("the cluster asks to begin at the bootstrap addresses again");
    }

    fn send<R: Request>(
        self: &Rc<Shared>,
        node: i32,
        versions: Option<RangeInclusive<i16>>,
        request: &R,
        timeout_ms: i64,
        answered: bool,
    ) -> Result<Pending<R>, ClientError> {
        let link = self.node_link(node, Lane::of(R::API))?;
        let deadline = Deadline::after(clock::now_ms(), timeout_ms);
        let receiver = link.send(request, versions.as_ref(), deadline, answered)?;
        Ok(Pending::new(receiver, node))
    }

    pub(crate) async fn ask<R: Request>(
        self: &Rc<Shared>,
        to: Destination,
        versions: Option<RangeInclusive<i16>>,
        request: &R,
        timeout_ms: i64,
    ) -> Result<Answer<R>, ClientError> {
        let deadline = Deadline::after(clock::now_ms(), timeout_ms);
        let lane = Lane::of(R::API);
        let (node, link) = match to {
            Destination::Any => self.any(deadline).await?,
            Destination::Node(node) => (node, self.known(node, lane).await?),
            Destination::Controller => {
                let node = self.controller().await?;
                (node, self.node_link(node, lane)?)
            }
        };
        if before(deadline.at_ms, link.settled()).await.is_none() {
            return Err(ClientError::TimedOut { what: R::API.name(), after_ms: timeout_ms });
        }
        if self.closed.get() {
            return Err(ClientError::Closed);
        }
        let receiver = link.send(request, versions.as_ref(), deadline, true).map_err(|error| match error {
            ClientError::NotConnected { node, reason } => {
                ClientError::NotConnected { node, reason: at(link.address(), &reason) }
            }
            other => other,
        })?;
        Pending::new(receiver, node).await
    }

    /// The connection to a node of the cluster.
    fn node_link(self: &Rc<Shared>, node: i32, lane: Lane) -> Result<Rc<Link>, ClientError> {
        if self.closed.get() {
            return Err(ClientError::Closed);
        }
        let cluster = self.metadata.cluster();
        let broker = cluster.brokers.get(&node).ok_or(ClientError::UnknownNode { node })?;
        let address = Address { host: broker.host.clone(), port: broker.port };
        let (link, is_again) = self.nodes.borrow_mut().link(Place::Node(node), lane, &address);
        if is_again {
            // A broker that went away may come back elsewhere, and others may lead meanwhile.
            metadata::want(self);
        }
        Ok(link)
    }

    /// The same, after one refresh if the node is not known: coordinators may be newer than our metadata.
    async fn known(self: &Rc<Shared>, node: i32, lane: Lane) -> Result<Rc<Link>, ClientError> {
        match self.node_link(node, lane) {
            Err(ClientError::UnknownNode { .. }) => {
                self.refresh_boxed().await?;
                self.node_link(node, lane)
            }
            other => other,
        }
    }

    async fn controller(self: &Rc<Shared>) -> Result<i32, ClientError> {
        let known = |cluster: &Cluster| Some(cluster.controller).filter(|node| cluster.brokers.contains_key(node));
        if let Some(node) = known(&self.metadata.cluster()) {
            return Ok(node);
        }
        self.refresh_boxed().await?;
        known(&self.metadata.cluster()).ok_or_else(|| ClientError::Broker {
            code: ErrorCode::BrokerNotAvailable,
            what: "looking for the controller".to_string(),
            message: Some("the cluster has no controller at the moment".to_string()),
        })
    }

    /// A refresh asks in turn, so the future has to be boxed once.
    async fn refresh_boxed(self: &Rc<Shared>) -> Result<(), ClientError> {
        let refresh: std::pin::Pin<Box<dyn Future<Output = _> + '_>> = Box::pin(metadata::refresh(self));
        refresh.await.map(|_| ())
    }

    /// A broker that is up. Without any, each address gets one attempt.
    async fn any(&self, deadline: Deadline) -> Result<(i32, Rc<Link>), ClientError> {
        if let Some((place, link)) = self.nodes.borrow().least_loaded() {
            return Ok((place.node(), link));
        }
        let candidates = self.candidates();
        let mut reasons: Vec<String> = Vec::new();
        for (place, address) in &candidates {
            if self.closed.get() {
                return Err(ClientError::Closed);
            }
            let (link, _) = self.nodes.borrow_mut().link(*place, Lane::Main, address);
            if before(deadline.at_ms, link.settled()).await.is_none() {
                reasons.push(format!("{address}: no connection within {} ms", deadline.after_ms));
                break;
            }
            if link.is_ready() {
                return Ok((place.node(), link));
            }
            reasons.push(at(address, &link.end_reason()));
        }
        if self.closed.get() {
            return Err(ClientError::Closed);
        }
        let addresses: Vec<String> = candidates.iter().map(|(_, address)| address.to_string()).collect();
        Err(ClientError::NoBroker { addresses: addresses.join(", "), reason: reasons.join("; ") })
    }

    /// Where a broker could be, each address once: those of the cluster, then those to begin with.
    fn candidates(&self) -> Vec<(Place, Address)> {
        let cluster = self.metadata.cluster();
        let mut all: Vec<(Place, Address)> = Vec::new();
        for broker in cluster.brokers.values() {
            all.push((Place::Node(broker.id), Address { host: broker.host.clone(), port: broker.port }));
        }
        for (index, address) in self.bootstrap.iter().enumerate() {
            if !all.iter().any(|(_, other)| other == address) {
                all.push((Place::Bootstrap(index), address.clone()));
            }
        }
        all
    }
}

/// The reason, with the address where it does not begin with it.
fn at(address: &Address, reason: &str) -> String {
    let address = address.to_string();
    if reason.starts_with(&address) { reason.to_string() } else { format!("{address}: {reason}") }
}

#[cfg(test)]
#[path = "fake_broker_tests.rs"]
pub(crate) mod fake_broker;
#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
