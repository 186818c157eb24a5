#![allow(clippy::unwrap_used)]

use super::*;

const ABOUT: &str = "about = \"a test\"\n";

fn refusal(text: &str) -> String {
    Workload::parse("x", &format!("{ABOUT}{text}")).unwrap_err()
}

#[test]
fn an_unknown_field_is_refused_by_name() {
    let sentence = refusal("partition = 3\n");
    assert!(sentence.starts_with("workload x: unknown field `partition`"), "{sentence}");
    assert!(!sentence.contains('\n'));
}

#[test]
fn values_out_of_bounds_and_contradictions_are_refused() {
    for (text, part) in [
        ("partitions = 0", "partitions is 0"),
        ("random_share = 1.5", "random_share is 1.5"),
        ("batch_bytes = 2000000", "batch_bytes is 2000000"),
        ("consumers = 2", "consumers is 2"),
        ("partitions = 4\nscattered_records = 3\npartitions_per_request = 2", "contradict"),
        ("consume = \"behind\"", "need each other"),
        ("preload_mib = 3", "need each other"),
        ("partitions = 8\nkeys = 7", "fewer keys"),
        ("sync = [\"kafka\"]", "no mode without sync"),
        ("table = [\"produce_p98_ms\"]", "no figure"),
        ("codec = \"gzip\"", "unknown variant `gzip`"),
        ("partitions = 100\nbatch_bytes = 1000000", "request's bytes"),
    ] {
        let sentence = refusal(text);
        assert!(sentence.contains(part), "{text}: {sentence}");
    }
    assert!(Workload::parse("x", "").unwrap_err().contains("about"));
}

#[test]
fn requests_are_as_large_as_the_fields_say() {
    let workload = |text: &str| Workload::parse("x", &format!("{ABOUT}{text}")).unwrap();
    let all = workload("partitions = 4\nbatch_bytes = 1600");
    assert_eq!((all.records_per_batch(), all.batches_per_request(), all.records_per_request()), (3, 4, 12));
    let two = workload("partitions = 4\nbatch_bytes = 100\npartitions_per_request = 2");
    assert_eq!((two.records_per_batch(), two.records_per_request()), (1, 2));
    assert_eq!(workload("partitions = 4\nscattered_records = 9").records_per_request(), 9);
}

#[test]
fn scaling_keeps_what_is_not_set() {
    let workload = Workload { mib: 0, preload_mib: 100, seconds: 10.0, ..Workload::default() }.scaled(0.1);
    assert_eq!((workload.mib, workload.preload_mib), (0, 10));
    assert!((workload.seconds - 1.0).abs() < 1e-9 && (workload.warm_up_seconds - 0.2).abs() < 1e-9);
}

#[test]
fn every_workload_of_the_repository_is_valid() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads");
    let names = names(&dir).unwrap();
    for name in &names {
        Workload::read(&dir, name).unwrap();
    }
    for wanted in [
        "firehose",
        "clickstream",
        "clickstream-lz4",
        "small",
        "scatter",
        "tail",
        "catch-up",
        "wide-1",
        "wide-100",
        "wide-1000",
        "wide-10000",
        "fan-out",
        "durable",
        "durable-scatter",
        "start",
        "idle",
    ] {
        assert!(names.iter().any(|name| name == wanted), "{wanted}");
    }
}

/// The one commented file describes every field.
#[test]
fn every_field_is_described() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads/firehose.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let fields = serde_json::to_value(Workload::default()).unwrap();
    for field in fields.as_object().unwrap().keys().filter(|field| *field != "name") {
        assert!(text.contains(&format!("\n{field} = ")) || text.contains(&format!("\n# {field} = ")), "{field}");
    }
}
