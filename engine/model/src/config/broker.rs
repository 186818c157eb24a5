//! The broker's configuration in force, typed: one struct for each part of the process that reads it.
//!
//! Built at start from the file, the tuning profile and the command line, and again when a dynamic property changes;
//! each shard holds a copy and replaces it whole.

use super::error::ConfigError;
use super::layers::Layers;
use super::listener::Listener;
use super::property::Scope;
use super::table;
use super::topic::TopicConfig;
use super::value::Value;
use crate::ids::NodeId;

/// Everything the process is told.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerConfig {
    pub node: NodeConfig,
    pub connections: ConnectionConfig,
    pub shards: ShardConfig,
    pub groups: GroupConfig,
    pub topics: TopicsConfig,
    pub cleaner: CleanerConfig,
    /// What a topic has that says nothing itself.
    pub topic_defaults: TopicConfig,
    pub(super) layers: Layers,
}

/// Who the node is and where it listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    pub node_id: NodeId,
    pub rack: Option<String>,
    /// Never empty.
    pub listeners: Vec<Listener>,
    /// What clients are told; as many as `listeners`. A port 0 stands for the port that was picked.
    pub advertised_listeners: Vec<Listener>,
    /// Where metrics are served; `None`: nowhere.
    pub metrics_listen: Option<Listener>,
    /// Data folders, in the order given; never empty.
    pub log_dirs: Vec<String>,
    /// Where the metadata log lies; `None`: in the first data folder.
    pub metadata_log_dir: Option<String>,
    /// Data folders that take no new partitions.
    pub cordoned_log_dirs: Vec<String>,
}

impl NodeConfig {
    /// An item of `cordoned.log.dirs` that is none of log.dirs. Not an error of its own: a folder may go from log.dirs
    /// while what was set for it is stored.
    pub fn unknown_cordoned(&self) -> Option<&str> {
        self.cordoned_log_dirs.iter().find(|dir| !self.log_dirs.contains(dir)).map(String::as_str)
    }
}

/// Bounds of sockets and requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionConfig {
    pub request_max_bytes: usize,
    pub listen_backlog: u32,
    pub max_connections: usize,
    /// `None`: idle connections stay.
    pub max_idle_ms: Option<u64>,
    pub queued_max_requests: usize,
    pub fetch_max_bytes: usize,
    pub fetch_session_slots: usize,
    pub max_inflight_bytes_per_connection: usize,
    pub max_inflight_bytes_per_shard: usize,
}

/// Cores, rings and memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardConfig {
    /// 0: as many as the tuning profile gives.
    pub shards: usize,
    pub preempt_timer_us: u64,
    pub pulse_interval_ms: u64,
    /// Per shard.
    pub io_memory_bytes: usize,
    /// Largest write to the disk.
    pub disk_write_max_bytes: usize,
    /// Writes and syncs in flight, per shard.
    pub disk_queue_depth: usize,
    /// 0: not measured.
    pub disk_expected_write_us: u64,
    /// Space of the data folder's disk that clients' records may not take.
    pub disk_reserve_bytes: u64,
    /// What the files of one data folder may take; `None`: what the disk has.
    pub log_dir_quota_bytes: Option<u64>,
    /// Small appends of many partitions share a journal, and with it a write and a sync.
    pub journal: bool,
    /// Of the whole process.
    pub journal_bytes: u64,
    /// Of the whole process.
    pub batch_cache_bytes: usize,
    /// Of the whole process. `None`: as the limit of open files has it, see [`Self::open_segments`].
    pub max_open_segments: Option<usize>,
}

/// Segment files open at once where the limit of open files decides.
const OPEN_SEGMENTS_MIN: u64 = 64;
const OPEN_SEGMENTS_MAX: u64 = 32_768;

impl ShardConfig {
    /// Segment files open at once in a process that may have so many files and sockets open: where nothing else is set, half
    /// of them, the rest is for connections. With less than one for each partition that is written to, they are opened and
    /// closed over and over.
    pub fn open_segments(&self, open_files_limit: u64) -> usize {
        self.max_open_segments
            .unwrap_or_else(|| (open_files_limit / 2).clamp(OPEN_SEGMENTS_MIN, OPEN_SEGMENTS_MAX) as usize)
    }
}

