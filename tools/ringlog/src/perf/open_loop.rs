//! An open loop: each record has a time at which it is meant to be sent, whatever became of those before.

use std::time::Duration;

use runtime::clock;

const NS_PER_S: u64 = 1_000_000_000;
/// Shortest sleep: one wake sends all that is due.
const LEAST_SLEEP_NS: u64 = 100_000;

/// When record `number` of an open loop is meant to be sent.
pub fn meant_ns(begun_ns: u64, number: u64, rate: u32) -> u64 {
    begun_ns + (u128::from(number) * u128::from(NS_PER_S) / u128::from(rate.max(1))) as u64
}

/// How many records should have been sent by now.
pub fn due_at(begun_ns: u64, now_ns: u64, rate: u32) -> u64 {
    (u128::from(now_ns - begun_ns) * u128::from(rate) / u128::from(NS_PER_S)) as u64 + 1
}

/// Sleeps until the next record is due.
pub async fn sleep_until_ns(at_ns: u64) {
    let left = at_ns.saturating_sub(clock::now_ns()).max(LEAST_SLEEP_NS);
    clock::sleep(Duration::from_nanos(left)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_due_at_their_times_however_many() {
        assert_eq!(meant_ns(5, 0, 1_000), 5);
        assert_eq!(meant_ns(0, 1_500, 1_000), 1_500_000_000);
        assert_eq!(meant_ns(0, 100_000_000_000, 1_000_000), 100_000 * NS_PER_S);
        assert_eq!(due_at(0, 0, 1_000), 1);
        assert_eq!(due_at(0, NS_PER_S, 1_000), 1_001);
    }
}
