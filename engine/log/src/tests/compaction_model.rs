//! Compaction against a naive model: whatever was appended, rolled, cleaned and restarted, what is read is a part of what
//! was written, in order and at its offsets, and makes the same table of keys.

use std::collections::BTreeMap;

use model::Codec;
use proptest::prelude::*;
use runtime::testing::{TempDir, run};

use super::compaction::*;
use super::*;

#[derive(Clone, Debug)]
enum Step {
    /// Records of one batch: key, value (none: a tombstone).
    Append(usize, Vec<(u8, Option<u8>)>),
    Roll,
    /// How much later the clock is, and the room of the map.
    Clean(i64, usize),
    Restart(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let record = (0u8..12, prop::option::weighted(0.8, any::<u8>()));
    prop_oneof![
        6 => (0usize..5, prop::collection::vec(record, 1..6)).prop_map(|(codec, records)| Step::Append(codec, records)),
        2 => Just(Step::Roll),
        3 => (0i64..3000, prop_oneof![Just(0usize), Just(1 << 20)]).prop_map(|(ms, room)| Step::Clean(ms, room)),
        1 => any::<bool>().prop_map(Step::Restart),
    ]
}

fn table(records: &[Seen]) -> BTreeMap<&str, &str> {
    let mut table = BTreeMap::new();
    for (_, _, key, value) in records {
        match value {
            Some(value) => table.insert(key.as_str(), value.as_str()),
            None => table.remove(key.as_str()),
        };
    }
    table
}

async fn check(log: &PartitionLog, written: &[Seen]) {
    log.settle().await.unwrap();
    log.drop_tail();
    let read = records(log).await;
    let mut all = written.iter();
    for seen in &read {
        assert!(all.any(|w| w == seen), "{seen:?} was not written, or is out of order");
    }
    assert_eq!(table(&read), table(written));
    if let Some(last) = read.iter().max_by_key(|r| (r.1, -r.0)) {
        let hit = log.max_timestamp_hit(Offset(i64::MAX)).await.unwrap().unwrap();
        assert_eq!((hit.offset.0, hit.timestamp_ms), (last.0, last.1));
    }
}

async fn follow(steps: Vec<Step>) {
    let temp = TempDir::new("log-compact-model");
    let config = LogConfig { segment_bytes: 300, index_interval_bytes: 100, delete_retention_ms: 2000, ..compacted() };
    let mut node = Node::start(temp.path()).await;
    let mut log = node.open("t", config).await;
    let (mut written, mut now_ms): (Vec<Seen>, i64) = (Vec::new(), 1_000_000);
    for step in steps {
        match step {
            Step::Append(codec, chosen) => {
                let codec = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd][codec];
                let end = log.log_end_offset().0;
                let text: Vec<(i64, String, Option<String>)> = chosen
                    .into_iter()
                    .enumerate()
                    .map(|(at, (key, value))| {
                        (now_ms + at as i64 * 7 % 5, format!("k{key}"), value.map(|v| v.to_string()))
                    })
                    .collect();
                let borrowed: Vec<_> = text.iter().map(|(ms, k, v)| (*ms, k.as_str(), v.as_deref())).collect();
                put(&log, &packed(codec, &borrowed)).await;
                written.extend(text.into_iter().enumerate().map(|(at, (ms, k, v))| (end + at as i64, ms, k, v)));
            }
            Step::Roll if log.size_bytes() > 0 && log.state.borrow().active.fill.size > 0 => roll(&log).await,
            Step::Roll => {}
            Step::Clean(later_ms, map_bytes) => {
                now_ms += later_ms;
                let limits = CleanLimits { map_bytes, piece_bytes: 4096, ..CleanLimits::default() };
                log.clean(limits, BTreeMap::new(), now_ms).await.unwrap();
            }
            Step::Restart(clean_stop) => {
                drop(log);
                if clean_stop {
                    node.stop().await
                } else {
                    node.crash().await
                }
                node = Node::start(temp.path()).await;
                log = node.open("t", config).await;
            }
        }
        check(&log, &written).await;
    }
    assert_eq!(log.log_end_offset().0, written.len() as i64);
    drop(log);
    node.stop().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]
    #[test]
    fn a_cleaned_log_makes_the_same_table(steps in prop::collection::vec(step(), 1..60)) {
        run(move || follow(steps.clone()));
    }
}
