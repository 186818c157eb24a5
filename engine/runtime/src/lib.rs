//! # Shards, files, sockets, clock: the only crate that names glommio
//!
//! A **shard** is one thread, one io_uring, one event loop. Everything above this crate is written against the calls
//! here and never names glommio, `Instant::now`, `SystemTime`, `std::fs`, threads or a random source. That keeps the
//! surprises of the event loop in one place, and lets a second back end (one thread, seeded, virtual time, simulated
//! disk and network) stand behind the same calls.
//!
//! * [`shard`]: start shards, pinned or not; [`task`]: spawn with a name and an owner; a panic ends the process.
//! * [`mailbox`]: typed messages between shards, batched, replies by token.
//! * [`pulse`]: the thread that keeps every shard awake, and the stall figure it gives.
//! * [`file`]: direct I/O; [`fs`]: small file work on a pool thread; [`shared_file`]: page cache for `sendfile`.
//! * [`net`]: acceptor thread and sockets; [`buffers`]: aligned ref-counted chunks.
//! * [`faults`]: errors of the disk for tests (feature `faults`).
//! * [`sync`]: events and channels within a shard; [`clock`]; [`random`]; [`checks`]: what a host must offer; [`signals`].
//!
//! Ownership: what is `Rc` here never leaves its shard. What crosses is a mailbox message, a [`buffers::Chunk`] slice
//! (`bytes::Bytes`) or a [`shared_file::SharedFile`].

pub mod buffers;
pub mod checks;
pub mod clock;
pub mod error;
pub mod faults;
pub mod file;
pub mod fs;
pub mod limits;
pub mod mailbox;
pub mod net;
pub mod pulse;
pub mod random;
pub mod shard;
pub mod shared_file;
pub mod signals;
pub mod sync;
pub mod task;
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
