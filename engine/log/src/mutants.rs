//! Faults put into this crate on purpose: the proof that the simulator finds what it is there to find. One at a time is
//! chosen for the thread; without the feature `mutants` the question is a constant and costs nothing.

/// What is left out or done in the wrong order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// The durable end moves although nothing was synced.
    SyncLeftOut,
    /// The durable end moves with the write, before its sync.
    AnswerBeforeSync,
    /// A start after a crash believes batch headers without checking the CRC.
    TailCrcUnchecked,
    /// The clean mark stays while appends go on.
    CleanMarkKept,
    /// A start after a crash takes the end of the index for proof of what lies before it.
    IndexTrusted,
    /// A sync that failed is tried again, and its success believed.
    SyncRetried,
    /// Files go before the new log start is on disk.
    UnlinkBeforeLogStart,
    /// A rolled segment counts as durable without its sync.
    SealUnsynced,
    /// The recovery point is renewed before what it covers was synced.
    CheckpointAhead,
    /// A new segment's name is not synced into its folder.
    SegmentNameUnsynced,
    /// A new folder's name is not synced into its parent.
    FolderNameUnsynced,
    /// The checkpoint still vouches for what a truncation cuts, and the cut is not synced.
    TruncationUnsynced,
    /// A producer snapshot beyond the log's end is kept at a start.
    SnapshotAhead,
    /// Checksums of the journal are not seeded with the start's incarnation, which is not looked at either.
    IncarnationUnseeded,
    /// A ring's file is written again while segments still lack what it holds.
    RingRecycledEarly,
    /// A round acknowledges with its write.
    JournalAnswersBeforeSync,
    /// A round acknowledges without any sync.
    JournalSyncLeftOut,
    /// The direct way leaves out what the journal holds.
    DirectOvertakes,
    /// A truncation does not void what was journalled before.
    TruncationNotJournalled,
    /// A start applies what was voided.
    VoidIgnored,
    /// A start applies voids behind all writes, those after them included.
    VoidLast,
    /// The block that a segment ends in leaves the journal when it was written, before its sync.
    DestageUnsynced,
    /// A clean stop takes what the destager wrote for synced.
    CloseUnsynced,
    /// A batch of which the segment has only the first blocks leaves the journal.
    RemainderForgotten,
    /// A round acknowledges everything that was appended by then.
    AcknowledgedPastEnd,
    /// A damaged round that a later one calls durable is taken for the end.
    DamageIsTheEnd,
    /// The segments that a cleaned one replaces go before that is decided on disk.
    UnlinkBeforeSwap,
    /// A cleaned segment takes its place without having been synced.
    SwapUnsynced,
    /// After a failed write or sync the log goes on at its durable end, as if what failed were nowhere.
    OffsetReused,
}

#[cfg(feature = "mutants")]
mod chosen {
    use std::cell::Cell;

    use super::Mutant;

    impl Mutant {
        pub const ALL: &[Mutant] = &[
            Mutant::SyncLeftOut,
            Mutant::AnswerBeforeSync,
            Mutant::TailCrcUnchecked,
            Mutant::CleanMarkKept,
            Mutant::IndexTrusted,
            Mutant::SyncRetried,
            Mutant::UnlinkBeforeLogStart,
            Mutant::SealUnsynced,
            Mutant::CheckpointAhead,
            Mutant::SegmentNameUnsynced,
            Mutant::FolderNameUnsynced,
            Mutant::TruncationUnsynced,
            Mutant::SnapshotAhead,
            Mutant::IncarnationUnseeded,
            Mutant::RingRecycledEarly,
            Mutant::JournalAnswersBeforeSync,
            Mutant::JournalSyncLeftOut,
            Mutant::DirectOvertakes,
            Mutant::TruncationNotJournalled,
            Mutant::VoidIgnored,
            Mutant::VoidLast,
            Mutant::DestageUnsynced,
            Mutant::CloseUnsynced,
            Mutant::RemainderForgotten,
            Mutant::AcknowledgedPastEnd,
            Mutant::DamageIsTheEnd,
            Mutant::UnlinkBeforeSwap,
            Mutant::SwapUnsynced,
            Mutant::OffsetReused,
        ];
    }

    thread_local! {
        static CHOSEN: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Chooses the mutant of this thread.
    pub fn choose(mutant: Option<Mutant>) {
        CHOSEN.set(mutant);
    }

    /// The mutant of this thread, for work that goes to another.
    pub(crate) fn chosen() -> Option<Mutant> {
        CHOSEN.get()
    }

    pub(crate) fn active(mutant: Mutant) -> bool {
        CHOSEN.get() == Some(mutant)
    }
}

#[cfg(feature = "mutants")]
pub use chosen::choose;
#[cfg(feature = "mutants")]
pub(crate) use chosen::{active, choose as choose_here, chosen};

#[cfg(not(feature = "mutants"))]
pub(crate) const fn chosen() -> Option<Mutant> {
    None
}

#[cfg(not(feature = "mutants"))]
pub(crate) const fn choose_here(_mutant: Option<Mutant>) {}

#[cfg(not(feature = "mutants"))]
pub(crate) const fn active(_mutant: Mutant) -> bool {
    false
}
