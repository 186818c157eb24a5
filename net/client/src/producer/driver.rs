//! Moves what the core decides: one task that drains it, one short task per request in flight.
//!
//! The core is borrowed only between waits. Whoever changes it calls `settle` afterwards, which tells those who wait
//! for records outside of the borrow, so that they may send again from there. Waits are bounded by the core's next
//! deadline and by `MAX_SLEEP_MS`; requests in flight by `max_in_flight` a node.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use model::ErrorCode;
use runtime::{Notify, clock};
use wire::ApiKey;
use wire::generated::init_producer_id::InitProducerIdRequest;

use super::answers::RequestOutcome;
use super::delivery::{BatchOutcome, Mark};
use super::request::NodeRequest;
use super::{Refused, Sender};
use crate::{Client, ClientError, Destination, Pending, ProducerRecord};

pub(super) type OnBatch = Box<dyn Fn(&BatchOutcome)>;

pub(super) struct Shared {
    pub client: Client,
    pub core: RefCell<Sender>,
    /// Something is to be drained. An `Rc` because the client's own event is passed on to it.
    pub work: Rc<Notify>,
    /// A batch ended: there may be room, a flush may be done.
    pub ended: Notify,
    /// Wall clock less monotonic clock, taken at every drain, so that a record costs one look at a clock.
    wall_offset_ms: Cell<i64>,
    stopped: Cell<bool>,
    asking_for_id: Cell<bool>,
    on_batch: Option<OnBatch>,
}

impl Shared {
    pub fn new(client: Client, core: Sender, on_batch: Option<OnBatch>) -> Rc<Shared> {
        Rc::new(Shared {
            client,
            core: RefCell::new(core),
            work: Rc::new(Notify::new()),
            ended: Notify::new(),
            wall_offset_ms: Cell::new(clock::wall_ms() - clock::now_ms()),
            stopped: Cell::new(false),
            asking_for_id: Cell::new(false),
            on_batch,
        })
    }

    /// Puts a record into its batch, without waiting.
    pub fn append(&self, record: &ProducerRecord, mark: Mark, now_ms: i64) -> Result<(), (Refused, Mark)> {
        let timestamp_ms = record.timestamp_ms.unwrap_or_else(|| now_ms + self.wall_offset_ms.get());
        let appended = self.core.borrow_mut().append(record, timestamp_ms, mark, now_ms);
        let appended = match appended {
            Err((Refused::UnknownTopic, mark)) => self.append_to_new_topic(record, timestamp_ms, mark, now_ms),
            other => other,
        };
        match appended {
            Ok(true) => self.work.notify(),
            Ok(false) => {}
            Err((refused, mark)) => {
                // Without room nothing should linger.
                if refused == Refused::Full {
                    self.work.notify();
                }
                return Err((refused, mark));
            }
        }
        Ok(())
    }

    fn append_to_new_topic(
        &self,
        record: &ProducerRecord,
        timestamp_ms: i64,
        mark: Mark,
        now_ms: i64,
    ) -> Result<bool, (Refused, Mark)> {
        self.client.watch_topics(&[&record.topic]);
        let cluster = self.client.cluster();
        let mut core = self.core.borrow_mut();
        let appended = if core.add_topic(&cluster, &record.topic) {
            core.append(record, timestamp_ms, mark, now_ms)
        } else {
            Err((Refused::UnknownTopic, mark))
        };
        drop(core);
        if matches!(appended, Err((Refused::UnknownTopic, _))) {
            self.client.want_refresh();
        }
        appended
    }

    /// Acts on what the core wants: tells of batches that ended, asks for metadata and for a producer id.
    pub fn settle(self: &Rc<Self>) {
        let (finished, refresh, wants_id) = {
            let mut core = self.core.borrow_mut();
            (core.take_finished(), core.take_refresh_wanted(), core.wants_producer_id())
        };
        if refresh {
            self.client.want_refresh();
        }
        if wants_id && !self.asking_for_id.replace(true) {
            runtime::spawn("producer id", ask_for_producer_id(self.clone()));
        }
        if finished.is_empty() {
            return;
        }
        for mut batch in finished {
            batch.tell();
            if let Some(on_batch) = &self.on_batch {
                on_batch(&batch.outcome);
            }
            self.core.borrow_mut().recycle(batch);
        }
        self.ended.notify();
    }

    /// Ends everything at once.
    pub fn stop(self: &Rc<Self>, error: &ClientError) {
        self.core.borrow_mut().stop(error, clock::now_ms());
        self.stopped.set(true);
        self.settle();
        self.work.notify();
    }

    fn answered(self: &Rc<Self>, id: u64, outcome: RequestOutcome<'_>) {
        self.core.borrow_mut().answered(clock::now_ms(), id, outcome);
    }

