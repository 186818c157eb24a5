//! A profile as written, and what it sets under the names of the configuration table.

use serde::Deserialize;

use crate::{MAX_CPUS, Topology, TuningError};

/// The keys of a profile, in the order of the sentence that lists them.
const KEYS: &str = "shards, cpus, placement, numa_node, leave_out, helper_cpu, preempt_timer_us, pulse_interval_ms, \
                    io_memory_bytes, batch_cache_bytes, inflight_bytes_per_shard, inflight_bytes_per_connection, \
                    max_open_segments, listen_backlog, disk_write_max_bytes, disk_queue_depth, \
                    disk_expected_write_us, [memory] per_shard_bytes, batch_cache_percent, \
                    in_flight_percent, io_percent";

/// Bounds that the configuration table sets below, so that a split of little memory still starts.
const IO_MEMORY_MIN: u64 = 4 << 20;
const BATCH_CACHE_MIN: u64 = 4 << 20;
const IN_FLIGHT_MIN: u64 = 1 << 20;

/// Which CPUs get a shard where `cpus` does not name them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Every CPU, in rising order.
    #[default]
    All,
    /// One CPU of each physical core: hyper-threads stay free.
    OnePerCore,
    /// Every CPU, but first one of each core: with fewer shards than CPUs no core gets two before all have one.
    CoresFirst,
}

/// Memory of a shard and what it is for. The percentages add up to 100.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemorySplit {
    pub per_shard_bytes: u64,
    /// Batches just written, for consumers that keep up.
    pub batch_cache_percent: u32,
    /// Requests in work: what sockets have brought and answers have not released.
    pub in_flight_percent: u32,
    /// Registered buffers for direct reads and writes.
    pub io_percent: u32,
}

/// A profile as written. Everything may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Shards; as many as CPUs when left out.
    pub shards: Option<usize>,
    /// CPUs to use, in the order in which shards take them.
    pub cpus: Option<Vec<usize>>,
    /// Chooses CPUs where `cpus` does not.
    pub placement: Option<Spread>,
    /// Only CPUs of this NUMA node.
    pub numa_node: Option<usize>,
    /// CPUs to keep free: for interrupts, for other programs.
    #[serde(default)]
    pub leave_out: Vec<usize>,
    /// CPU of the threads that are no shards: the one that accepts and the one that gives the pulse.
    pub helper_cpu: Option<usize>,
    pub preempt_timer_us: Option<u32>,
    pub pulse_interval_ms: Option<u32>,
    /// Per shard.
    pub io_memory_bytes: Option<u64>,
    /// Of the whole process.
    pub batch_cache_bytes: Option<u64>,
    pub inflight_bytes_per_shard: Option<u64>,
    pub inflight_bytes_per_connection: Option<u64>,
    /// Of the whole process.
    pub max_open_segments: Option<u32>,
    pub listen_backlog: Option<u32>,
    /// Largest write to the disk.
    pub disk_write_max_bytes: Option<u32>,
    /// Writes and syncs that the disk is given at once, per shard.
    pub disk_queue_depth: Option<u32>,
    /// Usual time of one synced write.
    pub disk_expected_write_us: Option<u32>,
    pub memory: Option<MemorySplit>,
}

impl Profile {
    /// Reads a profile's text. Unknown keys, and keys that contradict each other, are refused.
    pub fn parse(text: &str) -> Result<Profile, TuningError> {
        let profile: Profile = toml::from_str(text).map_err(|error| syntax(text, &error))?;
        profile.check()?;
        Ok(profile)
    }

    fn check(&self) -> Result<(), TuningError> {
        let conflict = |one, other| Err(TuningError::Conflict { one, other });
        if self.cpus.is_some() && self.placement.is_some() {
            return conflict("cpus", "placement");
        }
        if self.cpus.is_some() && self.numa_node.is_some() {
            return conflict("cpus", "numa_node");
        }
        let Some(memory) = &self.memory else { return Ok(()) };
        let by_hand = [
            ("batch_cache_bytes", self.batch_cache_bytes.is_some()),
            ("inflight_bytes_per_shard", self.inflight_bytes_per_shard.is_some()),
            ("io_memory_bytes", self.io_memory_bytes.is_some()),
        ];
        if let Some((other, _)) = by_hand.into_iter().find(|(_, set)| *set) {
            return conflict("[memory]", other);
        }
        let percents = [memory.batch_cache_percent, memory.in_flight_percent, memory.io_percent];
        match percents.iter().fold(0u32, |sum, percent| sum.saturating_add(*percent)) {
            100 => Ok(()),
            sum => Err(TuningError::Split { sum }),
        }
    }

