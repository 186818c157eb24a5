use super::*;

/// Moments of trims, looking every second from `from_ms` for two minutes.
fn trims(freed: &Freed, from_ms: i64) -> Vec<i64> {
    (0..120).map(|second| second * 1_000).filter(|after_ms| freed.takes_trim(from_ms + after_ms)).collect()
}

#[test]
fn many_deletions_are_trimmed_in_the_quiet_after_them() {
    let freed = Freed::default();
    (0..TRIM_AFTER_DELETIONS as i64).for_each(|number| freed.add(1, 5_000 + number));
    let last_ms = 5_000 + TRIM_AFTER_DELETIONS as i64 - 1;
    assert_eq!(trims(&freed, last_ms), TRIM_QUIET_MS);
    assert_eq!(trims(&freed, last_ms + 200_000), [0i64; 0], "until more goes");
}

#[test]
fn a_topic_of_many_partitions_counts_each_of_them() {
    let freed = Freed::default();
    freed.add(TRIM_AFTER_DELETIONS, 0);
    assert_eq!(trims(&freed, 0), TRIM_QUIET_MS);
}

#[test]
fn few_deletions_are_not_worth_it_until_they_add_up() {
    let freed = Freed::default();
    freed.add(TRIM_AFTER_DELETIONS - 1, 0);
    assert_eq!(trims(&freed, 0), [0i64; 0]);
    freed.add(1, 500_000);
    assert_eq!(trims(&freed, 500_000), TRIM_QUIET_MS);
}

#[test]
fn while_topics_go_nothing_is_trimmed() {
    let freed = Freed::default();
    for second in 0..600 {
        freed.add(TRIM_AFTER_DELETIONS, second * 1_000);
        assert!(!freed.takes_trim(second * 1_000 + 999));
    }
    assert_eq!(trims(&freed, 599_000), TRIM_QUIET_MS);
}

#[test]
fn deletions_between_two_trims_begin_the_quiet_anew() {
    let freed = Freed::default();
    freed.add(TRIM_AFTER_DELETIONS, 0);
    assert!(freed.takes_trim(TRIM_QUIET_MS[0]));
    freed.add(1, TRIM_QUIET_MS[0]);
    assert_eq!(trims(&freed, TRIM_QUIET_MS[0]), TRIM_QUIET_MS);
}
