//! The consumer's settings: Kafka's names (underscores for dots) and Kafka's defaults. A plain value; checked once, when
//! the consumer is made.

use super::assignor::AssignorKind;
use super::limits;
use crate::ClientError;

/// Where reading begins when there is no committed offset, or when it is out of the log's range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoOffsetReset {
    Earliest,
    Latest,
    /// Neither: the program is told.
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
}

impl IsolationLevel {
    pub(crate) fn number(self) -> i8 {
        match self {
            IsolationLevel::ReadUncommitted => 0,
            IsolationLevel::ReadCommitted => 1,
        }
    }
}

/// All times in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerConfig {
    /// `None`: no group, so neither `subscribe` nor commits.
    pub group_id: Option<String>,
    /// Makes the member static (KIP-345).
    pub group_instance_id: Option<String>,
    /// With it the leader may name a follower in the same rack to fetch from (KIP-392).
    pub client_rack: Option<String>,
    pub fetch_min_bytes: i32,
    pub fetch_max_bytes: i32,
    pub fetch_max_wait_ms: i32,
    pub max_partition_fetch_bytes: i32,
    pub max_poll_records: usize,
    pub max_poll_interval_ms: i32,
    pub session_timeout_ms: i32,
    pub heartbeat_interval_ms: i32,
    pub auto_offset_reset: AutoOffsetReset,
    pub enable_auto_commit: bool,
    pub auto_commit_interval_ms: i64,
    pub isolation_level: IsolationLevel,
    pub check_crcs: bool,
    /// In order of preference; the group takes one that all members have. The cooperative way is taken when every one of
    /// them can do it.
    pub partition_assignors: Vec<AssignorKind>,
    /// Whether subscribing may create topics. It can only forbid what `ClientConfig` allows.
    pub allow_auto_create_topics: bool,
}

impl Default for ConsumerConfig {
    fn default() -> ConsumerConfig {
        ConsumerConfig {
            group_id: None,
            group_instance_id: None,
            client_rack: None,
            fetch_min_bytes: 1,
            fetch_max_bytes: 50 << 20,
            fetch_max_wait_ms: 500,
            max_partition_fetch_bytes: 1 << 20,
            max_poll_records: 500,
            max_poll_interval_ms: 300_000,
            session_timeout_ms: 45_000,
            heartbeat_interval_ms: 3_000,
            auto_offset_reset: AutoOffsetReset::Latest,
            enable_auto_commit: true,
            auto_commit_interval_ms: 5_000,
            isolation_level: IsolationLevel::ReadUncommitted,
            check_crcs: true,
            partition_assignors: vec![AssignorKind::Range, AssignorKind::CooperativeSticky],
            allow_auto_create_topics: true,
        }
    }
}

fn bad(key: &'static str, reason: impl Into<String>) -> Result<(), ClientError> {
    Err(ClientError::BadConfig { key, reason: reason.into() })
}

fn at_least<T: PartialOrd + std::fmt::Display>(key: &'static str, value: T, least: T) -> Result<(), ClientError> {
    if value < least { bad(key, format!("must be at least {least}, not {value}")) } else { Ok(()) }
}

impl ConsumerConfig {
    /// Commits by itself: only with a group.
    pub(crate) fn commits_automatically(&self) -> bool {
        self.enable_auto_commit && self.group_id.is_some()
    }

    pub(crate) fn is_static(&self) -> bool {
        self.group_instance_id.is_some()
    }

    pub fn validate(&self) -> Result<(), ClientError> {
        self.validate_names()?;
        self.validate_fetch()?;
        self.validate_group()
    }

    fn validate_names(&self) -> Result<(), ClientError> {
        let names = [
            ("group_id", &self.group_id),
            ("group_instance_id", &self.group_instance_id),
            ("client_rack", &self.client_rack),
        ];
        for (key, name) in names {
            match name {
                Some(name) if name.is_empty() => return bad(key, "must not be empty"),
                Some(name) if name.len() > limits::MAX_NAME_BYTES => {
                    return bad(key, format!("must have at most {} bytes", limits::MAX_NAME_BYTES));
                }
                _ => {}
            }
        }
        if self.is_static() && self.group_id.is_none() {
            return bad("group_instance_id", "needs a group_id");
        }
        Ok(())
    }

    fn validate_fetch(&self) -> Result<(), ClientError> {
        at_least("fetch_min_bytes", self.fetch_min_bytes, 0)?;
        at_least("fetch_max_bytes", self.fetch_max_bytes, 1024)?;
        at_least("fetch_max_wait_ms", self.fetch_max_wait_ms, 0)?;
        at_least("max_partition_fetch_bytes", self.max_partition_fetch_bytes, 1)?;
        at_least("max_poll_records", self.max_poll_records, 1)?;
        if self.max_poll_records > limits::MAX_POLL_RECORDS {
            return bad("max_poll_records", format!("must be at most {}", limits::MAX_POLL_RECORDS));
        }
        let largest = crate::limits::MAX_ANSWER_BYTES as i64 / 2;
        if i64::from(self.fetch_max_bytes) > largest {
            return bad("fetch_max_bytes", format!("must be at most {largest}"));
        }
        if i64::from(self.max_partition_fetch_bytes) > largest {
            return bad("max_partition_fetch_bytes", format!("must be at most {largest}"));
        }
        Ok(())
    }

    fn validate_group(&self) -> Result<(), ClientError> {
        at_least("max_poll_interval_ms", self.max_poll_interval_ms, 1)?;
        at_least("session_timeout_ms", self.session_timeout_ms, 1)?;
        at_least("heartbeat_interval_ms", self.heartbeat_interval_ms, 1)?;
        at_least("auto_commit_interval_ms", self.auto_commit_interval_ms, 0)?;
        if self.heartbeat_interval_ms >= self.session_timeout_ms {
            return bad("heartbeat_interval_ms", "must be less than session_timeout_ms");
        }
        if self.partition_assignors.is_empty() {
            return bad("partition_assignors", "must name at least one");
        }
        for (at, kind) in self.partition_assignors.iter().enumerate() {
            if self.partition_assignors[..at].contains(kind) {
                return bad("partition_assignors", format!("names {} twice", kind.name()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
