//! Random histories against a model: a vector of batches.

use proptest::prelude::*;
use runtime::testing::{TempDir, run};

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Append { count: u8, len: u16, times: i64 },
    Read { from: u8, max_bytes: u16 },
    Settle,
    DropTail,
    Stop,
    Crash,
    DeleteBefore(u8),
    Truncate(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1u8..6, 0u16..900, 0i64..1000).prop_map(|(count, len, times)| Step::Append { count, len, times }),
        4 => (any::<u8>(), 1u16..6000).prop_map(|(from, max_bytes)| Step::Read { from, max_bytes }),
        1 => Just(Step::Settle),
        1 => Just(Step::DropTail),
        1 => Just(Step::Stop),
        1 => Just(Step::Crash),
        1 => any::<u8>().prop_map(Step::DeleteBefore),
        1 => any::<u8>().prop_map(Step::Truncate),
    ]
}

/// What the log must hold: (base offset, count, timestamp of all records).
#[derive(Default)]
struct Model {
    batches: Vec<(i64, i32, i64)>,
    start: i64,
    end: i64,
}

impl Model {
    fn from(&self, from: i64) -> Vec<(i64, i32)> {
        self.batches.iter().filter(|(b, c, _)| b + i64::from(*c) > from).map(|(b, c, _)| (*b, *c)).collect()
    }

    fn first_at(&self, ms: i64) -> Option<(i64, i64)> {
        let visible = self.batches.iter().filter(|(b, c, _)| b + i64::from(*c) > self.start);
        visible.into_iter().find(|(_, _, t)| *t >= ms).map(|(b, _, t)| ((*b).max(self.start), *t))
    }
}

fn pick(part: u8, low: i64, high: i64) -> i64 {
    low + (high - low) * i64::from(part) / 255
}

async fn check(log: &PartitionLog, model: &Model) {
    assert_eq!((log.log_start_offset().0, log.log_end_offset().0), (model.start, model.end));
    assert_eq!(read_all(log, model.start, 2500).await, model.from(model.start));
    for ms in [0, 250, 500, 990] {
        let hit = log.offset_for_time(ms, Offset(i64::MAX)).await.unwrap().map(|h| (h.offset.0, h.timestamp_ms));
        assert_eq!(hit, model.first_at(ms), "time {ms}");
    }
}

async fn history(path: &Path, steps: &[Step]) {
    let mut node = Node::start(path).await;
    let mut log = node.open("t", small()).await;
    let mut model = Model::default();
    for step in steps {
        match *step {
            Step::Append { count, len, times } => {
                let appended = append(&log, &batch_of(&vec![times; count.into()], len.into()));
                assert_eq!(appended.base_offset.0, model.end);
                model.batches.push((model.end, count.into(), times));
                model.end += i64::from(count);
            }
            Step::Read { from, max_bytes } => {
                let from = pick(from, model.start, model.end);
                let limits = ReadLimits { max_bytes: max_bytes.into(), ..everything() };
                let found = read(&log, from, limits).await.unwrap();
                let expect = model.from(from);
                assert!(expect.starts_with(&found), "{found:?} of {expect:?}");
                assert_eq!(found.is_empty(), expect.is_empty());
            }
            Step::Settle => log.settle().await.unwrap(),
            Step::DropTail => {
                log.settle().await.unwrap();
                log.drop_tail();
            }
            Step::Stop | Step::Crash => {
                log.wait_durable(Offset(model.end)).await.unwrap();
                drop(log);
                if matches!(step, Step::Stop) {
                    node.stop().await
                } else {
                    node.crash().await
                }
                node = Node::start(path).await;
                log = node.open("t", small()).await;
                check(&log, &model).await;
            }
            Step::DeleteBefore(part) => {
                log.wait_durable(Offset(model.end)).await.unwrap();
                model.start = pick(part / 3, model.start, model.end);
                log.delete_records_before(Offset(model.start)).await.unwrap();
            }
            Step::Truncate(part) => {
                let to = pick(255 - part / 3, model.start, model.end);
                let kept: Vec<_> = model.batches.iter().copied().filter(|(b, c, _)| b + i64::from(*c) <= to).collect();
                let end = kept.last().map_or(0, |(b, c, _)| b + i64::from(*c));
                if end < model.start {
                    continue;
                }
                log.truncate_to(Offset(to)).await.unwrap();
                model.end = end;
                model.batches = kept;
            }
        }
    }
    log.wait_durable(Offset(model.end)).await.unwrap();
    check(&log, &model).await;
    drop(log);
    node.stop().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_log_is_a_vector_of_batches(steps in prop::collection::vec(step(), 1..60)) {
        run(move || {
            let steps = steps.clone();
            async move {
                let temp = TempDir::new("log-model");
                history(temp.path(), &steps).await;
            }
        });
    }
}
