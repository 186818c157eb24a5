//! Virtual time: it stands still while tasks run but for a little at each step, and jumps when all of them wait.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::sim::world::{try_with, with};

/// Monotonic nanoseconds since the simulation began.
#[inline]
pub fn now_ns() -> u64 {
    with(|world| world.now_ns)
}

/// Monotonic milliseconds since the simulation began.
#[inline]
pub fn now_ms() -> i64 {
    (now_ns() / 1_000_000) as i64
}

/// Milliseconds since 1970 by the wall clock, which may jump.
#[inline]
pub fn wall_ms() -> i64 {
    with(|world| world.wall_ms())
}

/// Sleeps on the shard's timers.
pub async fn sleep(duration: Duration) {
    sleep_ns(duration.as_nanos() as u64).await;
}

/// Sleeps until a monotonic time in milliseconds; returns at once when it is past.
pub async fn sleep_until_ms(deadline_ms: i64) {
    let left = deadline_ms - now_ms();
    if left > 0 {
        sleep(Duration::from_millis(left as u64)).await;
    }
}

pub(crate) fn sleep_ns(ns: u64) -> Sleep {
    Sleep { at_ns: now_ns() + ns, key: None }
}

/// A timer of the simulation.
#[derive(Debug)]
pub(crate) struct Sleep {
    at_ns: u64,
    key: Option<(u64, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let at_ns = self.at_ns;
        let known = self.key;
        let key = with(|world| {
            if world.now_ns >= at_ns {
                return None;
            }
            let key = known.unwrap_or_else(|| {
                world.next_timer += 1;
                (at_ns, world.next_timer)
            });
            world.timers.insert(key, cx.waker().clone());
            Some(key)
        });
        match key {
            Some(key) => {
                self.key = Some(key);
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            drop(try_with(|world| world.timers.remove(&key)));
        }
    }
}
