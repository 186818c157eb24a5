//! DescribeLogDirs (key 35, KIP-113, KIP-827): the data folders, their partitions and sizes, the space around them. A folder
//! that is offline has error 56 and no partitions, as with Kafka.
//!
//! A partition that is not open and has no folder is not opened for this: it has no bytes, and asking for a size must
//! not make folders.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use log::folders::Folder;
use model::{ErrorCode, PartitionIndex, PartitionKey};
use wire::generated::describe_log_dirs::{
    DescribableLogDirTopic, DescribeLogDirsPartition, DescribeLogDirsRequest, DescribeLogDirsResponse,
    DescribeLogDirsResult, DescribeLogDirsTopic,
};

use super::Context;
use super::admin::in_chunks;
use crate::shard::Shard;
use crate::view::View;

/// What stands for bytes that nobody can tell.
const UNKNOWN_BYTES: i64 = -1;

/// Partitions asked about; `None` is all of them.
type Wanted = Option<Arc<BTreeSet<PartitionKey>>>;

pub async fn handle(context: &Context<'_>, request: DescribeLogDirsRequest<'_>) -> DescribeLogDirsResponse<'static> {
    let shard = context.shard;
    let view = shard.view();
    let wanted: Wanted = request.topics.map(|topics| Arc::new(wanted(&view, &topics)));
    let measured = shard.on_all(move |shard| measure(shard, wanted.clone())).await;
    let dirs = &shard.facts.dirs;
    let mut by_folder: BTreeMap<usize, Vec<(PartitionKey, u64)>> = BTreeMap::new();
    for (key, bytes) in measured.into_iter().flatten().flatten() {
        if let Some(number) = dirs.number_of(key) {
            by_folder.entry(number).or_default().push((key, bytes));
        }
    }
    let mut results = Vec::new();
    for (number, folder) in dirs.folders().iter().enumerate().filter(|(_, folder)| folder.takes_partitions()) {
        let sizes = by_folder.remove(&number).unwrap_or_default();
        let is_cordoned = dirs.is_cordoned(&folder.path);
        results.push(DescribeLogDirsResult { is_cordoned, ..result(&view, folder, sizes).await });
    }
    DescribeLogDirsResponse { throttle_time_ms: 0, error_code: 0, results }
}

/// One folder. Of one that is offline nothing is known but that.
async fn result(view: &View, folder: &Folder, sizes: Vec<(PartitionKey, u64)>) -> DescribeLogDirsResult<'static> {
    let log_dir = folder.path.display().to_string().into();
    if folder.failure().is_some() {
        let error_code = ErrorCode::KafkaStorageError.code();
        let (total_bytes, usable_bytes) = (UNKNOWN_BYTES, UNKNOWN_BYTES);
        return DescribeLogDirsResult {
            log_dir,
            error_code,
            total_bytes,
            usable_bytes,
            ..DescribeLogDirsResult::default()
        };
    }
    let space = runtime::fs::space(&folder.path).await.ok();
    let bytes = |bytes: Option<u64>| bytes.map_or(UNKNOWN_BYTES, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
    DescribeLogDirsResult {
        log_dir,
        topics: by_topic(view, sizes.into_iter()),
        total_bytes: bytes(space.map(|space| space.total)),
        usable_bytes: bytes(space.map(|space| space.free)),
        ..DescribeLogDirsResult::default()
    }
}

/// What exists of what was named; the rest is left out of the answer.
fn wanted(view: &View, topics: &[DescribableLogDirTopic<'_>]) -> BTreeSet<PartitionKey> {
    let keys = |topic: &DescribableLogDirTopic<'_>| {
        let found = view.image.topic_by_name(topic.topic).cloned();
        let indexes = topic.partitions.clone();
        found.into_iter().flat_map(move |found| {
            let known = indexes.clone().into_iter().map(PartitionIndex).filter({
                let found = found.clone();
                move |index| found.partition(*index).is_some()
            });
            known.map(move |partition| PartitionKey { topic_id: found.id, partition })
        })
    };
    topics.iter().flat_map(keys).collect()
}

/// Sizes of the wanted partitions that this shard owns.
async fn measure(shard: Rc<Shard>, wanted: Wanted) -> Vec<(PartitionKey, u64)> {
    let view = shard.view();
    let mut on_disk: BTreeSet<PartitionKey> = BTreeSet::new();
    for found in shard.facts.dirs.online().flat_map(|dir| dir.found()) {
        if let Some(topic_id) = found.topic_id {
            on_disk.insert(PartitionKey { topic_id, partition: found.partition });
        }
    }
    let keys: Vec<PartitionKey> = match wanted {
        Some(wanted) => wanted.iter().copied().collect(),
        None => all(&view).collect(),
    };
    let ours = keys.into_iter().filter(|key| view.placement.shard_of(*key) == Some(shard.index)).collect();
    let (shard, on_disk) = (&shard, &on_disk);
    in_chunks(ours, |key| async move {
        let replica = match shard.partitions.get(key) {
            None if on_disk.contains(&key) => shard.partition(key).await.ok(),
            open => open,
        };
        (key, replica.map_or(0, |replica| replica.log().size_bytes()))
    })
    .await
}

fn all(view: &View) -> impl Iterator<Item = PartitionKey> {
    view.image.topics().flat_map(|topic| {
        (0..topic.partitions.len() as i32)
            .map(|index| PartitionKey { topic_id: topic.id, partition: PartitionIndex(index) })
    })
}

/// Topics in the order of their names, partitions in theirs.
fn by_topic(view: &View, sizes: impl Iterator<Item = (PartitionKey, u64)>) -> Vec<DescribeLogDirsTopic<'static>> {
    let mut topics: BTreeMap<Arc<str>, BTreeMap<i32, u64>> = BTreeMap::new();
    for (key, bytes) in sizes {
        if let Some(topic) = view.image.topic(key.topic_id) {
            topics.entry(topic.name.clone()).or_default().insert(key.partition.0, bytes);
        }
    }
    let partition = |(partition_index, bytes): (i32, u64)| DescribeLogDirsPartition {
        partition_index,
        partition_size: i64::try_from(bytes).unwrap_or(i64::MAX),
        offset_lag: 0,
        is_future_key: false,
    };
    let topic = |(name, partitions): (Arc<str>, BTreeMap<i32, u64>)| DescribeLogDirsTopic {
        name: name.to_string().into(),
        partitions: partitions.into_iter().map(partition).collect(),
    };
    topics.into_iter().map(topic).collect()
}

#[cfg(test)]
#[path = "35_describe_log_dirs_tests.rs"]
mod tests;
