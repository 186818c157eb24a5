//! Membership of a classic group, without I/O: what step is due, and what an answer means.
//!
//! ```text
//! Out -> Unreleased -> Ready -> Joining -> Joined -> Syncing -> Assigned -> Stable
//!            ^-------- rejoin (27, topics changed, partitions to let go of) ---'
//! ```
//!
//! The program's poll drives the steps, so partitions only ever change hands inside of a poll; heartbeats run beside it.
//! From `Unreleased` the only way on is `released()`: what is held is let go of before a JoinGroup goes out. A member that
//! the coordinator forgot (25, 22) comes through there too, with its partitions lost instead of revoked.

use model::ErrorCode;

use super::assignor::{AssignorKind, Member};
use super::config::ConsumerConfig;
use super::limits;
use crate::consumer_protocol::Subscription;
use crate::{ClientError, TopicPartition};

#[derive(Clone, Debug, PartialEq)]
enum Phase {
    Out,
    Unreleased,
    Ready,
    Joining,
    Joined { members: Option<Vec<Member>> },
    Syncing,
    Assigned(Vec<TopicPartition>),
    Stable,
    Fatal(ClientError),
}

/// How partitions go before a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// They are still ours: commit, then tell.
    Revoke,
    /// They may be somebody else's already: only tell.
    Lost,
}

/// What the driver has to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Nothing, until an answer or a time comes.
    Wait,
    FindCoordinator,
    Release(Release),
    Join(Identity),
    /// `members`: we lead, and have to spread the partitions over these.
    Sync {
        identity: Identity,
        assignor: AssignorKind,
        members: Option<Vec<Member>>,
    },
    HandOver(Vec<TopicPartition>),
    Fail(ClientError),
}

/// As whom a request is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub coordinator: i32,
    pub generation: i32,
    pub member_id: String,
}

/// What the task that keeps the membership alive does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beat {
    /// Look again then, or when something changed.
    Sleep {
        until_ms: i64,
    },
    Send(Identity),
    /// The coordinator is lost, and the next poll may be far away.
    Find,
    /// The program has not polled for too long: say goodbye.
    Leave(Identity),
}

/// A JoinGroup's good answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinAnswer {
    pub generation: i32,
    pub protocol: String,
    pub leader: String,
    pub skip_assignment: bool,
    pub member_id: String,
    /// Id, instance id, subscription's bytes.
    pub members: Vec<(String, Option<String>, bytes::Bytes)>,
}

#[derive(Debug)]
pub struct GroupCore {
    assignors: Vec<AssignorKind>,
    is_static: bool,
    is_cooperative: bool,
    max_poll_interval_ms: i64,
    heartbeat_interval_ms: i64,
    retry_backoff_ms: i64,
    phase: Phase,
    coordinator: Option<i32>,
    is_finding: bool,
    /// A JoinGroup is unanswered. It may be that of a membership that is over, so the next one waits until it is known
    /// what came of it.
    is_join_under_way: bool,
    member_id: String,
    generation: i32,
    assignor: Option<AssignorKind>,
    /// What was held goes as lost.
    has_lost: bool,
    is_beating: bool,
    is_leader: bool,
    retry_at_ms: i64,
    last_poll_ms: i64,
    last_beat_ms: i64,
    /// The last assignment and its generation: what a sticky member says it held.
    previous: (Vec<TopicPartition>, i32),
}

impl GroupCore {
    pub fn new(config: &ConsumerConfig, retry_backoff_ms: i64) -> GroupCore {
        GroupCore {
            assignors: config.partition_assignors.clone(),
            is_static: config.is_static(),
            is_cooperative: config.partition_assignors.iter().all(|kind| kind.is_cooperative()),
            max_poll_interval_ms: i64::from(config.max_poll_interval_ms),
            heartbeat_interval_ms: i64::from(config.heartbeat_interval_ms),
            retry_backoff_ms,
            phase: Phase::Out,
            coordinator: None,
            is_finding: false,
            is_join_under_way: false,
            member_id: String::new(),
            generation: -1,
            assignor: None,
            has_lost: false,
            is_beating: false,
            is_leader: false,
            retry_at_ms: 0,
            last_poll_ms: 0,
            last_beat_ms: 0,
            previous: (Vec::new(), -1),
        }
    }

