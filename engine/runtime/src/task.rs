//! Tasks of a shard. Every task has a name and an owner; a panic in one ends the process with a sentence, because a
//! shard with a dead task would keep clients waiting for ever.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::task::Context;

use futures_lite::FutureExt;

use crate::driver;
use crate::pool::outcome;
use crate::sync::oneshot;

pub use crate::task_group::{TaskGroup, TaskHandle};

/// Starts a task on this shard. It may run up to its first wait before this returns: set up what it needs first.
pub fn spawn<T: 'static>(name: &'static str, future: impl Future<Output = T> + 'static) -> TaskHandle<T> {
    let (sender, receiver) = oneshot();
    glommio::spawn_local(async move {
        let mut work = std::pin::pin!(AssertUnwindSafe(future).catch_unwind());
        let mut seated = None;
        let noted = std::future::poll_fn(|cx| {
            driver::note_poll();
            let seated = seated.get_or_insert_with(|| driver::sit(cx.waker()));
            work.as_mut().poll(&mut Context::from_waker(seated.waker()))
        });
        match noted.await {
            Ok(value) => sender.send(value),
            Err(panic) => die(name, &*panic),
        }
    })
    .detach();
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

fn die(name: &str, panic: &(dyn std::any::Any + Send)) -> ! {
    eprintln!(
        "ringlog: task `{name}` panicked: {}. The shard cannot go on, so the process ends now; what was acknowledged is on disk. Start it again, and please report this.",
        panic_text(panic)
    );
    std::process::abort();
}

/// Ends the process with a sentence, for failures after which nothing that it says can be believed.
pub fn end_process(sentence: &str) -> ! {
    eprintln!("ringlog: {sentence}");
    std::process::exit(1);
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

/// Runs `work` on the shard's pool thread: for anything longer than about 100 microseconds and for system calls that
/// may block. A panic comes back as an error instead of hanging the caller.
pub async fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, BlockingPanic> {
    let (teller, told) = outcome();
    let job = move || {
        let result = std::panic::catch_unwind(AssertUnwindSafe(work));
        teller.tell(result.map_err(|p| BlockingPanic(panic_text(&*p).to_string())));
    };
    driver::on_pool(Box::new(job)).map_err(|e| BlockingPanic(format!("its thread could not start: {e}")))?;
    told.await
}

/// Gives other tasks of the shard a turn, and the ring.
pub async fn yield_now() {
    futures_lite::future::yield_now().await;
}
