//! The coordinator's settings and its idea of time. Both are handed in: nothing here reads a clock or a file.

use crate::limits;

/// Settings under Kafka's names, in the units that the fields say.
#[derive(Clone, Debug)]
pub struct CoordinatorConfig {
    /// `group.min.session.timeout.ms`
    pub group_min_session_timeout_ms: i32,
    /// `group.max.session.timeout.ms`
    pub group_max_session_timeout_ms: i32,
    /// `group.initial.rebalance.delay.ms`
    pub group_initial_rebalance_delay_ms: i32,
    /// `group.max.size`, cut to [`limits::MAX_MEMBERS_PER_GROUP`]
    pub group_max_size: usize,
    /// `offset.metadata.max.bytes`; compared, as Kafka does, with UTF-16 units
    pub offset_metadata_max_bytes: usize,
    /// `offsets.retention.minutes`, in milliseconds
    pub offsets_retention_ms: i64,
    /// `offsets.retention.check.interval.ms`
    pub offsets_retention_check_interval_ms: i64,
    /// Groups that this partition may hold.
    pub max_groups: usize,
    /// Offsets that this partition may hold.
    pub max_offsets: usize,
}

impl Default for CoordinatorConfig {
    fn default() -> Self {
        CoordinatorConfig {
            group_min_session_timeout_ms: 6_000,
            group_max_session_timeout_ms: 1_800_000,
            group_initial_rebalance_delay_ms: 3_000,
            group_max_size: limits::MAX_MEMBERS_PER_GROUP,
            offset_metadata_max_bytes: 4096,
            offsets_retention_ms: 7 * 24 * 60 * 60 * 1000,
            offsets_retention_check_interval_ms: 600_000,
            max_groups: limits::MAX_GROUPS,
            max_offsets: limits::MAX_OFFSETS,
        }
    }
}

impl CoordinatorConfig {
    /// Members that a group may have.
    pub(crate) fn max_members(&self) -> usize {
        self.group_max_size.clamp(1, limits::MAX_MEMBERS_PER_GROUP)
    }
}

/// The two clocks at the moment of a call. Timers run on the monotonic one; records carry the wall clock, which may jump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    pub monotonic_ms: i64,
    pub wall_ms: i64,
}
