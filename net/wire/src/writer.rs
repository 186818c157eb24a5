//! Writes one message as a list of chunks. Small values go into a growing buffer; record bytes are
//! pushed beside it as ref-counted slices, or named only (`Chunk::External`), so that no fetched
//! byte is copied. The frame's size prefix counts all of them.

use bytes::{BufMut, Bytes, BytesMut};

use crate::reader::MAX_STRING_LEN;
use crate::{Chunk, Records, WireError};

/// Slices of `bytes` fields below this are copied: an entry in the vectored write costs more.
/// Record bytes are never copied, however few.
const COPY_BELOW: usize = 512;

/// Room for the size prefix and a small answer, so that most answers are one allocation.
const FIRST_CAPACITY: usize = 256;

#[derive(Debug)]
enum Piece {
    /// Written here; stays mutable so that the size prefix can be filled in last.
    Own(BytesMut),
    Shared(Chunk),
}

#[derive(Debug, Default)]
pub struct Writer {
    /// What lies before the tail.
    pieces: Vec<Piece>,
    /// Bytes in `pieces`.
    pieces_len: usize,
    tail: BytesMut,
    /// Inside a tagged field everything is copied into the tail, because its size comes first.
    inline: bool,
}

impl Writer {
    pub fn new() -> Self {
        Self::with_buffer(BytesMut::with_capacity(FIRST_CAPACITY))
    }

    /// Writes behind what `buffer` holds, and into its spare capacity: a shard that keeps the
    /// buffer which [`Writer::finish_with_buffer`] returns allocates rarely.
    pub fn with_buffer(buffer: BytesMut) -> Self {
        Self { pieces: Vec::new(), pieces_len: 0, tail: buffer, inline: false }
    }

    /// A writer that has left room for a frame's size prefix; end it with [`Writer::finish_frame`].
    pub fn new_frame() -> Self {
        let mut writer = Self::new();
        writer.i32(0);
        writer
    }

