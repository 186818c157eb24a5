//! Loading a coordinator: its partition's log from start to end, replayed. At start and at first use, never on the way
//! of a request; other tasks of the shard get their turn after every [`LOAD_READ_BYTES`].

use std::fmt;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use coordinator::{CoordinatorConfig, GroupCoordinator, RecordError};
use log::{LogError, PartitionLog, ReadLimits, Slice};
use model::batch::{BatchError, RecordIter};
use model::compression::{self, CompressionError};
use model::{BatchView, Codec, ErrorCode, Offset, PartitionKey};
use replica::Replica;

use super::limits::{LOAD_READ_BYTES, MAX_INFLATED_BYTES, PRINTED_PER_LOAD};
use crate::shard::Shard;

/// Why a coordinator could not be loaded. The next request tries again.
#[derive(Clone, Debug)]
pub enum LoadError {
    /// The partition itself could not be opened.
    Partition(ErrorCode),
    Log(LogError),
    Batch {
        offset: Offset,
        error: BatchError,
    },
    Compressed {
        offset: Offset,
        error: CompressionError,
    },
    /// The log gave nothing although it goes on.
    Nothing {
        offset: Offset,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Partition(code) => write!(f, "its partition cannot be opened: {}", code.sentence()),
            LoadError::Log(error) => write!(f, "its log cannot be read: {error}"),
            LoadError::Batch { offset, error } => write!(f, "the batch at offset {offset} is damaged: {error}"),
            LoadError::Compressed { offset, error } => write!(f, "the batch at offset {offset}: {error}"),
            LoadError::Nothing { offset } => write!(f, "its log gives nothing at offset {offset}"),
        }
    }
}

impl From<LogError> for LoadError {
    fn from(error: LogError) -> LoadError {
        LoadError::Log(error)
    }
}

/// A coordinator that has seen everything in its log, still loading, and the partition it writes to.
pub async fn load(
    shard: &Rc<Shard>,
    key: PartitionKey,
    config: CoordinatorConfig,
) -> Result<(GroupCoordinator, Rc<Replica>), LoadError> {
    let replica = shard.partition(key).await.map_err(LoadError::Partition)?;
    let mut replay = Replay::new(key, config);
    replay.log(replica.log()).await?;
    replay.report();
    Ok((replay.coordinator, replica))
}

struct Replay {
    key: PartitionKey,
    coordinator: GroupCoordinator,
    inflated: Vec<u8>,
    /// Records that decode to nothing this coordinator can hold.
    left_out: u64,
}

impl Replay {
    fn new(key: PartitionKey, config: CoordinatorConfig) -> Replay {
        Replay { key, coordinator: GroupCoordinator::new(config), inflated: Vec::new(), left_out: 0 }
    }

    async fn log(&mut self, log: &PartitionLog) -> Result<(), LoadError> {
        let end = log.log_end_offset();
        log.wait_durable(end).await?;
        let mut at = log.log_start_offset();
        while at < end {
            let limits = ReadLimits { max_bytes: LOAD_READ_BYTES, min_one_batch: true, upper_bound: end };
            let read = log.read(at, limits).await?;
            if read.next_offset <= at {
                return Err(LoadError::Nothing { offset: at });
            }
            let bytes = joined(&read.slices).await?;
            self.batches(&bytes, at)?;
            at = read.next_offset;
            runtime::task::yield_now().await;
        }
        Ok(())
    }

    /// Whole batches; records below `from` were deleted and do not count.
    fn batches(&mut self, mut bytes: &[u8], from: Offset) -> Result<(), LoadError> {
        let mut offset = from;
        while !bytes.is_empty() {
            let damaged = |error| LoadError::Batch { offset, error };
            let batch = BatchView::parse(bytes).map_err(damaged)?;
            batch.check_crc().map_err(damaged)?;
            bytes = &bytes[batch.bytes.len()..];
            if !batch.header.is_control() {
                self.batch(&batch, from)?;
            }
            offset = batch.header.next_offset();
        }
        Ok(())
    }

    fn batch(&mut self, batch: &BatchView<'_>, from: Offset) -> Result<(), LoadError> {
        let offset = batch.header.base_offset;
        let damaged = |error| LoadError::Batch { offset, error };
        let codec = batch.header.codec().map_err(damaged)?;
        let mut inflated = std::mem::take(&mut self.inflated);
        let section = if codec == Codec::None {
            batch.payload()
        } else {
            compression::inflate(codec, batch.payload(), MAX_INFLATED_BYTES, &mut inflated)
                .map_err(|error| LoadError::Compressed { offset, error })?;
            inflated.as_slice()
        };
        for record in RecordIter::new(section, batch.header.record_count) {
            let record = record.map_err(damaged)?;
            let at = offset.plus(i64::from(record.offset_delta));
            if at < from {
                continue;
            }
            let replayed = self.coordinator.replay(record.key.unwrap_or_default(), record.value);
            if let Err(error) = replayed {
                self.leave_out(at, &error);
            }
        }
        self.inflated = inflated;
        Ok(())
    }

    /// One record that nobody can read must not take all the groups of its partition away.
    fn leave_out(&mut self, at: Offset, error: &RecordError) {
        self.left_out += 1;
        if self.left_out <= PRINTED_PER_LOAD {
            eprintln!(
                "ringlog: groups of offsets partition {}: the record at {at} is left out: {error}",
                self.key.partition
            );
        }
    }

    fn report(&self) {
        if self.left_out > PRINTED_PER_LOAD {
            eprintln!(
                "ringlog: groups of offsets partition {}: {} records were left out",
                self.key.partition, self.left_out
            );
        }
    }
}

/// The bytes of a read in one piece: batches may lie across slices of the cache.
async fn joined(slices: &[Slice]) -> Result<Bytes, LogError> {
    if let [slice] = slices {
        return slice.load().await;
    }
    let mut bytes = BytesMut::with_capacity(slices.iter().map(Slice::len).sum());
    for slice in slices {
        bytes.extend_from_slice(&slice.load().await?);
    }
    Ok(bytes.freeze())
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
