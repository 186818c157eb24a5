//! Time, as a shard sees it. Monotonic time orders deadlines; wall time is for timestamps that people and clients see.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

/// Monotonic nanoseconds since this process first asked.
#[inline]
pub fn now_ns() -> u64 {
    origin().elapsed().as_nanos() as u64
}

/// Monotonic milliseconds since this process first asked.
#[inline]
pub fn now_ms() -> i64 {
    (now_ns() / 1_000_000) as i64
}

/// Milliseconds since 1970 by the wall clock, which may jump.
#[inline]
pub fn wall_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64)
}

/// Sleeps on the shard's timers.
pub async fn sleep(duration: Duration) {
    crate::driver::sleep_until(now_ns().saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))).await;
}

/// Sleeps until a monotonic time in milliseconds; returns at once when it is past.
pub async fn sleep_until_ms(deadline_ms: i64) {
    let left = deadline_ms - now_ms();
    if left > 0 {
        sleep(Duration::from_millis(left as u64)).await;
    }
}
