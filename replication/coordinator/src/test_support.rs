//! A driver for tests: virtual time, a log in memory, and the rule that every ticket is answered once.
#![allow(clippy::unwrap_used)]

use crate::*;
use bytes::Bytes;
use model::{ErrorCode, LeaderEpoch, Offset, TopicId};
use std::collections::{BTreeMap, VecDeque};

pub(crate) const WALL_START_MS: i64 = 1_700_000_000_000;

pub(crate) struct Harness {
    pub(crate) c: GroupCoordinator,
    pub(crate) mono_ms: i64,
    pub(crate) log: Vec<RecordBytes>,
    pub(crate) replies: BTreeMap<Ticket, Response>,
    pub(crate) appends: VecDeque<(AppendId, Vec<RecordBytes>)>,
    /// Appends succeed at once.
    pub(crate) auto: bool,
    next: u64,
}

impl Harness {
    pub(crate) fn new() -> Harness {
        Harness::with(CoordinatorConfig::default())
    }

    pub(crate) fn with(config: CoordinatorConfig) -> Harness {
        Harness::load(config, Vec::new(), 0)
    }

    pub(crate) fn load(config: CoordinatorConfig, log: Vec<RecordBytes>, mono_ms: i64) -> Harness {
        let mut c = GroupCoordinator::new(config);
        for (key, value) in &log {
            c.replay(key, value.as_deref()).unwrap();
        }
        let (replies, appends) = (BTreeMap::new(), VecDeque::new());
        let mut h = Harness { c, mono_ms, log, replies, appends, auto: true, next: 1 };
        h.c.finish_loading(h.now());
        h.pump();
        h
    }

    /// The coordinator as a restart would find it.
    pub(crate) fn restarted(&self) -> Harness {
        Harness::load(self.c.cx.config.clone(), self.log.clone(), self.mono_ms)
    }

    pub(crate) fn now(&self) -> Now {
        Now { monotonic_ms: self.mono_ms, wall_ms: WALL_START_MS + self.mono_ms }
    }

    pub(crate) fn ticket(&mut self) -> Ticket {
        self.next += 1;
        Ticket(self.next)
    }

    pub(crate) fn pump(&mut self) {
        while let Some(effect) = self.c.poll_effect() {
            match effect {
                Effect::Reply { ticket, response } => {
                    assert!(self.replies.insert(ticket, response).is_none(), "{ticket:?} is answered twice");
                }
                Effect::Append { append_id, records } => {
                    self.appends.push_back((append_id, records));
                    if self.auto {
                        self.finish_append(Ok(()));
                    }
                }
            }
        }
        self.c.check();
    }

    /// Reports the oldest append.
    pub(crate) fn finish_append(&mut self, result: Result<(), ErrorCode>) {
        let (id, records) = self.appends.pop_front().expect("an append is in flight");
        if result.is_ok() {
            self.log.extend(records);
        }
        self.c.append_done(self.now(), id, result);
        self.pump();
    }

    pub(crate) fn advance(&mut self, ms: i64) {
        let end = self.mono_ms + ms;
        while let Some(deadline) = self.c.next_deadline_ms().filter(|d| *d <= end) {
            self.mono_ms = self.mono_ms.max(deadline);
            self.c.on_timer(self.now());
            self.pump();
        }
        self.mono_ms = end;
    }

    /// Lets the rebalances under way come to their end, and no more time pass than that takes.
    pub(crate) fn settle(&mut self) {
        while self.c.groups.values().any(|g| g.state == GroupState::PreparingRebalance) {
            let deadline = self.c.next_deadline_ms().expect("a rebalance has a timer");
            self.advance((deadline - self.mono_ms).max(0));
        }
    }

    pub(crate) fn join_with(&mut self, request: JoinRequest) -> Ticket {
        let ticket = self.ticket();
        self.c.join(self.now(), ticket, request);
        self.pump();
        ticket
    }

    pub(crate) fn join_reply(&self, ticket: Ticket) -> JoinResponse {
        match self.replies.get(&ticket) {
            Some(Response::Join(response)) => response.clone(),
            other => panic!("{ticket:?} is not answered with a join: {other:?}"),
        }
    }

    pub(crate) fn sync_reply(&self, ticket: Ticket) -> SyncResponse {
        match self.replies.get(&ticket) {
            Some(Response::Sync(response)) => response.clone(),
            other => panic!("{ticket:?} is not answered with a sync: {other:?}"),
        }
    }

