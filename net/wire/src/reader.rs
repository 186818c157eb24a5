//! Reads protocol values from one frame. Strings are borrowed from it, `bytes` and `records` are
//! ref-counted slices of it; the reader itself never allocates but for the `Vec` of an array.
//!
//! Where Kafka is tolerant, so is this: any negative length is null, any non-zero byte is true,
//! bytes after the last known field are left alone, unknown tagged fields are skipped.

use bytes::Bytes;

use crate::{Records, WireError};

/// How many bytes an array may reserve ahead, as a multiple of the bytes left. Larger arrays grow
/// as their elements arrive, so that a count alone never costs more memory than the frame it came in.
const RESERVE_FACTOR: usize = 4;

/// Kafka's limit for strings in both encodings.
pub(crate) const MAX_STRING_LEN: usize = i16::MAX as usize;

#[derive(Debug, Clone)]
pub struct Reader<'a> {
    frame: &'a Bytes,
    position: usize,
    /// Where this reader must stop: the frame's end, or that of the tagged field it is inside.
    end: usize,
}

impl<'a> Reader<'a> {
    pub fn new(frame: &'a Bytes) -> Self {
        Self { frame, position: 0, end: frame.len() }
    }

    /// Bytes not yet read.
    pub fn remaining(&self) -> usize {
        self.end - self.position
    }

    /// Bytes read so far, counted from the frame's start.
    pub fn position(&self) -> usize {
        self.position
    }

    pub fn skip(&mut self, len: usize) -> Result<(), WireError> {
        self.take(len).map(|_| ())
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        if len > self.remaining() {
            return Err(WireError::UnexpectedEnd { needed: len, left: self.remaining() });
        }
        let start = self.position;
        self.position += len;
        Ok(&self.frame[start..self.position])
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let mut value = [0; N];
        value.copy_from_slice(self.take(N)?);
        Ok(value)
    }

    pub fn bool(&mut self) -> Result<bool, WireError> {
        Ok(self.i8()? != 0)
    }

    pub fn i8(&mut self) -> Result<i8, WireError> {
        self.fixed().map(i8::from_be_bytes)
    }

    pub fn u16(&mut self) -> Result<u16, WireError> {
        self.fixed().map(u16::from_be_bytes)
    }

    pub fn i16(&mut self) -> Result<i16, WireError> {
        self.fixed().map(i16::from_be_bytes)
    }

    pub fn i32(&mut self) -> Result<i32, WireError> {
        self.fixed().map(i32::from_be_bytes)
    }

    pub fn i64(&mut self) -> Result<i64, WireError> {
        self.fixed().map(i64::from_be_bytes)
    }

    pub fn f64(&mut self) -> Result<f64, WireError> {
        self.fixed().map(f64::from_be_bytes)
    }

    pub fn uuid(&mut self) -> Result<[u8; 16], WireError> {
        self.fixed()
    }

    /// An unsigned variable-length integer of at most 32 bits.
    pub fn uvarint(&mut self) -> Result<u32, WireError> {
        let mut value = 0u32;
        for shift in (0..35).step_by(7) {
            let [byte] = self.fixed()?;
            let bits = u32::from(byte & 0x7f);
            if shift == 28 && bits > 0x0f {
                return Err(WireError::InvalidVarint);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(WireError::InvalidVarint)
    }

    /// A length of a string (16 bits), or of anything else (32 bits); `None` is null.
    fn length(&mut self, flexible: bool, short: bool) -> Result<Option<usize>, WireError> {
        if flexible {
            return Ok(self.uvarint()?.checked_sub(1).map(|len| len as usize));
        }
        let len = if short { i32::from(self.i16()?) } else { self.i32()? };
        Ok(usize::try_from(len).ok())
    }

    pub fn nullable_string(&mut self, flexible: bool) -> Result<Option<&'a str>, WireError> {
        let Some(len) = self.length(flexible, true)? else { return Ok(None) };
        if len > MAX_STRING_LEN {
            return Err(WireError::StringTooLong { len });
        }
        std::str::from_utf8(self.take(len)?).map(Some).map_err(|_| WireError::InvalidUtf8)
    }

    pub fn string(&mut self, flexible: bool) -> Result<&'a str, WireError> {
        self.nullable_string(flexible)?.ok_or(WireError::NullNotAllowed { field: "a string" })
    }