/// Groups, offsets, producers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    pub initial_rebalance_delay_ms: i32,
    pub min_session_timeout_ms: i32,
    pub max_session_timeout_ms: i32,
    pub max_size: usize,
    pub offset_metadata_max_bytes: usize,
    pub offsets_topic_num_partitions: i32,
    pub offsets_topic_replication_factor: i16,
    pub offsets_topic_segment_bytes: i32,
    pub offsets_retention_ms: i64,
    pub offsets_retention_check_interval_ms: i64,
    pub offsets_commit_timeout_ms: i64,
    pub producer_id_expiration_ms: i64,
    /// Idempotent producers that one shard remembers.
    pub producer_state_max: usize,
}

/// Making topics and looking after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicsConfig {
    pub num_partitions: i32,
    pub default_replication_factor: i16,
    pub auto_create: bool,
    pub delete_enabled: bool,
    pub retention_check_interval_ms: i64,
    /// 0: never.
    pub scrub_interval_ms: i64,
    /// Per shard.
    pub scrub_max_bytes_per_s: u64,
    pub describe_max_partitions: usize,
}

/// Log compaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CleanerConfig {
    pub enabled: bool,
    /// Wait between two looks for something to compact.
    pub backoff_ms: i64,
    /// For the map of keys, of the whole process.
    pub dedupe_buffer_bytes: usize,
    pub dedupe_load: f64,
    pub io_buffer_bytes: usize,
    /// Of the whole process.
    pub io_max_bytes_per_second: f64,
}

impl Default for BrokerConfig {
    /// Nothing set: the table's defaults.
    fn default() -> BrokerConfig {
        match BrokerConfig::from_layers(Layers::default()) {
            Ok(config) => config,
            Err(error) => panic!("the table's own defaults are refused: {error}"),
        }
    }
}

impl BrokerConfig {
    /// From `key=value` pairs in order of rising strength (profile, file, command line): the last of a key wins.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<BrokerConfig, ConfigError> {
        let mut layers = Layers::default();
        for (name, text) in pairs {
            layers.set_static(name, text)?;
        }
        BrokerConfig::from_layers(layers)
    }

    /// From the text of a properties file; an error in a line names the line.
    pub fn from_properties(text: &str) -> Result<BrokerConfig, ConfigError> {
        let mut layers = Layers::default();
        for pair in super::parse_properties(text)? {
            let at_line = |error| ConfigError::AtLine { line: pair.line, error: Box::new(error) };
            layers.set_static(&pair.key, &pair.value).map_err(at_line)?;
        }
        BrokerConfig::from_layers(layers)
    }

    /// This configuration with what was set while running, for all brokers and for this one, replacing what was so
    /// set before. Read-only and unknown names are refused.
    pub fn with_dynamic<'a>(
        &self,
        for_all: impl IntoIterator<Item = (&'a str, &'a str)>,
        for_this: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<BrokerConfig, ConfigError> {
        let mut layers = self.layers.clone();
        layers.clear_dynamic();
        for (name, text) in for_all {
            layers.set_dynamic(name, text, true)?;
        }
        for (name, text) in for_this {
            layers.set_dynamic(name, text, false)?;
        }
        BrokerConfig::from_layers(layers)
    }

    /// The value in force in its text form; `None` when there is no such property or it is null.
    pub fn value(&self, name: &str) -> Option<String> {
        table::find(Scope::Broker, name)?;
        self.layers.effective(name).map(|value| value.to_string())
    }

    /// Whether someone set it, in whatever layer.
    pub fn is_set(&self, name: &str) -> bool {
        self.layers.is_set(name)
    }

    fn from_layers(layers: Layers) -> Result<BrokerConfig, ConfigError> {
        let read = Reader(&layers);
        Ok(BrokerConfig {
            node: read.node()?,
            connections: read.connections(),
            shards: read.shards(),
            groups: read.groups()?,
            topics: read.topics(),
            cleaner: read.cleaner(),
            topic_defaults: TopicConfig::of_broker(&layers)?,
            layers,
        })
    }
}

/// Reads typed values out of the layers. Rows without a default are read as `Option`; a row that lacks both is a
/// programmer's error, found by the first test that builds a configuration.
struct Reader<'a>(&'a Layers);