    /// Both steps of a dynamic member's first join.
    pub(crate) fn join_new(&mut self, group: &str, client: &str) -> (String, Ticket) {
        self.join_new_with(join(group, client, ""))
    }

    pub(crate) fn join_new_with(&mut self, mut request: JoinRequest) -> (String, Ticket) {
        self.next += 1;
        request.random = u128::from(self.next);
        let first = self.join_with(request.clone());
        let first = self.join_reply(first);
        assert_eq!(first.error, ErrorCode::MemberIdRequired);
        request.member_id = first.member_id.to_string();
        let ticket = self.join_with(request);
        (first.member_id.to_string(), ticket)
    }

    pub(crate) fn sync_with(&mut self, request: SyncRequest) -> Ticket {
        let ticket = self.ticket();
        self.c.sync(self.now(), ticket, request);
        self.pump();
        ticket
    }

    pub(crate) fn heartbeat(&mut self, group: &str, member: &str, generation_id: i32) -> ErrorCode {
        let request = HeartbeatRequest { group_id: group, generation_id, member_id: member, group_instance_id: None };
        let now = self.now();
        let error = self.c.heartbeat(now, request);
        self.pump();
        error
    }

    pub(crate) fn leave(&mut self, group: &str, members: &[(&str, Option<&str>)]) -> Ticket {
        let members = members
            .iter()
            .map(|(id, instance)| LeavingMember {
                member_id: (*id).to_owned(),
                group_instance_id: instance.map(str::to_owned),
            })
            .collect();
        let ticket = self.ticket();
        self.c.leave(self.now(), ticket, LeaveRequest { group_id: group.to_owned(), members });
        self.pump();
        ticket
    }

    pub(crate) fn leave_errors(&self, ticket: Ticket) -> Vec<ErrorCode> {
        match self.replies.get(&ticket) {
            Some(Response::Leave(l)) if l.error == ErrorCode::None => l.members.iter().map(|m| m.error).collect(),
            Some(Response::Leave(l)) => vec![l.error],
            other => panic!("{ticket:?} is not answered with a leave: {other:?}"),
        }
    }

    pub(crate) fn commit_with(&mut self, request: CommitRequest) -> Ticket {
        let ticket = self.ticket();
        self.c.commit(self.now(), ticket, request);
        self.pump();
        ticket
    }

    /// Commits partition 0 of "t" and answers with its error.
    pub(crate) fn commit(&mut self, group: &str, member: &str, generation_id: i32, offset: i64) -> ErrorCode {
        let ticket = self.commit_with(commit(group, member, generation_id, offset));
        self.commit_error(ticket)
    }

    pub(crate) fn commit_error(&self, ticket: Ticket) -> ErrorCode {
        match self.replies.get(&ticket) {
            Some(Response::Commit(topics)) => topics[0].partitions[0].1,
            other => panic!("{ticket:?} is not answered with a commit: {other:?}"),
        }
    }

    /// The committed offset of partition 0 of "t", -1 for none.
    pub(crate) fn committed(&self, group: &str) -> i64 {
        let topic = FetchTopic { name: "t".into(), topic_id: TopicId::ZERO, partitions: vec![0] };
        self.c.fetch_offsets(group, Some(&[topic])).unwrap()[0].partitions[0].offset.0
    }

    pub(crate) fn delete_groups(&mut self, groups: &[&str]) -> Ticket {
        let ticket = self.ticket();
        self.c.delete_groups(self.now(), ticket, groups.iter().map(|g| (*g).to_owned()).collect());
        self.pump();
        ticket
    }

    pub(crate) fn delete_errors(&self, ticket: Ticket) -> Vec<ErrorCode> {
        match self.replies.get(&ticket) {
            Some(Response::DeleteGroups(groups)) => groups.iter().map(|g| g.1).collect(),
            other => panic!("{ticket:?} is not answered with a deletion: {other:?}"),
        }
    }

    pub(crate) fn delete_offsets(&mut self, group: &str, topics: &[(&str, &[i32])]) -> Ticket {
        let ticket = self.ticket();
        let topics = topics.iter().map(|(t, p)| ((*t).to_owned(), p.to_vec())).collect();
        self.c.delete_offsets(self.now(), ticket, DeleteOffsetsRequest { group_id: group.to_owned(), topics });
        self.pump();
        ticket
    }

