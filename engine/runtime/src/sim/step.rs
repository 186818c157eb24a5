//! One operation of the simulated disk: it takes its time, has its effect somewhere in between, or fails.

use std::io;
use std::path::Path;

use super::plan::Operation;
use super::world::{World, with};
use crate::clock::sleep_ns;
use crate::sync::oneshot;

/// An effect that decides itself what a fault leaves of it.
pub(crate) async fn step_or<T>(
    operation: Operation,
    path: &Path,
    effect: impl FnOnce(&mut World, Option<io::Error>) -> io::Result<T>,
) -> io::Result<T> {
    let fate = with(|world| world.begin(operation, path));
    sleep_ns(fate.before_ns).await;
    let result = with(|world| {
        let result = effect(world, fate.errno.map(io::Error::from_raw_os_error));
        let failed = u64::from(result.is_err());
        world.note("disk", [operation as u64, failed], || {
            let outcome = result.as_ref().err().map_or(String::new(), |e| format!(": {e}"));
            format!("{operation:?} {}{outcome}", path.display())
        });
        result
    });
    sleep_ns(fate.after_ns).await;
    result
}

/// An effect that a fault keeps from happening at all.
pub(crate) async fn step<T>(
    operation: Operation,
    path: &Path,
    effect: impl FnOnce(&mut World) -> io::Result<T>,
) -> io::Result<T> {
    step_or(operation, path, |world, fault| fault.map_or_else(|| effect(world), Err)).await
}

/// Work that goes on when its caller goes away, as what the kernel or a pool thread was given does.
pub(crate) async fn detached<T: 'static>(work: impl Future<Output = T> + 'static) -> T {
    let (sender, receiver) = oneshot();
    super::executor::start("disk", async move { sender.send(work.await) });
    match receiver.await {
        Some(value) => value,
        // Only when the process ends or the work panicked, which ends the process.
        None => std::future::pending().await,
    }
}