impl Reader<'_> {
    fn number(&self, name: &str) -> i64 {
        match self.0.effective(name) {
            Some(Value::Number(number)) => number,
            other => panic!("{name} is read as a number but its row gives {other:?}"),
        }
    }

    /// A row whose bounds keep it in an i32.
    fn int(&self, name: &str) -> i32 {
        i32::try_from(self.number(name)).unwrap_or(i32::MAX)
    }

    fn short(&self, name: &str) -> i16 {
        i16::try_from(self.number(name)).unwrap_or(i16::MAX)
    }

    /// A row whose bounds keep it from being negative.
    fn size(&self, name: &str) -> usize {
        let number = self.number(name);
        assert!(number >= 0, "{name} is read as a size, so its row must not allow negative values");
        usize::try_from(number).unwrap_or(usize::MAX)
    }

    fn double(&self, name: &str) -> f64 {
        match self.0.effective(name) {
            Some(Value::Double(number)) => number,
            other => panic!("{name} is read as a number but its row gives {other:?}"),
        }
    }

    fn flag(&self, name: &str) -> bool {
        self.0.effective(name) == Some(Value::Bool(true))
    }

    fn list(&self, name: &str) -> Vec<String> {
        match self.0.effective(name) {
            Some(Value::List(items)) => items,
            _ => Vec::new(),
        }
    }

    fn listeners(&self, name: &str) -> Result<Vec<Listener>, ConfigError> {
        match table::find(Scope::Broker, name) {
            Some(property) => Listener::parse_list(property, &self.list(name)),
            None => panic!("{name} has no row"),
        }
    }

    fn node(&self) -> Result<NodeConfig, ConfigError> {
        let listeners = self.listeners("listeners")?;
        let advertised_listeners = self.listeners("advertised.listeners")?;
        check_listeners(&listeners, &advertised_listeners)?;
        let rack = match self.0.effective("broker.rack") {
            Some(Value::Text(rack)) => Some(rack),
            _ => None,
        };
        let log_dirs = self.list("log.dirs");
        let metadata_log_dir = match self.0.effective("metadata.log.dir") {
            Some(Value::Text(dir)) if !dir.is_empty() => Some(dir),
            _ => None,
        };
        let cordoned = self.list("cordoned.log.dirs");
        let cordoned_log_dirs = if cordoned == ["*"] { log_dirs.clone() } else { cordoned };
        check_log_dirs(&log_dirs)?;
        Ok(NodeConfig {
            node_id: NodeId(self.int("node.id")),
            rack,
            listeners,
            advertised_listeners,
            metrics_listen: self.metrics_listen()?,
            log_dirs,
            metadata_log_dir,
            cordoned_log_dirs,
        })
    }

    fn metrics_listen(&self) -> Result<Option<Listener>, ConfigError> {
        match self.0.effective("ringlog.metrics.listen") {
            Some(Value::Text(text)) if !text.is_empty() => match Listener::parse_plain(&text) {
                Some(listener) => Ok(Some(listener)),
                None => Err(ConfigError::Conflict(format!(
                    "ringlog.metrics.listen={text} is no address: say host:port, like 127.0.0.1:9644, or nothing."
                ))),
            },
            _ => Ok(None),
        }
    }

    fn connections(&self) -> ConnectionConfig {
        ConnectionConfig {
            request_max_bytes: self.size("socket.request.max.bytes"),
            listen_backlog: u32::try_from(self.number("socket.listen.backlog.size")).unwrap_or(u32::MAX),
            max_connections: self.size("max.connections"),
            max_idle_ms: u64::try_from(self.number("connections.max.idle.ms")).ok(),
            queued_max_requests: self.size("queued.max.requests"),
            fetch_max_bytes: self.size("fetch.max.bytes"),
            fetch_session_slots: self.size("max.incremental.fetch.session.cache.slots"),
            max_inflight_bytes_per_connection: self.size("ringlog.max.inflight.bytes.per.connection"),
            max_inflight_bytes_per_shard: self.size("ringlog.max.inflight.bytes.per.shard"),
        }
    }

    fn shards(&self) -> ShardConfig {
        ShardConfig {
            shards: self.size("ringlog.shards"),
            preempt_timer_us: self.size("ringlog.preempt.timer.us") as u64,
            pulse_interval_ms: self.size("ringlog.pulse.interval.ms") as u64,
            io_memory_bytes: self.size("ringlog.io.memory.bytes"),
            disk_write_max_bytes: self.size("ringlog.disk.write.max.bytes"),
            disk_queue_depth: self.size("ringlog.disk.queue.depth"),
            disk_expected_write_us: self.size("ringlog.disk.expected.write.us") as u64,
            disk_reserve_bytes: self.size("ringlog.disk.reserve.bytes") as u64,
            log_dir_quota_bytes: u64::try_from(self.number("ringlog.log.dir.quota.bytes")).ok(),
            journal: self.flag("ringlog.journal"),
            journal_bytes: self.size("ringlog.journal.bytes") as u64,
            batch_cache_bytes: self.size("ringlog.batch.cache.bytes"),
            max_open_segments: usize::try_from(self.number("ringlog.max.open.segments")).ok(),
        }
    }

    fn groups(&self) -> Result<GroupConfig, ConfigError> {
        let (min, max) = (self.int("group.min.session.timeout.ms"), self.int("group.max.session.timeout.ms"));
        if min > max {
            let text = format!("group.min.session.timeout.ms={min} is above group.max.session.timeout.ms={max}.");
            return Err(ConfigError::Conflict(text));
        }
        Ok(GroupConfig {
            initial_rebalance_delay_ms: self.int("group.initial.rebalance.delay.ms"),
            min_session_timeout_ms: min,
            max_session_timeout_ms: max,
            max_size: self.size("group.max.size"),
            offset_metadata_max_bytes: self.size("offset.metadata.max.bytes"),
            offsets_topic_num_partitions: self.int("offsets.topic.num.partitions"),
            offsets_topic_replication_factor: self.short("offsets.topic.replication.factor"),
            offsets_topic_segment_bytes: self.int("offsets.topic.segment.bytes"),
            offsets_retention_ms: self.number("offsets.retention.minutes") * 60_000,
            offsets_retention_check_interval_ms: self.number("offsets.retention.check.interval.ms"),
            offsets_commit_timeout_ms: self.number("offsets.commit.timeout.ms"),
            producer_id_expiration_ms: self.number("producer.id.expiration.ms"),
            producer_state_max: self.size("ringlog.producer.state.max"),
        })
    }

    fn cleaner(&self) -> CleanerConfig {
        CleanerConfig {
            enabled: self.flag("log.cleaner.enable"),
            backoff_ms: self.number("log.cleaner.backoff.ms"),
            // Its row allows any number, as Kafka's does.
            dedupe_buffer_bytes: usize::try_from(self.number("log.cleaner.dedupe.buffer.size")).unwrap_or(0),
            dedupe_load: self.double("log.cleaner.io.buffer.load.factor"),
            io_buffer_bytes: self.size("log.cleaner.io.buffer.size"),
            io_max_bytes_per_second: self.double("log.cleaner.io.max.bytes.per.second"),
        }
    }

    fn topics(&self) -> TopicsConfig {
        TopicsConfig {
            num_partitions: self.int("num.partitions"),
            default_replication_factor: self.short("default.replication.factor"),
            auto_create: self.flag("auto.create.topics.enable"),
            delete_enabled: self.flag("delete.topic.enable"),
            retention_check_interval_ms: self.number("log.retention.check.interval.ms"),
            scrub_interval_ms: self.number("ringlog.scrub.interval.ms"),
            scrub_max_bytes_per_s: self.size("ringlog.scrub.max.bytes.per.second") as u64,
            describe_max_partitions: self.size("max.request.partition.size.limit"),
        }
    }
}

