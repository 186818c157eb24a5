//! The scrub: reads, slowly, all closed segments of a shard past the page cache, and checks what nobody asks for. Damage
//! that it finds is marked as if a reader had met it.
//!
//! One [`Scrub`] a shard, owned by whoever drives it: at most one read in flight, [`SCRUB_READ`] bytes, then a pause that
//! spreads the shard's closed bytes over `interval_ms`, and never more than `bytes_per_s`. Nothing is kept over a restart: a
//! process begins at a random segment, so that one which is started again every day still comes to all of them in the end. A
//! crash leaves nothing behind, since nothing is written.
//!
//! Segments come and go meanwhile: each step looks whether the one it is in is still what it was, and passes on otherwise.

use std::rc::Rc;

use model::batch::HEADER_LEN;
use model::{Offset, PartitionKey};
use runtime::{DirectFile, OpenMode, clock, random};

use crate::damage::{Order, Walked, walk};
use crate::error::LogError;
use crate::format::names::FileKind;
use crate::limits::{MAX_BATCH, SCRUB_PAUSE_MAX_MS, SCRUB_READ};
use crate::partition::PartitionLog;
use crate::partition::damage::RECORDS_MISSING;
use crate::partition::segments::SegmentRef;
use crate::segment::path;
use crate::shard::LogShard;

/// How fast the scrub goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubLimits {
    /// Time in which everything is read once; 0 is never.
    pub interval_ms: i64,
    /// Bytes a second that are not exceeded, even if a pass takes longer then.
    pub bytes_per_s: u64,
}

/// Where the scrub is.
#[derive(Debug)]
pub struct Scrub {
    /// The next segment to look for: at or behind this one.
    next: Option<(PartitionKey, Offset)>,
    current: Option<Current>,
    pass_began_ms: Option<i64>,
}

/// The segment under way.
#[derive(Debug)]
struct Current {
    log: Rc<PartitionLog>,
    segment: SegmentRef,
    file: DirectFile,
    cuts: u64,
    position: u64,
    /// Bytes that the batch at `position` needs.
    need: usize,
    order: Order,
}

impl Default for Scrub {
    fn default() -> Scrub {
        Scrub::new()
    }
}

impl Scrub {
    pub fn new() -> Scrub {
        Scrub { next: None, current: None, pass_began_ms: None }
    }

    /// A pass that begins with the first segment.
    #[cfg(all(test, not(feature = "sim")))]
    pub(crate) fn from_front() -> Scrub {
        Scrub { pass_began_ms: Some(clock::now_ms()), ..Scrub::new() }
    }

    /// Does one read's worth of work. Gives the milliseconds to wait before the next.
    pub async fn step(&mut self, shard: &LogShard, limits: ScrubLimits) -> i64 {
        if limits.interval_ms <= 0 {
            self.leave().await;
            *self = Scrub::new();
            return SCRUB_PAUSE_MAX_MS;
        }
        let now_ms = clock::now_ms();
        let began_ms = *self.pass_began_ms.get_or_insert_with(|| {
            self.next = random_place(shard);
            now_ms
        });
        if began_ms > now_ms {
            return (began_ms - now_ms).min(SCRUB_PAUSE_MAX_MS);
        }
        if self.current.is_none() && !self.open_next(shard).await {
            shard.damage.count(|s| s.scrub_passes += 1);
            // The next pass begins at the front, when its time has come.
            self.next = None;
            self.pass_began_ms = Some(now_ms.max(began_ms.saturating_add(limits.interval_ms)));
            return (began_ms.saturating_add(limits.interval_ms) - now_ms).clamp(1, SCRUB_PAUSE_MAX_MS);
        }
        let read = match self.read_some(shard).await {
            Ok(read) => read,
            // Another reader will say more about a file that cannot be read; the rest of the shard is not kept waiting.
            Err(_) => {
                self.leave().await;
                SCRUB_READ as u64
            }
        };
        shard.damage.count(|s| s.scrubbed_bytes += read);
        pause_ms(read, closed_bytes(shard), limits)
    }

    /// Closes what is open. The shard's files are closed before it ends.
    pub async fn stop(&mut self) {
        self.leave().await;
    }

    /// Opens the segment at or behind the cursor. `false` at the end of the pass.
    async fn open_next(&mut self, shard: &LogShard) -> bool {
        let least = PartitionKey { topic_id: model::TopicId([0; 16]), partition: model::PartitionIndex(0) };
        let (mut key, mut base) = self.next.unwrap_or((least, Offset(i64::MIN)));
        while let Some(log) = shard.partition_from(key) {
            if log.key() > key {
                base = Offset(i64::MIN);
            }
            key = log.key();
            let segment = match log.load_segments().await {
                Ok(()) => log.closed_refs().into_iter().find(|s| s.base_offset >= base),
                // Whoever reads there is told.
                Err(_) => None,
            };
            let Some(segment) = segment else {
                let Some(behind) = after(key) else { return false };
                (key, base) = (behind, Offset(i64::MIN));
                continue;
            };
            self.next = Some((key, segment.base_offset.plus(1)));
            base = segment.base_offset.plus(1);
            let opened = open(&log, segment).await;
            if let Some(current) = opened {
                self.current = Some(current);
                return true;
            }
        }
        false
    }

