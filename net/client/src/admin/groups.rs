//! Consumer groups and their members, classic ones and those of the newer protocol.

use std::rc::Rc;

use model::ErrorCode;
use wire::generated::consumer_group_describe::{self, ConsumerGroupDescribeRequest};
use wire::generated::delete_groups::DeleteGroupsRequest;
use wire::generated::describe_groups::{DescribeGroupsRequest, DescribedGroup, DescribedGroupMember};
use wire::generated::list_groups::ListGroupsRequest;

use super::coordinator::at_coordinators;
use super::retry::{each, whole};
use super::{Admin, Each, owned};
use crate::consumer_protocol::{Assignment, Subscription};
use crate::{ClientError, Destination, TopicPartition};

const CONSUMER: &str = "consumer";
const DEAD: &str = "Dead";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupListing {
    pub group_id: String,
    /// "consumer" for consumers; empty for a group that has only commits.
    pub protocol_type: String,
    /// Empty where an old broker does not say.
    pub state: String,
    /// "classic", "consumer"..; empty where an old broker does not say.
    pub group_type: String,
    pub coordinator: i32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDescription {
    pub group_id: String,
    pub state: String,
    pub protocol_type: String,
    /// The assignor, once the group has chosen one.
    pub protocol: String,
    pub coordinator: i32,
    pub members: Vec<MemberDescription>,
    /// Whether the members speak the classic protocol.
    pub is_classic: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDescription {
    pub member_id: String,
    /// Of a static member.
    pub group_instance_id: Option<String>,
    pub client_id: String,
    pub host: String,
    /// What it subscribes to; empty for members that are no consumers, and while the group rebalances.
    pub topics: Vec<String>,
    /// The same of what it was given.
    pub assignment: Vec<TopicPartition>,
}

impl Admin {
    /// The groups of every broker, by name.
    pub async fn list_groups(&self) -> Result<Vec<GroupListing>, ClientError> {
        let cluster = whole(&self.client, async || self.client.refresh().await).await?;
        let nodes: Vec<i32> = cluster.brokers.keys().copied().collect();
        let lists = each(&self.client, &nodes, async |nodes: &[i32]| {
            let lists = nodes.iter().map(async |node| (*node, self.groups_of(*node).await)).collect();
            Ok(runtime::sync::all(lists).await)
        })
        .await?;
        let mut groups = Vec::new();
        for (_, list) in lists {
            groups.extend(list?);
        }
        groups.sort_by(|a, b| a.group_id.cmp(&b.group_id));
        groups.dedup_by(|a, b| a.group_id == b.group_id);
        Ok(groups)
    }

    async fn groups_of(&self, node: i32) -> Result<Vec<GroupListing>, ClientError> {
        let answer = self.client.ask(Destination::Node(node), None, &ListGroupsRequest::default()).await?;
        let answer = answer.decode()?;
        ClientError::check(answer.error_code, format!("listing the groups of node {node}"))?;
        let one = |group: &wire::generated::list_groups::ListedGroup<'_>| GroupListing {
            group_id: group.group_id.to_string(),
            protocol_type: group.protocol_type.to_string(),
            state: group.group_state.to_string(),
            group_type: group.group_type.to_string(),
            coordinator: node,
        };
        Ok(answer.groups.iter().map(one).collect())
    }

    /// Groups with their members. A group that does not exist is error GroupIdNotFound.
    pub async fn describe_groups(&self, groups: &[&str]) -> Result<Each<String, GroupDescription>, ClientError> {
        let names: Vec<String> = groups.iter().map(|name| name.to_string()).collect();
        at_coordinators(&self.client, &names, async |node, groups: &[String]| {
            let request = DescribeGroupsRequest {
                groups: groups.iter().map(String::as_str).collect(),
                ..DescribeGroupsRequest::default()
            };
            let answer = self.client.ask(Destination::Node(node), None, &request).await?;
            let answer = answer.decode()?;
            let mut results: Each<String, GroupDescription> =
                answer.groups.iter().map(|group| (group.group_id.to_string(), classic(group, node))).collect();
            for (group, result) in &mut results {
                if result.as_ref().is_err_and(|error| error.code() == Some(ErrorCode::GroupIdNotFound)) {
                    self.try_newer(node, group, result).await;
                }
            }
            Ok(results)
        })
        .await
    }

    /// A group of the newer protocol is unknown to DescribeGroups.
    async fn try_newer(&self, node: i32, group: &str, result: &mut Result<GroupDescription, ClientError>) {
        let request =
            ConsumerGroupDescribeRequest { group_ids: vec![group], ..ConsumerGroupDescribeRequest::default() };
        let Ok(answer) = self.client.ask(Destination::Node(node), None, &request).await else { return };
        if let Ok(answer) = answer.decode()
            && let Some(described) = answer.groups.first()
            && described.error_code != ErrorCode::GroupIdNotFound.code()
        {
            *result = newer(described, node);
        }
    }

    /// Deletes groups that have no members.
    pub async fn delete_groups(&self, groups: &[&str]) -> Result<Each<String, ()>, ClientError> {
        let names: Vec<String> = groups.iter().map(|name| name.to_string()).collect();
        at_coordinators(&self.client, &names, async |node, groups: &[String]| {
            let request = DeleteGroupsRequest { groups_names: groups.iter().map(String::as_str).collect() };
            let answer = self.client.ask(Destination::Node(node), None, &request).await?;
            let answer = answer.decode()?;
            let one = |one: &wire::generated::delete_groups::DeletableGroupResult<'_>| {
                let message = owned(&one.error_message);
                let what = format!("deleting group {}", one.group_id);
                (one.group_id.to_string(), ClientError::check_with(one.error_code, what, message.as_deref()))
            };
            Ok(answer.results.iter().map(one).collect())
        })
        .await
    }
}

