//! Produce and Fetch answers of the two versions that the load generator speaks, walked where they lie.
//!
//! The general decoder would allocate for every partition and copy the frame first; at a thousand partitions in a request
//! that would make the client dearer than the broker. Tests hold these walks against the general encoder. Budget: no
//! allocation, no copy; of records only the batches' headers are looked at.

use model::BatchView;

/// Versions that these walks are for.
pub const PRODUCE_VERSION: i16 = 8;
pub const FETCH_VERSION: i16 = 11;

/// An answer that ends too early, or says what it may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl From<Malformed> for std::io::Error {
    fn from(_: Malformed) -> std::io::Error {
        std::io::Error::new(std::io::ErrorKind::InvalidData, "an answer of the broker is malformed")
    }
}

struct Walk<'a>(&'a [u8]);

impl<'a> Walk<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.bytes(N)?.try_into().map_err(|_| Malformed)
    }

    fn i16(&mut self) -> Result<i16, Malformed> {
        self.array().map(i16::from_be_bytes)
    }

    fn i32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_be_bytes)
    }

    fn i64(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_be_bytes)
    }

    /// A count or length; null is 0.
    fn count(&mut self) -> Result<usize, Malformed> {
        Ok(usize::try_from(self.i32()?).unwrap_or(0))
    }

    /// A string, null or not.
    fn skip_string(&mut self) -> Result<(), Malformed> {
        let length = usize::try_from(self.i16()?).unwrap_or(0);
        self.bytes(length).map(drop)
    }
}

/// What a Produce answer says of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Produced {
    pub partition: i32,
    pub error: i16,
    pub base_offset: i64,
}

/// Calls `each` for every partition, in the answer's order.
pub fn produced(answer: &[u8], mut each: impl FnMut(Produced)) -> Result<(), Malformed> {
    let mut walk = Walk(answer);
    for _ in 0..walk.count()? {
        walk.skip_string()?;
        for _ in 0..walk.count()? {
            let (partition, error, base_offset) = (walk.i32()?, walk.i16()?, walk.i64()?);
            walk.bytes(16)?;
            for _ in 0..walk.count()? {
                walk.i32()?;
                walk.skip_string()?;
            }
            walk.skip_string()?;
            each(Produced { partition, error, base_offset });
        }
    }
    walk.i32()?;
    Ok(())
}

/// What a Fetch answer says of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched<'a> {
    pub partition: i32,
    pub error: i16,
    pub high_watermark: i64,
    pub records: &'a [u8],
}

/// Calls `each` for every partition; gives the answer's own error and its session.
pub fn fetched(answer: &[u8], mut each: impl FnMut(Fetched<'_>)) -> Result<(i16, i32), Malformed> {
    let mut walk = Walk(answer);
    walk.i32()?;
    let (error, session) = (walk.i16()?, walk.i32()?);
    for _ in 0..walk.count()? {
        walk.skip_string()?;
        for _ in 0..walk.count()? {
            let (partition, error, high_watermark) = (walk.i32()?, walk.i16()?, walk.i64()?);
            walk.bytes(16)?;
            let aborted = walk.count()?;
            walk.bytes(aborted.checked_mul(16).ok_or(Malformed)?)?;
            walk.i32()?;
            let length = walk.count()?;
            each(Fetched { partition, error, high_watermark, records: walk.bytes(length)? });
        }
    }
    Ok((error, session))
}

/// Whole batches of a fetched range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batches {
    pub records: u64,
    pub bytes: u64,
    /// Behind the last whole batch; none where there is none.
    pub next_offset: Option<i64>,
}

/// A batch that is cut at the end of the range does not count.
pub fn batches(mut records: &[u8]) -> Batches {
    let mut found = Batches::default();
    while let Ok(view) = BatchView::parse(records) {
        found.records += u64::try_from(view.header.record_count).unwrap_or(0);
        found.bytes += view.bytes.len() as u64;
        found.next_offset = Some(view.header.next_offset().0);
        records = &records[view.bytes.len()..];
    }
    found
}

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;
