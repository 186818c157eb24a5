//! The rounds of a Fetch: read everything, and if that is too little, wait for news and read again. Where one byte is
//! enough, as it is by default, the owners do both themselves: one message to each and one back, whoever has news.

use std::rc::Rc;
use std::task::Poll;

use futures_lite::FutureExt;
use model::ErrorCode;
use runtime::clock;

use super::fetch::Planned;
use crate::limits::{FETCH_BYTES_PER_SHARD, FETCH_PAUSE};
use crate::mail::{AwaitMail, FetchMail, FetchPart, FetchResult, FetchWait, ShardReply, ShardRequest};
use crate::shard::{Shard, await_parts};

/// When a Fetch is content.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    min_bytes: usize,
    max_bytes: usize,
    deadline_ms: i64,
}

impl Want {
    /// `min_bytes` is no more than what a read can give: a Fetch that waits for more would read the same again and again.
    pub fn new(min_bytes: i32, max_bytes: usize, deadline_ms: i64) -> Want {
        // The first batch comes even where the limit is 0, so one byte may always be waited for.
        let reachable = max_bytes.clamp(1, FETCH_BYTES_PER_SHARD);
        Want { min_bytes: (min_bytes.max(0) as usize).min(reachable), max_bytes, deadline_ms }
    }
}

/// One Fetch request's reads, by owning shard.
pub struct Rounds<'a> {
    shard: &'a Rc<Shard>,
    planned: &'a [Planned],
    by_owner: Vec<(usize, Vec<FetchPart>)>,
    /// Something is refused already: the client should hear of it at once.
    refused: bool,
    /// Of a session: waits without news are kept for its next request.
    keep: bool,
}

/// Waits that the owners keep: shard and ticket.
pub type Tickets = Vec<(usize, u64)>;

/// How a wait ended.
enum Waited {
    News,
    /// The deadline; with what is kept, if everything is.
    Quiet(Option<Tickets>),
}

