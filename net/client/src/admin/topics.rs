//! Topics and partitions.

use std::rc::Rc;

use model::ErrorCode;
use wire::generated::create_partitions::{CreatePartitionsRequest, CreatePartitionsTopic};
use wire::generated::create_topics::{CreatableTopic, CreatableTopicConfig, CreatableTopicResult, CreateTopicsRequest};
use wire::generated::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use wire::generated::metadata::{MetadataRequest, MetadataRequestTopic};

use super::retry::{each, whole};
use super::{Admin, Each, owned};
use crate::cluster::Asked;
use crate::{ClientError, Cluster, Destination, Topic};

/// A topic to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTopic {
    pub name: String,
    /// -1: the broker's default.
    pub partitions: i32,
    /// -1: the broker's default.
    pub replication_factor: i16,
    pub configs: Vec<(String, String)>,
}

impl NewTopic {
    /// With the broker's defaults.
    pub fn new(name: &str) -> NewTopic {
        NewTopic { name: name.to_string(), partitions: -1, replication_factor: -1, configs: Vec::new() }
    }
}

/// A topic that was made. -1 where an old broker does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedTopic {
    pub id: [u8; 16],
    pub partitions: i32,
    pub replication_factor: i16,
}

impl Admin {
    /// Makes topics, or only says whether it could (`validate_only`).
    pub async fn create_topics(
        &self,
        topics: &[NewTopic],
        validate_only: bool,
    ) -> Result<Each<String, CreatedTopic>, ClientError> {
        let names: Vec<String> = topics.iter().map(|topic| topic.name.clone()).collect();
        each(&self.client, &names, async |names: &[String]| {
            let wanted = topics.iter().filter(|topic| names.contains(&topic.name));
            let topics = wanted.map(creatable).collect();
            let request = CreateTopicsRequest { topics, timeout_ms: self.timeout_ms(), validate_only };
            let answer = self.client.ask(Destination::Controller, None, &request).await?;
            Ok(answer.decode()?.topics.iter().map(|topic| (topic.name.to_string(), created(topic))).collect())
        })
        .await
    }

