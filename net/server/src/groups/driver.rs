//! One coordinator on its shard: what carries the effects of the state machine out.
//!
//! Requests, due timers and results of appends go in; after each, everything that came of it is handed on: answers to
//! their waiters, records to the partition's log. Appends are reported back in their order once they are durable. Owned
//! by the shard that owns the partition; the `RefCell` is borrowed between awaits only.
//!
//! Budget: a heartbeat is one borrow and no allocation here; a commit is one ticket, one batch, one queue entry.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use coordinator::{AppendId, CoordinatorConfig, Effect, GroupCoordinator, Now, Response, Ticket};
use model::config::{BrokerConfig, GroupConfig};
use model::{ErrorCode, Offset, PartitionKey};
use replica::Replica;
use runtime::sync::{LocalQueue, OneshotReceiver, OneshotSender, before, oneshot};
use runtime::{Notify, TaskGroup, clock};

use super::limits::{LOAD_WAIT_MS, RELOAD_AFTER_MS};
use super::{batches, load};
use crate::shard::Shard;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is loaded: not yet, or the last try failed.
    Unloaded,
    Loading,
    Ready,
    Stopped,
}

/// What exists while the coordinator is ready. Tickets are bounded by the connections, each of which has one request of
/// this kind under way.
struct Running {
    coordinator: GroupCoordinator,
    replica: Rc<Replica>,
    tickets: BTreeMap<Ticket, OneshotSender<Response>>,
    next_ticket: u64,
}

/// Records that have their place, or have none, and wait to be reported. Bounded by the coordinator's own bound on
/// appends in flight.
struct Appended {
    append_id: AppendId,
    placed: Result<Offset, ErrorCode>,
    deadline_ms: i64,
}

/// See the module.
pub struct GroupDriver {
    key: PartitionKey,
    phase: Cell<Phase>,
    /// The phase has changed.
    changed: Notify,
    running: RefCell<Option<Running>>,
    config: RefCell<Arc<BrokerConfig>>,
    appends: LocalQueue<Appended>,
    handed_out: Cell<u64>,
    reported: Cell<u64>,
    report: Notify,
    /// What the timer task sleeps for.
    armed_ms: Cell<Option<i64>>,
    /// A deadline earlier than that, or the end.
    earlier: Notify,
    tasks: TaskGroup,
}

impl GroupDriver {
    pub fn new(key: PartitionKey, config: Arc<BrokerConfig>) -> Rc<GroupDriver> {
        Rc::new(GroupDriver {
            key,
            phase: Cell::new(Phase::Unloaded),
            changed: Notify::new(),
            running: RefCell::new(None),
            config: RefCell::new(config),
            appends: LocalQueue::new(),
            handed_out: Cell::new(0),
            reported: Cell::new(0),
            report: Notify::new(),
            armed_ms: Cell::new(None),
            earlier: Notify::new(),
            tasks: TaskGroup::new(),
        })
    }

    pub fn key(&self) -> PartitionKey {
        self.key
    }

    pub fn is_loading(&self) -> bool {
        self.phase.get() == Phase::Loading
    }

    /// Resolves when the coordinator takes requests; loads it if nobody does. A failed load is tried again by the next
    /// call.
    pub async fn ready(self: &Rc<Self>, shard: &Rc<Shard>) -> Result<(), ErrorCode> {
        match self.phase.get() {
            Phase::Ready => {
                self.follow_config(shard);
                return Ok(());
            }
            Phase::Unloaded if shard.is_stopping() => return Err(ErrorCode::NotCoordinator),
            Phase::Unloaded => self.begin_loading(shard),
            Phase::Loading | Phase::Stopped => {}
        }
        let _ = before(clock::now_ms() + LOAD_WAIT_MS, self.loaded()).await;
        match self.phase.get() {
            Phase::Ready => Ok(()),
            Phase::Loading => Err(ErrorCode::CoordinatorLoadInProgress),
            Phase::Unloaded => Err(ErrorCode::CoordinatorNotAvailable),
            Phase::Stopped => Err(ErrorCode::NotCoordinator),
        }
    }

