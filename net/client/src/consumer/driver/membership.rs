//! Moves the group's requests, tells the listener, and keeps the heartbeats.

use std::collections::BTreeSet;
use std::rc::Rc;

use model::ErrorCode;
use runtime::clock::now_ms;
use runtime::spawn;
use runtime::sync::before;
use wire::generated::heartbeat::HeartbeatRequest;
use wire::generated::join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse};
use wire::generated::leave_group::{LeaveGroupRequest, MemberIdentity};
use wire::generated::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment};

use super::Inner;
use crate::client::Destination;
use crate::consumer::assignor::{Assignments, AssignorKind, Member};
use crate::consumer::group::{Beat, Identity, JoinAnswer, Release, Step};
use crate::consumer::{RebalanceListener, limits};
use crate::consumer_protocol::{Assignment, Subscription};
use crate::{ClientError, TopicPartition};

const PROTOCOL_TYPE: &str = "consumer";
/// From 3 on LeaveGroup names members.
const LEAVE_VERSIONS: std::ops::RangeInclusive<i16> = 3..=5;

impl Inner {
    /// Every step that is due. Requests go out in tasks of their own; commits before partitions go are waited for.
    pub(super) async fn advance_membership(self: &Rc<Inner>) -> Result<(), ClientError> {
        loop {
            let step = self.group.borrow_mut().next_step(now_ms());
            match step {
                Step::Wait => return Ok(()),
                Step::Fail(error) => return Err(error),
                Step::FindCoordinator => self.begin_finding(),
                Step::Release(how) => self.release(how).await,
                Step::Join(identity) => {
                    let inner = self.clone();
                    spawn("consumer-join", async move { inner.join(identity).await });
                }
                Step::Sync { identity, assignor, members } => {
                    let inner = self.clone();
                    spawn("consumer-sync", async move { inner.sync(identity, assignor, members).await });
                }
                Step::HandOver(partitions) => self.hand_over(partitions).await,
            }
        }
    }

    fn begin_finding(self: &Rc<Inner>) {
        let inner = self.clone();
        spawn("consumer-coordinator", async move {
            let found = inner.find_coordinator().await;
            match found {
                Ok(node) => inner.group.borrow_mut().coordinator_found(node),
                Err(error) => inner.group.borrow_mut().coordinator_not_found(error, now_ms()),
            }
            inner.wake();
        });
    }

    pub fn owned(&self) -> Vec<TopicPartition> {
        self.fetcher.borrow().positions.iter().map(|(partition, _)| partition.clone()).collect()
    }

    /// The listener is out of its cell while it is told something, so that it may use the consumer.
    fn tell(&self, what: impl FnOnce(&mut dyn RebalanceListener)) {
        let taken = self.listener.borrow_mut().take();
        if let Some(mut listener) = taken {
            what(&mut *listener);
            let mut cell = self.listener.borrow_mut();
            if cell.is_none() {
                *cell = Some(listener);
            }
        }
    }

    /// Lets go before a join. Up to the last commit nothing has changed, so a poll that is given up midway does this
    /// again from the start.
    async fn release(self: &Rc<Inner>, how: Release) {
        let deadline_ms = now_ms() + limits::RELEASE_COMMIT_TIMEOUT_MS;
        let owned = self.owned();
        if how == Release::Revoke {
            self.commit_before_release(&owned).await;
        }
        let (is_cooperative, has_lost) = {
            let group = self.group.borrow();
            (group.is_cooperative(), group.has_lost())
        };
        // The commit may be what told us that the group has forgotten this member.
        let how = if has_lost { Release::Lost } else { how };
        let gone: Vec<TopicPartition> = match how {
            Release::Revoke if is_cooperative => {
                let source = self.source.borrow();
                let wants = |one: &&TopicPartition| source.topics().is_some_and(|all| all.contains(&one.topic));
                owned.iter().filter(|one| !wants(one)).cloned().collect()
            }
            _ => owned.clone(),
        };
        self.let_go(&owned, &gone, how);
        self.group.borrow_mut().released();
        self.flush_commits(deadline_ms).await;
    }