    /// The profile for a machine nobody wrote one for: a shard for each CPU, or for each core where there are many, and
    /// memory that grows with them but leaves most of the host's to the page cache.
    pub fn derive(topology: &Topology, memory_bytes: Option<u64>) -> Profile {
        let cpus = topology.cpus().len().clamp(1, MAX_CPUS);
        let few = cpus <= 4;
        let one_per_core = !few && topology.core_count() < cpus;
        let shards = if one_per_core { topology.core_count() } else { cpus } as u64;
        let cache_bytes = shards * if few { 16 << 20 } else { 32 << 20 };
        let cache_limit = memory_bytes.map_or(u64::MAX, |bytes| (bytes / 8).max(BATCH_CACHE_MIN));
        // A core of many is left to interrupts and to the threads that are no shards.
        let leave_out = match topology.cpus().first() {
            Some(first) if topology.core_count() >= 8 => first.siblings.clone(),
            _ => Vec::new(),
        };
        Profile {
            placement: one_per_core.then_some(Spread::OnePerCore),
            leave_out,
            io_memory_bytes: Some(if few { 16 << 20 } else { 64 << 20 }),
            batch_cache_bytes: Some(cache_bytes.min(cache_limit)),
            ..Profile::default()
        }
    }

    /// Whether it speaks of nothing but the disk, as what `ringlog tune disk --write` leaves does.
    pub fn is_disk_only(&self) -> bool {
        let rest = Profile {
            disk_write_max_bytes: None,
            disk_queue_depth: None,
            disk_expected_write_us: None,
            ..self.clone()
        };
        rest == Profile::default() && *self != rest
    }

    /// This profile with another one's disk.
    #[must_use]
    pub fn with_disk_of(self, other: &Profile) -> Profile {
        Profile {
            disk_write_max_bytes: other.disk_write_max_bytes,
            disk_queue_depth: other.disk_queue_depth,
            disk_expected_write_us: other.disk_expected_write_us,
            ..self
        }
    }

    /// What the profile sets, under the names of the configuration table. `shards` is how many there will be: the batch
    /// cache is one for the whole process.
    pub fn pairs(&self, shards: usize) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::new();
        let mut put = |name, value: Option<u64>| pairs.extend(value.map(|value| (name, value.to_string())));
        put("ringlog.shards", self.shards.map(|v| v as u64));
        put("ringlog.preempt.timer.us", self.preempt_timer_us.map(u64::from));
        put("ringlog.pulse.interval.ms", self.pulse_interval_ms.map(u64::from));
        put("ringlog.io.memory.bytes", self.io_memory_bytes);
        put("ringlog.batch.cache.bytes", self.batch_cache_bytes);
        put("ringlog.max.inflight.bytes.per.shard", self.inflight_bytes_per_shard);
        put("ringlog.max.inflight.bytes.per.connection", self.inflight_bytes_per_connection);
        put("ringlog.max.open.segments", self.max_open_segments.map(u64::from));
        put("socket.listen.backlog.size", self.listen_backlog.map(u64::from));
        put("ringlog.disk.write.max.bytes", self.disk_write_max_bytes.map(u64::from));
        put("ringlog.disk.queue.depth", self.disk_queue_depth.map(u64::from));
        put("ringlog.disk.expected.write.us", self.disk_expected_write_us.map(u64::from));
        if let Some(memory) = &self.memory {
            let part = |percent: u32, least: u64| (memory.per_shard_bytes / 100 * u64::from(percent)).max(least);
            let cache_bytes = part(memory.batch_cache_percent, BATCH_CACHE_MIN).saturating_mul(shards.max(1) as u64);
            put("ringlog.batch.cache.bytes", Some(cache_bytes));
            put("ringlog.max.inflight.bytes.per.shard", Some(part(memory.in_flight_percent, IN_FLIGHT_MIN)));
            put("ringlog.io.memory.bytes", Some(part(memory.io_percent, IO_MEMORY_MIN)));
        }
        pairs
    }
}

fn syntax(text: &str, error: &toml::de::Error) -> TuningError {
    let at = error.span().map_or(0, |span| span.start).min(text.len());
    let line = 1 + text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count();
    let message = error.message();
    let message = match message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')) {
        Some((key, _)) => format!("{key} is not a key of a tuning profile; the keys are {KEYS}."),
        None => format!("{}.", message.lines().collect::<Vec<_>>().join(" ")),
    };
    TuningError::Syntax { line, message }
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
