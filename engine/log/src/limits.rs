//! Every bound of this crate, by name. Lengths are bytes unless the name says otherwise.

/// The simulator reaches what begins at a limit in runs of a few thousand batches.
const SMALL: bool = cfg!(feature = "sim");

/// Direct I/O positions, lengths and memory are multiples of this.
pub const BLOCK: u64 = 4096;
/// First chunk of a partition that was cold.
pub const CHUNK_MIN: usize = 16 << 10;
/// Chunk of a hot partition. A batch that is larger gets a chunk of its own size.
pub const CHUNK_MAX: usize = if SMALL { 64 << 10 } else { 1 << 20 };
/// Largest batch that the log takes: its position arithmetic stays within i32 whatever the segment size.
pub const MAX_BATCH: usize = 512 << 20;
/// Largest position within a segment file: Kafka's index holds it as i32.
pub const MAX_SEGMENT: u64 = i32::MAX as u64;
/// First preallocation of a segment; it doubles up to [`PREALLOCATE_MAX`].
pub const PREALLOCATE_MIN: u64 = 64 << 10;
pub const PREALLOCATE_MAX: u64 = 64 << 20;
/// Of the batch cache one part in so many is for the chunks that partitions are filling: those of many are smaller.
pub const ROWS_SHARE: usize = 4;
/// Chunks given back that the batch cache's queue may still name, besides as many as there are live ones.
pub const STALE_ROWS: usize = 32;
/// One direct write or read is at most this long, whatever the configuration says.
pub const IO_MAX: u64 = if SMALL { 32 << 10 } else { 1 << 20 };
/// Partitions in one commit round; the others wait for the next.
pub const ROUND_PARTITIONS: usize = 1024;
/// Entries of one round of the journal.
pub const ROUND_ENTRIES: usize = 2 * ROUND_PARTITIONS;
/// Commits of a shard's partitions before its journal makes its first file, where nothing else is set.
pub const JOURNAL_AFTER: u32 = if SMALL { 3 } else { 64 };
/// Largest round of the journal, in bytes.
pub const ROUND_BYTES: u64 = if SMALL { 64 << 10 } else { 4 << 20 };
/// Most bytes that are written and synced as one operation: what is next waits for both, which with more than this would cost
/// more than the step between them.
pub const AT_ONCE: u64 = if SMALL { 16 << 10 } else { 64 << 10 };
/// Files of a journal's ring, and the length of each, that a start reads at all: into memory, one ring after the other.
pub const RING_FILES_MAX: usize = 1024;
pub const RING_FILE_MAX: u64 = 1 << 30;
/// Rounds of a ring that a look at it tells apart.
pub const LOOK_ROUNDS: usize = 1 << 20;
/// Partitions that move from the journal to their segments at a time.
pub const DESTAGE_LANES: usize = 8;
/// A write of theirs while there is memory for what comes, and all that a shard has under way: a round's sync waits for them.
pub const CALM_WRITE: usize = if SMALL { 8 << 10 } else { 128 << 10 };
pub const CALM_WRITES: usize = 2 * CALM_WRITE;
/// Partitions in one round of that.
pub const DESTAGE_ROUND: usize = 32;
/// Reads of the drive while somebody writes: bytes of one, and those under way from which on a shard begins no other: two of
/// them at once. One is at least so many times as large as the batches it is for, or much would be read twice.
pub const READ_BESIDE_WRITES: u64 = if SMALL { 8 << 10 } else { 128 << 10 };
pub const READS_BESIDE_WRITES: usize = READ_BESIDE_WRITES as usize + 1;
pub const READ_BATCHES: u64 = 4;
/// Somebody writes who did so less than so many milliseconds ago.
pub const READS_GIVE_WAY_MS: u64 = 100;
/// Writes and syncs of a shard in flight at once where nothing else is configured, and the most that may be.
pub const QUEUE_DEPTH: usize = 64;
pub const QUEUE_DEPTH_MAX: usize = 256;
/// A write or sync counts as a stall of the drive when it takes this many times as long as expected, but not below
/// [`STALL_MIN_US`]: a shard that sleeps or computes sees the end of a write milliseconds late.
pub const STALL_TIMES: u64 = 20;
pub const STALL_MIN_US: u64 = 100_000;
/// Milliseconds between two messages about stalls.
pub const STALL_TELL_MS: i64 = 60_000;
/// Milliseconds between two messages about a full disk.
pub const FULL_TELL_MS: i64 = 60_000;
/// The ballast file is the reserve divided by this, and at most [`BALLAST_MAX`] bytes.
pub const BALLAST_OF_RESERVE: u64 = 4;
pub const BALLAST_MAX: u64 = 16 << 20;
/// Below so many free bytes a disk counts as full, and the ballast makes way.
pub const LOW_SPACE: u64 = 1 << 20;
/// Under a quota the files of a folder are measured again after this many times as long as the last time took.
pub const MEASURE_PAUSE_TIMES: i64 = 50;
/// Data folders of a node.
pub const FOLDERS_MAX: usize = 256;
/// The record of partitions' homes is written anew when it has grown by so many bytes.
pub const HOMES_GROWTH: u64 = 1 << 20;
/// Largest record of partitions' homes that is read.
pub const HOMES_FILE: u64 = 256 << 20;
/// Appended bytes of a shard that may wait for their write. Beyond it `append` refuses; callers brake earlier with
/// `LogShard::wait_room`.
pub const UNWRITTEN_MAX: u64 = 256 << 20;
/// Unwritten bytes at which `wait_room` starts to wait.
pub const UNWRITTEN_BRAKE: u64 = 64 << 20;
/// Waiters on one watermark of one partition.
pub const WATERMARK_WAITERS: usize = 65_536;
/// Segments of a partition that were rolled in memory and are not yet sealed on disk.
pub const DRAINING_SEGMENTS: usize = 64;
/// Index entries of an active segment kept in memory before they go to its file.
pub const INDEX_TAIL_ENTRIES: usize = if SMALL { 8 } else { 1024 };
/// Entries of an index file that are read at all (64 MiB; Kafka's own bound is 10 MiB).
pub const INDEX_FILE_ENTRIES: usize = 8 << 20;
/// Indexes of closed segments kept in memory, per shard.
pub const INDEX_CACHE: usize = 32 << 20;
/// A recovery point is renewed after this many bytes, so that a start after a crash scans little.
pub const RECOVERY_POINT_BYTES: u64 = if SMALL { 48 << 10 } else { 64 << 20 };
/// Milliseconds that renewals of recovery points may gather before the checkpoint is written.
pub const CHECKPOINT_GATHER_MS: i64 = 200;
/// Entries of leader-epoch-checkpoint; the oldest go first.
pub const EPOCH_ENTRIES: usize = 10_000;
/// Epoch entries that a checkpoint entry carries; a partition with more is read at open.
pub const CHECKPOINT_EPOCHS: usize = 64;
/// Partitions in a checkpoint file.
pub const CHECKPOINT_ENTRIES: usize = 1 << 20;
/// Largest checkpoint file that is read.
pub const CHECKPOINT_FILE: u64 = 1 << 30;
/// Small text files (epochs, metadata, meta) that are read whole.
pub const SMALL_FILE: u64 = 4 << 20;
/// Largest producer snapshot that is read whole.
pub const SNAPSHOT_FILE: u64 = 256 << 20;
/// Producer snapshots kept per partition.
pub const SNAPSHOTS_KEPT: usize = 2;
/// Windows of closed segments that come into the page cache, least and most.
pub const WINDOW_MIN: u64 = if SMALL { 16 << 10 } else { 1 << 20 };
pub const WINDOW_MAX: u64 = if SMALL { 64 << 10 } else { 4 << 20 };
/// Window of a header walk or segment scan on the pool thread.
pub const SCAN_WINDOW: usize = if SMALL { 16 << 10 } else { 1 << 20 };
/// Seconds without an append after which a durable partition gives its chunks back.
pub const IDLE_AFTER_MS: i64 = 10_000;
/// Milliseconds between two looks for idle partitions.
pub const IDLE_CHECK_MS: i64 = 1_000;
/// Partitions for each look: of more, only every second, third, ... look is taken, every fifth at least.
pub const IDLE_CHECKS_A_LOOK: usize = 1_000;
pub const IDLE_LOOKS_MOST: u64 = 5;
/// One part in so many of the segment files open at once may be open through the page cache.
pub const SHARED_FILES_PART: usize = 4;
/// Cached chunks looked at in one eviction before it gives up for now.
pub const EVICT_LOOKS: usize = 64;
/// And of those so many that cannot be taken yet.
pub const EVICT_MISSES: usize = 2;
/// Largest payload that time lookups inflate.
pub const INFLATE_MAX: usize = 256 << 20;
/// Segments of one partition.
pub const SEGMENTS_MAX: usize = 1 << 20;
/// Names in one directory that are read.
pub const DIR_NAMES_MAX: usize = 4 << 20;
/// Parts (chunk rows, file ranges) that one read joins.
pub const READ_PARTS: usize = 8;
/// What a shard holds of what it read ahead for readers that are behind; a reader asks for a MiB of a partition.
pub const READ_AHEAD_BYTES: usize = if SMALL { 64 << 10 } else { 8 << 20 };
/// And of that for one reader, however little or much it asks for at once.
pub const READ_AHEAD_LEAST: usize = if SMALL { 4 << 10 } else { 128 << 10 };
pub const READ_AHEAD_MOST: usize = READ_AHEAD_BYTES / 4;
/// Milliseconds after which nobody seems to come for it any more.
pub const READ_AHEAD_KEPT_MS: i64 = 2_000;
/// Places that a partition remembers, where direct reads ended: of so many readers.
pub const READ_PLACES: usize = 4;
/// Distance of the places within a verified window where a file range may begin or end.
pub const MARK_BYTES: u64 = if SMALL { 8 << 10 } else { 32 << 10 };
/// Damaged ranges that a partition tells apart; the last one takes those that follow.
pub const DAMAGE_MARKS: usize = 64;
/// Damaged ranges that one read passes by before it gives up.
pub const DAMAGES_PER_READ: usize = 4;
/// Bytes that are looked through, and bytes whose CRC is computed, for the next sound batch behind damage.
pub const DAMAGE_SEARCH_BYTES: u64 = if SMALL { 1 << 20 } else { 64 << 20 };
/// Sentences about damage in so many milliseconds, per shard.
pub const DAMAGE_TELLS: u32 = 10;
pub const DAMAGE_TELL_MS: i64 = 60_000;
/// One read of the scrub: checking it takes less than a tenth of a millisecond. A batch that is larger is read whole.
pub const SCRUB_READ: usize = if SMALL { 16 << 10 } else { 256 << 10 };
/// Longest pause of the scrub between two reads: what there is to read may grow meanwhile.
pub const SCRUB_PAUSE_MAX_MS: i64 = 60_000;
/// How long a window that was verified in the page cache is believed. Whoever reads the file from outside (a backup) may
/// bring pages back that had left it.
pub const WINDOW_TRUST_MS: i64 = 60_000;
/// First read of a tail scan: most tails behind a recovery point are short.
pub const RECOVERY_FIRST_READ: usize = if SMALL { 8 << 10 } else { 64 << 10 };

/// Partitions that gave their chunks back at one look, from which on freed memory goes back to the operating system.
pub const TRIM_AFTER_RESTING: usize = 256;

/// Segments that one cleaned segment may take the place of.
pub const REPLACED_SEGMENTS: usize = if SMALL { 8 } else { 4096 };
/// Scratch memory that a cleaning keeps from one batch to the next.
pub const CLEAN_SCRATCH_KEPT: usize = 16 << 20;
/// While producers write, a cleaning takes one part of so many of the time.
pub const CLEAN_SHARE: u64 = 4;
/// Longest pause between two pieces of a cleaning for the producers' sake, and longest sleep before it looks whether it has
/// to make way.
pub const CLEAN_PAUSE_MAX_MS: u64 = 50;
/// Tries of the renames and removals of a swap that was decided, and the wait between two.
pub const SWAP_TRIES: u32 = 4;
pub const SWAP_RETRY_MS: u64 = 50;