impl<'a> Rounds<'a> {
    pub fn new(shard: &'a Rc<Shard>, planned: &'a [Planned], keep: bool) -> Rounds<'a> {
        let view = shard.view();
        let mut by_owner: Vec<(usize, Vec<FetchPart>)> = (0..shard.post.shards()).map(|s| (s, Vec::new())).collect();
        let mut refused = false;
        for plan in planned {
            match (plan.part, view.placement.shard_of(plan.key)) {
                (Ok(part), Some(owner)) => by_owner[owner].1.push(part),
                _ => refused = true,
            }
        }
        by_owner.retain(|(_, parts)| !parts.is_empty());
        Rounds { shard, planned, by_owner, refused, keep }
    }

    /// Reads until there are `min_bytes`, an error, or no time left. Where that came without a byte, the waits that were
    /// kept come too.
    pub async fn run(&self, want: Want) -> (Vec<FetchResult>, Option<Tickets>) {
        if want.min_bytes == 1 && self.may_wait(want) && !self.has_news_here() {
            let (mut results, kept) = self.read_or_wait(want).await;
            trim(&mut results, want.max_bytes);
            return (results, kept);
        }
        let mut before = None;
        loop {
            let mut results = self.read(want.max_bytes).await;
            let bytes: usize = results.iter().map(|r| r.bytes).sum();
            let content = bytes >= want.min_bytes || results.iter().any(|r| r.bytes == 0 && r.is_news());
            if content || !self.may_wait(want) {
                trim(&mut results, want.max_bytes);
                return (results, None);
            }
            if before.replace(bytes) == Some(bytes) {
                // News that a read does not find would turn this into a spin.
                clock::sleep(FETCH_PAUSE).await;
            }
            if let Waited::Quiet(kept) = self.wait(&results, want.deadline_ms).await {
                // Nothing came since the read: another would find the same.
                trim(&mut results, want.max_bytes);
                let kept = if bytes == 0 { kept } else { self.call_off(kept) };
                return (results, kept);
            }
        }
    }

    fn may_wait(&self, want: Want) -> bool {
        !self.refused && !self.by_owner.is_empty() && clock::now_ms() < want.deadline_ms && !self.shard.is_stopping()
    }

    /// Something is there already: nobody has to wait, and to call others off would cost a message.
    fn has_news_here(&self) -> bool {
        self.by_owner.iter().any(|(owner, parts)| *owner == self.shard.index && self.shard.has_news(parts))
    }

    /// Every owner answers when it has something; the first who has makes the others answer with what they have.
    async fn read_or_wait(&self, want: Want) -> (Vec<FetchResult>, Option<Tickets>) {
        let ask = |(owner, parts): &(usize, Vec<FetchPart>)| {
            let ticket = self.shard.facts.unique();
            let wait = FetchWait { ticket, deadline_ms: want.deadline_ms, keep: self.keep };
            let mail = FetchMail { parts: parts.clone(), max_bytes: want.max_bytes, wait: Some(wait) };
            ((*owner, ticket), Some(self.shard.post.call(*owner, ShardRequest::Fetch(mail)).boxed_local()))
        };
        let mut asked: Vec<_> = self.by_owner.iter().map(ask).collect();
        let mut results = self.refused_results();
        let mut kept = Tickets::new();
        let (mut news, mut called_off) = (false, false);
        std::future::poll_fn(|cx| {
            for (ticket, call) in &mut asked {
                let Some(Poll::Ready(reply)) = call.as_mut().map(|call| call.poll(cx)) else { continue };
                *call = None;
                match reply {
                    Some(ShardReply::Fetch { results: read, kept: is_kept }) => {
                        news |= read.iter().any(FetchResult::is_news);
                        kept.extend(is_kept.then_some(*ticket));
                        put(&mut results, read);
                    }
                    // The end of a shard.
                    _ => news = true,
                }
            }
            let mut running = asked.iter().filter(|(_, call)| call.is_some()).map(|(ticket, _)| *ticket).peekable();
            if running.peek().is_none() {
                return Poll::Ready(());
            }
            if news && !std::mem::replace(&mut called_off, true) {
                call_off(self.shard, &running.collect());
            }
            Poll::Pending
        })
        .await;
        if !news && kept.len() == asked.len() {
            return (results, Some(kept));
        }
        call_off(self.shard, &kept);
        (results, None)
    }

    /// What is said of partitions that no owner was asked for.
    fn refused_results(&self) -> Vec<FetchResult> {
        let refused = |(slot, plan): (usize, &Planned)| {
            FetchResult::error(slot, plan.part.err().unwrap_or(ErrorCode::NotLeaderOrFollower))
        };
        self.planned.iter().enumerate().map(refused).collect()
    }

    async fn read(&self, max_bytes: usize) -> Vec<FetchResult> {
        let ask = |(owner, parts): &(usize, Vec<FetchPart>)| {
            let mail = FetchMail { parts: parts.clone(), max_bytes, wait: None };
            self.shard.post.call(*owner, ShardRequest::Fetch(mail))
        };
        let replies = runtime::sync::all(self.by_owner.iter().map(ask).collect()).await;
        let mut results = self.refused_results();
        for reply in replies {
            if let Some(ShardReply::Fetch { results: read, .. }) = reply {
                put(&mut results, read);
            }
        }
        results
    }

    fn call_off(&self, kept: Option<Tickets>) -> Option<Tickets> {
        kept.iter().for_each(|tickets| call_off(self.shard, tickets));
        None
    }

    /// Waits until any owner has something beyond what was read.
    async fn wait(&self, results: &[FetchResult], deadline_ms: i64) -> Waited {
        let begin = |(owner, parts): &(usize, Vec<FetchPart>)| {
            // What was read does not count as news, or a small answer would be read again and again.
            let parts = await_parts(parts, |part| read_up_to(results, part));
            let wait = FetchWait { ticket: self.shard.facts.unique(), deadline_ms, keep: self.keep };
            (*owner, AwaitMail { parts, wait })
        };
        wait(self.shard, self.by_owner.iter().map(begin).collect()).await
    }
}

