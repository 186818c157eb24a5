use super::*;
use crate::demo::insights::{Funnel, TopItem};

fn snapshot() -> Snapshot {
    let start_ms = 1_700_000_040_000;
    Snapshot {
        elapsed_s: 3_723.4,
        records_per_s: 184_230.4,
        mb_per_s: 42.37,
        produced: 12_345_678,
        consumed: 12_345_000,
        latency: Latency { p50_ms: 1.234, p99_ms: 12.34, p999_ms: 1_234.5 },
        lag: vec![(0, 0), (1, 3), (2, 678), (3, 70_000)],
        insights: Summary {
            events: [9_000, 600, 120],
            pages_per_minute: (0..12).map(|minute| (start_ms + minute * 60_000, 100 * minute as u64)).collect(),
            top_items: (0..12).map(|i| TopItem { item: 10_000 + i, count: 972 - u64::from(i), error: 0 }).collect(),
            funnel: Funnel { sessions: 1_500, with_cart: 220, with_order: 50, with_both: 40 },
            open_sessions: 77,
            late: 0,
            evicted: 0,
        },
    }
}

/// The largest of everything.
fn extreme() -> Snapshot {
    Snapshot {
        elapsed_s: f64::MAX,
        records_per_s: f64::INFINITY,
        mb_per_s: f64::MAX,
        produced: u64::MAX,
        consumed: u64::MAX,
        latency: Latency { p50_ms: f64::NAN, p99_ms: f64::MAX, p999_ms: -1.0 },
        lag: (0..5_000).map(|partition| (i32::MAX - partition, i64::MAX)).collect(),
        insights: Summary {
            events: [u64::MAX; 3],
            pages_per_minute: vec![(i64::MAX, u64::MAX), (i64::MIN, 0)],
            top_items: vec![TopItem { item: u32::MAX, count: u64::MAX, error: 0 }; 50],
            funnel: Funnel { sessions: 1, with_cart: u64::MAX, with_order: u64::MAX, with_both: 0 },
            open_sessions: usize::MAX,
            late: u64::MAX,
            evicted: u64::MAX,
        },
    }
}

fn columns(line: &str) -> usize {
    line.replace("\x1b[1m", "").replace("\x1b[0m", "").chars().count()
}

#[test]
fn lines_fit_the_width_whatever_the_figures() {
    for width in [80, 81, 120, 160] {
        for ansi in [false, true] {
            for snapshot in [snapshot(), extreme(), Snapshot::default()] {
                for line in render(&snapshot, width, ansi) {
                    assert!(columns(&line) <= width, "{width}: {line}");
                    assert!(ansi || !line.contains('\x1b'), "{line}");
                }
            }
        }
    }
}

#[test]
fn a_usual_screen_loses_nothing_at_80_columns() {
    let text = render(&snapshot(), 80, false).join("\n");
    for part in [
        "01:02:03",
        "184,230",
        "42.4",
        "12.35 M",
        "p99.9    1,235 ms   end to end",
        "70,681",
        "(partition 3)",
        "·▁▅█",
        "sessions   1,500",
        "orders     120",
        "3.33 % of sessions",
        "carts ordered  18.18 %",
        "22:25     1,100 ██",
        " 1 /toys/wooden-train-10000 ",
        "10.00 %",
        "OTTO",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn the_layout_stays_where_it_is() {
    let lines = render(&Snapshot::default(), 80, false).len();
    assert_eq!(lines, render(&snapshot(), 80, false).len());
    assert_eq!(lines, render(&extreme(), 160, true).len());
    assert!(lines <= 23, "a terminal of 24 rows shows all and the cursor: {lines}");
    let column = |snapshot: &Snapshot, label: &str| {
        render(snapshot, 80, false).iter().find_map(|line| line.find(label)).map_or(0, |at| at)
    };
    for label in ["p99.9", "consumed", "partitions", "orders", "with a cart", "top items"] {
        assert!(column(&snapshot(), label) > 0);
        assert_eq!(column(&snapshot(), label), column(&Snapshot::default(), label), "{label}");
    }
}

#[test]
fn a_frame_draws_over_the_last_one() {
    let frame = frame(&snapshot(), 100, false);
    assert!(frame.starts_with("\x1b[H") && frame.ends_with("\x1b[K\n\x1b[J"));
    assert_eq!(frame.matches("\x1b[K\n").count(), render(&snapshot(), 100, false).len());
    assert!(!frame.contains("\x1b[2J"), "clearing first would flicker");
}

#[test]
fn without_a_terminal_there_is_one_plain_line() {
    let line = summary_line(&snapshot());
    assert_eq!(
        line,
        "01:02:03 184,230 records/s 42.4 MB/s produced 12,345,678 consumed 12,345,000 p50 1.23 ms p99 12.3 ms \
         p99.9 1,235 ms lag 70,681 (max 70,000) sessions 1,500 orders 120"
    );
    assert!(!summary_line(&extreme()).contains(['\n', '\x1b']));
}

#[test]
fn narrow_terminals_get_eighty_columns() {
    assert_eq!(render(&snapshot(), 20, false), render(&snapshot(), 80, false));
}

#[test]
fn many_partitions_share_the_line() {
    let lag: Vec<(i32, i64)> = (0..100).map(|partition| (partition, 0)).collect();
    assert_eq!(lag_bars(&lag), format!("          {} +36", "·".repeat(64)));
    assert_eq!(lag_totals(&lag), (0, 0, None));
    assert_eq!(lag_totals(&[(4, -1), (7, 9), (8, 9)]), (18, 9, Some(7)), "the first of the worst");
}

#[test]
fn figures_are_short_and_exact_where_it_matters() {
    let shown = [0, 999, 1_000, 99_999, 100_000, 2_500_000, u64::MAX].map(short);
    assert_eq!(shown, ["0", "999", "1,000", "99,999", "100.0 k", "2.50 M", "18.45 E"]);
    assert!((0..64).all(|bit| short(u64::MAX >> bit).len() <= 7));
    assert_eq!([999_999, 99_996_000, 999_999_999_999].map(short), ["999.9 k", "100.0 M", "999.9 G"]);
    assert_eq!([0.5, 9.999, 10.0, 99.94, 100.0].map(millis), ["0.50", "10.00", "10.0", "99.9", "100"]);
}
