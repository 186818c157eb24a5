//! What a client's batch must be before it is given an offset.
//!
//! On the produce way, after the epoch check and before the producer's sequence. Uncompressed batches are walked record
//! by record without a copy; compressed ones are judged by their header and inflated only where the topic is compacted
//! (keys matter), to name the records that are refused, or where `ringlog.produce.validation=records` asks for it.
//! Kafka always inflates; this is a stated deviation that saves most of a broker's CPU.

use model::batch::{BatchError, RecordIter};
use model::compression;
use model::config::{TimestampType, TopicConfig, Validation};
use model::{BatchHeader, BatchView, Codec, ErrorCode, Offset};

use crate::limits::MAX_NAMED_RECORDS;

/// What has to be changed in the log's copy besides base offset and epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampPatch {
    Keep,
    /// The client's max timestamp was wrong; the CRC changes with it.
    MaxTimestamp(i64),
    /// `message.timestamp.type=LogAppendTime`: attribute bit, max timestamp and CRC change, the base timestamp stays.
    LogAppendTime(i64),
}

/// A batch that may be appended.
#[derive(Clone, Copy, Debug)]
pub struct Checked {
    pub header: BatchHeader,
    pub patch: TimestampPatch,
}

impl Checked {
    pub fn max_timestamp_ms(&self) -> i64 {
        match self.patch {
            TimestampPatch::Keep => self.header.max_timestamp_ms,
            TimestampPatch::MaxTimestamp(ms) | TimestampPatch::LogAppendTime(ms) => ms,
        }
    }
}

/// A refused batch: the partition's error code, a sentence, and the records to blame by index within the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub code: ErrorCode,
    pub message: &'static str,
    pub records: Vec<(i32, &'static str)>,
}

impl Refused {
    pub fn new(code: ErrorCode, message: &'static str) -> Refused {
        Refused { code, message, records: Vec::new() }
    }
}

impl From<BatchError> for Refused {
    fn from(error: BatchError) -> Refused {
        match error {
            BatchError::Cut => Refused::new(ErrorCode::InvalidRecord, "the record batch is cut short"),
            BatchError::Length(_) => Refused::new(ErrorCode::CorruptMessage, "the record batch's length is impossible"),
            BatchError::Magic(0 | 1) => {
                Refused::new(ErrorCode::InvalidRecord, "record formats 0 and 1 are not supported, use 2")
            }
            BatchError::Magic(_) => Refused::new(ErrorCode::CorruptMessage, "the record format is unknown"),
            BatchError::Crc { .. } => Refused::new(ErrorCode::CorruptMessage, "the record batch's CRC is wrong"),
            BatchError::Count(_) => {
                Refused::new(ErrorCode::InvalidRecord, "the record count does not agree with the offsets")
            }
            BatchError::Codec(_) => Refused::new(ErrorCode::InvalidRecord, "the compression codec is unknown"),
            BatchError::Record(index) => Refused {
                code: ErrorCode::InvalidRecord,
                message: "a record is malformed",
                records: vec![(index, "the record is malformed")],
            },
        }
    }
}

const FUTURE: &str = "the timestamp is too far ahead of the broker's clock (message.timestamp.after.max.ms)";
const PAST: &str = "the timestamp is too old (message.timestamp.before.max.ms)";
const NO_KEY: &str = "records of a compacted topic need a key";

/// Judges one partition's records of a Produce request.
pub fn validate(bytes: &[u8], config: &TopicConfig, wall_ms: i64) -> Result<Checked, Refused> {
    let view = one_batch(bytes)?;
    let header = view.header;
    if header.base_offset != Offset::ZERO {
        return Err(Refused::new(ErrorCode::InvalidRecord, "a produced batch begins at offset 0"));
    }
    if view.bytes.len() > config.max_message_bytes as usize {
        return Err(Refused::new(ErrorCode::MessageTooLarge, "the batch is larger than max.message.bytes"));
    }
    view.check_crc()?;
    if view.bytes.len() > config.segment_bytes as usize {
        return Err(Refused::new(ErrorCode::RecordListTooLarge, "the batch is larger than segment.bytes"));
    }
    check_header(&header)?;
    let patch = check_records(&view, config, wall_ms)?;
    Ok(Checked { header, patch })
}

fn one_batch(bytes: &[u8]) -> Result<BatchView<'_>, Refused> {
    if bytes.is_empty() {
        return Err(Refused::new(ErrorCode::InvalidRecord, "there is no record batch"));
    }
    let view = BatchView::parse(bytes)?;
    if view.bytes.len() != bytes.len() {
        return Err(Refused::new(ErrorCode::InvalidRecord, "a partition takes exactly one record batch a request"));
    }
    Ok(view)
}

