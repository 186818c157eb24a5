//! What the groups of a coordinator share: settings, the time of the current call, timers, effects, appends in flight.
//!
//! Owned by the [`GroupCoordinator`](crate::GroupCoordinator) beside its groups, so that a group can be changed while it
//! arms timers and hands out effects.

use crate::append::{After, PendingAppend};
use crate::config::{CoordinatorConfig, Now};
use crate::offsets::OffsetChange;
use crate::response::{AppendId, Effect, JoinResponse, RecordBytes, Response, SyncResponse, Ticket};
use crate::timers::Timers;
use model::ErrorCode;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) config: CoordinatorConfig,
    pub(crate) now: Now,
    pub(crate) timers: Timers,
    pub(crate) effects: VecDeque<Effect>,
    pub(crate) appends: BTreeMap<AppendId, PendingAppend>,
    next_append_id: u64,
    next_incarnation: u64,
    /// Committed offsets of all groups.
    pub(crate) offset_count: usize,
}

impl Context {
    pub(crate) fn new(config: CoordinatorConfig) -> Context {
        Context {
            config,
            now: Now::default(),
            timers: Timers::default(),
            effects: VecDeque::new(),
            appends: BTreeMap::new(),
            next_append_id: 0,
            next_incarnation: 0,
            offset_count: 0,
        }
    }

    /// A number that tells a group from an earlier one of the same name.
    pub(crate) fn incarnation(&mut self) -> u64 {
        self.next_incarnation += 1;
        self.next_incarnation
    }

    pub(crate) fn deadline_ms(&self, delay_ms: i64) -> i64 {
        self.now.monotonic_ms.saturating_add(delay_ms.max(0))
    }

    pub(crate) fn reply(&mut self, ticket: Ticket, response: Response) {
        self.effects.push_back(Effect::Reply { ticket, response });
    }

    pub(crate) fn reply_join_error(&mut self, ticket: Ticket, member_id: &str, error: ErrorCode) {
        self.reply(ticket, Response::Join(JoinResponse::error(Arc::from(member_id), error)));
    }

    pub(crate) fn reply_sync_error(&mut self, ticket: Ticket, error: ErrorCode) {
        self.reply(ticket, Response::Sync(SyncResponse::error(error)));
    }

    /// Hands out records, and remembers what happens when they are durable.
    pub(crate) fn append(&mut self, records: Vec<RecordBytes>, after: After) -> AppendId {
        self.append_offsets(records, Vec::new(), after)
    }

    /// The same for records of which some change offsets.
    pub(crate) fn append_offsets(
        &mut self,
        records: Vec<RecordBytes>,
        changes: Vec<OffsetChange>,
        after: After,
    ) -> AppendId {
        assert!(!records.is_empty(), "an append has records");
        let append_id = AppendId(self.next_append_id);
        self.next_append_id += 1;
        self.appends.insert(append_id, PendingAppend { changes, after, reply: None, result: None });
        self.effects.push_back(Effect::Append { append_id, records });
        append_id
    }

    /// Answers now, or once the append is durable if there is one.
    pub(crate) fn reply_after(&mut self, append: Option<AppendId>, ticket: Ticket, response: Response) {
        match append.and_then(|id| self.appends.get_mut(&id)) {
            Some(pending) => {
                debug_assert!(pending.reply.is_none(), "an append answers one request");
                pending.reply = Some((ticket, response));
            }
            None => self.reply(ticket, response),
        }
    }
}
