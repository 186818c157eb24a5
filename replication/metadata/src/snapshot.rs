//! Making a snapshot away from the shard: an image can be encoded anywhere, because nobody changes it.
//!
//! The node asks for one ([`SnapshotJob`], in a `Ready`), the driver runs it where blocking is allowed, and hands the
//! [`EncodedSnapshot`] back. Until then the journal just grows.

use std::sync::Arc;

use crate::error::MetadataError;
use crate::image::Image;
use crate::stored_image;

/// An order to encode `image`. Milliseconds of work for 10 000 topics: for a blocking pool, not for a shard.
#[derive(Clone, Debug)]
pub struct SnapshotJob {
    pub(crate) index: u64,
    pub(crate) term: u64,
    pub(crate) image: Arc<Image>,
}

/// A snapshot in bytes, for [`crate::MetadataNode::snapshot_encoded`].
#[derive(Clone, Debug)]
pub struct EncodedSnapshot {
    pub(crate) index: u64,
    pub(crate) term: u64,
    pub(crate) bytes: Vec<u8>,
}

impl SnapshotJob {
    pub fn run(self) -> Result<EncodedSnapshot, MetadataError> {
        let bytes = stored_image::encode_snapshot(self.index, self.term, &self.image)?;
        Ok(EncodedSnapshot { index: self.index, term: self.term, bytes })
    }
}
