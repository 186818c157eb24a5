//! What a power cut leaves: of everything that was not synced any part, as the dice say. And damage that comes by itself.

use std::path::Path;

use super::disk::{DirData, Disk, FileData, Inode, Page, apply};
use super::world::Dice;
use crate::limits::BLOCK;

/// How much of what was not synced is there afterwards.
#[derive(Clone, Copy)]
enum Kept {
    Nothing,
    Everything,
    /// What was written before some moment.
    Earlier(u64),
    /// Each by itself.
    Any,
}

impl Kept {
    fn throw(dice: &mut Dice, sequence: u64) -> Kept {
        match dice.below(6) {
            0 => Kept::Nothing,
            1 => Kept::Everything,
            2 => Kept::Earlier(sequence.saturating_sub(dice.below(200))),
            _ => Kept::Any,
        }
    }
}

impl Disk {
    /// The machine loses power. `old_data`: space that was reserved and never written may hold what lay there before.
    pub fn power_cut(&mut self, dice: &mut Dice, old_data: bool) {
        let sequence = self.sequence();
        let old_pages: Vec<Page> = self.old_pages.iter().cloned().collect();
        for inode in self.inodes.values_mut() {
            let kept = Kept::throw(dice, sequence);
            match inode {
                Inode::Dir(dir) => cut_dir(dir, kept, dice),
                Inode::File(file) => {
                    let first_new = file.durable_size.div_ceil(BLOCK as u64);
                    cut_file(file, kept, dice);
                    if old_data && !old_pages.is_empty() && dice.one_in(2) {
                        show_old_pages(file, first_new, &old_pages, dice);
                    }
                    file.pages = file.durable.clone();
                    file.size = file.durable_size;
                }
            }
        }
        self.collect();
    }

    /// Flips one bit of a file that lies safely on the disk; says whether there was a page to do it to.
    pub fn flip_bit(&mut self, path: &Path, dice: &mut Dice) -> bool {
        let Ok(id) = self.lookup(path) else { return false };
        let Ok(file) = self.file_mut(id) else { return false };
        let numbers: Vec<u64> = file.durable.keys().copied().filter(|n| !file.dirty.contains_key(n)).collect();
        if numbers.is_empty() {
            return false;
        }
        let number = numbers[dice.below(numbers.len() as u64) as usize];
        let last = (file.durable_size - (number * BLOCK as u64).min(file.durable_size)).min(BLOCK as u64);
        if last == 0 {
            return false;
        }
        let position = number * BLOCK as u64 + dice.below(last);
        self.flip_at(path, position, dice)
    }

    /// Flips one bit of this byte, if it lies safely on the disk.
    pub fn flip_at(&mut self, path: &Path, position: u64, dice: &mut Dice) -> bool {
        let Ok(id) = self.lookup(path) else { return false };
        let Ok(file) = self.file_mut(id) else { return false };
        let number = position / BLOCK as u64;
        let Some(page) = file.durable.get(&number).filter(|_| !file.dirty.contains_key(&number)) else { return false };
        let mut page = page.to_vec();
        page[(position % BLOCK as u64) as usize] ^= 1 << dice.below(8);
        let page: Page = page.into();
        file.durable.insert(number, page.clone());
        file.pages.insert(number, page);
        file.resident.clear();
        true
    }
}

fn cut_dir(dir: &mut DirData, kept: Kept, dice: &mut Dice) {
    for (at, change) in std::mem::take(&mut dir.changes) {
        let survives = match kept {
            Kept::Nothing => false,
            Kept::Everything => true,
            Kept::Earlier(than) => at <= than,
            Kept::Any => dice.one_in(2),
        };
        if survives {
            apply(&mut dir.durable, &change);
        }
    }
    dir.entries = dir.durable.clone();
}

fn cut_file(file: &mut FileData, kept: Kept, dice: &mut Dice) {
    for (number, versions) in std::mem::take(&mut file.dirty) {
        let count = match kept {
            Kept::Nothing => 0,
            Kept::Everything => versions.len(),
            Kept::Earlier(than) => versions.iter().filter(|v| v.settled.is_some_and(|at| at <= than)).count(),
            Kept::Any => dice.below(versions.len() as u64 + 1) as usize,
        };
        match versions.into_iter().take(count).next_back().map(|version| version.page) {
            Some(Some(page)) => {
                file.durable.insert(number, page);
            }
            Some(None) => {
                file.durable.remove(&number);
            }
            None => {}
        }
    }
    let sizes = std::mem::take(&mut file.sizes);
    let count = match kept {
        Kept::Nothing => 0,
        Kept::Everything => sizes.len(),
        Kept::Earlier(than) => sizes.iter().filter(|(at, _)| *at <= than).count(),
        Kept::Any => dice.below(sizes.len() as u64 + 1) as usize,
    };
    if let Some((_, size)) = count.checked_sub(1).and_then(|last| sizes.get(last)) {
        file.durable_size = *size;
    }
    file.resident.clear();
    cut_behind_end(file);
}

/// Pages behind the end are not part of the file.
fn cut_behind_end(file: &mut FileData) {
    let size = file.durable_size;
    file.durable.retain(|number, _| number * (BLOCK as u64) < size);
    let kept = (size % BLOCK as u64) as usize;
    if kept > 0
        && let Some(page) = file.durable.get_mut(&(size / BLOCK as u64))
        && page[kept..].iter().any(|b| *b != 0)
    {
        let mut bytes = page.to_vec();
        bytes[kept..].fill(0);
        *page = bytes.into();
    }
}

fn show_old_pages(file: &mut FileData, first_new: u64, old_pages: &[Page], dice: &mut Dice) {
    // Whole pages only: the last one ends with the file.
    for number in first_new..file.durable_size / BLOCK as u64 {
        if !file.durable.contains_key(&number) && dice.one_in(2) {
            let page = old_pages[dice.below(old_pages.len() as u64) as usize].clone();
            file.durable.insert(number, page);
        }
    }
}
