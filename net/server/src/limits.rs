//! Every bound of this crate, by name.

use std::time::Duration;

/// Requests of one connection whose answers have not left yet; the connection is not read beyond it.
pub const PIPELINE_DEPTH: usize = 256;
/// Bytes asked of a socket at first: an idle connection that never sent more holds no more.
pub const FIRST_READ_BYTES: usize = 8 << 10;
/// Bytes asked of a socket behind a large frame, to see what comes next.
pub const LOOK_BYTES: usize = 16 << 10;
/// Bytes asked of a socket at once at most, while nothing larger is announced.
pub const READ_BYTES: usize = 64 << 10;
/// And at most of what is announced, before other connections get a turn.
pub const RECEIVE_BYTES: usize = 256 << 10;
/// A frame gets so much memory as soon as its prefix says that it is so long, and more only as its bytes come: twice as much
/// as there are.
pub const FRAME_GROWTH_BYTES: usize = 1 << 20;
/// Longest wait that a Fetch may ask for, milliseconds.
pub const MAX_FETCH_WAIT_MS: i64 = 300_000;
/// Longest produce time-out that is honoured, milliseconds.
pub const MAX_PRODUCE_TIMEOUT_MS: i64 = 600_000;
/// Sweeps for idle connections: milliseconds between two.
pub const IDLE_SWEEP_MS: i64 = 1_000;
/// Milliseconds that a clean stop waits for connections to end.
pub const STOP_CONNECTIONS_MS: i64 = 1_000;
/// Topics that one Metadata request may create.
pub const AUTO_CREATE_PER_REQUEST: usize = 1_000;
/// Producer ids taken from the quorum at once.
pub const PRODUCER_ID_BLOCK: u32 = 1_000;
/// Bytes that one shard gives to one Fetch, whatever its limits: what is read from disk for it is held in memory until it
/// has been sent.
pub const FETCH_BYTES_PER_SHARD: usize = 8 << 20;
/// Least share of that for each partition that is read at the same time, in bytes.
pub const FETCH_SHARE_BYTES: usize = 1 << 20;
/// An answer is full that lacks less than one part in so many of what it may hold ...
pub const FETCH_REST_PART: usize = 8;
/// ... and less than so many bytes: a read of the disk for them is not worth it.
pub const FETCH_REST_BYTES: usize = 256 << 10;
/// Before a Fetch whose news a read did not find looks again.
pub const FETCH_PAUSE: Duration = Duration::from_micros(200);
/// Partitions of one Fetch that one shard reads at the same time.
pub const FETCH_READS_AT_ONCE: usize = 8;
/// Milliseconds until a partition that could not be opened is tried again.
pub const REOPEN_AFTER_MS: i64 = 1_000;
/// Partitions of a deleted topic that a shard takes away at the same time.
pub const DELETIONS_AT_ONCE: usize = 64;
/// Partitions whose producers a shard saves at the same time when it stops.
pub const SAVES_AT_ONCE: usize = 64;
/// Least time in which an `acks=all` request may be answered with success, milliseconds: a sync takes some.
pub const MIN_PRODUCE_TIMEOUT_MS: i64 = 1_000;
/// Bytes of finished answers that one connection may hold in memory; the next request waits until some have left. One
/// answer may overdraw it.
pub const ANSWER_BYTES_PER_CONNECTION: usize = FETCH_BYTES_PER_SHARD;
/// Bytes sent before the connection counts as alive again.
pub const SEND_SLICE_BYTES: usize = 256 << 10;
/// Milliseconds that a client may take for [`SEND_SLICE_BYTES`] before its connection is closed.
pub const SEND_STALL_MS: i64 = 60_000;
/// Partitions in all fetch sessions of one shard.
pub const SESSION_PARTITIONS_PER_SHARD: usize = 100_000;
/// A fetch session makes room for another only after so many milliseconds without a request.
pub const SESSION_EVICTION_MS: i64 = 120_000;
/// Files of a shard's journal.
pub const JOURNAL_FILES: usize = 8;
/// Milliseconds for which a wait without news is kept for its session's next request.
pub const KEPT_AWAIT_MS: i64 = 60_000;
/// Milliseconds for which reads that a Fetch left under way stay so while its client does not come back.
pub const STANDING_MS: i64 = 1_000;
/// Partitions of a Fetch without a session up to which it is kept in mind what its answer said of them: 48 bytes each.
pub const TOLD_PARTITIONS: usize = 1_024;
/// Free chunks kept for reuse at most, as a part of the batch cache's size: what was in use at once comes back at once, when
/// the journal lets a file's worth go.
pub const POOL_KEEPS_CACHES: usize = 2;
/// Milliseconds between two looks for free chunks that nobody took meanwhile.
pub const POOL_TRIM_MS: i64 = 1_000;
/// Leader epochs of an imported partition are raised one by one, up to this.
pub const IMPORT_EPOCHS_MAX: i32 = 100_000;
/// Proposals that an import has under way.
pub const IMPORT_PROPOSALS: usize = 256;
/// Milliseconds between two looks after the data folders.
pub const FOLDER_LOOK_MS: i64 = 1_000;
/// Deleted partitions from which on freed memory goes back to the operating system.
pub const TRIM_AFTER_DELETIONS: usize = 256;
/// Milliseconds without a deletion after which that is done: the metadata's snapshot in the quiet, the free chunks, the
/// folders of `file.delete.delay.ms` are behind one of them.
pub const TRIM_QUIET_MS: [i64; 3] = [5_000, 20_000, 90_000];
/// Milliseconds between two looks for that.
pub const TRIM_LOOK_MS: i64 = 1_000;
/// Partitions that the log cleaner looks at before others of the shard get a turn.
pub const CLEANER_LOOKS: usize = 64;
/// Milliseconds between two rounds of the log cleaner while there is work.
pub const CLEANER_PAUSE_MS: i64 = 100;
/// Milliseconds until a partition whose cleaning failed is tried again: doubled each time, from the first to the second.
pub const CLEANER_RETRY_MS: i64 = 15_000;
pub const CLEANER_RETRY_MAX_MS: i64 = 900_000;
/// Questions about a shard's figures that wait for it.
pub const ASKS_WAITING: usize = 16;
/// Partitions that a shard looks at for its figures before others get a turn.
pub const FIGURES_LOOKS: usize = 64;
/// Partitions of the process that have a row of their own in its figures.
pub const FIGURES_ROWS: usize = 2_000;
/// Milliseconds that figures wait for the disks to say how much space they have.
pub const FIGURES_SPACE_WAIT_MS: i64 = 1_000;
/// Milliseconds between two messages about failed cleanings.
pub const CLEANER_TELL_MS: i64 = 60_000;