    pub async fn delete_topics(&self, topics: &[&str]) -> Result<Each<String, ()>, ClientError> {
        let names: Vec<String> = topics.iter().map(|name| name.to_string()).collect();
        each(&self.client, &names, async |names: &[String]| {
            let states = names.iter().map(|name| DeleteTopicState { name: Some(name), ..DeleteTopicState::default() });
            let timeout_ms = self.timeout_ms();
            let request = DeleteTopicsRequest { topics: states.collect(), topic_names: Vec::new(), timeout_ms };
            let answer = match self.client.ask(Destination::Controller, Some(6..=6), &request).await {
                Err(ClientError::UnsupportedApi { .. }) => {
                    let topic_names = names.iter().map(String::as_str).collect();
                    let request = DeleteTopicsRequest { topics: Vec::new(), topic_names, timeout_ms };
                    self.client.ask(Destination::Controller, Some(1..=5), &request).await?
                }
                other => other?,
            };
            let answer = answer.decode()?;
            let one = |one: &wire::generated::delete_topics::DeletableTopicResult<'_>| {
                let name = one.name.as_deref().unwrap_or_default().to_string();
                let message = owned(&one.error_message);
                let result = topic_error(&name, "deleting", one.error_code, message.as_deref());
                (name, result)
            };
            Ok(answer.responses.iter().map(one).collect())
        })
        .await
    }

    /// Topics with their partitions, leaders and replicas. None is made by asking.
    pub async fn describe_topics(&self, topics: &[&str]) -> Result<Each<String, Topic>, ClientError> {
        let names: Vec<String> = topics.iter().map(|name| name.to_string()).collect();
        each(&self.client, &names, async |names: &[String]| {
            let asked = Asked::These(names.iter().map(|name| Rc::from(name.as_str())).collect());
            let cluster = self.metadata(&asked).await?;
            Ok(names.iter().map(|name| (name.clone(), described(&cluster, name))).collect())
        })
        .await
    }

    /// All topics, by name; those that the broker cannot describe at the moment are left out.
    pub async fn list_topics(&self) -> Result<Vec<Topic>, ClientError> {
        let cluster = whole(&self.client, async || self.metadata(&Asked::All).await).await?;
        Ok(cluster.topics.into_values().collect())
    }

    /// Raises the number of partitions of each topic to the number beside it.
    pub async fn create_partitions(
        &self,
        topics: &[(&str, i32)],
        validate_only: bool,
    ) -> Result<Each<String, ()>, ClientError> {
        let names: Vec<String> = topics.iter().map(|(name, _)| name.to_string()).collect();
        each(&self.client, &names, async |names: &[String]| {
            let wanted = topics.iter().filter(|(name, _)| names.iter().any(|one| one == name));
            let topics = wanted.map(|(name, count)| CreatePartitionsTopic { name, count: *count, assignments: None });
            let request =
                CreatePartitionsRequest { topics: topics.collect(), timeout_ms: self.timeout_ms(), validate_only };
            let answer = self.client.ask(Destination::Controller, None, &request).await?;
            let answer = answer.decode()?;
            let one = |one: &wire::generated::create_partitions::CreatePartitionsTopicResult<'_>| {
                let message = owned(&one.error_message);
                let result = topic_error(&one.name, "adding partitions to", one.error_code, message.as_deref());
                (one.name.to_string(), result)
            };
            Ok(answer.results.iter().map(one).collect())
        })
        .await
    }

    /// A moment of the cluster that leaves the client's own knowledge and watched topics alone.
    pub(super) async fn metadata(&self, asked: &Asked) -> Result<Cluster, ClientError> {
        let topics = match asked {
            Asked::All => None,
            Asked::These(names) => {
                let by_name = |name| MetadataRequestTopic { name: Some(name), ..MetadataRequestTopic::default() };
                Some(names.iter().map(|name| by_name(&**name)).collect())
            }
        };
        let request = MetadataRequest { topics, allow_auto_topic_creation: false, ..MetadataRequest::default() };
        let answer = self.client.ask(Destination::Any, Some(4..=13), &request).await?;
        let answer = answer.decode()?;
        ClientError::check(answer.error_code, "asking for topics")?;
        Cluster::default().merged(asked, &answer)
    }
}

fn creatable(topic: &NewTopic) -> CreatableTopic<'_> {
    let configs = topic.configs.iter().map(|(name, value)| CreatableTopicConfig { name, value: Some(value) });
    CreatableTopic {
        name: &topic.name,
        num_partitions: topic.partitions,
        replication_factor: topic.replication_factor,
        assignments: Vec::new(),
        configs: configs.collect(),
    }
}

fn created(answer: &CreatableTopicResult<'_>) -> Result<CreatedTopic, ClientError> {
    let message = owned(&answer.error_message);
    ClientError::check_with(answer.error_code, format!("creating topic {}", answer.name), message.as_deref())?;
    Ok(CreatedTopic {
        id: answer.topic_id,
        partitions: answer.num_partitions,
        replication_factor: answer.replication_factor,
    })
}

fn topic_error(topic: &str, doing: &str, code: i16, message: Option<&str>) -> Result<(), ClientError> {
    if code == ErrorCode::UnknownTopicOrPartition.code() {
        return Err(ClientError::UnknownTopic { topic: topic.to_string() });
    }
    ClientError::check_with(code, format!("{doing} topic {topic}"), message)
}

pub(super) fn described(cluster: &Cluster, name: &str) -> Result<Topic, ClientError> {
    if let Some(code) = cluster.failed_topics.get(name) {
        topic_error(name, "describing", *code, None)?;
    }
    cluster.topic(name).cloned().ok_or_else(|| ClientError::UnknownTopic { topic: name.to_string() })
}
