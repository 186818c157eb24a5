//! Reads that stand: what a Fetch asked of owners that had no news yet when another one had. The answer goes out without them, and
//! the connection's next Fetch, where it asks the same of such an owner, takes the read up instead of asking anew: a consumer at
//! the end of partitions of many shards costs messages for those that have news, and none for the others.
//!
//! Owned by the connection's shard, which keeps them from one request to the next. An owner's answer may so lie here, with references
//! to record bytes, before it is asked for: at most what one Fetch may read, and no longer than [`STANDING_MS`] and the sweep's pause
//! after the last answer. A new view ends them, so that who asks next hears of it at once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use model::{ErrorCode, PartitionKey};
use runtime::clock;

use super::fetch_rounds::Want;
use crate::limits::STANDING_MS;
use crate::mail::{FetchMail, FetchPart, FetchResult, FetchWait, ShardReply, ShardRequest};
use crate::sessions::SessionPartition;
use crate::shard::Shard;

/// What was asked of one owner.
pub struct Read {
    owner: usize,
    /// In the slots of the request that asked.
    asked: Arc<[FetchPart]>,
    max_bytes: usize,
    wait: Option<FetchWait>,
    pub call: Pin<Box<dyn Future<Output = Option<ShardReply>>>>,
}

impl Read {
    pub fn ask(
        shard: &Rc<Shard>,
        owner: usize,
        parts: &Arc<[FetchPart]>,
        max_bytes: usize,
        wait: Option<FetchWait>,
    ) -> Read {
        let mail = FetchMail { parts: parts.clone(), max_bytes, wait };
        let call = Box::pin(shard.post.call(owner, ShardRequest::Fetch(mail)));
        Read { owner, asked: parts.clone(), max_bytes, wait, call }
    }

    /// Shard and ticket of one that waits where there is nothing.
    pub fn ticket(&self) -> Option<(usize, u64)> {
        self.wait.map(|wait| (self.owner, wait.ticket))
    }

    pub fn call_off(&self, shard: &Rc<Shard>) {
        if let Some((owner, ticket)) = self.ticket() {
            shard.post.tell(owner, ShardRequest::CancelAwait { ticket });
        }
    }

    /// Whether its answer is one to this, too.
    fn serves(&self, owner: usize, parts: &[FetchPart], want: Want, keep: bool) -> bool {
        let same = |(a, b): (&FetchPart, &FetchPart)| FetchPart { slot: b.slot, ..*a } == *b;
        let in_time = self.wait.is_some_and(|wait| wait.deadline_ms <= want.deadline_ms && wait.keep == keep);
        let alike = self.owner == owner && self.max_bytes == want.max_bytes && self.asked.len() == parts.len();
        in_time && alike && self.asked.iter().zip(parts).all(same)
    }

    /// Puts what it gave into the slots of the request that took it up, whose parts stand in the same order.
    pub fn put(&self, parts: &[FetchPart], found: Vec<FetchResult>, results: &mut [FetchResult]) {
        for mut result in found {
            let Ok(at) = self.asked.binary_search_by_key(&result.slot, |part| part.slot) else {
                unreachable!("an owner answers in the slots it was asked for")
            };
            result.slot = parts[at].slot;
            let slot = result.slot;
            results[slot] = result;
        }
    }
}

/// What a client was told last of a partition's ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    high_watermark: i64,
    log_start_offset: i64,
}

impl Head {
    fn new(high_watermark: i64, log_start_offset: i64) -> Option<Head> {
        (high_watermark >= 0).then_some(Head { high_watermark, log_start_offset })
    }

    fn of(result: &FetchResult) -> Option<Head> {
        if result.error_code == 0 { Head::new(result.high_watermark, result.log_start_offset) } else { None }
    }

    /// That an owner which has no news would say the same again.
    pub fn again(self, part: &FetchPart) -> FetchResult {
        // The client has everything there is.
        let high_watermark = self.high_watermark.max(part.offset.0);
        FetchResult {
            high_watermark,
            last_stable_offset: high_watermark,
            log_start_offset: self.log_start_offset,
            ..FetchResult::error(part.slot, ErrorCode::None)
        }
    }
}

/// Of every partition of an answer, in its order.
type Told = Vec<(PartitionKey, Option<Head>)>;

/// From what an answer is made up where an owner has no news.
pub enum Known<'a> {
    Session(&'a [SessionPartition]),
    Told(&'a [(PartitionKey, Option<Head>)]),
    /// A full answer to somebody new.
    Nothing,
}

impl Known<'_> {
    pub fn of(&self, part: &FetchPart) -> Option<Head> {
        match self {
            Known::Session(partitions) => {
                partitions.get(part.slot).and_then(|known| Head::new(known.high_watermark, known.log_start_offset))
            }
            Known::Told(told) => told.get(part.slot).filter(|(key, _)| *key == part.key).and_then(|(_, head)| *head),
            Known::Nothing => None,
        }
    }
}

/// What one connection left under way.
#[derive(Default)]
pub struct Standing {
    reads: Vec<Read>,
    told: Told,
    since_ms: i64,
}

impl Standing {
    /// The read that stands for this, if one does.
    pub fn take(&mut self, owner: usize, parts: &[FetchPart], want: Want, keep: bool) -> Option<Read> {
        let at = self.reads.iter().position(|read| read.serves(owner, parts, want, keep))?;
        Some(self.reads.swap_remove(at))
    }

    pub fn leave(&mut self, read: Read) {
        self.reads.push(read);
    }

    pub fn call_off(&mut self, shard: &Rc<Shard>) {
        self.reads.drain(..).for_each(|read| read.call_off(shard));
    }

    pub fn take_told(&mut self) -> Told {
        std::mem::take(&mut self.told)
    }

    /// Keeps in mind what a client without a session, whose answers name everything, is told now.
    pub fn tell(&mut self, answer: impl Iterator<Item = PartitionKey>, results: &[FetchResult]) {
        self.told = answer.zip(results.iter().map(Head::of)).collect();
    }
}

/// A shard's, by connection.
#[derive(Default)]
pub struct Standings {
    by_connection: RefCell<BTreeMap<u64, Standing>>,
}

impl Standings {
    pub fn take(&self, connection: u64) -> Standing {
        self.by_connection.borrow_mut().remove(&connection).unwrap_or_default()
    }

    pub fn put(&self, connection: u64, mut standing: Standing) {
        if !standing.reads.is_empty() || !standing.told.is_empty() {
            standing.since_ms = clock::now_ms();
            self.by_connection.borrow_mut().insert(connection, standing);
        }
    }

    /// Ends those whose client does not come back; every second or so.
    pub fn sweep(&self, shard: &Rc<Shard>, now_ms: i64) {
        self.end(shard, |standing| now_ms - standing.since_ms > STANDING_MS);
    }

    pub fn end_all(&self, shard: &Rc<Shard>) {
        self.end(shard, |_| true);
    }

    fn end(&self, shard: &Rc<Shard>, which: impl Fn(&Standing) -> bool) {
        let ended: Vec<Standing> = self
            .by_connection
            .borrow_mut()
            .extract_if(.., |_, standing| which(standing))
            .map(|(_, ended)| ended)
            .collect();
        ended.into_iter().for_each(|mut standing| standing.call_off(shard));
    }

    /// How many reads stand.
    #[cfg(test)]
    pub fn reads(&self) -> usize {
        self.by_connection.borrow().values().map(|standing| standing.reads.len()).sum()
    }
}
