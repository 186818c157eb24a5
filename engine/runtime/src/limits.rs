//! Every bound of this crate, by name.

use std::time::Duration;

/// Direct I/O positions, lengths and memory are multiples of this many bytes.
pub const BLOCK: usize = 4096;
/// Largest single direct write or read, in bytes.
pub const MAX_IO_BYTES: usize = 1 << 20;
/// Vectors of messages that may wait in a shard's inbox; senders wait beyond it.
pub const INBOX_VECTORS: usize = 1024;
/// Messages put into one vector at most.
pub const MAILBOX_BATCH: usize = 64;
/// Vectors that the inbox task handles before other tasks get a turn.
pub const INBOX_TURN: usize = 16;
/// Pulses that pass by at once where every shard slept at the last one: a shard that just began to work waits so long for its
/// first.
pub const PULSE_NAP: u32 = 8;
/// Pulses without an echo after which the shard's thread gets a signal, in case it waits where no wake reaches it.
pub const PULSE_NUDGE_TICKS: u64 = 25;
/// Milliseconds between two pulses, where nothing else is set.
pub const PULSE_INTERVAL_MS: u64 = 4;
/// Pulses without an echo after which a shard counts as dead.
pub const PULSE_DEAD_TICKS: u64 = 10_000;
/// Accepted connections that may wait for their shard; further ones wait in the kernel's backlog.
pub const ACCEPT_QUEUE: usize = 1024;
/// Slices sent by one `sendmsg`, or written by one operation (Linux takes 1 024).
pub const MAX_IOVEC: usize = 512;
/// Bytes of a file read at once where `sendfile` would have to wait.
pub const SLOW_FILE_PIECE: usize = 64 << 10;
/// Least RLIMIT_MEMLOCK with which io_uring rings can be made, in bytes.
pub const MIN_MEMLOCK_BYTES: u64 = 512 << 10;
/// Submission queue entries of a shard's ring: what is begun beyond them goes to the kernel at once.
pub const RING_DEPTH: u32 = 256;
/// Completion queue entries of a shard's ring; the kernel keeps those that find no place.
pub const COMPLETIONS: u32 = 4096;
/// Submission queue entries of the rings that the event loop has and nobody uses.
pub const UNUSED_RING_DEPTH: usize = 8;
/// Registered memory of the event loop, in bytes: the least it takes.
pub const UNUSED_IO_MEMORY: usize = 64 << 10;
/// How often the event loop looks at its own rings while tasks run. Nothing of ours is in them.
pub const UNUSED_REACTOR_INTERVAL: Duration = Duration::from_secs(10);
/// Polls of tasks between two looks at the time.
pub const POLLS_A_LOOK: u64 = 16;
/// Polls of tasks below which a lap is so short that what they began may wait for the next one.
pub const SHORT_LAP: u64 = 8;
/// How often, and for how long, the end of a shard waits for what the kernel still has.
pub const END_WAITS: usize = 20;
pub const END_WAIT: Duration = Duration::from_millis(50);
/// Access to new files, before the process's mask.
pub const FILE_MODE: u32 = 0o644;
/// Writes of fewer bytes are copied together: cheaper than several pieces.
pub const LEAST_UNCOPIED: usize = 8 << 10;
/// Memory for direct writes that a shard keeps for the next ones, in bytes.
pub const IO_BUFFERS_KEPT: usize = 8 << 20;
/// Chunks from this size are mappings of their own instead of parts of the heap.
pub const MAPPED_CHUNK_BYTES: usize = 256 << 10;
/// Shortest time in which a connection may be tried.
pub const LEAST_CONNECT_TIMEOUT: Duration = Duration::from_millis(1);
/// The kernel takes wishes for pages of a file in steps of this many bytes.
pub const WANT_STEP: usize = 128 << 10;
/// Threads that write and sync many files at once, at a start.
pub const OVERLAY_THREADS: usize = 16;
