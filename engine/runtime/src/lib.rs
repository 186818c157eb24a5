//! # Shards, files, sockets, clock: the only crate that names glommio
//!
//! A **shard** is one thread, one io_uring, one event loop: glommio runs the tasks, a ring of our own does what they wait
//! for (`driver`, `ring`, `doorbell`). Everything above this crate is written against the calls
//! here and never names glommio, `Instant::now`, `SystemTime`, `std::fs`, threads or a random source. That keeps the
//! surprises of the event loop in one place, and lets a second back end stand behind the same calls: with the feature
//! `sim` the modules of tasks, time, randomness, files, sockets and shards have their bodies from `sim/` (one thread, seeded,
//! virtual time, a disk that loses what was not synced, a network that does what networks do). See `sim/mod.rs`.
//!
//! * [`shard`]: start shards, pinned or not; [`task`]: spawn with a name and an owner; a panic ends the process.
//! * [`mailbox`]: typed messages between shards, batched, replies by token.
//! * [`pulse`]: the thread that looks whether every shard turns, and the stall figure it gives.
//! * [`file`]: direct I/O, whose reads go into pooled memory and on without a copy; [`fs`]: small file work on a pool thread;
//!   [`shared_file`]: page cache for `sendfile`.
//! * [`net`]: acceptor thread and sockets; [`buffers`]: aligned ref-counted chunks.
//! * [`faults`]: errors of the disk for tests (feature `faults`).
//! * [`histogram`]: how long things took, for metrics.
//! * [`sync`]: events and channels within a shard; [`clock`]; [`random`]; [`checks`]: what a host must offer; [`signals`].
//!
//! Ownership: what is `Rc` here never leaves its shard. What crosses is a mailbox message, a [`buffers::Chunk`] slice
//! (`bytes::Bytes`) or a [`shared_file::SharedFile`].

pub mod buffers;
#[cfg_attr(feature = "sim", path = "sim/checks.rs")]
pub mod checks;
#[cfg_attr(feature = "sim", path = "sim/clock.rs")]
pub mod clock;
#[cfg(not(feature = "sim"))]
mod doorbell;
#[cfg(not(feature = "sim"))]
mod driver;
pub mod error;
#[cfg(not(feature = "sim"))]
pub mod faults;
#[cfg_attr(feature = "sim", path = "sim/file.rs")]
pub mod file;
mod file_types;
#[cfg_attr(feature = "sim", path = "sim/fs.rs")]
pub mod fs;
pub mod histogram;
mod host_error;
#[cfg(not(feature = "sim"))]
mod io_buffer;
pub mod limits;
pub mod mailbox;
#[cfg_attr(feature = "sim", path = "sim/net.rs")]
pub mod net;
#[cfg(not(feature = "sim"))]
mod pool;
#[cfg_attr(feature = "sim", path = "sim/pulse.rs")]
pub mod pulse;
#[cfg_attr(feature = "sim", path = "sim/random.rs")]
pub mod random;
#[cfg(not(feature = "sim"))]
mod ring;
#[cfg_attr(feature = "sim", path = "sim/shard.rs")]
pub mod shard;
mod shard_types;
#[cfg_attr(feature = "sim", path = "sim/shared_file.rs")]
pub mod shared_file;
#[cfg(not(feature = "sim"))]
pub mod signals;
#[cfg(feature = "sim")]
pub mod sim;
pub mod sync;
#[cfg_attr(feature = "sim", path = "sim/task.rs")]
pub mod task;
mod task_group;
#[cfg_attr(feature = "sim", path = "sim/testing.rs")]
pub mod testing;

pub use buffers::{Chunk, ChunkPool};
pub use error::IoError;
pub use file::{DirectFile, OpenMode};
pub use mailbox::{Post, Responder};
pub use net::{AcceptQueue, Acceptor, Socket};
pub use shard::{HelperSpec, RunningShards, ShardContext, ShardSpec};
pub use shared_file::SharedFile;
pub use sync::Notify;
pub use task::{TaskGroup, TaskHandle, spawn, spawn_blocking};
