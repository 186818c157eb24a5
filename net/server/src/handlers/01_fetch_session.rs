//! Sessions as Fetch uses them (KIP-227): from session id and epoch to the partitions that are wanted, and from what was
//! read to what has to be said.

use std::sync::Arc;

use model::{ErrorCode, PartitionIndex, PartitionKey, TopicId};
use runtime::{clock, random};
use wire::TopicRef;
use wire::WireError;
use wire::fetch::FetchWalk;

use super::Context;
use super::fetch::{FIRST_WITH_TOPIC_ID, Planned, wanted};
use super::fetch_rounds::{Tickets, call_off, wait_again};
use super::fetch_standing::{Head, Known};
use crate::mail::FetchResult;
use crate::sessions::{Session, SessionError, SessionPartition, SessionTopic};
use crate::shard::Shard;

const NO_SESSION: i32 = 0;
/// Epoch of a request that begins a session.
const INITIAL_EPOCH: i32 = 0;
/// Epoch of a request without a session, or that ends one.
const FINAL_EPOCH: i32 = -1;

/// How the answer is kept in mind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeping {
    /// A full answer and nothing kept.
    Nothing,
    /// A full answer, and a new session if there is room.
    New,
    /// An incremental answer of a session that lives on this shard.
    Session { id: i32, owner: usize },
}

/// What a request comes to.
pub struct Resolved {
    /// In the order in which they are served.
    pub partitions: Vec<SessionPartition>,
    /// Topics by name that do not exist.
    pub unknown: Vec<(Arc<str>, i32)>,
    /// The session's partitions are as they were, and so are these waits: `partitions` is then empty until they tell news.
    quiet: Option<Tickets>,
    keeping: Keeping,
}

impl Resolved {
    /// Whether a wait without news is of use to the next request.
    pub fn is_session(&self) -> bool {
        self.keeping != Keeping::Nothing
    }

    /// What is said of partitions whose owners have no news. `told`: to this client, if it has no session, with its last answer.
    pub fn known<'a>(&'a self, told: &'a [(PartitionKey, Option<Head>)]) -> Known<'a> {
        match self.keeping {
            Keeping::Nothing => Known::Told(told),
            Keeping::New => Known::Nothing,
            Keeping::Session { .. } => Known::Session(&self.partitions),
        }
    }

    /// A session whose last request ended without news waits on where that stopped. `Some`: there is none until the
    /// deadline, and this is the session's id. Otherwise its partitions are there afterwards.
    pub async fn wait_quietly(&mut self, context: &Context<'_>, deadline_ms: i64) -> Option<i32> {
        let (tickets, Keeping::Session { id, owner }) = (self.quiet.take()?, self.keeping) else { return None };
        if let Some(kept) = wait_again(context.shard, &tickets, deadline_ms).await {
            keep_quiet(context, owner, id, kept).await;
            return Some(id);
        }
        let all = context.shard.on(owner, move |shard| async move {
            shard.sessions.with(id, |session| session.partitions().cloned().collect::<Vec<_>>())
        });
        self.partitions = all.await.flatten().unwrap_or_default();
        None
    }
}

/// Keeps the waits for the session's next request.
async fn keep_quiet(context: &Context<'_>, owner: usize, id: i32, tickets: Tickets) {
    let offered = tickets.clone();
    let taken = context.shard.on(owner, move |shard| async move {
        shard.sessions.with(id, |session| session.quiet = Some(offered)).is_some()
    });
    if taken.await != Some(true) {
        call_off(context.shard, &tickets);
    }
}

/// The outer error is a malformed frame, the inner one an answer.
pub async fn resolve(context: &Context<'_>, walk: &FetchWalk<'_>) -> Result<Result<Resolved, ErrorCode>, WireError> {
    let by_topic_id = context.version >= FIRST_WITH_TOPIC_ID;
    let (named, unknown) = named_partitions(context, walk)?;
    let (id, epoch) = (walk.session_id, walk.session_epoch);
    if epoch == INITIAL_EPOCH || epoch == FINAL_EPOCH {
        if id != NO_SESSION {
            remove(context.shard, id).await;
        }
        // Partitions that cannot be named by id cannot be remembered.
        let keep = epoch == INITIAL_EPOCH && unknown.is_empty() && !named.is_empty();
        let keeping = if keep { Keeping::New } else { Keeping::Nothing };
        return Ok(Ok(Resolved { partitions: named, unknown, quiet: None, keeping }));
    }
    if epoch < FINAL_EPOCH {
        return Ok(Err(ErrorCode::InvalidFetchSessionEpoch));
    }
    if id == NO_SESSION || !unknown.is_empty() {
        // The client begins anew with everything it wants.
        return Ok(Err(ErrorCode::FetchSessionIdNotFound));
    }
    let mut forgotten = Vec::with_capacity(walk.forgotten_count);
    for partition in walk.forgotten() {
        let partition = partition?;
        let topic = match partition.topic {
            TopicRef::Id(id) => SessionTopic::Id(TopicId(id)),
            TopicRef::Name(name) => SessionTopic::Name(name.into()),
        };
        forgotten.push((topic, PartitionIndex(partition.partition)));
    }
    let owner = owner_of(context.shard, id);
    // A client that takes whatever there is at once does not wait, quietly or otherwise.
    let may_wait = walk.min_bytes > 0;
    let updated = context.shard.on(owner, move |shard| async move {
        shard.sessions.advance(id, epoch, by_topic_id, clock::now_ms(), |session| {
            let quiet = session.quiet.take();
            if may_wait && quiet.is_some() && named.is_empty() && forgotten.is_empty() {
                return (Vec::new(), quiet, None);
            }
            named.into_iter().for_each(|partition| session.put(partition));
            forgotten.into_iter().for_each(|(topic, partition)| session.forget(topic, partition));
            (session.partitions().cloned().collect::<Vec<_>>(), None, quiet)
        })
    });
    Ok(match updated.await {
        Some(Ok((partitions, quiet, outdated))) => {
            outdated.iter().for_each(|tickets| call_off(context.shard, tickets));
            Ok(Resolved { partitions, unknown: Vec::new(), quiet, keeping: Keeping::Session { id, owner } })
        }
        Some(Err(SessionError::TopicId)) => Err(ErrorCode::FetchSessionTopicIdError),
        Some(Err(SessionError::InvalidEpoch)) => Err(ErrorCode::InvalidFetchSessionEpoch),
        Some(Err(SessionError::NotFound)) | None => Err(ErrorCode::FetchSessionIdNotFound),
    })
}