    async fn leave(&mut self) {
        if let Some(current) = self.current.take() {
            let _ = current.file.close().await;
        }
    }

    /// Reads and checks the next bytes. Gives how many.
    async fn read_some(&mut self, shard: &LogShard) -> Result<u64, LogError> {
        let Some(mut current) = self.current.take() else { return Ok(0) };
        if current.cuts != current.log.cuts.get() || !current.log.is_still(current.segment) {
            let _ = current.file.close().await;
            return Ok(0);
        }
        let left = current.segment.size.saturating_sub(current.position);
        let len = current.need.max(SCRUB_READ).min(left as usize);
        let read = current.file.read_pooled(current.position, len, &shard.config.pool);
        let bytes = shard.device.read(len, read).await?;
        let damage = match walk(&bytes, &mut current.order) {
            Walked::Damaged { at, why } => Some((current.position + at as u64, why)),
            Walked::Sound { bytes: 0, need } if bytes.len() < len || need as u64 > left || need > MAX_BATCH => {
                (left > 0).then(|| (current.position, "the file is shorter than its log".to_string()))
            }
            Walked::Sound { bytes: whole, need } => {
                current.position += whole as u64;
                current.need = need.max(HEADER_LEN);
                None
            }
        };
        drop(bytes);
        let damage = damage.or_else(|| current.missing_at_end());
        let goes_on = match damage {
            Some((position, why)) => current.pass_damage(position, &why).await?,
            None => current.position < current.segment.size,
        };
        if goes_on {
            self.current = Some(current);
        } else {
            let _ = current.file.close().await;
        }
        Ok(len as u64)
    }
}

impl Current {
    /// The records between the last batch and the next segment, where none may be missing.
    fn missing_at_end(&self) -> Option<(u64, String)> {
        let ends_early = self.order.next_offset().is_some_and(|next| next < self.segment.next_offset);
        let at_end = self.position >= self.segment.size;
        (at_end && ends_early && !self.log.may_have_gaps()).then(|| (self.position, RECORDS_MISSING.to_string()))
    }

    /// Has damage marked and goes on behind it. `false` when nothing of the segment is left.
    async fn pass_damage(&mut self, position: u64, why: &str) -> Result<bool, LogError> {
        if self.cuts != self.log.cuts.get() || !self.log.is_still(self.segment) {
            return Ok(false);
        }
        self.log.meet_damage(self.segment, self.cuts, position, why).await?;
        let behind = self.log.damage_behind(self.segment, position);
        let Some((until, offset)) = behind.filter(|(until, _)| *until < self.segment.size) else { return Ok(false) };
        self.position = until;
        self.need = HEADER_LEN;
        self.order = self.log.order_of(self.segment).goes_on(offset);
        Ok(true)
    }
}

/// `None`: it is gone, or cannot be opened, which a reader will be told.
async fn open(log: &Rc<PartitionLog>, segment: SegmentRef) -> Option<Current> {
    if segment.size == 0 {
        return None;
    }
    let cuts = log.cuts.get();
    let file = DirectFile::open(&path(log.dir(), segment.base_offset, FileKind::Log), OpenMode::Read).await.ok()?;
    let order = log.order_of(segment);
    Some(Current { log: log.clone(), segment, file, cuts, position: 0, need: HEADER_LEN, order })
}

/// The key behind this one.
fn after(key: PartitionKey) -> Option<PartitionKey> {
    if key.partition.0 < i32::MAX {
        return Some(PartitionKey { partition: model::PartitionIndex(key.partition.0 + 1), ..key });
    }
    let next = u128::from_be_bytes(key.topic_id.0).checked_add(1)?;
    Some(PartitionKey { topic_id: model::TopicId(next.to_be_bytes()), partition: model::PartitionIndex(0) })
}

fn closed_bytes(shard: &LogShard) -> u64 {
    shard.logs().iter().map(|log| log.state.borrow().closed_bytes).sum()
}

/// A partition, as likely as it holds closed bytes, to begin with.
fn random_place(shard: &LogShard) -> Option<(PartitionKey, Offset)> {
    let mut at = random::u64() % closed_bytes(shard).max(1);
    for log in shard.logs() {
        let state = log.state.borrow();
        if at < state.closed_bytes {
            // Within it too, if its segments are known.
            let closed = state.closed.as_deref().unwrap_or_default();
            let mut bases = closed.iter().filter(|s| {
                let here = at < s.size;
                at = at.saturating_sub(s.size);
                here
            });
            return Some((log.key(), bases.next().map_or(Offset(i64::MIN), |s| s.base_offset)));
        }
        at -= state.closed_bytes;
    }
    None
}

/// The pause behind a read of `read` bytes.
fn pause_ms(read: u64, closed_bytes: u64, limits: ScrubLimits) -> i64 {
    let even =
        u128::from(read) * u128::from(limits.interval_ms.unsigned_abs()) / u128::from(closed_bytes.max(read).max(1));
    let bound = u128::from(read) * 1000 / u128::from(limits.bytes_per_s.max(1));
    i64::try_from(even.max(bound)).unwrap_or(i64::MAX).clamp(1, SCRUB_PAUSE_MAX_MS)
}

#[cfg(test)]
#[path = "scrub_tests.rs"]
mod tests;
