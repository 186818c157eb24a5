#![allow(clippy::unwrap_used)]

use super::*;

pub fn run(comparison: u64, place: usize, contestant: &str, p99: f64) -> Run {
    Run {
        comparison,
        workload: "firehose".to_owned(),
        round: 0,
        place,
        contestant: contestant.to_owned(),
        figures: Figures::from([("produce_p99_ms".to_owned(), p99)]),
        flags: Value::Null,
        definition: Value::Null,
        host: Value::Null,
    }
}

#[test]
fn medians_and_ranges() {
    assert_eq!(Spread::of(&[]), None);
    assert_eq!(Spread::of(&[3.0]), Some(Spread { median: 3.0, min: 3.0, max: 3.0 }));
    assert_eq!(Spread::of(&[9.0, 1.0, 4.0]), Some(Spread { median: 4.0, min: 1.0, max: 9.0 }));
    assert_eq!(Spread::of(&[9.0, 1.0, 4.0, 6.0]), Some(Spread { median: 5.0, min: 1.0, max: 9.0 }));
}

#[test]
fn the_newest_comparison_is_read_and_a_cut_line_is_not() {
    let lines =
        [run(1, 0, "Ringlog", 1.0), run(2, 1, "Kafka", 2.0), run(2, 0, "Ringlog", 3.0), run(2, 0, "Ringlog", 5.0)];
    let mut text: String = lines.iter().map(|run| serde_json::to_string(run).unwrap() + "\n").collect();
    text.push_str("{\"comparison\":9,\"workload\":\"fire");
    let runs = newest_of(&text);
    assert_eq!(runs.len(), 3);
    assert_eq!(contestants(&runs), ["Ringlog", "Kafka"]);
    assert_eq!(Spread::of_runs(&runs, "Ringlog", "produce_p99_ms").unwrap().median, 4.0);
    assert_eq!(Spread::of_runs(&runs, "Ringlog", "other"), None);
}

#[test]
fn what_is_appended_is_read_back() {
    let dir = std::env::temp_dir().join(format!("ringlog-bench-results-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let first = run(1, 0, "Ringlog", 0.25);
    append(&dir, &first).unwrap();
    append(&dir, &run(1, 1, "Kafka", 2.0)).unwrap();
    let back = newest(&dir, "firehose");
    assert_eq!((back.len(), &back[0]), (2, &first));
    assert!(newest(&dir, "never").is_empty());
    std::fs::remove_dir_all(&dir).unwrap();
}
