//! Configurations of topics, brokers and groups.

use std::collections::BTreeMap;

use model::ErrorCode;
use wire::generated::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResult,
};
use wire::generated::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};

use super::retry::each;
use super::{Admin, Each, owned};
use crate::{ClientError, Destination};

/// Whose configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigResource {
    Topic(String),
    Broker(i32),
    /// What holds for every broker that has no value of its own.
    AllBrokers,
    Group(String),
}

impl ConfigResource {
    fn number(&self) -> i8 {
        match self {
            ConfigResource::Topic(_) => 2,
            ConfigResource::Broker(_) | ConfigResource::AllBrokers => 4,
            ConfigResource::Group(_) => 32,
        }
    }

    fn name(&self) -> String {
        match self {
            ConfigResource::Topic(name) | ConfigResource::Group(name) => name.clone(),
            ConfigResource::Broker(node) => node.to_string(),
            ConfigResource::AllBrokers => String::new(),
        }
    }

    /// A broker's own configuration is known to that broker only.
    fn destination(&self) -> Destination {
        match self {
            ConfigResource::Broker(node) => Destination::Node(*node),
            _ => Destination::Any,
        }
    }

    fn check(&self, doing: &str, code: i16, message: Option<&str>) -> Result<(), ClientError> {
        if let ConfigResource::Topic(topic) = self
            && code == ErrorCode::UnknownTopicOrPartition.code()
        {
            return Err(ClientError::UnknownTopic { topic: topic.clone() });
        }
        ClientError::check_with(code, format!("{doing} the configuration of {}", self.label()), message)
    }

