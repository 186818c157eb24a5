//! A process that ends at every step of a cleaning: what the next start finds is the old segments or the cleaned one.

use std::collections::BTreeMap;

use runtime::testing::{TempDir, run};

use super::compaction::*;
use super::*;
use crate::compact::stop;

fn config() -> LogConfig {
    LogConfig { segment_bytes: 100, ..compacted() }
}

/// Six segments of one record each, for two groups.
async fn filled(node: &Node) -> Rc<PartitionLog> {
    let log = node.open("t", config()).await;
    for (at, key) in ["a", "b", "a", "c", "b", "d"].into_iter().enumerate() {
        put(&log, &one(at as i64, key, Some(&format!("v{at}")))).await;
    }
    roll(&log).await;
    put(&log, &one(9, "a", Some("active"))).await;
    log.set_config(LogConfig { segment_bytes: 300, ..log.config() });
    log
}

const BEFORE: &str = "0:a=v0 1:b=v1 2:a=v2 3:c=v3 4:b=v4 5:d=v5 6:a=active";
const AFTER: &str = "2:a=v2 3:c=v3 4:b=v4 5:d=v5 6:a=active";

/// Ends at the given step; gives whether the cleaning got to its end before.
async fn crashed_at(step: u32) -> bool {
    let temp = TempDir::new("log-compact-crash");
    let node = Node::start(temp.path()).await;
    let log = filled(&node).await;
    stop::after(Some(step));
    let result = log.clean(CleanLimits::default(), BTreeMap::new(), 10).await;
    let stopped = result.is_err();
    drop(log);
    node.crash().await;
    stop::after(None);
    let mut seen = String::new();
    for start in 0..2 {
        let node = Node::start(temp.path()).await;
        let log = node.open("t", config()).await;
        seen = shown(&records(&log).await);
        assert!([BEFORE, AFTER, "1:b=v1 2:a=v2 3:c=v3 4:b=v4 5:d=v5 6:a=active"].contains(&seen.as_str()), "{seen}");
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (Offset(0), Offset(7)), "step {step}");
        let names = std::fs::read_dir(log.dir()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let odd: Vec<String> = names.filter(|n| n.contains("cleaned") || n.contains("replace")).collect();
        assert!(odd.is_empty(), "step {step}: {odd:?}");
        if start == 1 {
            // Cleaned again, from whatever it was.
            clean(&log).await;
            assert_eq!(shown(&records(&log).await), AFTER, "step {step}");
            put(&log, &one(9, "e", Some("more"))).await;
            assert_eq!(shown(&records(&log).await), format!("{AFTER} 7:e=more"));
        }
        drop(log);
        if start == 1 { node.stop().await } else { node.crash().await }
    }
    assert!(stopped || seen == AFTER);
    !stopped
}

#[test]
fn every_step_of_a_cleaning_leaves_one_or_the_other() {
    run(|| async {
        let mut step = 0;
        while !crashed_at(step).await {
            step += 1;
        }
        assert!(step > 15, "only {step} steps were counted");
    });
}

#[test]
fn a_plan_that_cannot_be_read_keeps_the_partition_shut() {
    run(|| async {
        let temp = TempDir::new("log-compact-plan");
        let node = Node::start(temp.path()).await;
        let log = filled(&node).await;
        let plan = log.dir().join("ringlog.replace");
        drop(log);
        node.crash().await;
        std::fs::write(&plan, b"version=1\nsegments=0,1\ncrc=00000000\n").unwrap();
        let node = Node::start(temp.path()).await;
        let error = node.try_open("t", config()).await.unwrap_err();
        assert!(matches!(&error, LogError::BadFolder { path, .. } if *path == plan), "{error}");
        std::fs::remove_file(&plan).unwrap();
        let log = node.open("t", config()).await;
        assert_eq!(shown(&records(&log).await), BEFORE);
        drop(log);
        node.stop().await;
    });
}
