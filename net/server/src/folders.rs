//! The node's data folders: which of them holds the metadata log, opening the others once the cluster is known, and
//! following what the cluster decides (new and deleted topics, cordoned folders, the quota).
//!
//! Called at a start by the starting thread ([`plan`]) and by shard 0 ([`open`]), later by shard 0's publishing only
//! ([`follow`], [`forget`]): one call after the other, as `DataDirs` asks. A crash between a topic's command and the
//! writing down of its partitions' homes leaves partitions that nobody opened; the next start gives them homes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use log::data_dir::META;
use log::folders::OpenFolders;
use log::{DataDir, DataDirs, FolderSpec, Identity};
use metadata::{Image, TopicChange};
use model::TopicId;
use model::config::BrokerConfig;
use runtime::checks;

use crate::node::StartError;
use crate::shard::Shard;
use crate::view::View;

/// Folder of the metadata quorum within a data folder.
pub const METADATA_DIR: &str = "__cluster_metadata";

/// The folders of a start.
#[derive(Clone, Debug)]
pub struct FolderPlan {
    pub specs: Vec<FolderSpec>,
    /// The one of them that holds the metadata log, or will.
    pub metadata: PathBuf,
}

/// Which folders there are, and where the metadata log is: where it is found, else where the configuration says. Nothing
/// is written.
pub fn plan(config: &BrokerConfig) -> Result<FolderPlan, StartError> {
    let node = &config.node;
    if let Some(other) = node.unknown_cordoned() {
        return Err(StartError::Cordoned { path: PathBuf::from(other) });
    }
    let spec = |path: &String, takes_partitions| FolderSpec { path: PathBuf::from(path), takes_partitions };
    let mut specs: Vec<FolderSpec> = node.log_dirs.iter().map(|path| spec(path, true)).collect();
    let extra = node.metadata_log_dir.as_ref().filter(|path| !node.log_dirs.contains(path));
    specs.extend(extra.map(|path| spec(path, false)));
    let paths: Vec<PathBuf> = specs.iter().map(|spec| spec.path.clone()).collect();
    checks::distinct_folders(&paths).map_err(StartError::Host)?;
    let metadata = metadata_folder(node.metadata_log_dir.as_deref(), &paths)?;
    Ok(FolderPlan { specs, metadata })
}

fn metadata_folder(named: Option<&str>, paths: &[PathBuf]) -> Result<PathBuf, StartError> {
    let first = named.map_or_else(|| paths[0].clone(), PathBuf::from);
    let found: Vec<&PathBuf> = paths.iter().filter(|path| checks::exists(&path.join(METADATA_DIR))).collect();
    match found[..] {
        [] => match paths.iter().find(|path| paths.len() > 1 && checks::exists(&path.join(META))) {
            Some(used) => Err(StartError::MetadataNowhere { used: used.clone() }),
            None => Ok(first),
        },
        [one] if named.is_none() || *one == first => Ok(one.clone()),
        [one] => Err(StartError::MetadataElsewhere { found: one.clone(), named: first }),
        [one, other, ..] => Err(StartError::MetadataTwice { path: one.clone(), other: other.clone() }),
    }
}

/// Opens the set around the folder of the metadata log. What is offline is told on stderr.
pub async fn open(
    plan: &FolderPlan,
    config: &BrokerConfig,
    metadata: Arc<DataDir>,
    owner: &Identity,
    view: &View,
) -> Result<Arc<DataDirs>, StartError> {
    let count = |topic: &Arc<metadata::Topic>| (topic.id, topic.partitions.len());
    let topics: BTreeMap<TopicId, usize> = view.image.topics().map(count).collect();
    let reserve_bytes = config.shards.disk_reserve_bytes;
    let folders = OpenFolders { metadata, specs: &plan.specs, owner, reserve_bytes, topics: &topics };
    let (dirs, notes) = DataDirs::open(folders).await.map_err(StartError::DataDir)?;
    notes.iter().for_each(|note| eprintln!("ringlog: {note}"));
    check_direct_io(&dirs).await?;
    obey(&dirs, &view.config);
    Ok(dirs)
}

/// A file system that takes no direct I/O is a mistake of the configuration; any other refusal takes its folder down.
async fn check_direct_io(dirs: &DataDirs) -> Result<(), StartError> {
    // That of the metadata log was looked at before.
    for dir in dirs.online().filter(|dir| !Arc::ptr_eq(dir, dirs.metadata())) {
        let path = dir.path().to_path_buf();
        let prepared = runtime::spawn_blocking(move || checks::prepare_data_dir(&path)).await;
        match prepared.unwrap_or(Ok(())) {
            Ok(()) => {}
            Err(error @ checks::HostError::NoDirectIo { .. }) => return Err(StartError::Host(error)),
            Err(error) => dir.fail(&error.to_string()),
        }
    }
    Ok(())
}

fn obey(dirs: &DataDirs, config: &BrokerConfig) {
    dirs.set_cordoned(&config.node.cordoned_log_dirs);
    dirs.set_quota(config.shards.log_dir_quota_bytes);
}

/// Before a view is published: its configuration, and homes for its new partitions.
pub async fn follow(shard: &Shard, old: &Image, view: &View) {
    let dirs = &shard.facts.dirs;
    obey(dirs, &view.config);
    let created = view.image.changed_topics_since(old).filter_map(|change| match change {
        TopicChange::Created(topic) | TopicChange::Changed { new: topic, .. } => {
            Some((topic.id, topic.partitions.len()))
        }
        TopicChange::Deleted(_) => None,
    });
    if let Err(error) = dirs.place(&created.collect::<Vec<_>>()).await {
        eprintln!("ringlog: new partitions have no data folder until the broker is started again: {error}");
    }
}

/// After a view was published: deleted topics' partitions live nowhere.
pub fn forget(shard: &Shard, old: &Image, new: &Image) {
    for change in new.changed_topics_since(old) {
        if let TopicChange::Deleted(topic) = change {
            shard.facts.dirs.forget(topic.id);
        }
    }
}

impl Shard {
    /// Looks after the folders: their space, their quota, whether they are still there. On shard 0, until it stops.
    pub async fn mind_folders(self: std::rc::Rc<Self>) {
        let mut is_known: BTreeMap<PathBuf, bool> = BTreeMap::new();
        while !self.is_stopping() {
            for dir in self.facts.dirs.online() {
                if dir.failure().is_none() {
                    let known = is_known.entry(dir.path().to_path_buf()).or_insert(true);
                    *known = mind(dir, *known).await;
                }
            }
            self.pause_ms(crate::limits::FOLDER_LOOK_MS).await;
        }
    }
}

/// Gives whether the space could be looked at; that it could not is told once.
async fn mind(dir: &DataDir, was_known: bool) -> bool {
    use log::reserve::SpaceLook;
    let shown = |path: &Path| path.display().to_string();
    match dir.mind_space().await {
        Ok(SpaceLook::BallastReleased { free }) => eprintln!(
            "ringlog: only {free} bytes are free on the disk of {}: the ballast made way. Free space there.",
            shown(dir.path())
        ),
        Ok(SpaceLook::Nothing | SpaceLook::BallastMade) => {}
        Err(error) => {
            if was_known && dir.failure().is_none() {
                eprintln!("ringlog: the space of data folder {} cannot be looked at: {error}", shown(dir.path()));
            }
            return false;
        }
    }
    true
}

#[cfg(test)]
#[path = "folders_tests.rs"]
mod tests;