    fn let_go(&self, owned: &[TopicPartition], gone: &[TopicPartition], how: Release) {
        if gone.is_empty() {
            return;
        }
        let kept: Vec<TopicPartition> = owned.iter().filter(|one| !gone.contains(one)).cloned().collect();
        self.fetcher.borrow_mut().assign(kept);
        self.tell(|listener| match how {
            Release::Revoke => listener.revoked(gone),
            Release::Lost => listener.lost(gone),
        });
    }

    async fn hand_over(self: &Rc<Inner>, partitions: Vec<TopicPartition>) {
        let deadline_ms = now_ms() + limits::RELEASE_COMMIT_TIMEOUT_MS;
        let owned: BTreeSet<TopicPartition> = self.owned().into_iter().collect();
        let wanted: BTreeSet<TopicPartition> = partitions.into_iter().collect();
        let gone: Vec<TopicPartition> = owned.difference(&wanted).cloned().collect();
        let added: Vec<TopicPartition> = wanted.difference(&owned).cloned().collect();
        self.commit_before_release(&gone).await;
        let topics: BTreeSet<&str> = wanted.iter().map(|partition| &*partition.topic).collect();
        self.client.watch_topics(&topics.into_iter().collect::<Vec<_>>());
        self.fetcher.borrow_mut().assign(wanted);
        if !gone.is_empty() {
            self.tell(|listener| listener.revoked(&gone));
        }
        self.tell(|listener| listener.assigned(&added));
        // Before this nobody else gets what we let go of, so what the listener committed is in time.
        self.group.borrow_mut().handed_over(!gone.is_empty());
        self.flush_commits(deadline_ms).await;
    }

    fn subscriptions(&self) -> Vec<(AssignorKind, Subscription)> {
        let topics = self.source.borrow().topics().cloned().unwrap_or_default();
        *self.joined_topics.borrow_mut() = topics.clone();
        let group = self.group.borrow();
        let owned = self.owned();
        let (previous, generation) = group.previous();
        let one = |kind: AssignorKind| {
            let subscription = Subscription {
                topics: topics.iter().cloned().collect(),
                user_data: kind.user_data(previous, generation),
                owned_partitions: owned.clone(),
                generation_id: if owned.is_empty() { -1 } else { generation },
                rack_id: self.config.client_rack.as_deref().map(Rc::from),
            };
            (kind, subscription)
        };
        group.assignors().iter().copied().map(one).collect()
    }

    async fn join(&self, identity: Identity) {
        let answer = self.join_once(&identity).await;
        if let Ok(Joined::As(joined)) = &answer
            && self.group.borrow().is_orphan(&joined.member_id)
        {
            let orphan = Identity { member_id: joined.member_id.clone(), ..identity };
            let _ = self.say_goodbye(&orphan, "the program left while it was joining").await;
            self.group.borrow_mut().join_ended();
            self.wake();
            return;
        }
        let mut group = self.group.borrow_mut();
        match answer {
            Ok(Joined::As(answer)) => group.join_answered(&identity, Ok(answer), now_ms()),
            Ok(Joined::GivenId(member_id)) => group.member_id_given(&member_id),
            Err(error) => group.join_answered(&identity, Err(error), now_ms()),
        }
        drop(group);
        self.wake();
    }

    async fn join_once(&self, identity: &Identity) -> Result<Joined, ClientError> {
        let protocols = self.subscriptions();
        let request = JoinGroupRequest {
            group_id: self.group_id()?,
            session_timeout_ms: self.config.session_timeout_ms,
            rebalance_timeout_ms: self.config.max_poll_interval_ms,
            member_id: &identity.member_id,
            group_instance_id: self.config.group_instance_id.as_deref(),
            protocol_type: PROTOCOL_TYPE,
            protocols: protocols
                .iter()
                .map(|(kind, subscription)| JoinGroupRequestProtocol {
                    name: kind.name(),
                    metadata: subscription.encode(),
                })
                .collect(),
            reason: None,
        };
        let patience_ms = i64::from(self.config.max_poll_interval_ms).saturating_add(limits::JOIN_GRACE_MS);
        let timeout_ms = self.client.config().request_timeout_ms.max(patience_ms);
        let to = Destination::Node(identity.coordinator);
        let answer = self.client.ask_within(to, None, &request, timeout_ms).await?;
        joined(&answer.decode()?, self.group_id()?)
    }

