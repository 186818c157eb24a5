//! The shard's scrub: drives [`log::Scrub`] at the configured pace, a read and a pause at a time. Off the produce and fetch
//! way: at most one read in flight, and none while producers are braked, since the drive has enough to do then.

use std::rc::Rc;

use log::{Scrub, ScrubLimits};

use super::Shard;

/// How long the scrub stays away while producers are braked, milliseconds.
const BRAKED_PAUSE_MS: i64 = 1_000;

impl Shard {
    /// Runs until the shard stops. Changes of the configuration count from the next read on.
    pub async fn scrub(self: Rc<Self>) {
        let mut scrub = Scrub::new();
        while !self.is_stopping() {
            let pause_ms = if self.log.is_braked() {
                BRAKED_PAUSE_MS
            } else {
                let topics = &self.config().topics;
                let limits =
                    ScrubLimits { interval_ms: topics.scrub_interval_ms, bytes_per_s: topics.scrub_max_bytes_per_s };
                scrub.step(&self.log, limits).await
            };
            self.pause_ms(pause_ms).await;
        }
        scrub.stop().await;
    }
}