    /// Sends what can be sent now.
    fn pump(self: &Rc<Self>) {
        let now_ms = clock::now_ms();
        self.wall_offset_ms.set(clock::wall_ms() - now_ms);
        let cluster = self.client.cluster();
        loop {
            let mut ready = |node| self.client.is_ready(node);
            let requests = self.core.borrow_mut().drain(now_ms, &cluster, &mut ready);
            if requests.is_empty() {
                break;
            }
            for request in &requests {
                self.dispatch(request);
            }
        }
        self.settle();
    }

    fn dispatch(self: &Rc<Self>, request: &NodeRequest) {
        let versions = Some(*ApiKey::Produce.versions().start()..=request.newest_version());
        let is_answered = request.acks != 0;
        let sent = if is_answered {
            self.client.send(request.node, versions, request, i64::from(request.timeout_ms))
        } else {
            self.client.send_unanswered(request.node, versions, request)
        };
        match sent {
            Ok(pending) => {
                runtime::spawn("produce answer", await_answer(self.clone(), request.id, pending, is_answered));
            }
            Err(error) => self.answered(request.id, RequestOutcome::NotSent(error)),
        }
    }
}

/// The producer's one task.
pub(super) async fn drive(shared: Rc<Shared>) {
    while !shared.stopped.get() {
        let seen = shared.work.version();
        // Before anything is looked at, so that no change of the cluster is missed.
        let changed = shared.client.changed().clone();
        let subscription = changed.subscribe(&shared.work);
        shared.pump();
        let wake_ms = shared.core.borrow().next_wake_ms();
        runtime::sync::before(wake_ms, shared.work.changed_since(seen)).await;
        drop(subscription);
    }
}

async fn await_answer(shared: Rc<Shared>, id: u64, pending: Pending<NodeRequest>, is_answered: bool) {
    match pending.await {
        Ok(_) if !is_answered => shared.answered(id, RequestOutcome::Handed),
        Ok(answer) => match answer.decode() {
            Ok(response) => shared.answered(id, RequestOutcome::Answered(&response)),
            Err(error) => shared.answered(id, RequestOutcome::Unknown(error)),
        },
        Err(error) if certainly_not_sent(&error) => shared.answered(id, RequestOutcome::NotSent(error)),
        Err(error) => shared.answered(id, RequestOutcome::Unknown(error)),
    }
    shared.settle();
    // An answer may free memory without ending a record: that of a batch which expired before.
    shared.ended.notify();
    shared.work.notify();
}

fn certainly_not_sent(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::NotConnected { .. }
            | ClientError::UnknownNode { .. }
            | ClientError::UnsupportedApi { .. }
            | ClientError::BadRequest { .. }
    )
}

/// Until there is one, or it is certain that there will be none: at the start, and when the epochs of the last one are used
/// up or another producer has it. After a gap in a sequence the epoch is raised here, without asking. Every attempt is
/// bounded by the client; the waits between them by `retry_backoff_max_ms`.
async fn ask_for_producer_id(shared: Rc<Shared>) {
    let (mut backoff_ms, most_ms) = {
        let core = shared.core.borrow();
        let config = core.config();
        (config.retry_backoff_ms.max(1), config.retry_backoff_max_ms.max(config.retry_backoff_ms).max(1))
    };
    while !shared.stopped.get() {
        match producer_id(&shared.client).await {
            Ok((id, epoch)) => {
                shared.core.borrow_mut().producer_id(id, epoch);
                break;
            }
            Err(error) if is_final(&error) => {
                shared.core.borrow_mut().stop(&error, clock::now_ms());
                break;
            }
            Err(_) => {
                clock::sleep_until_ms(clock::now_ms() + backoff_ms).await;
                backoff_ms = (backoff_ms * 2).min(most_ms);
            }
        }
    }
    shared.asking_for_id.set(false);
    shared.settle();
    shared.work.notify();
}

async fn producer_id(client: &Client) -> Result<(i64, i16), ClientError> {
    let request = InitProducerIdRequest {
        transactional_id: None,
        transaction_timeout_ms: i32::MAX,
        ..InitProducerIdRequest::default()
    };
    let answer = client.ask(Destination::Any, None, &request).await?;
    let response = answer.decode()?;
    ClientError::check(response.error_code, "a producer id")?;
    if response.producer_id < 0 || response.producer_epoch < 0 {
        let reason = format!("{} with epoch {} is no producer id", response.producer_id, response.producer_epoch);
        return Err(ClientError::BadAnswer { reason });
    }
    Ok((response.producer_id, response.producer_epoch))
}

fn is_final(error: &ClientError) -> bool {
    match error {
        ClientError::UnsupportedApi { .. } | ClientError::BadRequest { .. } | ClientError::Closed => true,
        ClientError::Broker { code, .. } => matches!(
            code,
            ErrorCode::ClusterAuthorizationFailed
                | ErrorCode::TransactionalIdAuthorizationFailed
                | ErrorCode::UnsupportedVersion
                | ErrorCode::InvalidRequest
                | ErrorCode::InvalidTransactionTimeout
        ),
        _ => false,
    }
}
