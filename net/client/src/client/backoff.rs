//! How long to wait after a failure: twice as long each time, up to a bound, by up to a fifth more or less so that those
//! who failed together do not come back together.

use crate::limits::MAX_BACKOFF_DOUBLINGS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backoff {
    pub first_ms: i64,
    pub max_ms: i64,
}

impl Backoff {
    /// The wait before attempt number `failures` + 1; `random` is any 64 bits.
    pub fn wait_ms(self, failures: u32, random: u64) -> i64 {
        let Some(doublings) = failures.checked_sub(1) else { return 0 };
        let factor = 1i64 << doublings.min(MAX_BACKOFF_DOUBLINGS);
        let wait = self.first_ms.saturating_mul(factor).min(self.max_ms).max(0);
        let fifth = wait / 5;
        wait - fifth + (random % (2 * fifth as u64 + 1)) as i64
    }

    /// The same with the shard's randomness.
    pub fn draw_ms(self, failures: u32) -> i64 {
        self.wait_ms(failures, runtime::random::u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff { first_ms: 50, max_ms: 1_000 };

    #[test]
    fn it_doubles_to_the_bound() {
        // The middle of the jitter is the plain figure.
        let plain = |failures| BACKOFF.wait_ms(failures, (BACKOFF.wait_ms(failures, 0) / 4) as u64);
        assert_eq!((0..8).map(plain).collect::<Vec<_>>(), [0, 50, 100, 200, 400, 800, 1_000, 1_000]);
        assert_eq!(plain(u32::MAX), 1_000);
    }

    #[test]
    fn the_jitter_stays_within_a_fifth() {
        for random in [0, 1, 7, 12_345, u64::MAX] {
            assert!((80..=120).contains(&BACKOFF.wait_ms(2, random)));
        }
        assert_ne!(BACKOFF.wait_ms(2, 0), BACKOFF.wait_ms(2, 7));
    }
}
