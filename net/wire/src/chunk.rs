//! A piece of an answer, as the connection puts it on the wire.

use bytes::Bytes;

/// An answer is a list of these, sent in one vectored write as far as the bytes are in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// Bytes in memory; record bytes are slices of the log's own chunks.
    Bytes(Bytes),
    /// `len` bytes that the transport sends itself (`sendfile`); it knows from where by `token`.
    External { len: usize, token: u64 },
}

impl Chunk {
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::External { len, .. } => *len,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Bytes> for Chunk {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

/// How many bytes a list of chunks puts on the wire.
pub fn chunks_len(chunks: &[Chunk]) -> usize {
    chunks.iter().map(Chunk::len).sum()
}
