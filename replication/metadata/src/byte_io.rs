//! Little-endian numbers and byte strings, written to a `Vec` and read with bounds. For files and peers' messages only.

/// Reads from the front of a slice; every method answers `None` when the bytes run out.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes }
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(front)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Bytes after a u32 length that may not exceed `max`.
    pub(crate) fn byte_string(&mut self, max: usize) -> Option<&'a [u8]> {
        let len = usize::try_from(self.u32()?).ok().filter(|len| *len <= max)?;
        self.take(len)
    }

    /// A count of things that take at least `least_len` bytes each: never more than the rest can hold.
    pub(crate) fn count(&mut self, least_len: usize, max: usize) -> Option<usize> {
        let count = usize::try_from(self.u32()?).ok()?;
        (count <= max && count.checked_mul(least_len)? <= self.bytes.len()).then_some(count)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Appends `bytes` after their length. Programmer error where the length does not fit: all callers have bounds far below.
pub(crate) fn put_byte_string(out: &mut Vec<u8>, bytes: &[u8]) {
    put_len(out, bytes.len());
    out.extend_from_slice(bytes);
}

pub(crate) fn put_len(out: &mut Vec<u8>, len: usize) {
    assert!(len <= u32::MAX as usize, "lengths are bounded");
    out.extend_from_slice(&(len as u32).to_le_bytes());
}
