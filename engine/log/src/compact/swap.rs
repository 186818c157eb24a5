//! The swap of a group: the cleaned segment takes the place of the old ones, on disk in one decision, in memory in one step.
//! Readers that hold an old file read it to the end: its name goes at once, its bytes with the last of them. Kafka keeps
//! old files for `file.delete.delay.ms` because others open them by name; here nobody does.

use std::time::Duration;

use model::Offset;
use runtime::{clock, fs};

use super::Swap;
use super::replace::{REPLACE_FILE, Replacement};
use super::stop::step;
use crate::error::LogError;
use crate::limits::{SWAP_RETRY_MS, SWAP_TRIES};
use crate::mutants::{Mutant, active};
use crate::partition::PartitionLog;
use crate::partition::segments::SegmentRef;
use crate::segment::ClosedSegment;

impl PartitionLog {
    /// [`LogError::Closed`] when the group is no longer what it was: the cleaning begins anew later.
    pub(super) async fn swap(&self, group: &[SegmentRef], made: ClosedSegment) -> Result<(), LogError> {
        let _upkeep = self.lock_upkeep().await;
        self.may_clean()?;
        if !self.is_intact(group) {
            return Err(LogError::Closed);
        }
        // No entry on disk may count on a file that goes. The one of the start may be older than the recovery point here.
        self.put_checkpoint_entry();
        self.home.flush().await?;
        // A start must not write into the cleaned segment what was journalled of the old ones.
        let below = self.state.borrow().first_open_base();
        self.void_journal(below).await?;
        self.may_clean()?;
        self.lock_indexes().await;
        let result = self.replace(group, made).await;
        self.unlock_indexes();
        result
    }

    fn is_intact(&self, group: &[SegmentRef]) -> bool {
        let closed = self.closed_refs();
        let at = closed.partition_point(|s| s.base_offset < group[0].base_offset);
        closed.get(at..at + group.len()) == Some(group)
    }

    pub(super) fn is_swap_stuck(&self) -> bool {
        matches!(*self.compact.swap.borrow(), Swap::Stuck(_))
    }

    async fn replace(&self, group: &[SegmentRef], made: ClosedSegment) -> Result<(), LogError> {
        let plan = Replacement::new(group.iter().map(|s| s.base_offset).collect());
        step(self.dir())?;
        if active(Mutant::UnlinkBeforeSwap) {
            plan.remove_replaced(self.dir()).await?;
            fs::sync_dir(self.dir()).await?;
            // Long enough for a crash, or a reader, to come in between.
            clock::sleep(Duration::from_millis(20)).await;
        }
        fs::sync_dir(self.dir()).await?;
        self.begin_swap();
        if let Err(error) = self.decide(&plan).await {
            match self.undo(&plan).await {
                Ok(()) => self.end_swap(Swap::None),
                // Nobody knows which it is now, before the next start looks.
                Err(_) => self.stick(&error),
            }
            return Err(error);
        }
        for _ in 1..SWAP_TRIES {
            match self.finish(&plan).await {
                Ok(()) => return self.take_swapped(group, made),
                Err(_) => clock::sleep(Duration::from_millis(SWAP_RETRY_MS)).await,
            }
        }
        match self.finish(&plan).await {
            Ok(()) => self.take_swapped(group, made),
            Err(error) => {
                self.stick(&error);
                Err(error)
            }
        }
    }

    /// From here on the cleaned segment is the log, whatever happens.
    async fn decide(&self, plan: &Replacement) -> Result<(), LogError> {
        step(self.dir())?;
        Ok(fs::write_durable(&self.dir().join(REPLACE_FILE), plan.encode()).await?)
    }

    async fn undo(&self, _plan: &Replacement) -> Result<(), LogError> {
        step(self.dir())?;
        fs::remove_file(&self.dir().join(REPLACE_FILE)).await?;
        Ok(fs::sync_dir(self.dir()).await?)
    }

    async fn finish(&self, plan: &Replacement) -> Result<(), LogError> {
        Ok(plan.finish(self.dir()).await?)
    }

    fn begin_swap(&self) {
        self.compact.version.set(self.compact.version.get() + 1);
        self.cuts.set(self.cuts.get() + 1);
        *self.compact.swap.borrow_mut() = Swap::Running;
    }

    fn end_swap(&self, swap: Swap) {
        self.cuts.set(self.cuts.get() + 1);
        *self.compact.swap.borrow_mut() = swap;
        self.settled.notify();
    }

    /// Files and list do not agree, and nothing but a start can tell: no more appends, no reads of closed segments.
    fn stick(&self, error: &LogError) {
        let error = LogError::Storage(error.to_string().into());
        self.me().poison(&error);
        self.end_swap(Swap::Stuck(error));
    }

    /// Without an await: nobody sees files and list disagree.
    fn take_swapped(&self, group: &[SegmentRef], made: ClosedSegment) -> Result<(), LogError> {
        {
            let mut state = self.state.borrow_mut();
            state.was_cleaned = true;
            let before: u64 = group.iter().map(|s| s.size).sum();
            state.closed_bytes = state.closed_bytes - before + made.size;
            state.closed_count -= group.len() as u32 - 1;
            let Some(closed) = &mut state.closed else { unreachable!("a group comes from the list") };
            let at = closed.partition_point(|s| s.base_offset < made.base_offset);
            closed.splice(at..at + group.len(), [made]);
        }
        for segment in group {
            self.forget_closed(segment.base_offset);
        }
        // Memory is for what is still in the log.
        self.drop_tail_below(made.next_offset);
        self.compact.first_dirty.set(None);
        self.end_swap(Swap::None);
        self.put_checkpoint_entry();
        Ok(())
    }

    /// What the shard remembers of a closed segment's file.
    fn forget_closed(&self, base: Offset) {
        self.shard.memory.forget_segment((self.id, base));
        drop(self.shard.shared_files.remove((self.id, base)));
        self.forget_direct_file(base);
    }
}