    async fn sync(&self, identity: Identity, assignor: AssignorKind, members: Option<Vec<Member>>) {
        let answer = self.sync_once(&identity, assignor, members).await;
        self.group.borrow_mut().sync_answered(&identity, answer, now_ms());
        self.wake();
    }

    async fn sync_once(
        &self,
        identity: &Identity,
        assignor: AssignorKind,
        members: Option<Vec<Member>>,
    ) -> Result<Vec<TopicPartition>, ClientError> {
        let assignments = match members {
            Some(members) => self.spread(assignor, members).await?,
            None => {
                *self.spread.borrow_mut() = None;
                Assignments::new()
            }
        };
        let request = SyncGroupRequest {
            group_id: self.group_id()?,
            generation_id: identity.generation,
            member_id: &identity.member_id,
            group_instance_id: self.config.group_instance_id.as_deref(),
            protocol_type: Some(PROTOCOL_TYPE),
            protocol_name: Some(assignor.name()),
            assignments: assignments
                .iter()
                .map(|(member_id, partitions)| SyncGroupRequestAssignment {
                    member_id,
                    assignment: Assignment { partitions: partitions.clone(), user_data: None }.encode(),
                })
                .collect(),
        };
        let timeout_ms = self
            .client
            .config()
            .request_timeout_ms
            .max(i64::from(self.config.max_poll_interval_ms).saturating_add(limits::JOIN_GRACE_MS));
        let to = Destination::Node(identity.coordinator);
        let answer = self.client.ask_within(to, None, &request, timeout_ms).await?;
        let answer = answer.decode()?;
        ClientError::check(answer.error_code, format!("taking part in group {}", self.group_id()?))?;
        Ok(Assignment::decode(&answer.assignment)?.partitions)
    }

    /// As the leader: members may subscribe to topics that we never heard of, so the metadata is asked for first.
    async fn spread(&self, assignor: AssignorKind, members: Vec<Member>) -> Result<Assignments, ClientError> {
        let topics: BTreeSet<Rc<str>> = members.iter().flat_map(|member| member.topics.iter().cloned()).collect();
        let names: Vec<&str> = topics.iter().map(|topic| &**topic).collect();
        self.client.watch_topics(&names);
        self.client.refresh().await?;
        let counts = self.counts(&topics);
        let assignments = assignor.assign(&counts, &members);
        let with_missing = topics.iter().map(|topic| (topic.clone(), counts.get(topic).copied().unwrap_or(0)));
        *self.spread.borrow_mut() = Some(with_missing.collect());
        Ok(assignments)
    }

    /// Starts the task that keeps the membership alive; there is one.
    pub fn keep_alive(self: &Rc<Inner>) {
        if self.has_heartbeats.replace(true) {
            return;
        }
        let inner = self.clone();
        spawn("consumer-heartbeat", async move {
            while !inner.is_closed() {
                let seen = inner.ended.version();
                let beat = inner.group.borrow_mut().beat(now_ms());
                match beat {
                    Beat::Sleep { until_ms } => {
                        let until_ms = until_ms.max(now_ms() + 1);
                        let _ = before(until_ms, inner.ended.changed_since(seen)).await;
                    }
                    // Beside this task: a coordinator that is not found must not keep a program that is stuck unnoticed.
                    Beat::Find => inner.begin_finding(),
                    Beat::Send(identity) => inner.send_heartbeat(identity).await,
                    Beat::Leave(identity) => {
                        inner.wake();
                        let _ = inner.say_goodbye(&identity, "the program did not poll for too long").await;
                    }
                }
            }
        });
    }

    async fn send_heartbeat(&self, identity: Identity) {
        let outcome = self.heartbeat_once(&identity).await;
        let is_news = outcome.is_err();
        self.group.borrow_mut().beat_answered(&identity, outcome, now_ms());
        if is_news {
            self.wake();
        }
    }

