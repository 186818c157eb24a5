//! Every bound of the demo. What grows, grows up to one of these.

/// Visits that a generator keeps in flight: 64 bytes each.
pub const MAX_ACTIVE_SESSIONS: usize = 262_144;

/// Visits in flight unless asked for more. So few that even the longest pause of a visit is over before
/// [`MAX_OPEN_SESSIONS`] others have begun: no consumer forgets a visit that goes on, at any rate. They also stay in the
/// processor's cache.
pub const USUAL_ACTIVE_SESSIONS: usize = 10_000;

/// An event longer than this is refused before it is looked at.
pub const MAX_EVENT_BYTES: usize = 64 * 1024;

/// The last millisecond of the year 9999: later event times are refused.
pub const MAX_AT_MS: i64 = 253_402_300_799_999;

/// Visits that one consumer's aggregates hold open; beyond it the one idle for longest is closed early.
pub const MAX_OPEN_SESSIONS: usize = 65_536;

/// Counters of the sketch of top items.
pub const MAX_TOP_COUNTERS: usize = 1_000;

/// Minutes of event time that the page counts reach back.
pub const PAGE_MINUTES: usize = 60;

/// A visit is over when nothing came from it for this long in event time.
pub const SESSION_IDLE_MS: i64 = 30 * 60 * 1_000;

/// Partitions that get a bar of their own on the screen; the figures beside them count all.
pub const MAX_LAG_BARS: usize = 64;

/// The narrowest screen the layout is made for.
pub const MIN_SCREEN_WIDTH: usize = 80;

/// The widest screen that is used.
pub const MAX_SCREEN_WIDTH: usize = 160;
