//! Consumer groups by hand: a classic member's requests, and a group's offsets.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use kafka_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, FindCoordinatorRequest, GroupId, HeartbeatRequest, JoinGroupRequest,
    JoinGroupResponse, LeaveGroupRequest, OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest,
    SyncGroupRequest, describe_groups_response::DescribedGroup,
};

use bytes::{BufMut, Bytes, BytesMut};

use crate::Broker;
use crate::raw::Raw;
use crate::requests::{text, topic_name, until};

const MEMBER_ID_REQUIRED: i16 = 79;
const JOIN: i16 = 9;

pub fn group_id(name: &str) -> GroupId {
    GroupId(text(name))
}

/// The error of a search for a coordinator; key type 0 is a group, 1 a transaction, 2 a share group.
pub fn find_coordinator(raw: &mut Raw, key: &str, key_type: i8) -> i16 {
    let request = FindCoordinatorRequest::default().with_key_type(key_type).with_coordinator_keys(vec![text(key)]);
    raw.call(6, &request).coordinators[0].error_code
}

/// Waits until the group has a coordinator that has loaded it.
#[track_caller]
pub fn ready(raw: &mut Raw, group: &str) {
    until("the group has a coordinator", || (find_coordinator(raw, group, 0) == 0).then_some(()));
    until("the coordinator has loaded the group", || (describe(raw, 5, group).error_code == 0).then_some(()));
}

/// One member of a classic group, on a connection of its own.
pub struct Member {
    pub raw: Raw,
    pub group: String,
    pub id: String,
    pub generation: i32,
    pub instance: Option<String>,
    pub session_timeout_ms: i32,
    topic: String,
}

impl Member {
    /// Ready to join; waits until the group has a coordinator.
    #[track_caller]
    pub fn new(broker: &Broker, group: &str, topic: &str) -> Self {
        let mut raw = Raw::connect(broker);
        ready(&mut raw, group);
        let (group, topic) = (group.to_owned(), topic.to_owned());
        Member { raw, group, id: String::new(), generation: -1, instance: None, session_timeout_ms: 10_000, topic }
    }

    pub fn with_instance(mut self, instance: &str) -> Self {
        self.instance = Some(instance.to_owned());
        self
    }

    fn join_request(&self) -> JoinGroupRequest {
        let protocol =
            JoinGroupRequestProtocol::default().with_name(text("range")).with_metadata(subscription(&self.topic));
        JoinGroupRequest::default()
            .with_group_id(group_id(&self.group))
            .with_session_timeout_ms(self.session_timeout_ms)
            .with_rebalance_timeout_ms(10_000)
            .with_member_id(text(&self.id))
            .with_group_instance_id(self.instance.as_deref().map(text))
            .with_protocol_type(text("consumer"))
            .with_protocols(vec![protocol])
    }

    /// The first half of a join: everything up to the answer that waits for the others.
    pub fn begin_join(&mut self) {
        if self.id.is_empty() && self.instance.is_none() {
            let answer = self.raw.call(JOIN, &self.join_request());
            assert_eq!(answer.error_code, MEMBER_ID_REQUIRED, "a new member is given its id first");
            self.id = answer.member_id.to_string();
        }
        let request = self.join_request();
        self.raw.send(JOIN, &request);
    }

    /// The second half.
    pub fn end_join(&mut self) -> JoinGroupResponse {
        let (_, answer) = self.raw.receive::<JoinGroupRequest>(JOIN);
        if answer.error_code == 0 {
            self.id = answer.member_id.to_string();
            self.generation = answer.generation_id;
        }
        answer
    }

    pub fn join(&mut self) -> JoinGroupResponse {
        self.begin_join();
        self.end_join()
    }

    fn sync_request(&self, assignments: &[(&str, &[u8])]) -> SyncGroupRequest {
        let assignment = |(member, bytes): &(&str, &[u8])| {
            SyncGroupRequestAssignment::default()
                .with_member_id(text(member))
                .with_assignment(Bytes::copy_from_slice(bytes))
        };
        SyncGroupRequest::default()
            .with_group_id(group_id(&self.group))
            .with_generation_id(self.generation)
            .with_member_id(text(&self.id))
            .with_group_instance_id(self.instance.as_deref().map(text))
            .with_protocol_type(Some(text("consumer")))
            .with_protocol_name(Some(text("range")))
            .with_assignments(assignments.iter().map(assignment).collect())
    }

    /// The error code and the assignment.
    pub fn sync(&mut self, assignments: &[(&str, &[u8])]) -> (i16, Bytes) {
        let request = self.sync_request(assignments);
        let answer = self.raw.call(5, &request);
        (answer.error_code, answer.assignment)
    }

    /// Joins alone and takes everything.
    #[track_caller]
    pub fn settle(&mut self) {
        let joined = self.join();
        assert_eq!((joined.error_code, &*joined.leader), (0, &*self.id), "a lone member leads");
        let id = self.id.clone();
        assert_eq!(self.sync(&[(&id, b"all of it")]), (0, Bytes::from_static(b"all of it")));
    }

    pub fn heartbeat(&mut self) -> i16 {
        let request = HeartbeatRequest::default()
            .with_group_id(group_id(&self.group))
            .with_generation_id(self.generation)
            .with_member_id(text(&self.id))
            .with_group_instance_id(self.instance.as_deref().map(text));
        self.raw.call(4, &request).error_code
    }