fn check_header(header: &BatchHeader) -> Result<(), Refused> {
    let invalid = |message| Err(Refused::new(ErrorCode::InvalidRecord, message));
    header.codec()?;
    if header.record_count <= 0 {
        return invalid("the record batch is empty");
    }
    if header.last_offset_delta != header.record_count - 1 {
        return Err(BatchError::Count(header.record_count).into());
    }
    if header.is_control() {
        return invalid("clients cannot write control batches");
    }
    if header.has_delete_horizon() {
        return invalid("clients cannot set a delete horizon");
    }
    if header.has_producer() && (header.base_sequence < 0 || header.producer_epoch.0 < 0) {
        return invalid("an idempotent batch needs a producer epoch and a sequence number of 0 or more");
    }
    Ok(())
}

/// Bounds of a record's timestamp.
struct Window {
    oldest_ms: i64,
    newest_ms: i64,
}

impl Window {
    fn of(config: &TopicConfig, wall_ms: i64) -> Window {
        Window {
            oldest_ms: wall_ms.saturating_sub(config.message_timestamp_before_max_ms),
            newest_ms: wall_ms.saturating_add(config.message_timestamp_after_max_ms),
        }
    }

    fn blame(&self, timestamp_ms: i64) -> Option<&'static str> {
        if timestamp_ms == -1 {
            None
        } else if timestamp_ms > self.newest_ms {
            Some(FUTURE)
        } else if timestamp_ms < self.oldest_ms {
            Some(PAST)
        } else {
            None
        }
    }
}

fn check_records(view: &BatchView<'_>, config: &TopicConfig, wall_ms: i64) -> Result<TimestampPatch, Refused> {
    let create_time = config.message_timestamp_type == TimestampType::CreateTime;
    if create_time && view.header.is_log_append_time() {
        return Err(Refused::new(
            ErrorCode::InvalidTimestamp,
            "a producer cannot set the timestamp type to LogAppendTime",
        ));
    }
    let window = create_time.then(|| Window::of(config, wall_ms));
    let codec = view.header.codec()?;
    let max_timestamp_ms = if codec == Codec::None {
        walk(view.payload(), view, config, window.as_ref())?
    } else {
        check_compressed(view, codec, config, window.as_ref())?
    };
    Ok(match (create_time, max_timestamp_ms == view.header.max_timestamp_ms) {
        (false, _) => TimestampPatch::LogAppendTime(wall_ms),
        (true, true) => TimestampPatch::Keep,
        (true, false) => TimestampPatch::MaxTimestamp(max_timestamp_ms),
    })
}

fn check_compressed(
    view: &BatchView<'_>,
    codec: Codec,
    config: &TopicConfig,
    window: Option<&Window>,
) -> Result<i64, Refused> {
    let header = &view.header;
    let blamed = window.and_then(|w| w.blame(header.max_timestamp_ms).or_else(|| w.blame(header.base_timestamp_ms)));
    let keys_matter = config.cleanup_policy.compact;
    if blamed.is_none() && !keys_matter && config.validation == Validation::Header {
        return Ok(header.max_timestamp_ms);
    }
    let mut records = Vec::new();
    let bound = config.max_decompressed_message_bytes as usize;
    let inflated = compression::inflate(codec, view.payload(), bound, &mut records);
    if inflated.is_err() {
        return Err(Refused::new(ErrorCode::CorruptMessage, "the compressed records cannot be read or are too large"));
    }
    let max_timestamp_ms = walk(&records, view, config, window)?;
    match blamed {
        // The header is what everyone else goes by, so a header that lies is refused too.
        Some(message) => Err(Refused::new(ErrorCode::InvalidTimestamp, message)),
        None => Ok(max_timestamp_ms),
    }
}

/// Walks the records: shape, offsets, timestamps, keys. Gives the largest timestamp.
fn walk(payload: &[u8], view: &BatchView<'_>, config: &TopicConfig, window: Option<&Window>) -> Result<i64, Refused> {
    let header = &view.header;
    let mut walk = RecordIter::new(payload, header.record_count);
    let mut max_timestamp_ms = -1;
    let mut blamed: Vec<(i32, &'static str)> = Vec::new();
    let mut code = ErrorCode::InvalidRecord;
    for (index, record) in (0..).zip(walk.by_ref()) {
        let record = record?;
        if record.offset_delta != index {
            return Err(BatchError::Record(index).into());
        }
        let timestamp_ms = header.base_timestamp_ms.saturating_add(record.timestamp_delta_ms);
        max_timestamp_ms = max_timestamp_ms.max(timestamp_ms);
        let fault = if config.cleanup_policy.compact && record.key.is_none() {
            Some(NO_KEY)
        } else {
            let late = window.and_then(|w| w.blame(timestamp_ms));
            if late.is_some() {
                code = ErrorCode::InvalidTimestamp;
            }
            late
        };
        if let Some(message) = fault
            && blamed.len() < MAX_NAMED_RECORDS
        {
            blamed.push((index, message));
        }
    }
    if !walk.rest().is_empty() {
        return Err(BatchError::Count(header.record_count).into());
    }
    match blamed.first() {
        Some(&(_, message)) => Err(Refused { code, message, records: blamed }),
        None => Ok(max_timestamp_ms),
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
