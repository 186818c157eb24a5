//! Bits that flip in old blocks of the topics' logs: in segments that are closed, so that what lies there was durable. It
//! is served as it was written, or refused; it is never skipped, and what lies around it is served.

use std::path::{Path, PathBuf};

use runtime::fs;
use runtime::sim::{self, Dice};

use super::clients::Staged;

/// A bit flips when a life is so old; `chance` says where.
#[derive(Clone, Copy, Debug)]
pub struct Flip {
    pub after_ms: i64,
    pub chance: u64,
}

/// The closed segments of the topics that stay, in a fixed order.
async fn closed_segments(stage: &Staged, folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let partitions = stage.history.borrow().all();
    for at in partitions {
        let partition = folder.join(format!("{}-{}", at.topic, at.partition));
        let Ok(listing) = fs::read_dir(&partition).await else { continue };
        let mut names: Vec<String> = listing.into_iter().map(|e| e.name).filter(|n| n.ends_with(".log")).collect();
        names.sort();
        names.pop();
        all.extend(names.iter().map(|name| partition.join(name)));
    }
    all
}

pub async fn flip(stage: &Staged, folder: &Path, flip: Flip) {
    let segments = closed_segments(stage, folder).await;
    if !segments.is_empty() {
        let mut dice = Dice::new(flip.chance);
        sim::flip_bit(&segments[dice.below(segments.len() as u64) as usize]);
    }
}
