//! The owner's side of Fetch: references to record bytes. Waiting for news is in `awaits`.

use std::rc::Rc;

use log::Slice;
use model::{ErrorCode, LeaderEpoch, Offset, PartitionKey};
use replica::{FetchLimits, Replica, ReplicaError};
use runtime::{Responder, clock, sync};

use super::Shard;
use super::awaits::{self, Await};
use crate::limits::{
    FETCH_BYTES_PER_SHARD, FETCH_PAUSE, FETCH_READS_AT_ONCE, FETCH_REST_BYTES, FETCH_REST_PART, FETCH_SHARE_BYTES,
};
use crate::mail::{FetchMail, FetchPart, FetchResult, FetchWait, RecordSlice, ShardReply, ShardRequest};

impl Shard {
    /// Reads, and where that gives nothing and the mail says so, waits for news and reads again: a consumer that is at the end
    /// costs one message each way.
    pub(super) fn on_fetch(self: Rc<Self>, mail: FetchMail, responder: Responder<ShardRequest, ShardReply>) {
        // Known before the next mail, which may call it off, is looked at.
        let waits = mail.wait.map(|wait| (wait, self.awaits.begin(wait.ticket, mail.parts.len())));
        runtime::spawn("fetch", async move {
            let mut found = false;
            loop {
                let results = self.read_parts(&mail).await;
                let goes_on = |(wait, one): &&(FetchWait, Rc<Await>)| {
                    let late = found && clock::now_ms() >= wait.deadline_ms;
                    !late && !one.is_over() && !results.iter().any(FetchResult::is_news)
                };
                let Some((wait, one)) = waits.as_ref().filter(goes_on) else {
                    waits.iter().for_each(|(wait, _)| self.awaits.cancel(wait.ticket));
                    return responder.send(ShardReply::Fetch { results, kept: false });
                };
                if found {
                    // News that a read does not find would turn this into a spin.
                    clock::sleep(FETCH_PAUSE).await;
                }
                let watched = self.watched(mail.parts.iter().map(|part| (part.key, part.offset))).await;
                let mut subscriptions = Vec::new();
                found = watched.len() < mail.parts.len()
                    || awaits::news(one, &watched, wait.deadline_ms, &mut subscriptions).await;
                if found {
                    continue;
                }
                let kept = wait.keep && self.awaits.keep(one);
                responder.send(ShardReply::Fetch { results, kept });
                if kept {
                    self.awaits.until_taken_back(one).await;
                }
                drop(subscriptions);
                return self.awaits.cancel(wait.ticket);
            }
        });
    }

    /// Whether a read of these partitions, which are this shard's, would find something: at once, as far as they are open.
    pub(crate) fn has_news(&self, parts: &[FetchPart]) -> bool {
        let has_some =
            |part: &FetchPart| self.partitions.get(part.key).is_some_and(|replica| !is_at_the_end(&replica, part));
        parts.iter().any(has_some)
    }

    async fn read_parts(self: &Rc<Self>, mail: &FetchMail) -> Vec<FetchResult> {
        let mut results = Vec::with_capacity(mail.parts.len());
        let budget = mail.max_bytes.min(FETCH_BYTES_PER_SHARD);
        let worth_a_read = (budget / FETCH_REST_PART).min(FETCH_REST_BYTES);
        let mut left = budget;
        let mut any = false;
        let mut to_read = Vec::new();
        for part in mail.parts.iter() {
            match self.partitions.get(part.key).and_then(|replica| at_the_end(&replica, part)) {
                Some(nothing) => results.push(nothing),
                None => to_read.push(*part),
            }
        }
        // Several disk reads at a time, each up to its share of what is left, or one batch.
        for wave in to_read.chunks(FETCH_READS_AT_ONCE) {
            let share = (left / wave.len()).max(FETCH_SHARE_BYTES).min(left);
            let read = |part: &FetchPart| {
                let limits = FetchLimits { max_bytes: part.max_bytes.min(share), min_one_batch: !any };
                self.fetch_one(*part, limits)
            };
            for result in sync::all(wave.iter().map(read).collect()).await {
                any |= result.bytes > 0;
                left = left.saturating_sub(result.bytes);
                results.push(result);
            }
            // Others get their turn in the next fetch, with reads that are worth it: often no batch would fit.
            if any && left < worth_a_read {
                left = 0;
            }
        }
        results
    }