    pub fn is_cooperative(&self) -> bool {
        self.is_cooperative
    }

    pub fn is_stable(&self) -> bool {
        self.phase == Phase::Stable
    }

    /// Between a JoinGroup and the assignment that comes of it: the coordinator may be a generation ahead of us.
    pub fn is_rebalancing(&self) -> bool {
        matches!(self.phase, Phase::Joining | Phase::Joined { .. } | Phase::Syncing)
    }

    /// An assignment that is not handed over yet.
    pub fn given(&self) -> Option<Vec<TopicPartition>> {
        match &self.phase {
            Phase::Assigned(partitions) => Some(partitions.clone()),
            _ => None,
        }
    }

    pub fn is_leader(&self) -> bool {
        self.is_leader
    }

    pub fn is_member(&self) -> bool {
        self.phase != Phase::Out
    }

    /// Whether what is held may be somebody else's already.
    pub fn has_lost(&self) -> bool {
        self.has_lost
    }

    /// Whether this id is of a membership that nobody here wants (any more): its join was answered too late.
    pub fn is_orphan(&self, member_id: &str) -> bool {
        self.phase != Phase::Joining && self.member_id != member_id && !self.is_static
    }

    pub fn coordinator(&self) -> Option<i32> {
        self.coordinator
    }

    pub fn assignors(&self) -> &[AssignorKind] {
        &self.assignors
    }

    pub fn previous(&self) -> (&[TopicPartition], i32) {
        (&self.previous.0, self.previous.1)
    }

    /// Whether fetching may go on: an eager member stops before it lets go.
    pub fn may_fetch(&self) -> bool {
        self.is_cooperative || matches!(self.phase, Phase::Out | Phase::Stable)
    }

    /// As whom offsets are committed: outside of a group's membership as nobody.
    pub fn committer(&self) -> (i32, String) {
        match self.phase {
            Phase::Out => (-1, String::new()),
            _ => (self.generation, self.member_id.clone()),
        }
    }

    fn identity(&self, coordinator: i32) -> Identity {
        Identity { coordinator, generation: self.generation, member_id: self.member_id.clone() }
    }

    /// Begins to be a member.
    pub fn enter(&mut self, now_ms: i64) {
        self.last_poll_ms = now_ms;
        if !matches!(self.phase, Phase::Joining | Phase::Syncing) {
            self.phase = Phase::Unreleased;
        }
    }

    /// Ends to be one. The identity to say goodbye with, where that is needed: static members stay, by design.
    pub fn leave(&mut self) -> Option<Identity> {
        let was_member = self.is_member() && !self.member_id.is_empty() && !self.is_static;
        let goodbye = self.coordinator.filter(|_| was_member).map(|coordinator| self.identity(coordinator));
        self.phase = Phase::Out;
        self.forget_member();
        self.has_lost = false;
        self.previous = (Vec::new(), -1);
        goodbye
    }

    pub fn polled(&mut self, now_ms: i64) {
        self.last_poll_ms = now_ms;
    }

    /// Something that members agree on changed here: topics, or partitions to let go of.
    pub fn want_rejoin(&mut self) {
        if self.phase == Phase::Stable {
            self.phase = Phase::Unreleased;
        }
    }

    /// What is due. Requests that it names are under way from here on.
    pub fn next_step(&mut self, now_ms: i64) -> Step {
        if let Phase::Fatal(error) = &self.phase {
            return Step::Fail(error.clone());
        }
        if self.phase == Phase::Out {
            return Step::Wait;
        }
        if self.phase == Phase::Unreleased {
            return Step::Release(if self.has_lost { Release::Lost } else { Release::Revoke });
        }
        if let Phase::Assigned(partitions) = &self.phase {
            return Step::HandOver(partitions.clone());
        }
        if self.is_finding || now_ms < self.retry_at_ms {
            return Step::Wait;
        }
        let Some(coordinator) = self.coordinator else {
            self.is_finding = true;
            return Step::FindCoordinator;
        };
        let identity = self.identity(coordinator);
        match (&mut self.phase, self.assignor) {
            (Phase::Ready, _) if !self.is_join_under_way => {
                self.phase = Phase::Joining;
                self.is_join_under_way = true;
                Step::Join(identity)
            }
            (Phase::Joined { members }, Some(assignor)) => {
                let members = members.take();
                self.phase = Phase::Syncing;
                Step::Sync { identity, assignor, members }
            }
            _ => Step::Wait,
        }
    }

