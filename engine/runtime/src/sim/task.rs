//! Tasks of the simulated shard. A panic in one ends the life with its text.

use std::fmt;
use std::panic::AssertUnwindSafe;

use crate::clock::sleep_ns;
use crate::sim::executor;
use crate::sim::step::detached;
use crate::sim::world::with;
use crate::sync::oneshot;

pub use crate::task_group::{TaskGroup, TaskHandle};

/// Longest time before and after work on the pool thread.
const POOL_DELAY_NS: u64 = 200_000;

/// Starts a task on this shard. It may run up to its first wait before this returns: set up what it needs first.
pub fn spawn<T: 'static>(name: &'static str, future: impl Future<Output = T> + 'static) -> TaskHandle<T> {
    let (sender, receiver) = oneshot();
    executor::start(name, async move { sender.send(future.await) });
    TaskHandle::new(receiver)
}

/// Text of a panic's payload.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a value that is not text")
}

/// The panic by which a process ends itself: no finding.
#[derive(Debug)]
pub(crate) struct ProcessExit(pub String);

/// Ends the process with a sentence, for failures after which nothing that it says can be believed.
pub fn end_process(sentence: &str) -> ! {
    std::panic::panic_any(ProcessExit(sentence.to_string()))
}

/// A closure on the blocking pool panicked; its text.
#[derive(Debug, Clone)]
pub struct BlockingPanic(pub String);

impl fmt::Display for BlockingPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "work on the blocking pool panicked: {}", self.0)
    }
}

impl std::error::Error for BlockingPanic {}

/// Runs `work` after a while and gives its result after another. A panic comes back as an error.
pub async fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, BlockingPanic> {
    let (before, after) = with(|world| (world.dice.below(POOL_DELAY_NS), world.dice.below(POOL_DELAY_NS)));
    detached(async move {
        sleep_ns(before).await;
        let result = std::panic::catch_unwind(AssertUnwindSafe(work));
        sleep_ns(after).await;
        result.map_err(|panic| BlockingPanic(panic_text(&*panic).to_string()))
    })
    .await
}

/// Gives other tasks of the shard a turn.
pub async fn yield_now() {
    futures_lite::future::yield_now().await;
}