/// Goes on with waits that were kept. Gives them back where there was no news until the deadline and all are kept again.
pub async fn wait_again(shard: &Rc<Shard>, tickets: &Tickets, deadline_ms: i64) -> Option<Tickets> {
    let again = |&(owner, ticket): &(usize, u64)| {
        (owner, AwaitMail { parts: Vec::new(), wait: FetchWait { ticket, deadline_ms, keep: true } })
    };
    match wait(shard, tickets.iter().map(again).collect()).await {
        Waited::Quiet(kept) => kept,
        Waited::News => None,
    }
}

/// Lets go of waits that are kept.
pub fn call_off(shard: &Rc<Shard>, tickets: &Tickets) {
    for &(owner, ticket) in tickets {
        shard.post.tell(owner, ShardRequest::CancelAwait { ticket });
    }
}

async fn wait(shard: &Rc<Shard>, mails: Vec<(usize, AwaitMail)>) -> Waited {
    let tickets: Tickets = mails.iter().map(|(owner, mail)| (*owner, mail.wait.ticket)).collect();
    let ask = |(owner, mail)| Some(shard.post.call(owner, ShardRequest::Await(mail)).boxed_local());
    let mut waiting: Vec<_> = mails.into_iter().map(ask).collect();
    let mut all_kept = true;
    let news = std::future::poll_fn(|cx| {
        for call in &mut waiting {
            let Some(Poll::Ready(reply)) = call.as_mut().map(|call| call.poll(cx)) else { continue };
            *call = None;
            match reply {
                Some(ShardReply::Awaited { news: false, kept }) => all_kept &= kept,
                // Also the end of a shard.
                _ => return Poll::Ready(true),
            }
        }
        if waiting.iter().all(Option::is_none) { Poll::Ready(false) } else { Poll::Pending }
    })
    .await;
    if !news && all_kept {
        return Waited::Quiet(Some(tickets));
    }
    call_off(shard, &tickets);
    if news { Waited::News } else { Waited::Quiet(None) }
}

/// Each result where its partition stands.
fn put(results: &mut [FetchResult], read: Vec<FetchResult>) {
    for result in read {
        let slot = result.slot;
        results[slot] = result;
    }
}

fn read_up_to(results: &[FetchResult], part: &FetchPart) -> i64 {
    let result = &results[part.slot];
    if result.bytes > 0 { result.high_watermark } else { part.offset.0 }
}

/// Shards read at the same time, each up to the whole limit: what is too much comes with the next fetch. The first batch
/// always goes out, so that a batch larger than the limit does not block its consumer (KIP-74).
fn trim(results: &mut [FetchResult], max_bytes: usize) {
    let mut sent = 0;
    for result in results.iter_mut().filter(|r| r.bytes > 0) {
        if sent > 0 && sent + result.bytes > max_bytes {
            result.slices.clear();
            result.bytes = 0;
        }
        sent += result.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(bytes: usize) -> FetchResult {
        FetchResult { bytes, ..FetchResult::error(0, ErrorCode::None) }
    }

    #[test]
    fn no_more_is_waited_for_than_a_read_gives() {
        let min_bytes = |asked, max_bytes| Want::new(asked, max_bytes, 0).min_bytes;
        assert_eq!(min_bytes(-1, 1024), 0);
        assert_eq!(min_bytes(100, 1024), 100);
        assert_eq!(min_bytes(5000, 1024), 1024);
        assert_eq!(min_bytes(1, 0), 1);
        assert_eq!(min_bytes(i32::MAX, usize::MAX), FETCH_BYTES_PER_SHARD);
    }

    #[test]
    fn the_first_batch_goes_out_whole_and_the_rest_waits() {
        let mut results = vec![result(0), result(5000), result(100), result(10)];
        trim(&mut results, 1024);
        assert_eq!(results.iter().map(|r| r.bytes).collect::<Vec<_>>(), [0, 5000, 0, 0]);
        let mut results = vec![result(500), result(600), result(10)];
        trim(&mut results, 1024);
        assert_eq!(results.iter().map(|r| r.bytes).collect::<Vec<_>>(), [500, 0, 10]);
    }
}