/// Before version 6 a group that does not exist is a dead one without members.
fn classic(group: &DescribedGroup<'_>, node: i32) -> Result<GroupDescription, ClientError> {
    let what = format!("describing group {}", group.group_id);
    let message = owned(&group.error_message);
    ClientError::check_with(group.error_code, what.clone(), message.as_deref())?;
    if group.group_state == DEAD {
        return Err(ClientError::Broker { code: ErrorCode::GroupIdNotFound, what, message: None });
    }
    let is_consumer = group.protocol_type == CONSUMER;
    Ok(GroupDescription {
        group_id: group.group_id.to_string(),
        state: group.group_state.to_string(),
        protocol_type: group.protocol_type.to_string(),
        protocol: group.protocol_data.to_string(),
        coordinator: node,
        members: group.members.iter().map(|member| classic_member(member, is_consumer)).collect(),
        is_classic: true,
    })
}

/// What a member wrote is its own affair: what cannot be read is shown as nothing, not as an error of the group.
fn classic_member(member: &DescribedGroupMember<'_>, is_consumer: bool) -> MemberDescription {
    let subscription = Subscription::decode(&member.member_metadata).ok().filter(|_| is_consumer).unwrap_or_default();
    let assignment = Assignment::decode(&member.member_assignment).ok().filter(|_| is_consumer).unwrap_or_default();
    MemberDescription {
        member_id: member.member_id.to_string(),
        group_instance_id: owned(&member.group_instance_id),
        client_id: member.client_id.to_string(),
        host: member.client_host.to_string(),
        topics: subscription.topics.iter().map(|topic| topic.to_string()).collect(),
        assignment: assignment.partitions,
    }
}

fn newer(group: &consumer_group_describe::DescribedGroup<'_>, node: i32) -> Result<GroupDescription, ClientError> {
    let message = owned(&group.error_message);
    let what = format!("describing group {}", group.group_id);
    ClientError::check_with(group.error_code, what, message.as_deref())?;
    let member = |member: &consumer_group_describe::Member<'_>| {
        let mut assignment = Vec::new();
        for topic in &member.assignment.topic_partitions {
            let name: Rc<str> = (&*topic.topic_name).into();
            let partitions = topic.partitions.iter();
            assignment.extend(partitions.map(|index| TopicPartition { topic: name.clone(), partition: *index }));
        }
        MemberDescription {
            member_id: member.member_id.to_string(),
            group_instance_id: owned(&member.instance_id),
            client_id: member.client_id.to_string(),
            host: member.client_host.to_string(),
            topics: member.subscribed_topic_names.iter().map(|topic| topic.to_string()).collect(),
            assignment,
        }
    };
    Ok(GroupDescription {
        group_id: group.group_id.to_string(),
        state: group.group_state.to_string(),
        protocol_type: CONSUMER.to_string(),
        protocol: group.assignor_name.to_string(),
        coordinator: node,
        members: group.members.iter().map(member).collect(),
        is_classic: false,
    })
}