    async fn heartbeat_once(&self, identity: &Identity) -> Result<(), ClientError> {
        let request = HeartbeatRequest {
            group_id: self.group_id()?,
            generation_id: identity.generation,
            member_id: &identity.member_id,
            group_instance_id: self.config.group_instance_id.as_deref(),
        };
        // An answer that takes longer than the session is worth nothing.
        let timeout_ms = self.client.config().request_timeout_ms.min(i64::from(self.config.session_timeout_ms));
        let answer =
            self.client.ask_within(Destination::Node(identity.coordinator), None, &request, timeout_ms).await?;
        ClientError::check(answer.decode()?.error_code, format!("the heartbeat of group {}", self.group_id()?))
    }

    pub async fn say_goodbye(&self, identity: &Identity, reason: &str) -> Result<(), ClientError> {
        let member = MemberIdentity { member_id: &identity.member_id, group_instance_id: None, reason: Some(reason) };
        let request =
            LeaveGroupRequest { group_id: self.group_id()?, members: vec![member], ..LeaveGroupRequest::default() };
        let to = Destination::Node(identity.coordinator);
        let timeout_ms = limits::LEAVE_TIMEOUT_MS;
        let answer = self.client.ask_within(to, Some(LEAVE_VERSIONS), &request, timeout_ms).await?;
        ClientError::check(answer.decode()?.error_code, "leaving the group")
    }

    /// A cooperative member reads on while it joins, but what it commits then may be refused: the coordinator can be a
    /// generation ahead. So that a member that ends leaves nothing to be read twice, it waits (not for ever) until it is
    /// told its part.
    async fn finish_rebalance(self: &Rc<Inner>) {
        let deadline_ms = now_ms() + limits::RELEASE_COMMIT_TIMEOUT_MS;
        while self.group.borrow().is_rebalancing() && now_ms() < deadline_ms {
            let seen = self.wake.version();
            let step = self.group.borrow_mut().next_step(now_ms());
            match step {
                Step::Sync { identity, assignor, members } => {
                    let inner = self.clone();
                    spawn("consumer-sync", async move { inner.sync(identity, assignor, members).await });
                }
                Step::FindCoordinator => self.begin_finding(),
                _ => {}
            }
            let nap_until_ms = deadline_ms.min(self.backoff_until_ms());
            let _ = before(nap_until_ms, self.wake.changed_since(seen)).await;
        }
        let given = self.group.borrow().given();
        if let Some(partitions) = given {
            self.hand_over(partitions).await;
        }
    }

    /// Ends the membership: commits, lets go, says goodbye.
    pub async fn leave_group(self: &Rc<Inner>, reason: &str) {
        if self.config.commits_automatically() && !self.owned().is_empty() {
            self.finish_rebalance().await;
        }
        let deadline_ms = now_ms() + limits::RELEASE_COMMIT_TIMEOUT_MS;
        let owned = self.owned();
        self.commit_before_release(&owned).await;
        let is_member = self.group.borrow().is_member();
        if is_member {
            let how = if self.group.borrow().has_lost() { Release::Lost } else { Release::Revoke };
            self.let_go(&owned, &owned, how);
            self.flush_commits(deadline_ms).await;
        }
        let goodbye = self.group.borrow_mut().leave();
        if let Some(identity) = goodbye {
            let _ = self.say_goodbye(&identity, reason).await;
        }
    }
}

enum Joined {
    As(JoinAnswer),
    GivenId(String),
}

fn joined(answer: &JoinGroupResponse<'_>, group_id: &str) -> Result<Joined, ClientError> {
    if answer.error_code == ErrorCode::MemberIdRequired.code() {
        return Ok(Joined::GivenId(answer.member_id.to_string()));
    }
    ClientError::check(answer.error_code, format!("joining group {group_id}"))?;
    Ok(Joined::As(JoinAnswer {
        generation: answer.generation_id,
        protocol: answer.protocol_name.as_deref().unwrap_or("").to_string(),
        leader: answer.leader.to_string(),
        skip_assignment: answer.skip_assignment,
        member_id: answer.member_id.to_string(),
        members: answer
            .members
            .iter()
            .map(|member| {
                let instance_id = member.group_instance_id.as_deref().map(str::to_string);
                (member.member_id.to_string(), instance_id, member.metadata.clone())
            })
            .collect(),
    }))
}
