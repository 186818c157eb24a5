//! `ringlog consume --offset`: every way to say where to begin; `--exit` and `--count`: where it ends.

use std::time::{Duration, Instant};

use ringlog_e2e::batch::Batch;
use ringlog_e2e::cli::{self, LIMIT};
use ringlog_e2e::raw::Raw;
use ringlog_e2e::{Broker, requests};

/// 2026-01-01T00:00:00Z in ms since 1970.
const NEW_YEAR_MS: i64 = 1_767_225_600_000;

fn offsets(broker: &Broker, more: &[&str]) -> Vec<i64> {
    let read = cli::consume(broker, "t", &[more, &["-f", "%o\\n"]].concat());
    read.lines().map(|line| line.parse().unwrap()).collect()
}

/// Ten records in one partition, a minute between each.
fn with_ten_records() -> Broker {
    let broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    requests::create_topic(
        &mut raw,
        "t",
        1,
        &[("retention.ms", "-1"), ("message.timestamp.after.max.ms", "9223372036854775807")],
    );
    for half in [0, 5] {
        let stamps: Vec<i64> = (half..half + 5).map(|at| NEW_YEAR_MS + at * 60_000).collect();
        requests::produce(&mut raw, "t", &Batch::stamped(&stamps));
    }
    broker
}

#[test]
fn it_begins_where_it_is_told() {
    let broker = with_ten_records();
    let third_minute = format!("@{}", NEW_YEAR_MS + 3 * 60_000);
    let behind_it = format!("@{}", NEW_YEAR_MS + 3 * 60_000 + 1);
    for (position, first) in [
        ("earliest", 0),
        ("beginning", 0),
        ("0", 0),
        ("7", 7),
        ("10", 10),
        ("99", 10),
        ("-3", 7),
        ("-0", 10),
        ("-99", 0),
        ("latest", 10),
        ("end", 10),
        ("@0", 0),
        (&third_minute, 3),
        (&behind_it, 4),
        ("@2026-01-01T00:05:00Z", 5),
        ("@2026-01-01T00:08:00.001Z", 9),
        ("@2100-01-01T00:00:00Z", 10),
        ("@-1s", 10),
    ] {
        assert_eq!(offsets(&broker, &["-o", position]), (first..10).collect::<Vec<_>>(), "{position}");
    }
    let long_ago = format!("@-{}days", 365 * 50);
    assert_eq!(offsets(&broker, &["-o", &long_ago]).len(), 10);
    let dates = cli::consume(&broker, "t", &["-o", "-1", "-f", "%T %D %t %p"]);
    assert_eq!(dates, format!("{} 2026-01-01T00:09:00.000Z t 0", NEW_YEAR_MS + 9 * 60_000));
}

#[test]
fn it_begins_at_what_was_not_deleted() {
    let broker = with_ten_records();
    assert_eq!(requests::delete_records(&mut Raw::connect(&broker), "t", 4), (0, 4));
    for (position, first) in [("earliest", 4), ("1", 4), ("6", 6), ("-99", 4), ("@0", 4)] {
        assert_eq!(offsets(&broker, &["-o", position]), (first..10).collect::<Vec<_>>(), "{position}");
    }
}

#[test]
fn it_ends_at_a_count_and_at_the_end() {
    let broker = with_ten_records();
    assert_eq!(cli::text(&broker, &["consume", "t", "-n", "3", "-f", "%o "]), "0 1 2 ");
    assert_eq!(cli::text(&broker, &["consume", "t", "-n", "2", "-o", "8", "-f", "%o "]), "8 9 ");
    assert_eq!(offsets(&broker, &["-n", "99"]).len(), 10, "the end comes first");
    assert_eq!(offsets(&broker, &["-n", "4"]).len(), 4);
    assert_eq!(cli::text(&broker, &["consume", "t", "-n", "0"]), "");
}

#[test]
fn an_empty_topic_ends_at_once() {
    let broker = Broker::start();
    cli::create_topic(&broker, "empty", 5);
    cli::create_topic(&broker, "partly", 5);
    cli::produce(&broker, "partly", &["-p", "3"], "only here\n");
    let begun = Instant::now();
    for position in ["earliest", "latest", "7", "-2", "@0"] {
        assert_eq!(cli::consume(&broker, "empty", &["-o", position]), "", "{position}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "five runs took {:?}", begun.elapsed());
    assert_eq!(cli::consume(&broker, "partly", &["-f", "%p %v\\n"]), "3 only here\n");
    let both = cli::text(&broker, &["consume", "empty", "partly", "--exit", "-f", "%t %v\\n"]);
    assert_eq!(both, "partly only here\n");
}

#[test]
fn without_an_end_it_waits_for_what_comes() {
    let broker = Broker::start();
    cli::create_topic(&broker, "t", 2);
    cli::produce(&broker, "t", &[], "before\n");
    let mut reader = cli::spawn(&broker, &["consume", "t", "-o", "end", "-n", "2"]);
    // It prints nothing to say that it has begun: what comes before that is not for it.
    let found = requests::within(LIMIT, || {
        cli::produce(&broker, "t", &[], "after\n");
        (!reader.lines().is_empty()).then_some(())
    });
    assert!(found.is_some(), "it printed nothing:\n{}", reader.tail());
    cli::produce(&broker, "t", &[], "after\nafter\n");
    assert!(reader.wait(LIMIT).is_some_and(|status| status.success()), "{}", reader.tail());
    assert_eq!(reader.lines(), ["after", "after"]);
}
