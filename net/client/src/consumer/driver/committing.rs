//! Moves commits, and finds the coordinator that they go to.

use std::rc::Rc;

use runtime::clock::{now_ms, sleep_until_ms};
use runtime::sync::before;
use runtime::{TaskHandle, spawn};
use wire::generated::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse};

use super::Inner;
use crate::client::Destination;
use crate::consumer::commit::{self, Commit, CommitFate, Committer, Fetched, Offsets};
use crate::consumer::group::Identity;
use crate::consumer::limits;
use crate::{ClientError, TopicPartition};

/// Several groups in one question; before it, one.
const FIND_VERSIONS: std::ops::RangeInclusive<i16> = 4..=6;
const OLD_FIND_VERSIONS: std::ops::RangeInclusive<i16> = 1..=3;

impl Inner {
    /// The node that keeps our group, asked for if it is not known.
    pub async fn coordinator(&self) -> Result<i32, ClientError> {
        if let Some(known) = self.group.borrow().coordinator() {
            return Ok(known);
        }
        let found = self.find_coordinator().await?;
        self.group.borrow_mut().coordinator_found(found);
        Ok(found)
    }

    pub(super) async fn find_coordinator(&self) -> Result<i32, ClientError> {
        let group_id = self.group_id()?;
        let request = FindCoordinatorRequest { coordinator_keys: vec![group_id], ..FindCoordinatorRequest::default() };
        let answer = match self.client.ask(Destination::Any, Some(FIND_VERSIONS), &request).await {
            Err(ClientError::UnsupportedApi { .. }) => {
                let request = FindCoordinatorRequest { key: group_id, ..FindCoordinatorRequest::default() };
                self.client.ask(Destination::Any, Some(OLD_FIND_VERSIONS), &request).await?
            }
            other => other?,
        };
        let node = coordinator_of(&answer.decode()?, group_id)?;
        if !self.client.cluster().brokers.contains_key(&node) {
            // It may have joined the cluster since we last looked.
            self.client.refresh().await?;
        }
        Ok(node)
    }

    pub(super) async fn fetch_committed_once(&self, partitions: &[TopicPartition]) -> Result<Fetched, ClientError> {
        let to = self.coordinator().await?;
        let group_id = self.group_id()?;
        let request = commit::fetch_request(group_id, partitions, false, true);
        let answer = match self.client.ask(Destination::Node(to), Some(commit::FETCH_VERSIONS), &request).await {
            Err(ClientError::UnsupportedApi { .. }) => {
                let request = commit::fetch_request(group_id, partitions, true, false);
                self.client.ask(Destination::Node(to), Some(commit::OLD_FETCH_VERSIONS), &request).await
            }
            other => other,
        };
        let fetched = answer.and_then(|answer| answer.decode().and_then(|answer| commit::fetch_outcome(&answer)));
        if let Err(error) = &fetched
            && commit::commit_fate(error) == CommitFate::RetryElsewhere
        {
            self.group.borrow_mut().coordinator_lost(to);
        }
        fetched
    }

    /// Committed offsets, retried until `default_api_timeout_ms`.
    pub async fn fetch_committed(&self, partitions: &[TopicPartition]) -> Result<Offsets, ClientError> {
        let after_ms = self.client.config().default_api_timeout_ms;
        let deadline_ms = now_ms() + after_ms;
        loop {
            let fetched = self.fetch_committed_once(partitions).await;
            let outcome = fetched.and_then(|fetched| commit::offsets_of(fetched, partitions));
            let is_late = now_ms() >= deadline_ms;
            match outcome {
                Ok(Some(offsets)) => return Ok(offsets),
                Ok(None) if is_late => {
                    return Err(ClientError::TimedOut { what: "fetching committed offsets", after_ms });
                }
                Err(error) if is_late || commit::commit_fate(&error) == CommitFate::Failed => return Err(error),
                _ => sleep_until_ms(self.backoff_until_ms()).await,
            }
        }
    }

