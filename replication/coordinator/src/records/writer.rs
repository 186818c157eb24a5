//! Writes Kafka's primitive types. Callers have checked that strings fit their 16-bit length.

use crate::limits;
use model::varint;

#[derive(Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn with_capacity(capacity: usize) -> Writer {
        Writer(Vec::with_capacity(capacity))
    }

    pub(crate) fn int16(&mut self, value: i16) -> &mut Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(crate) fn int32(&mut self, value: i32) -> &mut Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(crate) fn int64(&mut self, value: i64) -> &mut Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(crate) fn string(&mut self, value: &str) -> &mut Self {
        assert!(value.len() <= limits::MAX_STRING_BYTES, "requests are checked before they are written");
        self.int16(value.len() as i16).raw(value.as_bytes())
    }

    pub(crate) fn nullable_string(&mut self, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.string(value),
            None => self.int16(-1),
        }
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        let len = i32::try_from(value.len());
        assert!(len.is_ok(), "a request's frame is bounded far below 2 GiB");
        self.int32(len.unwrap_or(0)).raw(value)
    }

    pub(crate) fn unsigned(&mut self, value: u32) -> &mut Self {
        varint::write_unsigned(&mut self.0, value);
        self
    }

    pub(crate) fn compact_string(&mut self, value: &str) -> &mut Self {
        assert!(value.len() <= limits::MAX_STRING_BYTES, "requests are checked before they are written");
        self.unsigned(value.len() as u32 + 1).raw(value.as_bytes())
    }

    pub(crate) fn raw(&mut self, value: &[u8]) -> &mut Self {
        self.0.extend_from_slice(value);
        self
    }
}
