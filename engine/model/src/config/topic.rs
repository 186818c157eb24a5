//! A topic's configuration in force, typed. A plain `Copy` value: every partition's replica and log hold one, the
//! produce way reads its fields and nothing else of this module.

use super::broker::BrokerConfig;
use super::error::ConfigError;
use super::layers::{Layers, default_of};
use super::property::{Property, Scope};
use super::table;
use super::value::{Value, parse};

/// `cleanup.policy`: both may be set, or none (everything is kept).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanupPolicy {
    pub delete: bool,
    pub compact: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampType {
    CreateTime,
    LogAppendTime,
}

/// `ringlog.durability`: what moves the durable end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The fdatasync that covers the append.
    Fsync,
    /// The append itself.
    Memory,
}

/// `ringlog.produce.validation`: how far compressed batches are looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    Header,
    Records,
}

/// Every topic property that something reads. `compression.type` is not among them: only `producer` is accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopicConfig {
    pub cleanup_policy: CleanupPolicy,
    /// -1: no limit.
    pub retention_ms: i64,
    /// Of a partition. Negative: no limit.
    pub retention_bytes: i64,
    pub segment_bytes: u32,
    pub segment_ms: i64,
    pub segment_jitter_ms: i64,
    pub segment_index_bytes: u32,
    pub index_interval_bytes: u32,
    pub file_delete_delay_ms: i64,
    pub max_message_bytes: u32,
    pub max_decompressed_message_bytes: u32,
    pub min_insync_replicas: u32,
    pub message_timestamp_type: TimestampType,
    pub message_timestamp_before_max_ms: i64,
    pub message_timestamp_after_max_ms: i64,
    pub durability: Durability,
    pub validation: Validation,
    pub delete_retention_ms: i64,
    pub min_compaction_lag_ms: i64,
    pub max_compaction_lag_ms: i64,
    pub min_cleanable_dirty_ratio: f64,
    // Without effect until a topic has several replicas.
    pub unclean_leader_election: bool,
    // Without effect: syncs are shared by all that is pending.
    pub flush_messages: i64,
    pub flush_ms: i64,
}

/// All fields are overwritten from the rows before anyone sees it.
const BLANK: TopicConfig = TopicConfig {
    cleanup_policy: CleanupPolicy { delete: false, compact: false },
    retention_ms: 0,
    retention_bytes: 0,
    segment_bytes: 0,
    segment_ms: 0,
    segment_jitter_ms: 0,
    segment_index_bytes: 0,
    index_interval_bytes: 0,
    file_delete_delay_ms: 0,
    max_message_bytes: 0,
    max_decompressed_message_bytes: 0,
    min_insync_replicas: 0,
    message_timestamp_type: TimestampType::CreateTime,
    message_timestamp_before_max_ms: 0,
    message_timestamp_after_max_ms: 0,
    durability: Durability::Fsync,
    validation: Validation::Header,
    delete_retention_ms: 0,
    min_compaction_lag_ms: 0,
    max_compaction_lag_ms: 0,
    min_cleanable_dirty_ratio: 0.0,
    unclean_leader_election: false,
    flush_messages: 0,
    flush_ms: 0,
};

/// A row whose bounds keep it within 0 and `i32::MAX`.
fn unsigned(name: &str, value: i64) -> u32 {
    match u32::try_from(value) {
        Ok(value) => value,
        Err(_) => panic!("{name}={value} passed its row although its field is unsigned"),
    }
}

/// A topic's own `key=value` pairs, parsed. The last of a key wins.
pub(super) fn parse_overrides<'a>(
    overrides: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<(&'static Property, Value)>, ConfigError> {
    let parse_one = |(name, text): (&'a str, &'a str)| {
        let property = table::find(Scope::Topic, name)
            .ok_or_else(|| ConfigError::Unknown { name: name.to_owned(), scope: Scope::Topic })?;
        Ok((property, parse(property, text)?))
    };
    overrides.into_iter().map(parse_one).collect()
}