    async fn fetch_one(self: &Rc<Self>, part: FetchPart, limits: FetchLimits) -> FetchResult {
        match self.partition(part.key).await {
            Ok(replica) => fetch_part(&replica, &part, limits).await,
            Err(code) => FetchResult::error(part.slot, code),
        }
    }
}

/// Whether the fetcher has everything there is, and nothing is to be said to it.
fn is_at_the_end(replica: &Replica, part: &FetchPart) -> bool {
    let has_all = part.offset == replica.high_watermark() && part.offset >= replica.log().log_start_offset();
    has_all && replica.check_epoch(part.current_leader_epoch).is_ok() && diverging(replica, part).is_none()
}

/// The answer for such a fetcher, without any wait: most partitions of most fetches.
fn at_the_end(replica: &Replica, part: &FetchPart) -> Option<FetchResult> {
    is_at_the_end(replica, part).then(|| FetchResult {
        high_watermark: replica.high_watermark().0,
        last_stable_offset: replica.last_stable_offset().0,
        log_start_offset: replica.log().log_start_offset().0,
        ..FetchResult::error(part.slot, ErrorCode::None)
    })
}

async fn fetch_part(replica: &Replica, part: &FetchPart, limits: FetchLimits) -> FetchResult {
    match try_fetch(replica, part, limits).await {
        Ok(result) => result,
        Err(error) => FetchResult::error(part.slot, error.code()),
    }
}

async fn try_fetch(replica: &Replica, part: &FetchPart, limits: FetchLimits) -> Result<FetchResult, ReplicaError> {
    replica.check_epoch(part.current_leader_epoch)?;
    if let Some(diverging_epoch) = diverging(replica, part) {
        let mut result = FetchResult::error(part.slot, ErrorCode::None);
        result.high_watermark = replica.high_watermark().0;
        result.last_stable_offset = replica.last_stable_offset().0;
        result.log_start_offset = replica.log().log_start_offset().0;
        result.diverging_epoch = Some(diverging_epoch);
        return Ok(result);
    }
    let fetched = replica.fetch(part.offset, limits).await?;
    let slices = fetched.slices.into_iter().map(|slice| match slice {
        Slice::Bytes(bytes) => RecordSlice::Bytes(bytes),
        Slice::File { file, position, len } => RecordSlice::File { file, position, len: len as usize },
    });
    Ok(FetchResult {
        slot: part.slot,
        error_code: ErrorCode::None.code(),
        high_watermark: fetched.high_watermark.0,
        last_stable_offset: fetched.high_watermark.0,
        log_start_offset: fetched.log_start_offset.0,
        diverging_epoch: None,
        slices: slices.collect(),
        bytes: fetched.bytes,
    })
}

/// Where the fetcher's log leaves ours (KIP-595's truncation on fetch): its last epoch ends earlier here.
fn diverging(replica: &Replica, part: &FetchPart) -> Option<(i32, i64)> {
    if part.last_fetched_epoch < 0 {
        return None;
    }
    let (epoch, end) = replica.epoch_end(LeaderEpoch(part.last_fetched_epoch));
    let leaves = epoch.0 < part.last_fetched_epoch || end < part.offset;
    (epoch.0 >= 0 && leaves).then_some((epoch.0, end.0))
}

/// What the waiting side sends: each partition with the offset beyond which there is news.
pub(crate) fn await_parts(parts: &[FetchPart], known: impl Fn(&FetchPart) -> i64) -> Vec<(PartitionKey, Offset)> {
    parts.iter().map(|part| (part.key, Offset(known(part)))).collect()
}
