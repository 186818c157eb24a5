//! Keeps what is known of the cluster fresh: one task a client, which sleeps until somebody wants a refresh or what is
//! known is too old. Refreshes that are wanted at the same time are one; the next waits for its back-off, longer each
//! time nothing new came of it.
//!
//! The task ends when the client is closed or its last handle is dropped.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::ErrorCode;
use runtime::sync::before;
use runtime::{Notify, clock};
use wire::generated::metadata::{MetadataRequest, MetadataRequestTopic};

use super::backoff::Backoff;
use super::{ClientConfig, Destination, Shared};
use crate::cluster::Asked;
use crate::limits::{AUTO_CREATED_TOPIC_MS, MAX_METADATA_SLEEP_MS, UNKNOWN_TOPIC_MS};
use crate::{ClientError, Cluster};

/// From 4 on a request says whether it makes topics.
const VERSIONS: std::ops::RangeInclusive<i16> = 4..=13;

#[derive(Debug)]
pub(crate) struct Metadata {
    cluster: RefCell<Rc<Cluster>>,
    pub(super) watched: RefCell<BTreeSet<Rc<str>>>,
    wanted: Cell<bool>,
    /// Whether the background task was started.
    is_kept: Cell<bool>,
    /// The task has something new to look at.
    wake: Notify,
    rounds: Rounds,
    /// Rounds in a row that brought nothing new.
    idle_rounds: Cell<u32>,
    last_end_ms: Cell<i64>,
    last_success_ms: Cell<i64>,
}

/// Refreshes that wait for one another. A refresh counts for whoever asked before it began.
#[derive(Debug)]
struct Rounds {
    running: Cell<bool>,
    begun: Cell<u64>,
    ended: Notify,
    /// How the last round ended; `None`: it was dropped midway.
    last: RefCell<Option<Result<(), ClientError>>>,
}

/// Clears the mark even if the round is dropped midway.
struct Round<'a>(&'a Rounds);

impl Drop for Round<'_> {
    fn drop(&mut self) {
        self.0.running.set(false);
        self.0.ended.notify();
    }
}

impl Metadata {
    pub fn new() -> Metadata {
        Metadata {
            cluster: RefCell::new(Rc::new(Cluster { controller: -1, ..Cluster::default() })),
            watched: RefCell::new(BTreeSet::new()),
            wanted: Cell::new(false),
            is_kept: Cell::new(false),
            wake: Notify::new(),
            rounds: Rounds {
                running: Cell::new(false),
                begun: Cell::new(0),
                ended: Notify::new(),
                last: RefCell::new(None),
            },
            idle_rounds: Cell::new(0),
            last_end_ms: Cell::new(i64::MIN / 2),
            last_success_ms: Cell::new(i64::MIN / 2),
        }
    }

    pub fn cluster(&self) -> Rc<Cluster> {
        self.cluster.borrow().clone()
    }

    /// Gives those that were not watched before.
    pub fn watch<'a>(&self, topics: &[&'a str]) -> Vec<&'a str> {
        let mut watched = self.watched.borrow_mut();
        let mut added = Vec::new();
        for topic in topics {
            if !watched.contains(*topic) {
                watched.insert((*topic).into());
                added.push(*topic);
            }
        }
        added
    }

    pub fn unwatch(&self, topics: &[&str]) {
        let mut watched = self.watched.borrow_mut();
        for topic in topics {
            watched.remove(*topic);
        }
    }

    pub fn wake(&self) {
        self.wake.notify();
    }

    /// When the background task refreshes next.
    fn next_ms(&self, config: &ClientConfig, now_ms: i64) -> i64 {
        let latest = now_ms + MAX_METADATA_SLEEP_MS;
        let next = if self.wanted.get() {
            self.last_end_ms.get().saturating_add(retry_backoff(config).draw_ms(self.idle_rounds.get()))
        } else if self.cluster.borrow().version > 0 {
            let backoff = retry_backoff(config).draw_ms(self.idle_rounds.get());
            let due = self.last_success_ms.get().saturating_add(config.metadata_max_age_ms);
            due.max(self.last_end_ms.get().saturating_add(backoff))
        } else {
            latest
        };
        next.min(latest)
    }
}

pub(crate) fn retry_backoff(config: &ClientConfig) -> Backoff {
    Backoff { first_ms: config.retry_backoff_ms, max_ms: config.retry_backoff_max_ms }
}

/// Asks for a refresh in the background.
pub(crate) fn want(shared: &Rc<Shared>) {
    if shared.closed.get() || shared.metadata.wanted.replace(true) {
        return;
    }
    keep_fresh(shared);
    shared.metadata.wake();
}

fn keep_fresh(shared: &Rc<Shared>) {
    if !shared.metadata.is_kept.replace(true) {
        runtime::spawn("metadata", keep(shared.clone()));
    }
}

async fn keep(shared: Rc<Shared>) {
    while !shared.closed.get() {
        let seen = shared.metadata.wake.version();
        let next_ms = shared.metadata.next_ms(&shared.config, clock::now_ms());
        if next_ms > clock::now_ms() {
            before(next_ms, shared.metadata.wake.changed_since(seen)).await;
            continue;
        }
        // What stands in the way stays wanted, and is told to whoever asks for a refresh of its own.
        let _ = refresh(&shared).await;
    }
}