    /// Whether `committer` is who we (still) are, and may commit.
    fn check_committer(&self, committer: &Committer) -> Result<(), ClientError> {
        let group = self.group.borrow();
        let now = group.committer();
        if group.is_member() && now.0 < 0 {
            // As nobody it might pass, over the head of whoever has the partitions now.
            let what = "committing: the group has given this member's partitions to others".to_string();
            return Err(ClientError::Broker { code: model::ErrorCode::UnknownMemberId, what, message: None });
        }
        if now == *committer { Ok(()) } else { Err(commit::outlived()) }
    }

    async fn commit_once(&self, commit: &Commit) -> Result<(), ClientError> {
        let coordinator = self.coordinator().await?;
        self.check_committer(&commit.committer)?;
        let is_member = commit.committer.0 >= 0;
        let instance_id = self.config.group_instance_id.as_deref().filter(|_| is_member);
        let request = commit::commit_request(self.group_id()?, instance_id, commit);
        let answer = self.client.ask(Destination::Node(coordinator), Some(commit::COMMIT_VERSIONS), &request).await;
        let outcome = answer.and_then(|answer| answer.decode().and_then(|answer| commit::commit_outcome(&answer)));
        if let Err(error) = &outcome {
            self.commit_failed(coordinator, &commit.committer, error);
        }
        outcome
    }

    fn commit_failed(&self, coordinator: i32, committer: &Committer, error: &ClientError) {
        use model::ErrorCode::{FencedInstanceId, IllegalGeneration, RebalanceInProgress, UnknownMemberId};
        let mut group = self.group.borrow_mut();
        if commit::commit_fate(error) == CommitFate::RetryElsewhere {
            group.coordinator_lost(coordinator);
        }
        let is_about_us =
            matches!(error.code(), Some(FencedInstanceId | IllegalGeneration | RebalanceInProgress | UnknownMemberId));
        // In the midst of a rebalance it is about a generation that is over anyway; the rebalance settles who we are.
        if is_about_us && !group.is_rebalancing() && committer.0 >= 0 && group.committer() == *committer {
            let identity = Identity { coordinator, generation: committer.0, member_id: committer.1.clone() };
            group.request_failed(&identity, error.clone(), now_ms());
        }
    }

    /// Commits, retried until `deadline_ms` (and then until the last try is answered). The caller has the right to send.
    async fn commit_until(&self, commit: &Commit, deadline_ms: i64) -> Result<(), ClientError> {
        if commit.offsets.is_empty() {
            return Ok(());
        }
        loop {
            match self.commit_once(commit).await {
                Err(error) if commit::commit_fate(&error) != CommitFate::Failed && now_ms() < deadline_ms => {
                    sleep_until_ms(self.backoff_until_ms().min(deadline_ms)).await;
                }
                other => return other,
            }
        }
    }

    /// Commits behind what is under way, and waits, `timeout_ms` at most. What is begun goes on when waiting ends, and
    /// keeps the right to send: which of two commits came last has to stay known.
    pub async fn commit_and_wait(self: &Rc<Inner>, offsets: Offsets, timeout_ms: i64) -> Result<(), ClientError> {
        self.group_id()?;
        let deadline_ms = now_ms() + timeout_ms;
        let late = ClientError::TimedOut { what: "a commit", after_ms: timeout_ms };
        let committer = self.group.borrow().committer();
        loop {
            let seen = self.wake.version();
            if !offsets.is_empty() {
                self.check_committer(&committer)?;
            }
            let now = self.group.borrow().committer();
            let begun = self.commits.borrow_mut().begin(&now, &offsets);
            if let Some(commit) = begun {
                let task = self.begin_commit(commit, deadline_ms);
                return match before(deadline_ms, task.join()).await {
                    Some(outcome) => outcome.unwrap_or(Err(ClientError::Closed)),
                    None => Err(late),
                };
            }
            if now_ms() >= deadline_ms {
                return Err(late);
            }
            let _ = before(deadline_ms, self.wake.changed_since(seen)).await;
        }
    }

