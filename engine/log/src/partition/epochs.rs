//! Leader epochs of the partition. The history is kept in memory; its file follows at rolls, recovery points and stops,
//! because batches carry their epoch and a start after a crash reads it from the scanned tail.

use model::{LeaderEpoch, Offset};
use runtime::fs;

use super::PartitionLog;
use crate::error::LogError;
use crate::format::epochs::{EpochEntry, EpochHistory};
use crate::format::names::EPOCHS_FILE;
use crate::limits::{CHECKPOINT_EPOCHS, SMALL_FILE};

impl PartitionLog {
    /// A new leadership begins at the log's end.
    pub fn begin_epoch(&self, epoch: LeaderEpoch) {
        let mut state = self.state.borrow_mut();
        let end = state.log_end;
        if state.epochs.assign(epoch, end) {
            state.epochs_dirty = true;
        }
    }

    /// The largest epoch not above `epoch`, and the offset where it ended.
    pub fn epoch_end(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, Offset)> {
        let state = self.state.borrow();
        state.epochs.end_of(epoch, state.log_end)
    }

    pub fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.state.borrow().epochs.latest()
    }

    pub fn epoch_for_offset(&self, offset: Offset) -> Option<LeaderEpoch> {
        self.state.borrow().epochs.of_offset(offset)
    }

    /// Durably, always: a start after a crash believes a file that can be read, and cannot tell one that a power cut left.
    pub(crate) async fn save_epochs_if_dirty(&self) -> Result<(), LogError> {
        let text = {
            let state = self.state.borrow();
            if !state.epochs_dirty || !self.folder_made.get() {
                return Ok(());
            }
            state.epochs.encode()
        };
        fs::write_durable(&self.dir().join(EPOCHS_FILE), text.clone().into_bytes()).await?;
        let mut state = self.state.borrow_mut();
        if state.epochs.encode() == text {
            state.epochs_dirty = false;
        }
        Ok(())
    }

    /// A history too long for the checkpoint is read from its file when the partition is opened.
    pub(crate) async fn load_epochs_if_needed(&self) -> Result<(), LogError> {
        if !self.state.borrow().epochs_unread {
            return Ok(());
        }
        let bytes = fs::read_if_there(&self.dir().join(EPOCHS_FILE), SMALL_FILE as usize).await?;
        let history = bytes.and_then(|b| EpochHistory::decode(&b)).unwrap_or_default();
        let mut state = self.state.borrow_mut();
        state.epochs = history;
        state.epochs_unread = false;
        Ok(())
    }

    /// What the checkpoint carries; `None` when it is too long.
    pub(crate) fn checkpoint_epochs(&self) -> Option<Vec<EpochEntry>> {
        let state = self.state.borrow();
        (state.epochs.entries().len() <= CHECKPOINT_EPOCHS).then(|| state.epochs.entries().to_vec())
    }
}