    fn label(&self) -> String {
        match self {
            ConfigResource::Topic(name) => format!("topic {name}"),
            ConfigResource::Broker(node) => format!("broker {node}"),
            ConfigResource::AllBrokers => "all brokers".to_string(),
            ConfigResource::Group(name) => format!("group {name}"),
        }
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigSource {
    Topic,
    Broker,
    AllBrokers,
    /// The broker's file or command line.
    Static,
    Default,
    Group,
    Other(i8),
}

impl ConfigSource {
    fn from_number(number: i8) -> ConfigSource {
        match number {
            1 => ConfigSource::Topic,
            2 => ConfigSource::Broker,
            3 => ConfigSource::AllBrokers,
            4 => ConfigSource::Static,
            5 => ConfigSource::Default,
            8 => ConfigSource::Group,
            other => ConfigSource::Other(other),
        }
    }
}

/// What a value looks like; `Unknown` where an old broker does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigType {
    Unknown,
    Boolean,
    String,
    Int,
    Short,
    Long,
    Double,
    List,
    Class,
    Password,
}

impl ConfigType {
    fn from_number(number: i8) -> ConfigType {
        match number {
            1 => ConfigType::Boolean,
            2 => ConfigType::String,
            3 => ConfigType::Int,
            4 => ConfigType::Short,
            5 => ConfigType::Long,
            6 => ConfigType::Double,
            7 => ConfigType::List,
            8 => ConfigType::Class,
            9 => ConfigType::Password,
            _ => ConfigType::Unknown,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEntry {
    pub name: String,
    /// `None` for a sensitive value, too.
    pub value: Option<String>,
    pub source: ConfigSource,
    pub is_default: bool,
    pub read_only: bool,
    pub sensitive: bool,
    pub config_type: ConfigType,
    pub documentation: Option<String>,
}

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigChange {
    pub name: String,
    pub operation: ConfigOperation,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigOperation {
    Set(String),
    /// Back to what holds without it.
    Delete,
    /// For lists.
    Append(String),
    /// For lists.
    Subtract(String),
}

impl Admin {
    /// All keys of each resource, by name.
    pub async fn describe_configs(
        &self,
        resources: &[ConfigResource],
        include_documentation: bool,
    ) -> Result<Each<ConfigResource, Vec<ConfigEntry>>, ClientError> {
        let versions = if include_documentation { 3..=4 } else { 1..=4 };
        each(&self.client, resources, async |resources: &[ConfigResource]| {
            let mut results = Vec::new();
            for (to, resources) in by_destination(resources) {
                let names: Vec<String> = resources.iter().map(|one| one.name()).collect();
                let asked = resources.iter().zip(&names).map(|(resource, name)| DescribeConfigsResource {
                    resource_type: resource.number(),
                    resource_name: name,
                    configuration_keys: None,
                });
                let request = DescribeConfigsRequest {
                    resources: asked.collect(),
                    include_synonyms: false,
                    include_documentation,
                };
                match self.client.ask(to, Some(versions.clone()), &request).await {
                    Ok(answer) => results.extend(described(&resources, &answer.decode()?.results)),
                    Err(error) => results.extend(resources.into_iter().map(|one| (one, Err(error.clone())))),
                }
            }
            Ok(results)
        })
        .await
    }

    /// Changes the keys named and no other.
    pub async fn incremental_alter_configs(
        &self,
        changes: &[(ConfigResource, Vec<ConfigChange>)],
        validate_only: bool,
    ) -> Result<Each<ConfigResource, ()>, ClientError> {
        let resources: Vec<ConfigResource> = changes.iter().map(|(resource, _)| resource.clone()).collect();
        let changes: BTreeMap<&ConfigResource, &Vec<ConfigChange>> =
            changes.iter().map(|(resource, changes)| (resource, changes)).collect();
        each(&self.client, &resources, async |resources: &[ConfigResource]| {
            let mut results = Vec::new();
            for (to, resources) in by_destination(resources) {
                let names: Vec<String> = resources.iter().map(|one| one.name()).collect();
                let altered = resources.iter().zip(&names).map(|(resource, name)| AlterConfigsResource {
                    resource_type: resource.number(),
                    resource_name: name,
                    configs: changes.get(resource).map_or(Vec::new(), |all| all.iter().map(alterable).collect()),
                });
                let request = IncrementalAlterConfigsRequest { resources: altered.collect(), validate_only };
                match self.client.ask(to, None, &request).await {
                    Ok(answer) => results.extend(answer.decode()?.responses.iter().filter_map(|one| {
                        let resource = find(&resources, one.resource_type, &one.resource_name)?;
                        let message = owned(&one.error_message);
                        let result = resource.check("changing", one.error_code, message.as_deref());
                        Some((resource, result))
                    })),
                    Err(error) => results.extend(resources.into_iter().map(|one| (one, Err(error.clone())))),
                }
            }
            Ok(results)
        })
        .await
    }
}

fn by_destination(resources: &[ConfigResource]) -> Vec<(Destination, Vec<ConfigResource>)> {
    let mut groups: Vec<(Destination, Vec<ConfigResource>)> = Vec::new();
    for resource in resources {
        let to = resource.destination();
        match groups.iter_mut().find(|(other, _)| *other == to) {
            Some((_, group)) => group.push(resource.clone()),
            None => groups.push((to, vec![resource.clone()])),
        }
    }
    groups
}

fn find(resources: &[ConfigResource], number: i8, name: &str) -> Option<ConfigResource> {
    resources.iter().find(|one| one.number() == number && one.name() == name).cloned()
}

fn described(
    resources: &[ConfigResource],
    results: &[DescribeConfigsResult<'_>],
) -> Each<ConfigResource, Vec<ConfigEntry>> {
    let one = |one: &DescribeConfigsResult<'_>| {
        let resource = find(resources, one.resource_type, &one.resource_name)?;
        let message = owned(&one.error_message);
        let result = resource.check("describing", one.error_code, message.as_deref());
        Some((resource, result.map(|()| entries(&one.configs))))
    };
    results.iter().filter_map(one).collect()
}

fn entries(configs: &[DescribeConfigsResourceResult<'_>]) -> Vec<ConfigEntry> {
    let entry = |one: &DescribeConfigsResourceResult<'_>| {
        let source = ConfigSource::from_number(one.config_source);
        ConfigEntry {
            name: one.name.to_string(),
            value: owned(&one.value),
            source,
            is_default: source == ConfigSource::Default,
            read_only: one.read_only,
            sensitive: one.is_sensitive,
            config_type: ConfigType::from_number(one.config_type),
            documentation: owned(&one.documentation),
        }
    };
    let mut entries: Vec<ConfigEntry> = configs.iter().map(entry).collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    entries
}

fn alterable(change: &ConfigChange) -> AlterableConfig<'_> {
    let (config_operation, value) = match &change.operation {
        ConfigOperation::Set(value) => (0, Some(value.as_str())),
        ConfigOperation::Delete => (1, None),
        ConfigOperation::Append(value) => (2, Some(value.as_str())),
        ConfigOperation::Subtract(value) => (3, Some(value.as_str())),
    };
    AlterableConfig { name: &change.name, config_operation, value }
}