type Named = (Vec<SessionPartition>, Vec<(Arc<str>, i32)>);

fn named_partitions(context: &Context<'_>, walk: &FetchWalk<'_>) -> Result<Named, WireError> {
    let mut named = Vec::with_capacity(walk.partition_count);
    let mut unknown = Vec::new();
    for partition in walk.partitions() {
        let partition = partition?;
        match (wanted(context, &partition), partition.topic) {
            (Some(wanted), _) => named.push(wanted),
            (None, TopicRef::Name(name)) => unknown.push((name.into(), partition.partition)),
            (None, TopicRef::Id(_)) => {}
        }
    }
    Ok((named, unknown))
}

/// The session's id and, for each partition, whether the answer has to name it.
pub async fn finish(
    context: &Context<'_>,
    resolved: &Resolved,
    planned: &[Planned],
    results: &[FetchResult],
    quiet: Option<Tickets>,
    version: i16,
) -> (i32, Vec<bool>) {
    let (id, shown) = note_answer(context, resolved, planned, results, version).await;
    if let Some(tickets) = quiet {
        let owner = if let Keeping::Session { owner, .. } = resolved.keeping { owner } else { context.shard.index };
        keep_quiet(context, owner, id, tickets).await;
    }
    (id, shown)
}

async fn note_answer(
    context: &Context<'_>,
    resolved: &Resolved,
    planned: &[Planned],
    results: &[FetchResult],
    version: i16,
) -> (i32, Vec<bool>) {
    let all = vec![true; planned.len()];
    match resolved.keeping {
        Keeping::Nothing => (NO_SESSION, all),
        Keeping::New => (create(context.shard, resolved, results, version >= FIRST_WITH_TOPIC_ID), all),
        Keeping::Session { id, owner } => {
            let sent: Vec<Sent> = resolved.partitions.iter().zip(results).map(Sent::of).collect();
            // A topic that was made again under its name has another id: the client has to begin a new session for it.
            let lost = version < FIRST_WITH_TOPIC_ID && planned.iter().any(|p| p.part.is_err());
            let shown = context.shard.on(owner, move |shard| async move { note(&shard, id, sent, lost) });
            (id, shown.await.flatten().unwrap_or(all))
        }
    }
}

/// What an answer says of one partition.
struct Sent {
    partition: SessionPartition,
    high_watermark: i64,
    log_start_offset: i64,
    has_data: bool,
    is_error: bool,
}

impl Sent {
    /// Results stand in the order of the session's partitions: a request with unknown ones has no session.
    fn of((partition, result): (&SessionPartition, &FetchResult)) -> Sent {
        Sent {
            partition: partition.clone(),
            high_watermark: result.high_watermark,
            log_start_offset: result.log_start_offset,
            has_data: result.bytes > 0,
            is_error: result.error_code != 0 || result.diverging_epoch.is_some(),
        }
    }

    fn note(&self, session: &mut Session) -> bool {
        session.sent(&self.partition, self.high_watermark, self.log_start_offset, self.has_data, self.is_error)
    }
}

fn note(shard: &Shard, id: i32, sent: Vec<Sent>, lost: bool) -> Option<Vec<bool>> {
    let shown = shard.sessions.with(id, |session| sent.iter().map(|s| s.note(session)).collect());
    if lost {
        shard.sessions.remove(id);
    }
    shown
}

fn create(shard: &Shard, resolved: &Resolved, results: &[FetchResult], by_topic_id: bool) -> i32 {
    let mut session = Session::default();
    session.by_topic_id = by_topic_id;
    resolved.partitions.iter().cloned().for_each(|partition| session.put(partition));
    for sent in resolved.partitions.iter().zip(results).map(Sent::of) {
        sent.note(&mut session);
    }
    let id = new_id(shard);
    if shard.sessions.insert(id, session, shard.post.shards(), clock::now_ms()) { id } else { NO_SESSION }
}

/// Random, so that an id of an earlier process does not hit; the remainder names the shard.
fn new_id(shard: &Shard) -> i32 {
    let shards = shard.post.shards() as i32;
    let highest = i32::MAX / shards - 1;
    let random = (random::u64() % highest as u64) as i32;
    (random + 1) * shards + shard.index as i32
}

fn owner_of(shard: &Shard, id: i32) -> usize {
    (id.unsigned_abs() as usize) % shard.post.shards()
}

async fn remove(shard: &std::rc::Rc<Shard>, id: i32) {
    shard.on(owner_of(shard, id), move |shard| async move { shard.sessions.remove(id) }).await;
}
