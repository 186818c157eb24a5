//! Walks the batches of a segment file from front to back, in bounded memory, and goes on behind damage where it can.
//!
//! The file is only ever read, a window at a time; a batch is held whole while it is looked at. A running broker may write
//! to it meanwhile: what looks damaged in a file that was just written to is looked at again a few times before it is told.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use log::limits::{MAX_BATCH, SCAN_WINDOW};
use model::batch::HEADER_LEN;
use model::{BatchError, BatchHeader, BatchView, LeaderEpoch, Offset};

/// Bytes whose CRC is computed in one search for the next batch behind damage, and in one file: so many times its length, and
/// so many more. Hostile bytes, each place of them a header that claims a large batch, must not make it endless.
const SEARCH_CRC_BYTES: u64 = 256 << 20;
const FILE_CRC_TIMES: u64 = 4;
const FILE_CRC_MORE: u64 = 16 << 20;
/// How long since the last write a broker may still be at it, and the time between two looks.
const JUST_WRITTEN: Duration = Duration::from_secs(5);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// Looks again in one file, where the caller expects a writer.
pub const PATIENT: u32 = 20;

/// What to do when that is no damage.
pub const GAPS_HINT: &str = "give --compacted if the topic is or was compacted";

/// What stands at one place of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A batch; its bytes are in [`Walk::batch_bytes`]. `problems` is empty for a sound one.
    Batch {
        position: u64,
        header: BatchHeader,
        problems: Vec<String>,
    },
    /// Bytes that are no batch, up to `until`, where the next one or the end of the file is.
    Damage {
        position: u64,
        until: u64,
        why: String,
    },
    /// Zeros to the end of the file: space that was reserved and not written yet.
    Preallocated {
        position: u64,
        bytes: u64,
    },
    End,
}

/// Where the walk is. `next_offset` and `last_epoch` are those behind the last batch.
#[derive(Debug)]
pub struct Walk {
    file: File,
    len: u64,
    position: u64,
    next_offset: Offset,
    last_epoch: LeaderEpoch,
    looks_left: u32,
    /// Offsets may be missing between batches.
    gaps: bool,
    /// What stood before is damaged: what has to follow is not known.
    doubt: bool,
    /// Bytes whose CRC may still be computed.
    crc_left: u64,
    window_at: u64,
    window: Vec<u8>,
    batch: Vec<u8>,
}

