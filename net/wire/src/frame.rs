//! Cuts frames from a connection's bytes: a 32-bit size, then that many bytes. The size is judged
//! as soon as its four bytes are there, before anything is buffered for it.

use bytes::{Buf, Bytes, BytesMut};

use crate::WireError;

/// Bytes of a frame's size prefix.
pub const PREFIX_LEN: usize = 4;

/// The largest frames a connection accepts. Before authentication a stranger gets little room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLimits {
    pub before_authentication: usize,
    pub after_authentication: usize,
}

impl FrameLimits {
    pub fn limit(&self, authenticated: bool) -> usize {
        if authenticated { self.after_authentication } else { self.before_authentication }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Split {
    /// At least this many more bytes must arrive. The first answer asks for the prefix, the next
    /// for the whole of the frame, so a reader can size its receive by it.
    Need(usize),
    /// One frame, without its prefix; shared already, so slicing it does not allocate.
    Frame(Bytes),
}

/// The size that a prefix announces, once its four bytes are there.
pub fn frame_len(buffered: &[u8], limit: usize) -> Result<Option<usize>, WireError> {
    let Some(prefix) = buffered.first_chunk::<PREFIX_LEN>() else { return Ok(None) };
    let size = i32::from_be_bytes(*prefix);
    if size <= 0 {
        return Err(WireError::FrameSizeInvalid { size });
    }
    let size = size as usize;
    if size > limit {
        return Err(WireError::FrameTooLarge { size, limit });
    }
    Ok(Some(size))
}

/// Cuts the first whole frame off `buffered`.
pub fn split_frame(buffered: &mut BytesMut, limit: usize) -> Result<Split, WireError> {
    let Some(len) = frame_len(buffered, limit)? else {
        return Ok(Split::Need(PREFIX_LEN - buffered.len()));
    };
    let whole = PREFIX_LEN + len;
    if buffered.len() < whole {
        return Ok(Split::Need(whole - buffered.len()));
    }
    buffered.advance(PREFIX_LEN);
    let frame = buffered.split_to(len).freeze();
    assert_eq!(frame.len(), len, "a frame is as long as its prefix says");
    Ok(Split::Frame(frame))
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
