#![allow(clippy::unwrap_used)]
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use model::ErrorCode;
use runtime::histogram::Histogram;
use server::metrics::{FolderFigures, PartitionRow};

use super::super::families::kafka_name;
use super::*;

fn scrape() -> Scrape {
    let mut figures = ShardFigures { connections: 3, stall_us: 1_500, ..ShardFigures::default() };
    figures.log.appended.batches = 41;
    figures.log.journal.ring.full_ns = 2_500_000_000;
    figures.partitions.damaged = 1;
    figures.traffic.produce_errors = vec![(ErrorCode::NotLeaderOrFollower, 2)];
    let histogram = Histogram::default();
    [60_000, 2_000_000, 99_000_000_000].iter().for_each(|ns| histogram.record(*ns));
    figures.traffic.produce = histogram.snapshot();
    figures.folders = vec![FolderFigures {
        path: PathBuf::from("/data/a \"b\""),
        up: true,
        partitions: Some(12),
        total_bytes: Some(100),
        free_bytes: Some(5),
        limits: log::reserve::SpaceLimits { reserve_bytes: 10, quota_bytes: None, used_bytes: 0 },
        lost_partitions: 0,
    }];
    figures.rows = vec![PartitionRow {
        topic: Arc::from("orders"),
        partition: 7,
        log_start_offset: 2,
        high_watermark: 9,
        log_end_offset: 10,
        size_bytes: 4096,
    }];
    Scrape {
        node_id: 1,
        cluster_id: "c".into(),
        shards: vec![Some(figures), None],
        turned_away: 6,
        took: Duration::from_micros(1_234),
        query: Query { partitions: true },
    }
}

#[track_caller]
fn has(text: &str, line: &str) {
    assert!(text.lines().any(|l| l == line), "{line:?} is not in\n{text}");
}

#[test]
fn each_kind_of_figure_has_its_line() {
    let text = page(scrape());
    for line in [
        "ringlog_shard_up{shard=\"0\"} 1",
        "ringlog_shard_up{shard=\"1\"} 0",
        "ringlog_connections{shard=\"0\"} 3",
        "ringlog_connections_turned_away_total 6",
        "# HELP ringlog_appended_batches_total Batches that logs took.",
        "# TYPE ringlog_appended_batches_total counter",
        "ringlog_appended_batches_total{shard=\"0\"} 41",
        "ringlog_journal_full_seconds_total{shard=\"0\"} 2.5",
        "ringlog_shard_stall_seconds{shard=\"0\"} 0.0015",
        "ringlog_partitions{shard=\"0\",state=\"damaged\"} 1",
        "ringlog_partition_errors_total{shard=\"0\",api=\"Produce\",error=\"NOT_LEADER_OR_FOLLOWER\"} 2",
        "# TYPE ringlog_request_latency_seconds histogram",
        "ringlog_request_latency_seconds_bucket{shard=\"0\",api=\"Produce\",le=\"5e-05\"} 0",
        "ringlog_request_latency_seconds_bucket{shard=\"0\",api=\"Produce\",le=\"0.0001\"} 1",
        "ringlog_request_latency_seconds_bucket{shard=\"0\",api=\"Produce\",le=\"10\"} 2",
        "ringlog_request_latency_seconds_bucket{shard=\"0\",api=\"Produce\",le=\"+Inf\"} 3",
        "ringlog_request_latency_seconds_sum{shard=\"0\",api=\"Produce\"} 99.00206",
        "ringlog_request_latency_seconds_count{shard=\"0\",api=\"Produce\"} 3",
        "ringlog_folder_braked{folder=\"/data/a \\\"b\\\"\"} 1",
        "ringlog_folder_partitions{folder=\"/data/a \\\"b\\\"\"} 12",
        "ringlog_partition_high_watermark{topic=\"orders\",partition=\"7\"} 9",
        "ringlog_partitions_left_out 0",
    ] {
        has(&text, line);
    }
    assert!(!text.contains("folder_quota_bytes{"), "no quota, no figure of it");
    assert!(!text.contains("shard=\"1\",") && !text.contains("connections{shard=\"1\"}"), "it said nothing");
}

#[test]
fn partitions_have_no_lines_unless_asked_for() {
    let mut without = scrape();
    without.query = Query::default();
    let text = page(without);
    assert!(!text.contains("partition_high_watermark") && !text.contains("orders"), "{text}");
}

#[test]
fn a_page_without_any_shard_is_whole() {
    let nobody = Scrape { shards: vec![None], ..scrape() };
    let text = page(nobody);
    has(&text, "ringlog_shard_up{shard=\"0\"} 0");
    has(&text, "# TYPE ringlog_journal_fill_bytes gauge");
}

/// What Prometheus asks of a page: each family once, its description before its samples, no sample twice.
#[test]
fn the_page_is_well_formed() {
    let text = page(scrape());
    let (mut described, mut samples, mut current) = (BTreeSet::new(), BTreeSet::new(), String::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(described.insert(name.to_string()), "{name} is described twice");
            assert!(help.ends_with('.') && help.len() > 5, "{name}: {help}");
            current = name.to_string();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert_eq!(rest.split(' ').next(), Some(&*current));
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert!(series.starts_with(&current), "{series} stands under {current}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert!(samples.insert(series.to_string()), "{series} is there twice");
        }
    }
    assert!(described.len() > 60, "{}", described.len());
}

#[test]
fn the_table_in_the_comment_names_every_metric_and_no_other() {
    let comment: String = include_str!("families.rs").lines().filter(|line| line.starts_with("//! |")).collect();
    let listed: BTreeSet<&str> =
        comment.split('`').skip(1).step_by(2).filter(|word| !word.contains(['.', '?'])).collect();
    let names = FAMILIES.iter().map(|family| family.name).chain(NODE.iter().map(|family| family.name));
    assert_eq!(listed, names.collect());
}

#[test]
fn errors_have_kafkas_names() {
    assert_eq!(kafka_name(ErrorCode::NotLeaderOrFollower), "NOT_LEADER_OR_FOLLOWER");
    assert_eq!(kafka_name(ErrorCode::UnknownServerError), "UNKNOWN_SERVER_ERROR");
}
