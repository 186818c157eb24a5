//! Retention and time queries while clocks jump and timestamps lie. What holds in all of it: segments go from the front
//! only, none goes before it is as old as it has to be by a clock that was right, and none stays for ever.

use std::fs::File;
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use runtime::clock;
use runtime::testing::{TempDir, run};

use super::*;

const DAY_MS: i64 = 86_400_000;

fn one_each(retention_ms: i64) -> LogConfig {
    LogConfig { segment_bytes: 200, retention_ms, ..small() }
}

/// Segments of one batch each, with these timestamps, and these times of their last append.
async fn segments(node: &Node, topic: &str, config: LogConfig, stamped: &[(i64, i64)]) -> Rc<PartitionLog> {
    let log = node.open(topic, config).await;
    for (timestamp_ms, _) in stamped {
        put(&log, &batch_of(&[*timestamp_ms], 100)).await;
    }
    // The active one takes part in nothing.
    put(&log, &batch_of(&[clock::wall_ms()], 100)).await;
    log.settle().await.unwrap();
    for (base, (_, appended_ms)) in stamped.iter().enumerate() {
        log.with_closed(Offset(base as i64), |s| s.modified_ms = Some(*appended_ms)).unwrap();
    }
    log
}

#[test]
fn a_clock_that_was_ahead_keeps_nothing_for_ever() {
    run(|| async {
        let temp = TempDir::new("log-clock-ahead");
        let node = Node::start(temp.path()).await;
        let now = clock::wall_ms();
        let ahead = now + 5000 * DAY_MS;
        // Stamped by the broker while its clock was years ahead, and by producers whose clocks were right.
        let log = segments(&node, "t", one_each(200), &[(ahead, ahead), (now, ahead), (-1, ahead)]).await;
        log.set_retention_bound(Offset(3));
        assert_eq!(log.apply_retention(now).await.unwrap().deleted_segments, 0, "seen for the first time");
        clock::sleep(Duration::from_millis(300)).await;
        // The first is seen for long enough. Behind it, one is as old as its records and one was not looked at before.
        assert_eq!(log.apply_retention(now + 300).await.unwrap().log_start_offset, Offset(2));
        clock::sleep(Duration::from_millis(300)).await;
        assert_eq!(log.apply_retention(now + 600).await.unwrap().log_start_offset, Offset(3));
        assert!(log.ahead_since_ms.borrow().is_empty());
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_clock_that_is_behind_now_deletes_nothing_and_later_no_less() {
    run(|| async {
        let temp = TempDir::new("log-clock-behind");
        let node = Node::start(temp.path()).await;
        let now = clock::wall_ms();
        let old = now - 10 * DAY_MS;
        let log = segments(&node, "t", one_each(7 * DAY_MS), &[(old, old), (old, old), (now, now)]).await;
        for wrong in [0, 1000, old, now - 5 * DAY_MS] {
            assert_eq!(log.apply_retention(wrong).await.unwrap().deleted_segments, 0, "at {wrong}");
        }
        // Right again: what was due is due, the rest is not, whatever was thought meanwhile.
        assert_eq!(log.apply_retention(now).await.unwrap().log_start_offset, Offset(2));
        assert_eq!(log.apply_retention(now + 6 * DAY_MS).await.unwrap().deleted_segments, 0);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn what_was_appended_while_the_clock_was_behind_is_not_older_than_what_came_before() {
    run(|| async {
        let temp = TempDir::new("log-clock-was-behind");
        let node = Node::start(temp.path()).await;
        let now = clock::wall_ms();
        let hour_ago = now - 3_600_000;
        let stamped = [(hour_ago, hour_ago), (now, 1000), (-1, 2000), (hour_ago, hour_ago)];
        let log = segments(&node, "t", one_each(DAY_MS), &stamped).await;
        assert_eq!(log.apply_retention(now).await.unwrap().deleted_segments, 0);
        assert_eq!(log.apply_retention(now + DAY_MS - 3_700_000).await.unwrap().deleted_segments, 0);
        assert_eq!(log.apply_retention(now + DAY_MS).await.unwrap().log_start_offset, Offset(4));
        drop(log);
        node.stop().await;
    });
}

#[test]
fn the_last_append_never_goes_back() {
    run(|| async {
        let temp = TempDir::new("log-clock-append");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", one_each(DAY_MS)).await;
        put(&log, &batch_of(&[1], 100)).await;
        let ahead = clock::wall_ms() + DAY_MS;
        log.state.borrow_mut().active.last_append_ms = ahead;
        // The clock is right again, in the same segment and in the next.
        put(&log, &batch_of(&[1], 10)).await;
        put(&log, &batch_of(&[1], 100)).await;
        assert!(log.segment_count() > 1);
        assert_eq!(log.state.borrow().active.last_append_ms, ahead);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn an_active_segment_from_the_future_goes_too() {
    run(|| async {
        let temp = TempDir::new("log-clock-active");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", one_each(100)).await;
        let ahead = clock::wall_ms() + 5000 * DAY_MS;
        put(&log, &batch_of(&[ahead], 100)).await;
        {
            let mut state = log.state.borrow_mut();
            (state.active.created_ms, state.active.last_append_ms) = (ahead, ahead);
        }
        let now = clock::wall_ms();
        assert_eq!(log.apply_retention(now).await.unwrap().deleted_segments, 0);
        clock::sleep(Duration::from_millis(150)).await;
        assert_eq!(log.apply_retention(now + 150).await.unwrap().log_start_offset, Offset(1));
        drop(log);
        node.stop().await;
    });
}

#[test]
fn the_times_of_files_count_after_a_restart() {
    run(|| async {
        let temp = TempDir::new("log-clock-files");
        let node = Node::start(temp.path()).await;
        let now = clock::wall_ms();
        let log = segments(&node, "t", one_each(DAY_MS), &[(now, now); 4]).await;
        let dir = log.dir().to_path_buf();
        drop(log);
        node.stop().await;
        // Ten days ago, in the future, at the epoch, now.
        for (base, ms) in [(0, now - 10 * DAY_MS), (1, now + 100 * DAY_MS), (2, 0), (3, now)] {
            let file = File::options().write(true).open(segment_file(&dir, base, "log")).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_millis(ms as u64)).unwrap();
        }
        let node = Node::start(temp.path()).await;
        let log = node.open("t", one_each(DAY_MS)).await;
        // The records are of now, whatever the files say of the second; the first is older by its file.
        assert_eq!(log.apply_retention(now).await.unwrap().log_start_offset, Offset(1));
        assert_eq!(log.apply_retention(now + DAY_MS / 2).await.unwrap().deleted_segments, 0);
        assert_eq!(log.apply_retention(now + 2 * DAY_MS).await.unwrap().log_start_offset, Offset(5));
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_middle_segment_never_goes_first_whatever_the_clocks_say() {
    let stamp = || prop_oneof![Just(-1_i64), Just(0), -20..20_i64, Just(1_700_000), Just(1_700_000_000_000_000)];
    let times = || prop_oneof![Just(0_i64), -20..20_i64, Just(5000), Just(-5000)];
    let cases = prop::collection::vec(
        (prop::collection::vec((stamp(), times()), 1..7), prop::collection::vec(times(), 1..5)),
        40,
    );
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let cases = cases.new_tree(&mut runner).unwrap().current();
    run(move || {
        let cases = cases.clone();
        async move {
            let temp = TempDir::new("log-clock-any");
            let node = Node::start(temp.path()).await;
            let now = clock::wall_ms();
            for (number, (stamped, looks)) in cases.into_iter().enumerate() {
                let day = |days: i64| now + days * DAY_MS;
                let of = |(stamp, append): &(i64, i64)| {
                    (if stamp.abs() < 100 && *stamp > 0 { day(*stamp) } else { *stamp }, day(*append))
                };
                let stamped: Vec<(i64, i64)> = stamped.iter().map(of).collect();
                let log = segments(&node, &format!("t{number}"), one_each(7 * DAY_MS), &stamped).await;
                for look in looks {
                    let before = log.log_start_offset();
                    let done = log.apply_retention(day(look)).await.unwrap();
                    assert_eq!(done.log_start_offset.0, before.0 + done.deleted_segments as i64);
                    // Everything from the log start on is there.
                    let start = done.log_start_offset.0;
                    let left: Vec<i64> = read_all(&log, start, 1 << 20).await.iter().map(|(base, _)| *base).collect();
                    assert_eq!(left, (start..log.log_end_offset().0).collect::<Vec<_>>());
                    // An append that a right clock has as younger than the limit is there, if nothing before it lied.
                    let honest = stamped.iter().all(|(_, appended)| *appended <= day(look));
                    if let Some((stamp, appended)) = stamped.get(before.0 as usize).filter(|_| honest) {
                        let written = if *stamp < 0 { *appended } else { (*stamp).min(*appended) };
                        assert!(day(look) - written > 7 * DAY_MS || done.deleted_segments == 0);
                    }
                }
            }
            node.stop().await;
        }
    });
}

#[test]
fn time_queries_answer_by_what_records_say() {
    run(|| async {
        let temp = TempDir::new("log-clock-queries");
        let node = Node::start(temp.path()).await;
        let now = clock::wall_ms();
        let (seconds, ahead) = (now / 1000, now + 5000 * DAY_MS);
        // In their order: sound, none, in seconds, years ahead, sound, before the epoch's first millisecond.
        let stamps = [now, -1, seconds, ahead, now + 5, 0];
        for (topic, config) in [("one", LogConfig::default()), ("each", one_each(-1))] {
            let log = node.open(topic, config).await;
            for stamp in stamps {
                put(&log, &batch_of(&[stamp], 100)).await;
            }
            log.settle().await.unwrap();
            for life in 0..2 {
                let log = node.shard.partition(key(topic)).unwrap();
                let at = async |ms| log.offset_for_time(ms, Offset(6)).await.unwrap().map(|hit| hit.offset.0);
                assert_eq!(at(0).await, Some(0));
                assert_eq!(at(seconds).await, Some(0));
                assert_eq!(at(now).await, Some(0));
                // The first in the log that is late enough, as Kafka has it, be it years ahead.
                assert_eq!(at(now + 1).await, Some(3));
                assert_eq!(at(ahead).await, Some(3));
                assert_eq!(at(ahead + 1).await, None);
                assert_eq!(at(i64::MAX).await, None);
                assert_eq!(at(-1).await, Some(0));
                let max = log.max_timestamp_hit(Offset(6)).await.unwrap().unwrap();
                assert_eq!((max.offset.0, max.timestamp_ms), (3, ahead), "{topic}, life {life}");
                log.shard.memory.forget_log(log.id);
                log.drop_tail();
            }
            drop(log);
        }
        node.stop().await;
    });
}