    /// When `next_step` may have more to say by time alone.
    pub fn next_time_ms(&self, now_ms: i64) -> Option<i64> {
        (self.retry_at_ms > now_ms).then_some(self.retry_at_ms)
    }

    pub fn coordinator_found(&mut self, node: i32) {
        self.is_finding = false;
        self.coordinator = Some(node);
    }

    pub fn coordinator_not_found(&mut self, error: ClientError, now_ms: i64) {
        self.is_finding = false;
        self.retry_at_ms = now_ms + self.retry_backoff_ms;
        if matches!(error.code(), Some(ErrorCode::GroupAuthorizationFailed | ErrorCode::InvalidGroupId)) {
            self.fail(error);
        }
    }

    /// It is gone, or never was it: another is looked for. The membership lives on meanwhile.
    pub fn coordinator_lost(&mut self, coordinator: i32) {
        if self.coordinator == Some(coordinator) {
            self.coordinator = None;
        }
    }

    /// Everything that has to go before a join is gone.
    pub fn released(&mut self) {
        if self.phase == Phase::Unreleased {
            if self.has_lost {
                self.previous = (Vec::new(), -1);
            }
            self.has_lost = false;
            self.phase = Phase::Ready;
        }
    }

    /// Whatever the answer was: the next JoinGroup may go out.
    pub fn join_ended(&mut self) {
        self.is_join_under_way = false;
    }

    pub fn join_answered(&mut self, identity: &Identity, answer: Result<JoinAnswer, ClientError>, now_ms: i64) {
        self.join_ended();
        if self.phase != Phase::Joining {
            return;
        }
        match answer {
            Ok(answer) => self.joined(answer, now_ms),
            Err(error) => {
                self.phase = Phase::Ready;
                self.request_failed(identity, error, now_ms);
            }
        }
    }

    /// The coordinator gave an id to join with (79).
    pub fn member_id_given(&mut self, member_id: &str) {
        self.join_ended();
        if self.phase == Phase::Joining {
            self.member_id = member_id.to_string();
            self.phase = Phase::Ready;
        }
    }

    fn joined(&mut self, answer: JoinAnswer, now_ms: i64) {
        let chosen = self.assignors.iter().copied().find(|kind| kind.name() == answer.protocol);
        let Some(assignor) = chosen else {
            let reason = format!("the group chose assignor {}, which this member did not offer", answer.protocol);
            return self.fail(ClientError::BadAnswer { reason });
        };
        if answer.members.len() > limits::MAX_MEMBERS {
            let reason =
                format!("a group of {} members is over the limit of {}", answer.members.len(), limits::MAX_MEMBERS);
            return self.fail(ClientError::BadAnswer { reason });
        }
        self.assignor = Some(assignor);
        self.generation = answer.generation;
        self.is_leader = answer.leader == answer.member_id;
        self.member_id = answer.member_id;
        self.last_beat_ms = now_ms;
        let leads = self.is_leader && !answer.skip_assignment;
        let members = answer.members.iter().map(|(id, instance_id, bytes)| {
            // A subscription that cannot be read is one to nothing: the others need not suffer for it.
            let subscription = Subscription::decode(bytes).unwrap_or_default();
            assignor.member(id, instance_id.as_deref(), &subscription)
        });
        self.phase = Phase::Joined { members: leads.then(|| members.collect()) };
    }

    pub fn sync_answered(
        &mut self,
        identity: &Identity,
        answer: Result<Vec<TopicPartition>, ClientError>,
        now_ms: i64,
    ) {
        let is_ours = identity.generation == self.generation && identity.member_id == self.member_id;
        if self.phase != Phase::Syncing || !is_ours {
            return;
        }
        match answer {
            Ok(partitions) if partitions.len() > limits::MAX_ASSIGNED_PARTITIONS => {
                let reason = format!("an assignment of {} partitions is over the limit", partitions.len());
                self.fail(ClientError::BadAnswer { reason });
            }
            Ok(partitions) => self.phase = Phase::Assigned(partitions),
            Err(error) => {
                // The round is over for us, whatever the reason: the next one begins with a join.
                self.phase = Phase::Unreleased;
                self.request_failed(identity, error, now_ms);
            }
        }
    }