    pub(crate) fn state(&self, group: &str) -> Option<GroupState> {
        self.c.describe(group).unwrap().map(|d| d.state)
    }

    /// A stable group of so many dynamic members. The first is the leader; assignments are `assigned-<member id>`.
    pub(crate) fn stable(&mut self, group: &str, count: usize) -> Vec<String> {
        let joins: Vec<(String, Ticket)> = (0..count).map(|i| self.join_new(group, &format!("c{i}"))).collect();
        self.settle();
        let ids: Vec<String> = joins.iter().map(|(id, _)| id.clone()).collect();
        let generation = self.join_reply(joins[0].1).generation_id;
        self.sync_all(group, generation, &ids);
        assert_eq!(self.state(group), Some(GroupState::Stable));
        ids
    }

    /// Everybody syncs; the first mentioned must be the leader.
    pub(crate) fn sync_all(&mut self, group: &str, generation: i32, ids: &[String]) -> Vec<Ticket> {
        let mut tickets: Vec<Ticket> =
            ids[1..].iter().map(|id| self.sync_with(sync(group, id, generation, &[]))).collect();
        let all: Vec<&str> = ids.iter().map(String::as_str).collect();
        tickets.insert(0, self.sync_with(sync(group, &ids[0], generation, &all)));
        tickets
    }
}

/// Metadata of Kafka's consumer protocol, version 1, subscribed to these topics.
pub(crate) fn subscription(topics: &[&str]) -> Bytes {
    let mut out = vec![0, 1];
    out.extend((topics.len() as i32).to_be_bytes());
    for topic in topics {
        out.extend((topic.len() as i16).to_be_bytes());
        out.extend(topic.as_bytes());
    }
    out.extend([0xff; 4]);
    out.extend([0; 4]);
    Bytes::from(out)
}

pub(crate) fn protocol(name: &str, metadata: Bytes) -> Protocol {
    Protocol { name: name.to_owned(), metadata }
}

pub(crate) fn join(group: &str, client: &str, member_id: &str) -> JoinRequest {
    JoinRequest {
        group_id: group.to_owned(),
        member_id: member_id.to_owned(),
        group_instance_id: None,
        client_id: client.to_owned(),
        client_host: "/127.0.0.1".to_owned(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 30_000,
        protocol_type: "consumer".to_owned(),
        protocols: vec![protocol("range", subscription(&["t"]))],
        requires_known_member_id: true,
        supports_skip_assignment: true,
        random: 0,
    }
}

pub(crate) fn static_join(group: &str, instance: &str, member_id: &str, random: u128) -> JoinRequest {
    JoinRequest { group_instance_id: Some(instance.to_owned()), random, ..join(group, "s", member_id) }
}

pub(crate) fn sync(group: &str, member: &str, generation_id: i32, assigned: &[&str]) -> SyncRequest {
    let assignments = assigned.iter().map(|id| ((*id).to_owned(), Bytes::from(format!("assigned-{id}"))));
    SyncRequest {
        group_id: group.to_owned(),
        generation_id,
        member_id: member.to_owned(),
        group_instance_id: None,
        protocol_type: Some("consumer".to_owned()),
        protocol_name: Some("range".to_owned()),
        assignments: assignments.collect(),
    }
}

pub(crate) fn commit(group: &str, member: &str, generation_id: i32, offset: i64) -> CommitRequest {
    commit_topic(group, member, generation_id, "t", TopicId::ZERO, &[(0, offset)])
}

pub(crate) fn commit_topic(
    group: &str,
    member: &str,
    generation_id: i32,
    topic: &str,
    topic_id: TopicId,
    partitions: &[(i32, i64)],
) -> CommitRequest {
    let partitions = partitions.iter().map(|(partition, offset)| CommitPartition {
        partition: *partition,
        offset: Offset(*offset),
        leader_epoch: LeaderEpoch(3),
        metadata: Some("note".to_owned()),
    });
    CommitRequest {
        group_id: group.to_owned(),
        generation_id,
        member_id: member.to_owned(),
        group_instance_id: None,
        retention_time_ms: -1,
        topics: vec![CommitTopic { name: topic.to_owned(), topic_id, partitions: partitions.collect() }],
    }
}