impl Walk {
    /// `base_offset` is what the file is named by: no batch in it may begin before. `patience` is how often damage is looked
    /// at again: [`PATIENT`] for a file that a broker may be writing to.
    pub fn open(path: &Path, base_offset: Offset, patience: u32) -> io::Result<Walk> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok(Walk {
            file,
            len,
            position: 0,
            next_offset: base_offset,
            last_epoch: LeaderEpoch::UNKNOWN,
            looks_left: patience,
            gaps: true,
            doubt: false,
            crc_left: len.saturating_mul(FILE_CRC_TIMES).saturating_add(FILE_CRC_MORE),
            window_at: 0,
            window: Vec::new(),
            batch: Vec::new(),
        })
    }

    /// Tells offsets that are missing between batches as damage: compaction alone takes records out.
    #[must_use]
    pub fn without_gaps(mut self) -> Walk {
        self.gaps = false;
        self
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    /// Bytes of the batch found last.
    pub fn batch_bytes(&self) -> &[u8] {
        &self.batch
    }

    pub fn next(&mut self) -> io::Result<Found> {
        loop {
            let place = (self.position, self.next_offset, self.last_epoch);
            let found = self.look()?;
            let sound = match &found {
                Found::Batch { problems, .. } => problems.is_empty(),
                Found::Damage { .. } => false,
                Found::Preallocated { .. } | Found::End => true,
            };
            if sound || !self.wait_for_writer()? {
                self.doubt = !sound;
                return Ok(found);
            }
            (self.position, self.next_offset, self.last_epoch) = place;
        }
    }

    /// Whether someone may be writing just now; then it has had a moment to finish.
    fn wait_for_writer(&mut self) -> io::Result<bool> {
        let Some(left) = self.looks_left.checked_sub(1) else { return Ok(false) };
        // A time in the future is a clock that was set: as good as now.
        if self.file.metadata()?.modified()?.elapsed().unwrap_or_default() > JUST_WRITTEN {
            return Ok(false);
        }
        self.looks_left = left;
        std::thread::sleep(LOOK_AGAIN_AFTER);
        self.len = self.len.max(self.file.metadata()?.len());
        self.window.clear();
        Ok(true)
    }

    fn look(&mut self) -> io::Result<Found> {
        let position = self.position;
        let left = self.len - position;
        if left == 0 {
            return Ok(Found::End);
        }
        let head = self.peek(position, HEADER_LEN)?.to_vec();
        if head.iter().all(|b| *b == 0) {
            return self.zeros(position);
        }
        let header = match BatchHeader::parse(&head) {
            Ok(header) => header,
            Err(BatchError::Cut) => return self.damage(position, format!("{left} bytes are too few for a batch")),
            Err(why) => return self.damage(position, why.to_string()),
        };
        let size = header.size() as u64;
        if header.size() > MAX_BATCH {
            return self.damage(position, format!("a batch of {size} bytes is larger than any log takes"));
        }
        if size > left {
            return self.damage(position, format!("a batch of {size} bytes is cut after {left}"));
        }
        if size > self.crc_left {
            return self.give_up(position);
        }
        self.crc_left -= size;
        self.read_batch(position, header.size())?;
        let view = BatchView { header, bytes: &self.batch };
        let mut problems: Vec<String> = view.check_crc().err().map(|why| why.to_string()).into_iter().collect();
        if !problems.is_empty() && !self.batch_follows(position + size, &header)? {
            return self.damage(position, problems.remove(0));
        }
        problems.extend(self.disorder(&header));
        self.position = position + size;
        // A batch that cannot be believed does not say where the next one may begin.
        if problems.is_empty() {
            self.next_offset = header.next_offset();
            self.last_epoch = header.leader_epoch;
        }
        Ok(Found::Batch { position, header, problems })
    }

    fn disorder(&self, header: &BatchHeader) -> Option<String> {
        if header.last_offset_delta < 0 {
            return Some(format!("its last offset lies {} before its first", -i64::from(header.last_offset_delta)));
        }
        if header.base_offset < self.next_offset {
            return Some(format!("offset {} comes after {}", header.base_offset, self.next_offset.0 - 1));
        }
        if !self.gaps && !self.doubt && header.base_offset > self.next_offset {
            let (first, last) = (self.next_offset, header.base_offset.0 - 1);
            return Some(format!("offsets {first} to {last} are missing before it ({GAPS_HINT})"));
        }
        if header.leader_epoch < self.last_epoch {
            return Some(format!("leader epoch {} comes after {}", header.leader_epoch, self.last_epoch));
        }
        header.codec().err().map(|why| why.to_string())
    }

    /// Whether what stands at `position` can be the neighbour of `before`: then only the batch itself is damaged.
    fn batch_follows(&mut self, position: u64, before: &BatchHeader) -> io::Result<bool> {
        if position == self.len {
            return Ok(true);
        }
        let head = self.peek(position, HEADER_LEN)?;
        if head.iter().all(|b| *b == 0) {
            return Ok(true);
        }
        Ok(BatchHeader::parse(head).is_ok_and(|next| next.base_offset > before.base_offset))
    }

    fn zeros(&mut self, position: u64) -> io::Result<Found> {
        let mut at = position;
        while at < self.len {
            let window = self.peek(at, SCAN_WINDOW)?;
            if window.is_empty() {
                break;
            }
            if let Some(nonzero) = window.iter().position(|b| *b != 0) {
                let place = at + nonzero as u64;
                // A batch begins with zeros of its own.
                let from = place.saturating_sub(HEADER_LEN as u64).max(position + 1);
                return self.damage_until(position, from, format!("zeros up to {place}, and then bytes that are none"));
            }
            at += window.len() as u64;
        }
        self.position = self.len;
        Ok(Found::Preallocated { position, bytes: self.len - position })
    }

    /// The rest of the file is not looked at.
    fn give_up(&mut self, position: u64) -> io::Result<Found> {
        self.position = self.len;
        let why = format!(
            "its damaged places claim so many large batches that CRCs of {FILE_CRC_TIMES} times the file's length were \
             computed; the rest is not looked at"
        );
        Ok(Found::Damage { position, until: self.len, why })
    }

    fn damage(&mut self, position: u64, why: String) -> io::Result<Found> {
        self.damage_until(position, position + 1, why)
    }

    fn damage_until(&mut self, position: u64, search_from: u64, why: String) -> io::Result<Found> {
        let until = self.search(search_from)?;
        self.position = until;
        Ok(Found::Damage { position, until, why })
    }

    /// The next place from `from` on that holds a batch with a sound CRC; the end of the file where there is none.
    fn search(&mut self, from: u64) -> io::Result<u64> {
        let (mut at, mut spent) = (from, 0u64);
        while at + HEADER_LEN as u64 <= self.len {
            let window = self.peek(at, SCAN_WINDOW)?;
            let Some(places) = (window.len() + 1).checked_sub(HEADER_LEN) else { break };
            let next_offset = self.next_offset;
            let found = (0..places).find_map(|i| Some((i, candidate(&self.window_from(at)[i..], next_offset)?)));
            let Some((i, size)) = found else {
                at += places as u64;
                continue;
            };
            let position = at + i as u64;
            if size as u64 <= self.len - position {
                if size as u64 > self.crc_left {
                    // The next look says so.
                    self.crc_left = 0;
                    return Ok(position);
                }
                self.crc_left -= size as u64;
                spent += size as u64;
                self.read_batch(position, size)?;
                if BatchView::parse(&self.batch).is_ok_and(|view| view.check_crc().is_ok()) {
                    return Ok(position);
                }
            }
            if spent > SEARCH_CRC_BYTES {
                break;
            }
            at = position + 1;
        }
        Ok(self.len)
    }

    /// Up to `count` bytes at `position`; fewer at the end of the file.
    fn peek(&mut self, position: u64, count: usize) -> io::Result<&[u8]> {
        let count = count.min((self.len - position) as usize);
        let inside = position >= self.window_at && position + count as u64 <= self.window_at + self.window.len() as u64;
        if !inside {
            let ask = SCAN_WINDOW.min((self.len - position) as usize);
            self.window.resize(ask, 0);
            let got = read_full(&self.file, &mut self.window, position)?;
            self.window.truncate(got);
            self.window_at = position;
        }
        let window = self.window_from(position);
        Ok(&window[..count.min(window.len())])
    }

    fn window_from(&self, position: u64) -> &[u8] {
        self.window.get((position - self.window_at) as usize..).unwrap_or_default()
    }

    fn read_batch(&mut self, position: u64, size: usize) -> io::Result<()> {
        let mut batch = std::mem::take(&mut self.batch);
        batch.resize(size, 0);
        let got = read_full(&self.file, &mut batch, position)?;
        batch[got..].fill(0);
        self.batch = batch;
        Ok(())
    }
}

/// Size of what may be a batch at the start of `bytes`: everything about its header fits.
fn candidate(bytes: &[u8], next_offset: Offset) -> Option<usize> {
    // The cheap look first: nearly every place fails it.
    if bytes.get(model::batch::MAGIC_AT) != Some(&2) {
        return None;
    }
    let header = BatchHeader::parse(bytes).ok()?;
    let fits = header.base_offset >= next_offset
        && header.last_offset_delta >= 0
        && header.record_count >= 0
        && header.codec().is_ok()
        && header.size() <= MAX_BATCH;
    fits.then(|| header.size())
}

fn read_full(file: &File, out: &mut [u8], position: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < out.len() {
        match file.read_at(&mut out[got..], position + got as u64) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
