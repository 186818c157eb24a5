//! The brake of a cleaning: `log.cleaner.io.max.bytes.per.second`, and a share of the time while producers wait for the
//! disk. It waits in short sleeps, so that a stop or a truncation is not held up.

use std::time::Duration;

use runtime::clock;

use super::CleanLimits;
use crate::error::LogError;
use crate::limits::{CLEAN_PAUSE_MAX_MS, CLEAN_SHARE};
use crate::partition::PartitionLog;

pub(crate) struct Pace {
    bytes_per_second: f64,
    began_ms: i64,
    bytes: f64,
    /// When the last step ended.
    step_ns: u64,
    rounds: u64,
}

impl Pace {
    pub fn new(log: &PartitionLog, limits: &CleanLimits) -> Pace {
        Pace {
            bytes_per_second: limits.bytes_per_second.max(1.0),
            began_ms: clock::now_ms(),
            bytes: 0.0,
            step_ns: clock::now_ns(),
            rounds: log.shard.committer.rounds(),
        }
    }

    /// After a step that moved so many bytes to or from the disk: waits as long as it has to.
    pub async fn step(&mut self, log: &PartitionLog, bytes: u64) -> Result<(), LogError> {
        self.bytes += bytes as f64;
        let due_ms = self.began_ms.saturating_add((self.bytes * 1000.0 / self.bytes_per_second) as i64);
        let rounds = log.shard.committer.rounds();
        let mut until_ms = due_ms;
        if rounds != self.rounds {
            // Producers write: their rounds get the disk for most of the time.
            let took_ms = (clock::now_ns() - self.step_ns) / 1_000_000 + 1;
            let pause_ms = (took_ms * (CLEAN_SHARE - 1)).min(CLEAN_PAUSE_MAX_MS) as i64;
            until_ms = until_ms.max(clock::now_ms() + pause_ms);
        }
        loop {
            log.may_clean()?;
            let left_ms = until_ms - clock::now_ms();
            if left_ms <= 0 {
                break;
            }
            let sleep_ms = left_ms.min(CLEAN_PAUSE_MAX_MS as i64);
            clock::sleep(Duration::from_millis(sleep_ms.unsigned_abs())).await;
        }
        runtime::task::yield_now().await;
        self.step_ns = clock::now_ns();
        self.rounds = log.shard.committer.rounds();
        Ok(())
    }
}