/// Whether a topic may have these properties of its own.
pub fn validate_topic<'a>(overrides: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<(), ConfigError> {
    TopicConfig::resolve(&BrokerConfig::default(), overrides).map(|_| ())
}

impl TopicConfig {
    /// The broker's defaults with the topic's own properties over them.
    pub fn resolve<'a>(
        broker: &BrokerConfig,
        overrides: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<TopicConfig, ConfigError> {
        let mut config = broker.topic_defaults;
        for (property, value) in parse_overrides(overrides)? {
            config.set(property, &value);
        }
        config.check()
    }

    pub(super) fn of_broker(layers: &Layers) -> Result<TopicConfig, ConfigError> {
        let mut config = BLANK;
        for property in table::all().filter(|property| property.scope == Scope::Topic) {
            if let Some(value) = layers.first(property, property.synonyms).or_else(|| default_of(property)) {
                config.set(property, &value);
            }
        }
        config.check()
    }

    fn check(self) -> Result<TopicConfig, ConfigError> {
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms {
            return Err(ConfigError::Conflict(format!(
                "min.compaction.lag.ms={} is above max.compaction.lag.ms={}.",
                self.min_compaction_lag_ms, self.max_compaction_lag_ms
            )));
        }
        Ok(self)
    }

    /// Puts a checked value into its field. Properties that nothing reads have none.
    fn set(&mut self, property: &Property, value: &Value) {
        let is = |word: &str| matches!(value, Value::Text(text) if text == word);
        match value {
            Value::Number(number) => self.set_number(property.name, *number),
            Value::List(items) if property.name == "cleanup.policy" => {
                let has = |word: &str| items.iter().any(|item| item == word);
                self.cleanup_policy = CleanupPolicy { delete: has("delete"), compact: has("compact") };
            }
            Value::Double(number) if property.name == "min.cleanable.dirty.ratio" => {
                self.min_cleanable_dirty_ratio = *number;
            }
            Value::Bool(flag) if property.name == "unclean.leader.election.enable" => {
                self.unclean_leader_election = *flag;
            }
            Value::Text(_) => match property.name {
                "message.timestamp.type" if is("LogAppendTime") => {
                    self.message_timestamp_type = TimestampType::LogAppendTime;
                }
                "message.timestamp.type" => self.message_timestamp_type = TimestampType::CreateTime,
                "ringlog.durability" if is("memory") => self.durability = Durability::Memory,
                "ringlog.durability" => self.durability = Durability::Fsync,
                "ringlog.produce.validation" if is("records") => self.validation = Validation::Records,
                "ringlog.produce.validation" => self.validation = Validation::Header,
                _ => {}
            },
            _ => {}
        }
    }

    fn set_number(&mut self, name: &str, number: i64) {
        match name {
            "retention.ms" => self.retention_ms = number,
            "retention.bytes" => self.retention_bytes = number,
            "segment.bytes" => self.segment_bytes = unsigned(name, number),
            "segment.ms" => self.segment_ms = number,
            "segment.jitter.ms" => self.segment_jitter_ms = number,
            "segment.index.bytes" => self.segment_index_bytes = unsigned(name, number),
            "index.interval.bytes" => self.index_interval_bytes = unsigned(name, number),
            "file.delete.delay.ms" => self.file_delete_delay_ms = number,
            "max.message.bytes" => self.max_message_bytes = unsigned(name, number),
            "max.decompressed.message.bytes" => self.max_decompressed_message_bytes = unsigned(name, number),
            "min.insync.replicas" => self.min_insync_replicas = unsigned(name, number),
            "message.timestamp.before.max.ms" => self.message_timestamp_before_max_ms = number,
            "message.timestamp.after.max.ms" => self.message_timestamp_after_max_ms = number,
            "delete.retention.ms" => self.delete_retention_ms = number,
            "min.compaction.lag.ms" => self.min_compaction_lag_ms = number,
            "max.compaction.lag.ms" => self.max_compaction_lag_ms = number,
            "flush.messages" => self.flush_messages = number,
            "flush.ms" => self.flush_ms = number,
            _ => {}
        }
    }
}
