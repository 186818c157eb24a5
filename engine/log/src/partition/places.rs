//! Where direct reads ended: a reader that goes on there needs no index.
//!
//! An index has the last offset of a batch and where that batch begins, so the way to a batch leads through the one before
//! it: with batches of a MiB a reader that asks for one after the other would read each of them twice. Owned by the
//! partition, a few readers' worth, in memory only. A place is good as long as the bytes before it are what they were: no
//! truncation and no swap of closed segments since the read.

use std::cell::RefCell;

use model::Offset;

use super::PartitionLog;
use super::segments::SegmentRef;
use crate::limits::READ_PLACES;

/// Where the batch at `offset`, or the next one where compaction left a gap, begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub segment_base: Offset,
    pub offset: Offset,
    pub position: u64,
    /// Of the closed segments, and the count of truncations, before the read.
    pub version: u64,
    pub cuts: u64,
}

/// The newest last.
#[derive(Debug, Default)]
pub(crate) struct Places(RefCell<Vec<Place>>);

impl Places {
    pub fn note(&self, place: Place) {
        let mut places = self.0.borrow_mut();
        places.retain(|known| known.offset != place.offset);
        if places.len() == READ_PLACES {
            places.remove(0);
        }
        places.push(place);
    }

    /// A reader passed by: nobody will begin there.
    pub fn pass(&self, offset: Offset) {
        self.0.borrow_mut().retain(|known| known.offset != offset);
    }

    /// Whether a direct read ended there, and where that is.
    pub fn find(&self, offset: Offset) -> Option<Place> {
        self.0.borrow().iter().find(|place| place.offset == offset).copied()
    }
}

impl PartitionLog {
    pub(crate) fn place_of(&self, segment: SegmentRef, offset: Offset) -> Option<u64> {
        let place = self.places.find(offset)?;
        let holds = place.segment_base == segment.base_offset
            && place.position < segment.size
            && place.cuts == self.cuts.get()
            && self.is_closed_version(place.version);
        holds.then_some(place.position)
    }
}
