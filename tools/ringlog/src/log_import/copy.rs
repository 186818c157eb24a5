//! Copies of partitions, durable when they are made. A segment that is not the last is never written again: it may be a
//! hard link instead, on one file system. The last one is always a copy, because the broker writes on in it.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use log::format::names::{FileKind, METADATA_FILE, parse_file_name};
use log::format::partition_metadata;
use server::import::{CopyAll, ImportTarget};

use super::source::{SourcePartition, SourceTopic};
use crate::cli::progress::Progress;

pub fn of(topics: Arc<Vec<SourceTopic>>, link: bool) -> CopyAll {
    Box::new(move |targets| {
        let total = topics.iter().flat_map(|topic| topic.partitions.values()).map(SourcePartition::bytes).sum();
        let mut progress = Progress::new("bytes copied", Some(total));
        let mut done = 0;
        for target in targets {
            let topic = topics.iter().find(|topic| topic.name == target.topic);
            let Some(source) = topic.and_then(|topic| topic.partitions.get(&target.partition)) else { continue };
            copy(source, target, link, &mut |bytes| {
                done += bytes;
                progress.at(done);
            })?;
        }
        Ok(())
    })
}

fn copy(
    source: &SourcePartition,
    target: &ImportTarget,
    link: bool,
    copied: &mut dyn FnMut(u64),
) -> Result<(), String> {
    let cannot = |path: &Path, error: io::Error| format!("{} cannot be written: {error}", path.display());
    let folder = &target.folder;
    fs::create_dir(folder).map_err(|error| cannot(folder, error))?;
    for (name, len) in &source.files {
        let to = folder.join(name);
        let is_closed =
            parse_file_name(name).is_some_and(|(base, kind)| kind == FileKind::Log && base < source.last_segment);
        put(&source.folder.join(name), &to, link && is_closed).map_err(|error| cannot(&to, error))?;
        copied(*len);
    }
    let metadata = folder.join(METADATA_FILE);
    fs::write(&metadata, partition_metadata::encode(target.topic_id))
        .and_then(|()| sync(&metadata))
        .and_then(|()| sync(folder))
        .and_then(|()| folder.parent().map_or(Ok(()), sync))
        .map_err(|error| cannot(folder, error))
}

fn put(from: &Path, to: &Path, link: bool) -> io::Result<()> {
    // Another file system, or one without hard links: a copy does as well.
    if !(link && fs::hard_link(from, to).is_ok()) {
        fs::copy(from, to)?;
    }
    sync(to)
}

fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