fn check_log_dirs(log_dirs: &[String]) -> Result<(), ConfigError> {
    if log_dirs.is_empty() || log_dirs.iter().any(String::is_empty) {
        return Err(ConfigError::Conflict("log.dirs has an empty item; name at least one data folder.".into()));
    }
    match log_dirs.iter().enumerate().find(|(at, dir)| log_dirs[..*at].contains(dir)) {
        Some((_, twice)) => Err(ConfigError::Conflict(format!("log.dirs names {twice} twice."))),
        None => Ok(()),
    }
}

fn check_listeners(listeners: &[Listener], advertised: &[Listener]) -> Result<(), ConfigError> {
    if listeners.is_empty() {
        return Err(ConfigError::Conflict("listeners is empty; name at least one address to listen on.".into()));
    }
    if advertised.len() != listeners.len() {
        return Err(ConfigError::Conflict(format!(
            "advertised.listeners names {} addresses and listeners {}; name one for each.",
            advertised.len(),
            listeners.len()
        )));
    }
    match advertised.iter().find(|listener| listener.is_wildcard()) {
        Some(wildcard) => Err(ConfigError::Conflict(format!(
            "Clients cannot connect to the wildcard address {wildcard}; say in advertised.listeners \
             (--advertise HOST:PORT) which address they should use."
        ))),
        None => Ok(()),
    }
}
