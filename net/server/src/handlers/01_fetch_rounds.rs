//! The rounds of a Fetch: read everything, and if that is too little, wait for news and read again. Where one byte is
//! enough, as it is by default, the owners do both themselves: one message to each and one back, whoever has news; what the others
//! were asked for stands until the connection's next request ([`super::fetch_standing`]).

use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use futures_lite::FutureExt;
use model::ErrorCode;
use runtime::clock;

use super::fetch::Planned;
use super::fetch_standing::{Known, Read, Standing};
use crate::limits::{FETCH_BYTES_PER_SHARD, FETCH_PAUSE};
use crate::mail::{AwaitMail, FetchMail, FetchPart, FetchResult, FetchWait, ShardReply, ShardRequest};
use crate::shard::{Shard, await_parts};

/// When a Fetch is content.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    min_bytes: usize,
    pub max_bytes: usize,
    pub deadline_ms: i64,
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
    by_owner: Vec<(usize, Arc<[FetchPart]>)>,
    /// Something is refused already: the client should hear of it at once.
    refused: bool,
    /// Of a session: waits without news are kept for its next request.
    keep: bool,
}

/// Waits that the owners keep: shard and ticket.
pub type Tickets = Vec<(usize, u64)>;

/// One owner's part of a read.
struct Asked<'a> {
    owner: usize,
    parts: &'a Arc<[FetchPart]>,
    /// `None`: it has answered.
    read: Option<Read>,
    /// The read was begun by a request before this one.
    is_taken_up: bool,
}

impl Asked<'_> {
    /// Whether the answer can go out without this owner's.
    fn may_stand(&self, known: &Known<'_>) -> bool {
        let waits = self.read.as_ref().is_some_and(|read| read.ticket().is_some());
        waits && self.parts.iter().all(|part| known.of(part).is_some())
    }

    /// Its read ended with this. Gives whether to ask again: it had waited until the deadline of an earlier request.
    fn take(&mut self, reply: Option<ShardReply>, shard: &Rc<Shard>, want: Want, got: &mut Got) -> bool {
        let Some(read) = self.read.take() else { unreachable!("who answers was asked") };
        let Some(ShardReply::Fetch { results, kept }) = reply else {
            // The end of a shard.
            got.news = true;
            return false;
        };
        let has_news = results.iter().any(FetchResult::is_news);
        if self.is_taken_up && !got.news && !has_news && clock::now_ms() < want.deadline_ms {
            if kept {
                read.call_off(shard);
            }
            return true;
        }
        got.news |= has_news;
        got.kept.extend(read.ticket().filter(|_| kept));
        read.put(self.parts, results, &mut got.results);
        false
    }
}

/// What owners answered so far.
struct Got {
    results: Vec<FetchResult>,
    /// Waits that ended without news, and are kept.
    kept: Tickets,
    news: bool,
}

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
        let by_owner = by_owner.into_iter().map(|(owner, parts)| (owner, parts.into())).collect();
        Rounds { shard, planned, by_owner, refused, keep }
    }

    /// Whether the partitions are of several shards: else nobody's answer could be left for the next request.
    pub fn has_several_owners(&self) -> bool {
        self.by_owner.len() > 1
    }

    /// Reads until there are `min_bytes`, an error, or no time left. Where that came without a byte, the waits that were
    /// kept come too. Owners without news are left to the connection's next request, where it is `known` what to say of them.
    pub async fn run(
        &self,
        want: Want,
        known: &Known<'_>,
        standing: &mut Standing,
    ) -> (Vec<FetchResult>, Option<Tickets>) {
        if want.min_bytes == 1
            && self.may_wait(want)
            && let Some((mut results, kept)) = self.read_or_wait(want, known, standing).await
        {
            trim(&mut results, want.max_bytes);
            return (results, kept);
        }
        standing.call_off(self.shard);
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

    /// Every owner answers when it has something, or at once where it is known that this one has. The first who has ends the wait:
    /// the others' reads are left standing, or called off, which makes them answer with what they have. `None`: what was
    /// there is gone again.
    async fn read_or_wait(
        &self,
        want: Want,
        known: &Known<'_>,
        standing: &mut Standing,
    ) -> Option<(Vec<FetchResult>, Option<Tickets>)> {
        let waits = !self.has_news_here();
        let mut asked = self.ask_owners(want, waits, standing);
        let mut got = Got { results: self.refused_results(), kept: Tickets::new(), news: false };
        let mut called_off = false;
        std::future::poll_fn(|cx| {
            for one in &mut asked {
                while let Some(Poll::Ready(reply)) = one.read.as_mut().map(|read| read.call.as_mut().poll(cx)) {
                    if one.take(reply, self.shard, want, &mut got) {
                        (one.read, one.is_taken_up) = (Some(self.ask(one.owner, one.parts, want, waits)), false);
                    }
                }
            }
            let mut running = asked.iter().filter(|one| one.read.is_some()).peekable();
            if running.peek().is_none() {
                return Poll::Ready(());
            }
            if got.news {
                let mut needed = running.filter(|one| !one.may_stand(known)).peekable();
                if needed.peek().is_none() {
                    return Poll::Ready(());
                }
                if !std::mem::replace(&mut called_off, true) {
                    needed.filter_map(|one| one.read.as_ref()).for_each(|read| read.call_off(self.shard));
                }
            }
            Poll::Pending
        })
        .await;
        let Got { mut results, kept, news } = got;
        if !news && kept.len() == asked.len() {
            return Some((results, Some(kept)));
        }
        call_off(self.shard, &kept);
        for Asked { parts, read, .. } in asked {
            let Some(read) = read else { continue };
            standing.leave(read);
            for part in &parts[..] {
                let Some(head) = known.of(part) else { unreachable!("only what is known of is left standing") };
                results[part.slot] = head.again(part);
            }
        }
        (news || waits).then_some((results, None))
    }

    /// Takes up what stands and asks the others. What stands for something else is called off.
    fn ask_owners(&self, want: Want, waits: bool, standing: &mut Standing) -> Vec<Asked<'_>> {
        let mut asked = Vec::with_capacity(self.by_owner.len());
        for (owner, parts) in &self.by_owner {
            let stood = standing.take(*owner, parts, want, self.keep);
            let is_taken_up = stood.is_some();
            let read = Some(stood.unwrap_or_else(|| self.ask(*owner, parts, want, waits)));
            asked.push(Asked { owner: *owner, parts, read, is_taken_up });
        }
        standing.call_off(self.shard);
        asked
    }

    fn ask(&self, owner: usize, parts: &Arc<[FetchPart]>, want: Want, waits: bool) -> Read {
        let ticket = || self.shard.facts.unique();
        let wait = || FetchWait { ticket: ticket(), deadline_ms: want.deadline_ms, keep: self.keep };
        Read::ask(self.shard, owner, parts, want.max_bytes, waits.then(wait))
    }

    /// What is said of partitions that no owner was asked for.
    fn refused_results(&self) -> Vec<FetchResult> {
        let refused = |(slot, plan): (usize, &Planned)| {
            FetchResult::error(slot, plan.part.err().unwrap_or(ErrorCode::NotLeaderOrFollower))
        };
        self.planned.iter().enumerate().map(refused).collect()
    }

    async fn read(&self, max_bytes: usize) -> Vec<FetchResult> {
        let ask = |(owner, parts): &(usize, Arc<[FetchPart]>)| {
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
        let begin = |(owner, parts): &(usize, Arc<[FetchPart]>)| {
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