/// One refresh of the watched topics that begins after this call, shared with others who want one.
pub(crate) async fn refresh(shared: &Rc<Shared>) -> Result<Rc<Cluster>, ClientError> {
    let rounds = &shared.metadata.rounds;
    let after = rounds.begun.get();
    loop {
        let seen = rounds.ended.version();
        if rounds.running.get() {
            rounds.ended.changed_since(seen).await;
            continue;
        }
        let last = rounds.last.borrow().clone();
        if rounds.begun.get() > after
            && let Some(result) = last
        {
            return result.map(|()| shared.metadata.cluster());
        }
        rounds.running.set(true);
        rounds.begun.set(rounds.begun.get() + 1);
        rounds.last.take();
        let round = Round(rounds);
        shared.metadata.wanted.set(false);
        let asked = Asked::These(shared.metadata.watched.borrow().clone());
        let result = ask(shared, &asked).await;
        if result.is_err() {
            shared.metadata.wanted.set(true);
        }
        *rounds.last.borrow_mut() = Some(result);
        drop(round);
        keep_fresh(shared);
        shared.metadata.wake();
    }
}

/// Asks any broker and takes over what it says.
pub(crate) async fn ask(shared: &Rc<Shared>, asked: &Asked) -> Result<(), ClientError> {
    let result = ask_once(shared, asked).await;
    let metadata = &shared.metadata;
    let now_ms = clock::now_ms();
    metadata.last_end_ms.set(now_ms);
    let news = match &result {
        Ok(news) => {
            metadata.last_success_ms.set(now_ms);
            *news
        }
        Err(_) => false,
    };
    metadata.idle_rounds.set(if news { 0 } else { metadata.idle_rounds.get().saturating_add(1) });
    if news {
        shared.changed.notify();
    }
    result.map(|_| ())
}

/// `Ok(true)` if there was something new.
async fn ask_once(shared: &Rc<Shared>, asked: &Asked) -> Result<bool, ClientError> {
    let topics = match asked {
        Asked::All => None,
        Asked::These(names) => Some(names.iter().map(|name| by_name(name)).collect()),
    };
    let request = MetadataRequest {
        topics,
        allow_auto_topic_creation: shared.config.allow_auto_create_topics,
        ..MetadataRequest::default()
    };
    let timeout_ms = shared.config.request_timeout_ms;
    let answer = shared.ask(Destination::Any, Some(VERSIONS), &request, timeout_ms).await?;
    let answer = answer.decode()?;
    if answer.error_code == ErrorCode::RebootstrapRequired.code() {
        let known = shared.metadata.cluster();
        shared.rebootstrap();
        shared.metadata.cluster.replace(Rc::new(Cluster { brokers: BTreeMap::new(), ..(*known).clone() }));
    }
    ClientError::check(answer.error_code, "asking for the cluster's metadata")?;
    let old = shared.metadata.cluster();
    let new = old.merged(asked, &answer)?;
    if new == *old {
        return Ok(false);
    }
    shared.nodes.borrow_mut().follow(&new);
    shared.metadata.cluster.replace(Rc::new(new));
    Ok(true)
}

fn by_name(name: &str) -> MetadataRequestTopic<'_> {
    MetadataRequestTopic { name: Some(name), ..MetadataRequestTopic::default() }
}

/// See [`super::Client::resolve`].
pub(crate) async fn resolve(shared: &Rc<Shared>, topics: &[&str]) -> Result<Rc<Cluster>, ClientError> {
    let begun_ms = clock::now_ms();
    let deadline_ms = begun_ms.saturating_add(shared.config.default_api_timeout_ms);
    let mut failures = 0;
    let added = shared.metadata.watch(topics);
    loop {
        let error = match refresh(shared).await {
            Ok(cluster) => match topics.iter().find_map(|topic| obstacle(&cluster, topic)) {
                None => return Ok(cluster),
                Some(error) => error,
            },
            Err(error) => error,
        };
        failures += 1;
        let next_ms = clock::now_ms() + retry_backoff(&shared.config).draw_ms(failures);
        if next_ms >= deadline_ms || !is_worth_waiting(shared, &error, next_ms - begun_ms) {
            if matches!(error, ClientError::UnknownTopic { .. }) {
                // The others may be somebody else's, who goes on with them.
                shared.metadata.unwatch(&added);
            }
            return Err(error);
        }
        clock::sleep_until_ms(next_ms).await;
    }
}

/// What keeps `topic` from being used, if anything.
fn obstacle(cluster: &Cluster, topic: &str) -> Option<ClientError> {
    let unknown = || ClientError::UnknownTopic { topic: topic.to_string() };
    if let Some(code) = cluster.failed_topics.get(topic) {
        if *code == ErrorCode::UnknownTopicOrPartition.code() {
            return Some(unknown());
        }
        return ClientError::check(*code, format!("asking for topic {topic}")).err();
    }
    let Some(known) = cluster.topic(topic) else { return Some(unknown()) };
    let leaderless = (0..known.partitions.len() as i32).find(|index| cluster.leader(topic, *index).is_none());
    leaderless.map(|partition| ClientError::NoLeader { topic: topic.to_string(), partition })
}

fn is_worth_waiting(shared: &Shared, error: &ClientError, waited_ms: i64) -> bool {
    match error {
        ClientError::UnknownTopic { .. } => {
            let auto = shared.config.allow_auto_create_topics;
            waited_ms < if auto { AUTO_CREATED_TOPIC_MS } else { UNKNOWN_TOPIC_MS }
        }
        ClientError::Broker { code, .. } => *code == ErrorCode::LeaderNotAvailable,
        // A cluster that never answered is more likely not there than restarting.
        ClientError::NoBroker { .. } => shared.metadata.cluster.borrow().version > 0,
        ClientError::NoLeader { .. }
        | ClientError::NotConnected { .. }
        | ClientError::Disconnected { .. }
        | ClientError::TimedOut { .. } => true,
        _ => false,
    }
}