    /// Sends in a task of its own, which has the right to.
    fn begin_commit(self: &Rc<Inner>, commit: Commit, deadline_ms: i64) -> TaskHandle<Result<(), ClientError>> {
        let inner = self.clone();
        spawn("consumer-commit", async move {
            let outcome = inner.commit_until(&commit, deadline_ms).await;
            inner.commits.borrow_mut().end(Ok(()));
            inner.send_commits();
            inner.wake();
            outcome
        })
    }

    pub fn commit_later(self: &Rc<Inner>, offsets: Offsets) -> Result<(), ClientError> {
        self.group_id()?;
        let committer = self.group.borrow().committer();
        self.commits.borrow_mut().push(committer, offsets);
        self.send_commits();
        Ok(())
    }

    /// Begins to send what waits, unless something is under way (which then goes on with it).
    fn send_commits(self: &Rc<Inner>) {
        let Some(commit) = self.commits.borrow_mut().begin_waiting() else { return };
        let inner = self.clone();
        let deadline_ms = now_ms() + self.client.config().default_api_timeout_ms;
        spawn("consumer-commit-async", async move {
            let outcome = inner.commit_until(&commit, deadline_ms).await;
            if outcome.is_err() {
                inner.commits.borrow_mut().auto_failed();
            }
            inner.commits.borrow_mut().end(outcome);
            inner.send_commits();
            inner.wake();
        });
    }

    pub(super) fn commit_if_due(self: &Rc<Inner>) {
        // It was committed before the rebalance began, and will be after it; in between it would be refused.
        let can_commit = self.config.commits_automatically() && !self.group.borrow().is_rebalancing();
        if !can_commit || !self.commits.borrow_mut().auto_due(now_ms()) {
            return;
        }
        self.commit_consumed();
    }

    /// An automatic commit in the background, where they are made and something moved since the last.
    pub fn commit_consumed(self: &Rc<Inner>) {
        if !self.config.commits_automatically() {
            return;
        }
        let offsets = commit::consumed(&self.fetcher.borrow());
        if self.commits.borrow_mut().auto_changed(&offsets) {
            let committer = self.group.borrow().committer();
            self.commits.borrow_mut().push(committer, offsets);
            self.send_commits();
        }
    }

    /// Before partitions go: what was read of them, for a member that commits automatically. A failure is kept for
    /// `last_commit_error`; the group does not wait for it any longer.
    pub(super) async fn commit_before_release(self: &Rc<Inner>, of: &[TopicPartition]) {
        if !self.config.commits_automatically() {
            return;
        }
        let mut offsets = commit::consumed(&self.fetcher.borrow());
        offsets.retain(|partition, _| of.contains(partition));
        if offsets.is_empty() {
            return;
        }
        let outcome = self.commit_and_wait(offsets, limits::RELEASE_COMMIT_TIMEOUT_MS).await;
        if let Err(error) = outcome {
            self.commits.borrow_mut().note_error(error);
        }
    }

    /// Waits for what the program queued while it was told that partitions go.
    pub async fn flush_commits(&self, deadline_ms: i64) {
        loop {
            let seen = self.wake.version();
            if self.commits.borrow().is_idle() || now_ms() >= deadline_ms {
                return;
            }
            let _ = before(deadline_ms, self.wake.changed_since(seen)).await;
        }
    }
}

fn coordinator_of(answer: &FindCoordinatorResponse<'_>, group_id: &str) -> Result<i32, ClientError> {
    let what = || format!("finding the coordinator of group {group_id}");
    ClientError::check_with(answer.error_code, what(), answer.error_message.as_deref())?;
    match answer.coordinators.first() {
        Some(found) => {
            ClientError::check_with(found.error_code, what(), found.error_message.as_deref())?;
            Ok(found.node_id)
        }
        None => Ok(answer.node_id),
    }
}
