//! The value of a `records` field: record batches that the protocol does not look into.

use bytes::Bytes;

use crate::Chunk;

/// Record batches of one partition. The bytes belong to whoever made the slices: the frame on the
/// way in, the log's chunks on the way out.
#[derive(Debug, Clone, Default)]
pub enum Records {
    #[default]
    Null,
    /// Ref-counted slices that lie one after the other on the wire.
    Bytes(Vec<Bytes>),
    /// Bytes that the transport sends itself; `token` tells it which.
    External { len: usize, token: u64 },
    /// Both, in order: the older batches from a file, the newest from memory.
    Chunks(Vec<Chunk>),
}

impl Records {
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Bytes on the wire.
    pub fn len(&self) -> usize {
        match self {
            Self::Null => 0,
            Self::Bytes(slices) => slices.iter().map(Bytes::len).sum(),
            Self::External { len, .. } => *len,
            Self::Chunks(chunks) => crate::chunks_len(chunks),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same bytes as one slice: free for one slice, a copy for several, `None` for null and
    /// for bytes that are not in memory.
    pub fn to_bytes(&self) -> Option<Bytes> {
        match self {
            Self::Null | Self::External { .. } => None,
            Self::Bytes(slices) => match slices.as_slice() {
                [one] => Some(one.clone()),
                many => Some(many.concat().into()),
            },
            Self::Chunks(chunks) => {
                let mut joined = Vec::with_capacity(self.len());
                for chunk in chunks {
                    match chunk {
                        Chunk::Bytes(bytes) => joined.extend_from_slice(bytes),
                        Chunk::External { .. } => return None,
                    }
                }
                Some(joined.into())
            }
        }
    }
}

/// Equal when the same bytes go on the wire, however they are sliced.
impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::External { len, token }, Self::External { len: other_len, token: other_token }) => {
                len == other_len && token == other_token
            }
            _ => match (self.to_bytes(), other.to_bytes()) {
                (Some(ours), Some(theirs)) => ours == theirs,
                _ => matches!((self, other), (Self::Chunks(ours), Self::Chunks(theirs)) if ours == theirs),
            },
        }
    }
}

impl From<Bytes> for Records {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(vec![bytes])
    }
}

impl From<Option<Bytes>> for Records {
    fn from(bytes: Option<Bytes>) -> Self {
        bytes.map_or(Self::Null, Self::from)
    }
}
