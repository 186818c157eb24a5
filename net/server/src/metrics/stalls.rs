//! The stall figure as a scraper wants it: the longest of late. The pulse gives the longest since it was last asked, which two
//! scrapers would take from each other; this keeps what it said for a while. Owned by the shard's answering task.

use std::cell::Cell;

/// How long a stall is shown, unless a longer one comes.
const SHOWN_MS: i64 = 60_000;

#[derive(Debug, Default)]
pub struct Stalls {
    /// The one shown, and when it was heard of.
    shown: Cell<(u64, i64)>,
}

impl Stalls {
    /// `newest_us`: the longest since the last call. Gives the longest of the last minute, as far as it was asked for.
    pub fn longest_us(&self, newest_us: u64, now_ms: i64) -> u64 {
        let (shown_us, heard_ms) = self.shown.get();
        if newest_us >= shown_us || now_ms - heard_ms >= SHOWN_MS {
            self.shown.set((newest_us, now_ms));
        }
        self.shown.get().0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_is_shown_for_a_minute_or_until_a_longer_one() {
        let stalls = Stalls::default();
        assert_eq!(stalls.longest_us(40, 1_000), 40);
        assert_eq!(stalls.longest_us(0, 2_000), 40, "another scraper sees it too");
        assert_eq!(stalls.longest_us(50, 3_000), 50);
        assert_eq!(stalls.longest_us(7, 62_999), 50);
        assert_eq!(stalls.longest_us(7, 63_000), 7);
    }
}