    /// Resolves when no load is under way any more.
    pub async fn loaded(&self) {
        loop {
            let seen = self.changed.version();
            if !self.is_loading() {
                return;
            }
            self.changed.changed_since(seen).await;
        }
    }

    fn set_phase(&self, phase: Phase) {
        self.phase.set(phase);
        self.changed.notify();
    }

    fn begin_loading(self: &Rc<Self>, shard: &Rc<Shard>) {
        self.set_phase(Phase::Loading);
        let (driver, shard) = (self.clone(), shard.clone());
        self.tasks.spawn("load groups", async move {
            let config = shard.config();
            let loaded = load::load(&shard, driver.key, coordinator_config(&config.groups)).await;
            if driver.phase.get() == Phase::Stopped {
                return;
            }
            match loaded {
                Ok((coordinator, replica)) => driver.begin(&shard, coordinator, replica),
                Err(error) => {
                    let partition = driver.key.partition;
                    eprintln!("ringlog: groups of offsets partition {partition} cannot be loaded: {error}");
                    // Every heartbeat would try again: not at once.
                    shard.pause_ms(RELOAD_AFTER_MS).await;
                    if driver.phase.get() != Phase::Stopped {
                        driver.set_phase(Phase::Unloaded);
                    }
                }
            }
        });
    }

    fn begin(self: &Rc<Self>, shard: &Rc<Shard>, mut coordinator: GroupCoordinator, replica: Rc<Replica>) {
        coordinator.finish_loading(now());
        // A crash between the deletion of a topic and the tombstones of its offsets leaves them in the log.
        let view = shard.view();
        coordinator.retain_topics(now(), |name, id| match view.image.topic_id(name) {
            Some(current) => id.is_zero() || id == current,
            None => false,
        });
        *self.config.borrow_mut() = shard.config();
        *self.running.borrow_mut() =
            Some(Running { coordinator, replica: replica.clone(), tickets: BTreeMap::new(), next_ticket: 0 });
        self.tasks.spawn("group appends", self.clone().report_appends(replica));
        self.tasks.spawn("group timers", self.clone().keep_time());
        self.pump();
        self.set_phase(Phase::Ready);
    }

    /// Settings may have been changed while running.
    fn follow_config(&self, shard: &Shard) {
        let config = shard.config();
        if Arc::ptr_eq(&config, &self.config.borrow()) {
            return;
        }
        if let Some(running) = self.running.borrow_mut().as_mut() {
            running.coordinator.set_config(coordinator_config(&config.groups));
        }
        *self.config.borrow_mut() = config;
    }

    /// A request that is answered when it is: `request` gets the ticket on which the answer will come.
    pub async fn ask(&self, request: impl FnOnce(&mut GroupCoordinator, Now, Ticket)) -> Result<Response, ErrorCode> {
        let answer = self.enter(request).ok_or(ErrorCode::NotCoordinator)?;
        answer.await.ok_or(ErrorCode::NotCoordinator)
    }

    fn enter(&self, request: impl FnOnce(&mut GroupCoordinator, Now, Ticket)) -> Option<OneshotReceiver<Response>> {
        let answer = {
            let mut running = self.running.borrow_mut();
            let running = running.as_mut()?;
            let (sender, receiver) = oneshot();
            let ticket = Ticket(running.next_ticket);
            running.next_ticket += 1;
            running.tickets.insert(ticket, sender);
            request(&mut running.coordinator, now(), ticket);
            receiver
        };
        self.pump();
        Some(answer)
    }

    /// A request that is answered on the spot.
    pub fn look<R>(&self, look: impl FnOnce(&mut GroupCoordinator, Now) -> R) -> Result<R, ErrorCode> {
        let result = {
            let mut running = self.running.borrow_mut();
            let running = running.as_mut().ok_or(ErrorCode::NotCoordinator)?;
            look(&mut running.coordinator, now())
        };
        self.pump();
        Ok(result)
    }

