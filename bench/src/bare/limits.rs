//! Bounds of the bare contestant: what it takes of memory, disk and connections, whoever asks for more.

/// What direct writes are aligned to, and what a round's bytes are filled up to.
pub const BLOCK: u64 = 4_096;
/// Largest batch: what Kafka's `message.max.bytes` is at its default, with room to spare.
pub const BATCH_BYTES_MAX: usize = 1_200_000;
/// Largest request that is no Produce: a Fetch of ten thousand partitions takes 300 KiB.
pub const REQUEST_BYTES_MAX: usize = 2 << 20;
/// A connection's buffer; it grows for a batch that is larger. Small enough for a core's own cache: what was received is checked and
/// copied while it is hot.
pub const RECEIVE_BYTES: usize = 128 << 10;
/// Open at once; each holds `RECEIVE_BYTES`. The next one is closed at once.
pub const CONNECTIONS_MAX: usize = 2_048;
/// Answers of a connection that wait for the disk; with more it is not read.
pub const ANSWERS_MAX: usize = 4_096;
/// Partitions of all topics.
pub const PARTITIONS_MAX: usize = 200_000;
/// Entries of the submission queue; it is submitted when it is full.
pub const QUEUE_ENTRIES: u32 = 1_024;
/// Memory for the newest batches, MiB: what gathers, and what is being written. Less than a processor's last cache.
pub const MEMORY_MIB: u64 = 8;
/// Where consumers at the tail are served from it too: they may fall behind by that much.
pub const TAIL_MEMORY_MIB: u64 = 64;
pub const MEMORY_MIB_MIN: u64 = 8;
pub const MEMORY_MIB_MAX: u64 = 256;
/// Room that an append is sure of before its batch is looked at: the batch, as much that is skipped where the memory ends, a block.
pub const ROOM_BYTES: u64 = 2 * BATCH_BYTES_MAX as u64 + 2 * BLOCK;
/// What the growing file is preallocated by, as a segment of Ringlog's is.
pub const ALLOCATION_BYTES: u64 = 1 << 30;
/// The growing file's end; a run that writes more ends with an error.
pub const FILE_BYTES_MAX: u64 = 64 << 30;
/// The file that is written over and over: a multiple of any memory, so that no range of it would end behind the file.
pub const RING_FILE_BYTES: u64 = 256 << 20;
/// Pieces of one vectored send, as the kernel bounds them.
pub const PIECES_MAX: usize = 1_024;
/// Longest wait of a Fetch.
pub const FETCH_WAIT_MS_MAX: u64 = 30_000;