    /// Bytes written so far, those of external chunks included.
    pub fn len(&self) -> usize {
        self.pieces_len + self.tail.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn bool(&mut self, value: bool) {
        self.tail.put_u8(u8::from(value));
    }

    pub fn i8(&mut self, value: i8) {
        self.tail.put_i8(value);
    }

    pub fn u16(&mut self, value: u16) {
        self.tail.put_u16(value);
    }

    pub fn i16(&mut self, value: i16) {
        self.tail.put_i16(value);
    }

    pub fn i32(&mut self, value: i32) {
        self.tail.put_i32(value);
    }

    pub fn i64(&mut self, value: i64) {
        self.tail.put_i64(value);
    }

    pub fn f64(&mut self, value: f64) {
        self.tail.put_f64(value);
    }

    pub fn uuid(&mut self, value: &[u8; 16]) {
        self.tail.put_slice(value);
    }

    pub fn uvarint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.tail.put_u8((value as u8 & 0x7f) | 0x80);
            value >>= 7;
        }
        self.tail.put_u8(value as u8);
    }

    /// A length of anything but a string.
    fn length(&mut self, len: Option<usize>, flexible: bool) -> Result<(), WireError> {
        let len = match len {
            Some(len) => i32::try_from(len).map_err(|_| WireError::TooLong { len })?,
            None => -1,
        };
        match flexible {
            // At most 2^31, so the sum fits.
            true => self.uvarint((i64::from(len) + 1) as u32),
            false => self.i32(len),
        }
        Ok(())
    }

    pub fn nullable_string(&mut self, value: Option<&str>, flexible: bool) -> Result<(), WireError> {
        let len = value.map_or(0, str::len);
        if len > MAX_STRING_LEN {
            return Err(WireError::StringTooLong { len });
        }
        match (value, flexible) {
            (Some(_), true) => self.uvarint(len as u32 + 1),
            (Some(_), false) => self.i16(len as i16),
            (None, true) => self.uvarint(0),
            (None, false) => self.i16(-1),
        }
        self.tail.put_slice(value.unwrap_or_default().as_bytes());
        Ok(())
    }

    pub fn string(&mut self, value: &str, flexible: bool) -> Result<(), WireError> {
        self.nullable_string(Some(value), flexible)
    }

    pub fn nullable_bytes(&mut self, value: Option<&Bytes>, flexible: bool) -> Result<(), WireError> {
        self.length(value.map(Bytes::len), flexible)?;
        match value {
            Some(bytes) if bytes.len() >= COPY_BELOW => self.push(Chunk::Bytes(bytes.clone())),
            Some(bytes) => self.tail.put_slice(bytes),
            None => {}
        }
        Ok(())
    }

    pub fn bytes(&mut self, value: &Bytes, flexible: bool) -> Result<(), WireError> {
        self.nullable_bytes(Some(value), flexible)
    }

    pub fn records(&mut self, records: &Records, flexible: bool) -> Result<(), WireError> {
        let len = if records.is_null() { None } else { Some(records.len()) };
        self.length(len, flexible)?;
        match records {
            Records::Null => {}
            Records::Bytes(slices) => slices.iter().for_each(|slice| self.push(Chunk::Bytes(slice.clone()))),
            Records::External { len, token } => self.push(Chunk::External { len: *len, token: *token }),
            Records::Chunks(chunks) => chunks.iter().for_each(|chunk| self.push(chunk.clone())),
        }
        Ok(())
    }

    pub fn count(&mut self, count: usize, flexible: bool) -> Result<(), WireError> {
        self.length(Some(count), flexible)
    }

    pub fn null_count(&mut self, flexible: bool) {
        if flexible { self.uvarint(0) } else { self.i32(-1) }
    }

    /// One tagged field. `value` writes its value; the tag and the size are put before it.
    pub fn tagged(
        &mut self,
        tag: u32,
        value: impl FnOnce(&mut Self) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        let start = self.tail.len();
        let outer_inline = std::mem::replace(&mut self.inline, true);
        value(self)?;
        self.inline = outer_inline;
        let value_end = self.tail.len();
        assert!(value_end >= start, "a tagged value was pushed out of the tail");
        let size = value_end - start;
        self.uvarint(tag);
        self.uvarint(u32::try_from(size).map_err(|_| WireError::TooLong { len: size })?);
        let prefix_len = self.tail.len() - value_end;
        self.tail[start..].rotate_right(prefix_len);
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) {
        if chunk.is_empty() {
            return;
        }
        if self.inline {
            let Chunk::Bytes(bytes) = chunk else { panic!("no tagged field carries external bytes") };
            self.tail.put_slice(&bytes);
            return;
        }
        self.cut_tail();
        self.pieces_len += chunk.len();
        self.pieces.push(Piece::Shared(chunk));
    }

    fn cut_tail(&mut self) {
        if !self.tail.is_empty() {
            self.pieces_len += self.tail.len();
            self.pieces.push(Piece::Own(self.tail.split()));
        }
    }

    pub fn finish(self) -> Vec<Chunk> {
        self.finish_with_buffer().0
    }

    /// The chunks, and the buffer with its spare capacity for the next answer.
    pub fn finish_with_buffer(mut self) -> (Vec<Chunk>, BytesMut) {
        self.cut_tail();
        let chunks = self.pieces.into_iter().map(|piece| match piece {
            Piece::Own(bytes) => Chunk::Bytes(bytes.freeze()),
            Piece::Shared(chunk) => chunk,
        });
        (chunks.collect(), self.tail)
    }

    /// Ends what [`Writer::new_frame`] began: fills in the size prefix.
    pub fn finish_frame(self) -> Result<Vec<Chunk>, WireError> {
        self.finish_frame_with_buffer().map(|(chunks, _)| chunks)
    }

    pub(crate) fn finish_frame_with_buffer(mut self) -> Result<(Vec<Chunk>, BytesMut), WireError> {
        let len = self.len().checked_sub(4).expect("the frame was begun with a size prefix");
        let size = i32::try_from(len).map_err(|_| WireError::TooLong { len })?;
        let first = match self.pieces.first_mut() {
            Some(Piece::Own(bytes)) => bytes,
            Some(Piece::Shared(_)) => panic!("the frame was begun with a size prefix"),
            None => &mut self.tail,
        };
        first[..4].copy_from_slice(&size.to_be_bytes());
        Ok(self.finish_with_buffer())
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