    /// The program has its partitions. `has_let_go`: of some that others wait for.
    pub fn handed_over(&mut self, has_let_go: bool) {
        if let Phase::Assigned(partitions) = &mut self.phase {
            self.previous = (std::mem::take(partitions), self.generation);
            self.phase = if has_let_go { Phase::Unreleased } else { Phase::Stable };
        }
    }

    /// The next doing of the heartbeat task.
    pub fn beat(&mut self, now_ms: i64) -> Beat {
        let lives = matches!(
            self.phase,
            Phase::Stable
                | Phase::Joined { .. }
                | Phase::Syncing
                | Phase::Assigned(_)
                | Phase::Unreleased
                | Phase::Ready
        ) && self.generation >= 0;
        if !lives || self.is_beating {
            return Beat::Sleep { until_ms: now_ms + self.heartbeat_interval_ms };
        }
        let poll_until_ms = self.last_poll_ms.saturating_add(self.max_poll_interval_ms);
        if now_ms > poll_until_ms {
            return self.expire(now_ms);
        }
        let due_ms = self.last_beat_ms + self.heartbeat_interval_ms;
        match self.coordinator {
            Some(coordinator) if now_ms >= due_ms => {
                self.is_beating = true;
                self.last_beat_ms = now_ms;
                Beat::Send(self.identity(coordinator))
            }
            Some(_) => Beat::Sleep { until_ms: due_ms.min(poll_until_ms + 1) },
            None if self.is_finding || now_ms < self.retry_at_ms => {
                let again_ms = self.retry_at_ms.max(now_ms + self.retry_backoff_ms);
                Beat::Sleep { until_ms: again_ms.min(poll_until_ms + 1) }
            }
            None => {
                self.is_finding = true;
                Beat::Find
            }
        }
    }

    /// The program is stuck or slow: others take over. The next poll finds its partitions lost and joins anew.
    fn expire(&mut self, now_ms: i64) -> Beat {
        let goodbye = self.coordinator.filter(|_| !self.is_static).map(|coordinator| self.identity(coordinator));
        self.forget_member();
        self.has_lost = true;
        self.phase = Phase::Unreleased;
        goodbye.map_or(Beat::Sleep { until_ms: now_ms + self.heartbeat_interval_ms }, Beat::Leave)
    }

    pub fn beat_answered(&mut self, identity: &Identity, answer: Result<(), ClientError>, now_ms: i64) {
        self.is_beating = false;
        let is_ours = identity.generation == self.generation && identity.member_id == self.member_id;
        let Err(error) = answer else { return };
        if is_ours && self.is_member() {
            self.request_failed(identity, error, now_ms);
        }
    }

    /// An error that a request made as `identity` met with; commits tell theirs as well.
    pub fn request_failed(&mut self, identity: &Identity, error: ClientError, now_ms: i64) {
        if super::is_broken(&error) {
            self.coordinator_lost(identity.coordinator);
            self.retry_at_ms = now_ms + self.retry_backoff_ms;
            return;
        }
        match error.code() {
            Some(ErrorCode::RebalanceInProgress) => self.want_rejoin(),
            Some(ErrorCode::UnknownMemberId | ErrorCode::IllegalGeneration) => {
                self.forget_member();
                self.has_lost = true;
                if !matches!(self.phase, Phase::Out | Phase::Fatal(_)) {
                    self.phase = Phase::Unreleased;
                }
            }
            Some(ErrorCode::NotCoordinator | ErrorCode::CoordinatorNotAvailable) => {
                self.coordinator_lost(identity.coordinator);
                self.retry_at_ms = now_ms + self.retry_backoff_ms;
            }
            Some(ErrorCode::CoordinatorLoadInProgress | ErrorCode::RequestTimedOut | ErrorCode::NetworkException) => {
                self.retry_at_ms = now_ms + self.retry_backoff_ms
            }
            _ => self.fail(error),
        }
    }

    fn forget_member(&mut self) {
        self.member_id.clear();
        self.generation = -1;
        self.is_leader = false;
    }

    fn fail(&mut self, error: ClientError) {
        self.phase = Phase::Fatal(error);
    }
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
