//! Damage in the rings of the journal, as far as a start can know of it: in a round that a later one calls durable.

use std::path::{Path, PathBuf};

use log::journal::{FOLDER, plan, replay};
use runtime::fs;
use runtime::sim::{self, Dice};

async fn states(folder: &Path) -> Vec<PathBuf> {
    let Ok(listing) = fs::read_dir(folder).await else { return Vec::new() };
    listing.iter().filter(|e| e.name.ends_with(".state")).map(|e| folder.join(&e.name)).collect()
}

/// Flips a bit somewhere in such a round, if there is one. Says whether it did.
pub async fn flip(dir: &Path, dice: &mut Dice) -> bool {
    let folder = dir.join(FOLDER);
    for state in states(&folder).await {
        let Ok((owner, files)) = replay::read_ring(&folder, &state).await else { continue };
        let rounds = plan::scan(owner, &files);
        let Some((_, newest)) = rounds.last_key_value() else { continue };
        let (oldest, durable) = (newest.found.round.oldest_needed, newest.found.round.durable_through);
        if oldest > durable {
            continue;
        }
        let sequence = oldest + dice.below(durable - oldest + 1);
        let Some(round) = rounds.get(&sequence) else { continue };
        let used = round.found.payload.end as u64;
        let position = round.position as u64 + dice.below(used);
        return sim::flip_at(&replay::ring_path(&folder, owner, round.file), position);
    }
    false
}

/// What an operator does who is told that a ring cannot be read. `faulty`: this may fail; the next start says the same.
pub async fn move_away(dir: &Path, faulty: bool) {
    for state in states(&dir.join(FOLDER)).await {
        let aside = state.with_extension("damaged");
        let moved = fs::rename(&state, &aside).await;
        assert!(moved.is_ok() || faulty, "a file can be moved where nothing fails: {moved:?}");
    }
}
