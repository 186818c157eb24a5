//! Reads Kafka's primitive types from a slice: fixed lengths (16-bit strings, 32-bit bytes) or, in flexible versions,
//! compact ones (unsigned varint, length plus one).

use super::RecordError;
use crate::limits;
use bytes::Bytes;
use model::varint;

pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    pos: usize,
    flexible: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], flexible: bool) -> Reader<'a> {
        Reader { bytes, pos: 0, flexible }
    }

    /// What follows is in the compact form.
    pub(crate) fn set_flexible(&mut self) {
        self.flexible = true;
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], RecordError> {
        let rest = self.bytes.get(self.pos..).unwrap_or_default();
        let taken = rest.get(..len).ok_or(RecordError::Truncated)?;
        self.pos += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn int16(&mut self) -> Result<i16, RecordError> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    pub(crate) fn int32(&mut self) -> Result<i32, RecordError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub(crate) fn int64(&mut self) -> Result<i64, RecordError> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    pub(crate) fn unsigned(&mut self) -> Result<u32, RecordError> {
        varint::read_unsigned(self.bytes, &mut self.pos).ok_or(RecordError::BadVarint)
    }

    /// `None` is null. `fixed` reads the length of the non-compact form.
    fn length(&mut self, fixed: fn(&mut Self) -> Result<i32, RecordError>) -> Result<Option<usize>, RecordError> {
        if self.flexible {
            return Ok((self.unsigned()? as usize).checked_sub(1));
        }
        match fixed(self)? {
            -1 => Ok(None),
            len => usize::try_from(len).map(Some).map_err(|_| RecordError::NegativeLength),
        }
    }

    pub(crate) fn nullable_string(&mut self) -> Result<Option<String>, RecordError> {
        let Some(len) = self.length(|r| r.int16().map(i32::from))? else { return Ok(None) };
        if len > limits::MAX_STRING_BYTES {
            // Compact strings could say more, but nobody writes it, and it could not be written again.
            return Err(RecordError::StringTooLong);
        }
        let text = std::str::from_utf8(self.take(len)?).map_err(|_| RecordError::NotUtf8)?;
        Ok(Some(text.to_owned()))
    }

    pub(crate) fn string(&mut self) -> Result<String, RecordError> {
        self.nullable_string()?.ok_or(RecordError::NullString)
    }

    /// Null counts as empty.
    pub(crate) fn bytes(&mut self) -> Result<Bytes, RecordError> {
        match self.length(Self::int32)? {
            Some(len) => Ok(Bytes::copy_from_slice(self.take(len)?)),
            None => Ok(Bytes::new()),
        }
    }

    /// Entries of an array, each at least a byte long: never more than the bytes that are left.
    pub(crate) fn array_count(&mut self) -> Result<Option<usize>, RecordError> {
        let Some(count) = self.length(Self::int32)? else { return Ok(None) };
        if count > self.bytes.len().saturating_sub(self.pos) {
            return Err(RecordError::CountTooLarge);
        }
        Ok(Some(count))
    }

    /// The tagged fields at the end of a flexible structure, each handed to `field` with its tag.
    pub(crate) fn tagged_fields(
        &mut self,
        mut field: impl FnMut(u32, &'a [u8]) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        if !self.flexible {
            return Ok(());
        }
        for _ in 0..self.unsigned()? {
            let tag = self.unsigned()?;
            let len = self.unsigned()? as usize;
            field(tag, self.take(len)?)?;
        }
        Ok(())
    }
}
