//! Groups: which coordinator a group belongs to, and the way to it.
//!
//! A group lives in one partition of `__consumer_offsets`, a partition on one shard. [`Shard::with_group`] finds both,
//! hops there and gives the handler's work a loaded [`GroupDriver`]. Coordinators are loaded with their first request,
//! or in the background after the start ([`load_all_found`]), so that sessions and offsets expire without anybody asking.
//!
//! State: each shard's [`Groups`] holds the drivers of the partitions that it owns, at most one for each.

mod batches;
mod driver;
pub mod limits;
mod load;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use coordinator::ListedGroup;
use model::{ErrorCode, PartitionIndex, PartitionKey, TopicId};
use runtime::clock;
use runtime::sync::all;

pub use driver::GroupDriver;

use crate::shard::Shard;
use crate::topics;
use crate::view::{OFFSETS_TOPIC, View};

/// The coordinators of one shard.
#[derive(Default)]
pub struct Groups {
    drivers: RefCell<BTreeMap<PartitionKey, Rc<GroupDriver>>>,
}

impl Groups {
    fn driver(&self, shard: &Shard, key: PartitionKey) -> Rc<GroupDriver> {
        let mut drivers = self.drivers.borrow_mut();
        drivers.entry(key).or_insert_with(|| GroupDriver::new(key, shard.config())).clone()
    }

    pub fn all(&self) -> Vec<Rc<GroupDriver>> {
        self.drivers.borrow().values().cloned().collect()
    }
}

/// What a request needs of the topic of committed offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It may make a group or an offset: the topic is made first.
    Topic,
    /// Without the topic there are no groups, and that is an answer too.
    Nothing,
}

/// Why a request did not come to its coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreached {
    /// There is no topic of committed offsets yet, hence no group.
    NoTopic,
    Failed(ErrorCode),
}

impl Unreached {
    /// For requests that only make sense with a group: the client looks for its coordinator again, which makes the topic.
    pub fn code(self) -> ErrorCode {
        match self {
            Unreached::NoTopic => ErrorCode::NotCoordinator,
            Unreached::Failed(code) => code,
        }
    }

    /// For requests to which an unknown group is nothing special.
    pub fn code_or(self, unknown: ErrorCode) -> ErrorCode {
        match self {
            Unreached::NoTopic => unknown,
            Unreached::Failed(code) => code,
        }
    }
}

/// The partition that a group lives in, and the shard that owns it.
fn home(view: &View, group_id: &str) -> Option<(PartitionKey, usize)> {
    let topic = view.image.topic_by_name(OFFSETS_TOPIC)?;
    let count = i32::try_from(topic.partitions.len()).ok().filter(|count| *count > 0)?;
    let partition = PartitionIndex(coordinator::partition_for(group_id, count));
    let key = PartitionKey { topic_id: topic.id, partition };
    Some((key, view.placement.shard_of(key)?))
}

/// Makes the topic of committed offsets if there is none and waits until this shard knows it.
pub async fn ensure_topic(shard: &Rc<Shard>) -> Result<(), ErrorCode> {
    topics::ensure_offsets_topic(shard).await?;
    // Somebody else may have made it a moment ago: its image is on its way.
    let deadline_ms = clock::now_ms() + limits::TOPIC_WAIT_MS;
    while shard.view().image.topic_by_name(OFFSETS_TOPIC).is_none() {
        if clock::now_ms() >= deadline_ms || shard.is_stopping() {
            return Err(ErrorCode::CoordinatorNotAvailable);
        }
        clock::sleep(Duration::from_millis(limits::TOPIC_LOOK_MS)).await;
    }
    Ok(())
}

impl Shard {
    /// Runs `work` on the shard that coordinates the group, with the group's coordinator loaded.
    pub async fn with_group<R, F>(
        self: &Rc<Self>,
        group_id: &str,
        need: Need,
        work: impl FnOnce(Rc<GroupDriver>) -> F + Send + 'static,
    ) -> Result<R, Unreached>
    where
        F: Future<Output = Result<R, ErrorCode>> + 'static,
        R: Send + 'static,
    {
        if need == Need::Topic {
            ensure_topic(self).await.map_err(Unreached::Failed)?;
        }
        let (key, owner) = home(&self.view(), group_id).ok_or(Unreached::NoTopic)?;
        let call = self.on(owner, move |shard| async move {
            let driver = shard.groups.driver(&shard, key);
            driver.ready(&shard).await?;
            work(driver).await
        });
        call.await.unwrap_or(Err(ErrorCode::NotCoordinator)).map_err(Unreached::Failed)
    }
}

