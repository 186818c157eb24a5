//! Giving new partitions a home: where most space is free, and among folders with about as much the one with the fewest
//! partitions.
//!
//! The record has the choice, synced, before the caller publishes the partitions; a crash before leaves partitions that
//! nobody opened and that the next start places. A record that cannot be written leaves them without a home for now.

use std::sync::PoisonError;

use model::TopicId;
use runtime::{IoError, fs};

use super::record::{FILE, KnownFolder, NOWHERE, Record, UNSEEN, homes_frame};
use super::{DataDirs, Folder, RecordEnd};
use crate::limits::{HOMES_FILE, HOMES_GROWTH};

/// A folder that may take a partition.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    number: usize,
    free: u64,
    partitions: usize,
}

/// Number of the folder for the next partition. Within a tenth of the most free space counts as equal: on one disk, or on
/// like ones, partitions go round.
fn choose(candidates: &[Candidate]) -> Option<usize> {
    let most = candidates.iter().map(|c| c.free).max()?;
    let near = candidates.iter().enumerate().filter(|(_, c)| c.free >= most - most / 10);
    near.min_by_key(|(_, c)| c.partitions).map(|(at, _)| at)
}

impl DataDirs {
    /// Gives every partition of these topics a home that has none. Topics come with their number of partitions. For
    /// shard 0 alone, one call after the other.
    pub async fn place(&self, topics: &[(TopicId, usize)]) -> Result<(), IoError> {
        let Some(record) = &self.record else { return Ok(()) };
        let without: Vec<(TopicId, usize)> = {
            let homes = self.homes();
            let lacks = |&(id, count): &(TopicId, usize)| {
                let known = homes.of.get(&id).map_or(&[][..], Vec::as_slice);
                known.len() < count || known.contains(&NOWHERE)
            };
            topics.iter().copied().filter(lacks).collect()
        };
        if without.is_empty() {
            return Ok(());
        }
        let mut candidates = self.candidates().await;
        let placed: Vec<(TopicId, Vec<u16>)> =
            without.into_iter().map(|(id, count)| (id, self.placed(id, count, &mut candidates))).collect();
        let frames: Vec<u8> = placed.iter().flat_map(|(id, homes)| homes_frame(*id, 0, homes)).collect();
        let end = *record.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.metadata().path().join(FILE);
        let len = end.len + frames.len() as u64;
        fs::write_tail(&path, end.len, frames, true).await?;
        *record.lock().unwrap_or_else(PoisonError::into_inner) = RecordEnd { len, ..end };
        {
            let mut homes = self.homes_mut();
            placed.iter().for_each(|(id, of_topic)| homes.put(*id, 0, of_topic));
        }
        if len >= 2 * end.whole + HOMES_GROWTH {
            self.write_record().await?;
        }
        Ok(())
    }

    /// Whether any folder may take a new partition, as far as is known without asking the disks.
    pub fn takes_new_partitions(&self) -> bool {
        self.folders.iter().any(|folder| self.may_take(folder))
    }

    fn may_take(&self, folder: &Folder) -> bool {
        folder.takes_partitions && folder.failure().is_none() && !self.is_cordoned(&folder.path)
    }

    async fn candidates(&self) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for (number, folder) in self.folders.iter().enumerate() {
            if let Some(dir) = folder.dir().filter(|_| self.may_take(folder)) {
                match fs::space(dir.path()).await {
                    Ok(space) => {
                        candidates.push(Candidate { number, free: space.free, partitions: self.load(number) });
                    }
                    Err(error) => dir.notice_of_folder(&error),
                }
            }
        }
        candidates
    }

    /// The homes of a topic's partitions, those that had none chosen among `candidates`.
    fn placed(&self, id: TopicId, count: usize, candidates: &mut [Candidate]) -> Vec<u16> {
        let mut homes = self.homes().of.get(&id).cloned().unwrap_or_default();
        if homes.len() < count {
            homes.resize(count, NOWHERE);
        }
        for home in homes.iter_mut().filter(|home| **home == NOWHERE) {
            if let Some(at) = choose(candidates) {
                candidates[at].partitions += 1;
                *home = candidates[at].number as u16;
            }
        }
        homes
    }

    /// A deleted topic's partitions live nowhere. The record forgets them when it is next written whole.
    pub fn forget(&self, topic: TopicId) {
        self.homes_mut().forget(topic);
    }

    /// Writes the record whole: what it is now, without what was overridden or forgotten. Nothing where the file says that.
    pub(super) async fn write_record(&self) -> Result<(), IoError> {
        let Some(end) = &self.record else { return Ok(()) };
        let bytes = {
            let known =
                |folder: &super::Folder| KnownFolder { id: folder.id.unwrap_or(UNSEEN), path: folder.path.clone() };
            let folders = self.folders.iter().map(known).collect();
            Record { folders, homes: self.homes().of.clone() }.encode()
        };
        let len = bytes.len() as u64;
        let path = self.metadata().path().join(FILE);
        if fs::read_if_there(&path, HOMES_FILE as usize).await?.as_ref() != Some(&bytes) {
            fs::write_durable(&path, bytes).await?;
        }
        *end.lock().unwrap_or_else(PoisonError::into_inner) = RecordEnd { len, whole: len };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(number: usize, free: u64, partitions: usize) -> Candidate {
        Candidate { number, free, partitions }
    }

    #[test]
    fn most_space_wins_and_about_as_much_goes_by_partitions() {
        assert_eq!(choose(&[]), None);
        assert_eq!(choose(&[candidate(0, 100, 0), candidate(1, 200, 9)]), Some(1));
        assert_eq!(choose(&[candidate(0, 180, 3), candidate(1, 200, 9), candidate(2, 179, 0)]), Some(0));
        assert_eq!(choose(&[candidate(0, 200, 1), candidate(1, 200, 1)]), Some(0));
        assert_eq!(choose(&[candidate(0, 0, 2), candidate(1, 0, 1)]), Some(1));
    }
}