    /// Carries out what the coordinator wants. Called after everything that goes in.
    fn pump(&self) {
        let mut running = self.running.borrow_mut();
        let Some(running) = running.as_mut() else { return };
        while let Some(effect) = running.coordinator.poll_effect() {
            match effect {
                Effect::Reply { ticket, response } => {
                    if let Some(waiter) = running.tickets.remove(&ticket) {
                        waiter.send(response);
                    }
                }
                Effect::Append { append_id, records } => {
                    let timeout_ms = self.config.borrow().groups.offsets_commit_timeout_ms.max(1);
                    let placed = batches::place(&running.replica, &records, clock::wall_ms());
                    let deadline_ms = clock::now_ms().saturating_add(timeout_ms);
                    self.handed_out.set(self.handed_out.get() + 1);
                    self.appends.push(Appended { append_id, placed, deadline_ms });
                }
            }
        }
        let next = running.coordinator.next_deadline_ms();
        if next.is_some_and(|next| self.armed_ms.get().is_none_or(|armed| next < armed)) {
            self.earlier.notify();
        }
    }

    /// Waits for each append in order and tells the coordinator what became of it. Runs until the driver stops.
    async fn report_appends(self: Rc<Self>, replica: Rc<Replica>) {
        while let Some(append) = self.appends.pop().await {
            let result = match append.placed {
                Ok(next_offset) => {
                    replica.committed(next_offset, append.deadline_ms).await.map_err(|error| error.code())
                }
                Err(code) => Err(code),
            };
            let told = self.look(|coordinator, now| coordinator.append_done(now, append.append_id, result));
            self.reported.set(self.reported.get() + 1);
            self.report.notify();
            if told.is_err() {
                return;
            }
        }
    }

    /// Resolves when everything that was handed to the log until now is durable or has failed.
    pub async fn flushed(&self) {
        let until = self.handed_out.get();
        loop {
            let seen = self.report.version();
            if self.reported.get() >= until || self.phase.get() == Phase::Stopped {
                return;
            }
            self.report.changed_since(seen).await;
        }
    }

    /// Fires the coordinator's timers. Runs until the driver stops.
    async fn keep_time(self: Rc<Self>) {
        loop {
            let seen = self.earlier.version();
            let next = match self.running.borrow().as_ref() {
                Some(running) => running.coordinator.next_deadline_ms(),
                None => return,
            };
            self.armed_ms.set(next);
            let earlier = self.earlier.changed_since(seen);
            match next {
                None => earlier.await,
                Some(deadline_ms) => {
                    if before(deadline_ms, earlier).await.is_none() {
                        let _ = self.look(|coordinator, now| coordinator.on_timer(now));
                        // A full round of timers leaves more that are due: others first.
                        runtime::task::yield_now().await;
                    }
                }
            }
        }
    }

    /// Answers everything that waits with NOT_COORDINATOR and ends the tasks. For good.
    pub async fn stop(&self) {
        self.set_phase(Phase::Stopped);
        if let Some(running) = self.running.borrow_mut().as_mut() {
            running.coordinator.resign();
        }
        self.pump();
        *self.running.borrow_mut() = None;
        self.appends.close();
        self.earlier.notify();
        self.report.notify();
        self.tasks.wait().await;
    }
}

fn now() -> Now {
    Now { monotonic_ms: clock::now_ms(), wall_ms: clock::wall_ms() }
}

fn coordinator_config(groups: &GroupConfig) -> CoordinatorConfig {
    CoordinatorConfig {
        group_min_session_timeout_ms: groups.min_session_timeout_ms,
        group_max_session_timeout_ms: groups.max_session_timeout_ms,
        group_initial_rebalance_delay_ms: groups.initial_rebalance_delay_ms,
        group_max_size: groups.max_size,
        offset_metadata_max_bytes: groups.offset_metadata_max_bytes,
        offsets_retention_ms: groups.offsets_retention_ms,
        offsets_retention_check_interval_ms: groups.offsets_retention_check_interval_ms,
        ..CoordinatorConfig::default()
    }
}
