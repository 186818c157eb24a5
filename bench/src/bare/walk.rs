//! The walk over a connection's bytes as they arrive, batch by batch: a batch is checked and copied while it is in the core's own
//! cache, and not when its request, which may be fifty times as large, is whole.
//!
//! Owned by its connection. It keeps numbers only, never bytes; what it gives borrows the caller's buffer. Budget: no allocation,
//! no copy. A request that turns out malformed further on has had its first batches taken: this is no broker.

use model::{BatchHeader, BatchView};
use wire::ApiKey;

use super::limits::{BATCH_BYTES_MAX, REQUEST_BYTES_MAX};
use crate::answers::PRODUCE_VERSION;

/// Size prefix, API key and version.
const FRONT_LEN: usize = 8;

/// Bytes that are no request of the load generator's; the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// What comes next on a connection.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// Nothing until so many bytes lie at the front.
    Wants(usize),
    /// A whole request that is no Produce, behind its size.
    Request(&'a [u8]),
    /// A Produce begins.
    Produce {
        correlation_id: i32,
        topics: usize,
    },
    Topic {
        name: &'a str,
        partitions: usize,
    },
    Partition {
        index: i32,
    },
    /// A batch of the partition named last. Its CRC was not checked.
    Batch(BatchView<'a>),
    /// The Produce has ended.
    End,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Frame,
    Produce,
    Topics,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Walk {
    at: At,
    /// Bytes of the request that were not walked.
    frame_left: usize,
    topics_left: usize,
    partitions_left: usize,
    records_left: usize,
}

/// Reads numbers and strings; nothing where bytes are missing.
struct Cursor<'a> {
    bytes: &'a [u8],
    read: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.read..self.read.checked_add(len)?)?;
        self.read += len;
        Some(taken)
    }

    fn i16(&mut self) -> Option<i16> {
        Some(i16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn i32(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    /// A string's bytes; null is empty.
    fn string(&mut self) -> Option<&'a [u8]> {
        let len = self.i16()?;
        self.take(usize::try_from(len).unwrap_or(0))
    }
}

/// A count or a length; null is 0.
fn count(value: i32) -> usize {
    usize::try_from(value).unwrap_or(0)
}

impl Walk {
    /// The next step of the bytes at the front, and how many of them it took.
    pub fn step<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Step<'a>), Malformed> {
        if self.at == At::Frame {
            return self.frame(input);
        }
        let inside = &input[..input.len().min(self.frame_left)];
        if self.at == At::Topics && self.records_left > 0 {
            return self.batch(inside);
        }
        let mut cursor = Cursor { bytes: inside, read: 0 };
        let step = match self.at {
            At::Produce => self.produce(&mut cursor)?,
            _ => self.topics(&mut cursor)?,
        };
        match step {
            Some(step) => {
                self.frame_left -= cursor.read;
                Ok((cursor.read, step))
            }
            None if inside.len() < self.frame_left => Ok((0, Step::Wants(inside.len() + 1))),
            None => Err(Malformed),
        }
    }

    fn frame<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Step<'a>), Malformed> {
        let mut cursor = Cursor { bytes: input, read: 0 };
        let mut front = || Some((cursor.i32()?, cursor.i16()?, cursor.i16()?));
        let Some((size, key, version)) = front() else { return Ok((0, Step::Wants(FRONT_LEN))) };
        let size = count(size);
        if size < FRONT_LEN - 4 {
            return Err(Malformed);
        }
        if key == ApiKey::Produce as i16 {
            if version != PRODUCE_VERSION {
                return Err(Malformed);
            }
            (self.at, self.frame_left) = (At::Produce, size - 4);
            return self.step(&input[FRONT_LEN..]).map(|(read, step)| match step {
                Step::Wants(more) => (FRONT_LEN, Step::Wants(more)),
                step => (FRONT_LEN + read, step),
            });
        }
        if size > REQUEST_BYTES_MAX {
            return Err(Malformed);
        }
        match input.get(4..4 + size) {
            Some(request) => Ok((4 + size, Step::Request(request))),
            None => Ok((0, Step::Wants(4 + size))),
        }
    }

    /// The request's own fields, up to its topics.
    fn produce<'a>(&mut self, cursor: &mut Cursor<'a>) -> Result<Option<Step<'a>>, Malformed> {
        let mut fields = || {
            let correlation_id = cursor.i32()?;
            let (_client, _transaction) = (cursor.string()?, cursor.string()?);
            let (acks, _timeout_ms) = (cursor.i16()?, cursor.i32()?);
            Some((correlation_id, acks, count(cursor.i32()?)))
        };
        let Some((correlation_id, acks, topics)) = fields() else { return Ok(None) };
        // There is one promise here: all that is answered is durable.
        if acks != -1 {
            return Err(Malformed);
        }
        (self.at, self.topics_left, self.partitions_left) = (At::Topics, topics, 0);
        Ok(Some(Step::Produce { correlation_id, topics }))
    }

    /// The next partition, else the next topic, else the end.
    fn topics<'a>(&mut self, cursor: &mut Cursor<'a>) -> Result<Option<Step<'a>>, Malformed> {
        if self.partitions_left > 0 {
            let mut fields = || Some((cursor.i32()?, count(cursor.i32()?)));
            let Some((index, records)) = fields() else { return Ok(None) };
            if records > self.frame_left - cursor.read {
                return Err(Malformed);
            }
            self.partitions_left -= 1;
            self.records_left = records;
            return Ok(Some(Step::Partition { index }));
        }
        if self.topics_left > 0 {
            let mut fields = || Some((cursor.string()?, count(cursor.i32()?)));
            let Some((name, partitions)) = fields() else { return Ok(None) };
            let name = std::str::from_utf8(name).map_err(|_| Malformed)?;
            self.topics_left -= 1;
            self.partitions_left = partitions;
            return Ok(Some(Step::Topic { name, partitions }));
        }
        if self.frame_left > 0 {
            return Err(Malformed);
        }
        self.at = At::Frame;
        Ok(Some(Step::End))
    }

    fn batch<'a>(&mut self, inside: &'a [u8]) -> Result<(usize, Step<'a>), Malformed> {
        if inside.len() < model::batch::HEADER_LEN {
            let enough = self.records_left >= model::batch::HEADER_LEN;
            return if enough { Ok((0, Step::Wants(model::batch::HEADER_LEN))) } else { Err(Malformed) };
        }
        let header = BatchHeader::parse(inside).map_err(|_| Malformed)?;
        let size = header.size();
        if size > self.records_left || size > BATCH_BYTES_MAX || header.last_offset_delta < 0 {
            return Err(Malformed);
        }
        let Some(bytes) = inside.get(..size) else { return Ok((0, Step::Wants(size))) };
        self.records_left -= size;
        self.frame_left -= size;
        Ok((size, Step::Batch(BatchView { header, bytes })))
    }
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