    pub fn nullable_bytes(&mut self, flexible: bool) -> Result<Option<Bytes>, WireError> {
        let Some(len) = self.length(flexible, false)? else { return Ok(None) };
        let start = self.position;
        self.skip(len)?;
        Ok(Some(self.frame.slice(start..self.position)))
    }

    pub fn bytes(&mut self, flexible: bool) -> Result<Bytes, WireError> {
        self.nullable_bytes(flexible)?.ok_or(WireError::NullNotAllowed { field: "a bytes value" })
    }

    /// Steps over a bytes or records value and says how long it was.
    pub fn skip_bytes(&mut self, flexible: bool) -> Result<Option<usize>, WireError> {
        let Some(len) = self.length(flexible, false)? else { return Ok(None) };
        self.skip(len)?;
        Ok(Some(len))
    }

    pub fn records(&mut self, flexible: bool) -> Result<Records, WireError> {
        Ok(self.nullable_bytes(flexible)?.map_or(Records::Null, |bytes| Records::Bytes(vec![bytes])))
    }

    /// The count of an array whose elements take at least `least` bytes each.
    pub fn nullable_count(&mut self, flexible: bool, least: usize) -> Result<Option<usize>, WireError> {
        let Some(count) = self.length(flexible, false)? else { return Ok(None) };
        let left = self.remaining();
        if count > left / least.max(1) {
            return Err(WireError::CountTooLarge { count, left });
        }
        Ok(Some(count))
    }

    pub fn count(&mut self, flexible: bool, least: usize) -> Result<usize, WireError> {
        self.nullable_count(flexible, least)?.ok_or(WireError::NullNotAllowed { field: "an array" })
    }

    pub fn array<T>(
        &mut self,
        flexible: bool,
        least: usize,
        element: impl FnMut(&mut Self) -> Result<T, WireError>,
    ) -> Result<Vec<T>, WireError> {
        let count = self.count(flexible, least)?;
        self.elements(count, element)
    }

    pub fn nullable_array<T>(
        &mut self,
        flexible: bool,
        least: usize,
        element: impl FnMut(&mut Self) -> Result<T, WireError>,
    ) -> Result<Option<Vec<T>>, WireError> {
        let Some(count) = self.nullable_count(flexible, least)? else { return Ok(None) };
        self.elements(count, element).map(Some)
    }

    fn elements<T>(
        &mut self,
        count: usize,
        mut element: impl FnMut(&mut Self) -> Result<T, WireError>,
    ) -> Result<Vec<T>, WireError> {
        let affordable = RESERVE_FACTOR * self.remaining() / size_of::<T>().max(1);
        let mut elements = Vec::with_capacity(count.min(affordable));
        for _ in 0..count {
            elements.push(element(self)?);
        }
        Ok(elements)
    }

    pub fn nullable_struct<T>(
        &mut self,
        decode: impl FnOnce(&mut Self) -> Result<T, WireError>,
    ) -> Result<Option<T>, WireError> {
        if self.i8()? < 0 { Ok(None) } else { decode(self).map(Some) }
    }

    /// Reads a tagged-field section. `known` gets each tag with a reader that ends where the field
    /// ends, and reads it or leaves it.
    pub fn tagged_fields(
        &mut self,
        mut known: impl FnMut(u32, &mut Self) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        let count = self.uvarint()? as usize;
        // A tag and a size are at least one byte each.
        if count > self.remaining() / 2 {
            return Err(WireError::CountTooLarge { count, left: self.remaining() });
        }
        for _ in 0..count {
            let tag = self.uvarint()?;
            let size = self.uvarint()? as usize;
            if size > self.remaining() {
                return Err(WireError::UnexpectedEnd { needed: size, left: self.remaining() });
            }
            let (field_end, outer_end) = (self.position + size, self.end);
            self.end = field_end;
            known(tag, self)?;
            self.position = field_end;
            self.end = outer_end;
        }
        Ok(())
    }

    /// Steps over a tagged-field section of which no tag is known.
    pub fn skip_tagged_fields(&mut self) -> Result<(), WireError> {
        self.tagged_fields(|_, _| Ok(()))
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
