//! Every bound of this crate, by name.

/// Direct I/O positions, lengths and memory are multiples of this many bytes.
pub const BLOCK: usize = 4096;
/// Largest single direct write or read, in bytes.
pub const MAX_IO_BYTES: usize = 1 << 20;
/// One part in so many of a shard's registered memory may be on loan to connections.
pub const LENDABLE_PART: usize = 2;
/// Direct reads of a shard whose memory is on loan to connections, at most.
pub const LENT_READS: usize = 1024;
/// Vectors of messages that may wait in a shard's inbox; senders wait beyond it.
pub const INBOX_VECTORS: usize = 1024;
/// Messages put into one vector at most.
pub const MAILBOX_BATCH: usize = 64;
/// Vectors that the inbox task handles before other tasks get a turn.
pub const INBOX_TURN: usize = 16;
/// Pulses in a row that a shard gets after the last sign of activity.
pub const PULSE_CONFIRMS: u32 = 2;
/// A shard without activity gets one pulse out of so many.
pub const PULSE_SKIPS: u32 = 20;
/// Pulses that pass by at once where no shard needed the last one: a shard that just began to work waits so long for its first.
pub const PULSE_NAP: u32 = 4;
/// Milliseconds between two pulses, where nothing else is set.
pub const PULSE_INTERVAL_MS: u64 = 4;
/// Pulses without an echo after which a shard counts as dead. glommio counts waker references in 16 bits, so this has
/// to stay well below 32 767.
pub const PULSE_DEAD_TICKS: u64 = 10_000;
/// Accepted connections that may wait for their shard; further ones wait in the kernel's backlog.
pub const ACCEPT_QUEUE: usize = 1024;
/// Slices sent by one `sendmsg` (Linux takes 1 024).
pub const MAX_IOVEC: usize = 512;
/// Bytes handed to the event loop at once while waiting for a socket to become writable.
pub const WRITABLE_PROBE_BYTES: usize = 4096;
/// Least RLIMIT_MEMLOCK with which io_uring rings can be made, in bytes.
pub const MIN_MEMLOCK_BYTES: u64 = 512 << 10;
/// Submission queue entries of a shard's rings.
pub const RING_DEPTH: usize = 256;
/// Chunks from this size are mappings of their own instead of parts of the heap.
pub const MAPPED_CHUNK_BYTES: usize = 256 << 10;
/// The kernel takes wishes for pages of a file in steps of this many bytes.
pub const WANT_STEP: usize = 128 << 10;
/// Shortest time in which a connection may be tried; none at all is refused by the event loop.
pub const LEAST_CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(1);
/// Threads that write and sync many files at once, at a start.
pub const OVERLAY_THREADS: usize = 16;