/// Groups of all shards in these states and of these types; empty filters let all pass.
pub async fn list(shard: &Rc<Shard>, states: Vec<String>, types: Vec<String>) -> Result<Vec<ListedGroup>, ErrorCode> {
    let filters = std::sync::Arc::new((states, types));
    let lists = shard.on_all(move |shard| {
        let filters = filters.clone();
        async move { list_here(&shard, &filters.0, &filters.1).await }
    });
    let mut groups = Vec::new();
    for list in lists.await {
        groups.extend(list.unwrap_or(Err(ErrorCode::CoordinatorNotAvailable))?);
    }
    groups.sort_by(|a, b| a.group_id.cmp(&b.group_id));
    Ok(groups)
}

async fn list_here(shard: &Rc<Shard>, states: &[String], types: &[String]) -> Result<Vec<ListedGroup>, ErrorCode> {
    find_drivers(shard);
    let mut groups = Vec::new();
    for driver in shard.groups.all() {
        driver.ready(shard).await?;
        groups.extend(driver.look(|coordinator, _| coordinator.list(states, types))??);
    }
    Ok(groups)
}

/// Drivers for the partitions of this shard that had data when the process started.
fn find_drivers(shard: &Shard) {
    let view = shard.view();
    let Some(topic_id) = view.image.topic_id(OFFSETS_TOPIC) else { return };
    let found = shard.facts.dirs.online().flat_map(|dir| dir.found());
    for found in found.filter(|f| f.topic == OFFSETS_TOPIC && f.topic_id == Some(topic_id)) {
        let key = PartitionKey { topic_id, partition: found.partition };
        if view.placement.shard_of(key) == Some(shard.index) {
            shard.groups.driver(shard, key);
        }
    }
}

/// Loads this shard's coordinators that have something to load, one after the other. After the start, in the background,
/// on every shard; the image must be current, because offsets of topics that it does not know are deleted.
pub async fn load_all_found(shard: &Rc<Shard>) {
    find_drivers(shard);
    for driver in shard.groups.all() {
        if shard.is_stopping() {
            return;
        }
        // A failure has been printed, and the next request tries again.
        let _ = driver.ready(shard).await;
        driver.loaded().await;
    }
}

/// A topic is gone: so are its committed offsets, on every shard, durably when this returns. Call it once every shard
/// holds the image without the topic. What is not loaded forgets them when it loads.
pub async fn topic_deleted(shard: &Rc<Shard>, topic_id: TopicId, name: &str) {
    let name: std::sync::Arc<str> = name.into();
    let calls = shard.on_all(move |shard| {
        let name = name.clone();
        async move { topic_deleted_here(&shard, topic_id, &name).await }
    });
    calls.await;
}

async fn topic_deleted_here(shard: &Rc<Shard>, topic_id: TopicId, name: &str) {
    for driver in shard.groups.all() {
        if driver.key().topic_id == topic_id {
            // The topic of committed offsets itself.
            shard.groups.drivers.borrow_mut().remove(&driver.key());
            driver.stop().await;
            continue;
        }
        driver.loaded().await;
        // One that is not loaded has nothing to forget.
        let _ = driver.look(|coordinator, now| coordinator.topic_deleted(now, name, topic_id));
    }
    for driver in shard.groups.all() {
        driver.flushed().await;
    }
}

/// Ends this shard's coordinators: whoever waits is told NOT_COORDINATOR. Before the log stops.
pub async fn stop(shard: &Rc<Shard>) {
    let drivers = shard.groups.all();
    all(drivers.iter().map(|driver| driver.stop()).collect()).await;
}

#[cfg(test)]
#[path = "groups_tests.rs"]
mod tests;
