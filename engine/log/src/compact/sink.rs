//! Writes a cleaned segment beside the old ones: direct writes of whole blocks, one at a time and in their turn among the
//! drive's, then the cut to its length and the sync. Nobody reads the file before it has its final name.

use model::Offset;
use runtime::{DirectFile, OpenMode};

use super::replace::cleaned_path;
use crate::device::Operation;
use crate::error::LogError;
use crate::format::names::FileKind;
use crate::limits::BLOCK;
use crate::mutants::{Mutant, active};
use crate::partition::PartitionLog;

pub(crate) struct Sink {
    file: DirectFile,
    /// Bytes that wait for a whole write.
    pending: Vec<u8>,
    position: u64,
}

impl Sink {
    /// `most_bytes` are reserved on the disk: the cleaned segment is hardly ever larger than what it is made of.
    pub async fn create(log: &PartitionLog, base: Offset, most_bytes: u64) -> Result<Sink, LogError> {
        let file = DirectFile::open(&cleaned_path(log.dir(), base, FileKind::Log), OpenMode::Create).await?;
        let sink = Sink { file, pending: Vec::new(), position: 0 };
        match sink.reserve(log, most_bytes).await {
            Ok(()) => Ok(sink),
            Err(error) => {
                sink.close().await;
                Err(error)
            }
        }
    }

    async fn reserve(&self, log: &PartitionLog, most_bytes: u64) -> Result<(), LogError> {
        let dir = &log.home.dir;
        let size = most_bytes.next_multiple_of(BLOCK);
        let _grant = if log.uses_reserve() {
            None
        } else {
            let grant = dir.reserve().grant(dir.path(), size).await;
            let why = "a cleaned segment needs room beside the old ones until they go";
            Some(grant.ok_or_else(|| LogError::Full(why.into()))?)
        };
        Ok(self.file.preallocate(size).await?)
    }

    /// Takes bytes; gives how many went to the disk for it.
    pub async fn push(&mut self, log: &PartitionLog, bytes: &[u8]) -> Result<u64, LogError> {
        self.pending.extend_from_slice(bytes);
        let piece = log.shard.device.limits().write_max_bytes;
        let mut done = 0;
        while self.pending.len() - done >= piece {
            self.write(log, done, piece).await?;
            done += piece;
        }
        self.pending.drain(..done);
        Ok(done as u64)
    }

    async fn write(&mut self, log: &PartitionLog, from: usize, len: usize) -> Result<(), LogError> {
        let parts = [&self.pending[from..from + len]];
        let write = self.file.write_piece(&parts, self.position);
        log.shard.device.run(log.home.dir.path(), Operation::Write(len), write).await?;
        self.position += len as u64;
        Ok(())
    }

    /// The rest, the length, the sync.
    pub async fn finish(&mut self, log: &PartitionLog) -> Result<u64, LogError> {
        let rest = self.pending.len();
        if rest > 0 {
            self.write(log, 0, rest).await?;
            self.pending = Vec::new();
        }
        self.file.truncate(self.position).await?;
        if !active(Mutant::SwapUnsynced) {
            log.sync_direct(&self.file).await?;
        }
        Ok(self.position)
    }

    pub async fn close(self) {
        // What it was for is synced by then, or given up.
        let _ = self.file.close().await;
    }
}