    pub fn leave(&mut self) -> i16 {
        let member = MemberIdentity::default()
            .with_member_id(text(&self.id))
            .with_group_instance_id(self.instance.as_deref().map(text));
        let request = LeaveGroupRequest::default().with_group_id(group_id(&self.group)).with_members(vec![member]);
        let answer = self.raw.call(5, &request);
        if answer.error_code == 0 { answer.members[0].error_code } else { answer.error_code }
    }

    pub fn commit(&mut self, topic: &str, offset: i64) -> i16 {
        let commit =
            Commit { generation: self.generation, member: &self.id, ..Commit::new(&self.group, topic, offset) };
        commit.send(&mut self.raw)
    }
}

/// What a consumer's protocol metadata says: version 0, one topic, no user data.
fn subscription(topic: &str) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i16(0);
    out.put_i32(1);
    out.put_i16(topic.len() as i16);
    out.put_slice(topic.as_bytes());
    out.put_i32(-1);
    out.freeze()
}

/// A commit for partition 0; by default that of a consumer which manages its partitions itself.
#[derive(Clone)]
pub struct Commit<'a> {
    pub group: &'a str,
    pub generation: i32,
    pub member: &'a str,
    pub topic: &'a str,
    pub partition: i32,
    pub offset: i64,
    pub metadata: Option<&'a str>,
}

impl<'a> Commit<'a> {
    pub fn new(group: &'a str, topic: &'a str, offset: i64) -> Self {
        Commit { group, generation: -1, member: "", topic, partition: 0, offset, metadata: Some("") }
    }

    pub fn send(&self, raw: &mut Raw) -> i16 {
        raw.call(8, &self.request()).topics[0].partitions[0].error_code
    }

    /// None where the connection broke.
    pub fn try_send(&self, raw: &mut Raw) -> Option<i16> {
        Some(raw.try_call(8, &self.request())?.topics[0].partitions[0].error_code)
    }

    fn request(&self) -> OffsetCommitRequest {
        let partition = OffsetCommitRequestPartition::default()
            .with_partition_index(self.partition)
            .with_committed_offset(self.offset)
            .with_committed_leader_epoch(-1)
            .with_committed_metadata(self.metadata.map(text));
        let topic =
            OffsetCommitRequestTopic::default().with_name(topic_name(self.topic)).with_partitions(vec![partition]);
        OffsetCommitRequest::default()
            .with_group_id(group_id(self.group))
            .with_generation_id_or_member_epoch(self.generation)
            .with_member_id(text(self.member))
            .with_topics(vec![topic])
    }
}

/// The offset and metadata that a group has committed for partition 0; -1 where it has none.
pub fn committed(raw: &mut Raw, group: &str, topic: &str) -> (i64, Option<String>) {
    let topics = vec![OffsetFetchRequestTopics::default().with_name(topic_name(topic)).with_partition_indexes(vec![0])];
    let wanted = OffsetFetchRequestGroup::default()
        .with_group_id(group_id(group))
        .with_member_id(None)
        .with_member_epoch(-1)
        .with_topics(Some(topics));
    let request = OffsetFetchRequest::default().with_groups(vec![wanted]);
    let answer = until("the coordinator has loaded the group", || {
        let group = raw.call(8, &request).groups.remove(0);
        (group.error_code == 0).then_some(group)
    });
    let partition = &answer.topics[0].partitions[0];
    (partition.committed_offset, partition.metadata.as_ref().map(ToString::to_string))
}

pub fn describe(raw: &mut Raw, version: i16, group: &str) -> DescribedGroup {
    raw.call(version, &DescribeGroupsRequest::default().with_groups(vec![group_id(group)])).groups.remove(0)
}

pub fn delete_group(raw: &mut Raw, group: &str) -> i16 {
    raw.call(2, &DeleteGroupsRequest::default().with_groups_names(vec![group_id(group)])).results[0].error_code
}

/// The error for the whole request, or else that of partition 0.
pub fn delete_offset(raw: &mut Raw, group: &str, topic: &str) -> i16 {
    let partitions = vec![OffsetDeleteRequestPartition::default().with_partition_index(0)];
    let topic = OffsetDeleteRequestTopic::default().with_name(topic_name(topic)).with_partitions(partitions);
    let request = OffsetDeleteRequest::default().with_group_id(group_id(group)).with_topics(vec![topic]);
    let answer = raw.call(0, &request);
    if answer.error_code == 0 { answer.topics[0].partitions[0].error_code } else { answer.error_code }
}

/// Commits rising offsets over and over, whatever happens to the connection; the last acknowledged and attempted.
pub fn commit_until(stop: &AtomicBool, port: u16, group: &str, topic: &str) -> (i64, i64) {
    let (mut acknowledged, mut attempted) = (0, 0);
    let mut connection = None;
    while !stop.load(Ordering::Relaxed) {
        let Some(raw) = connection.as_mut() else {
            connection = Raw::try_connect_to(port);
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        attempted += 1;
        match Commit::new(group, topic, attempted).try_send(raw) {
            Some(0) => acknowledged = attempted,
            Some(_) => {} // Loading after a start.
            None => connection = None,
        }
    }
    (acknowledged, attempted)
}
