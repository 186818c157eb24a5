//! Whatever happens in whatever order: one fate per record, order within a partition, no record twice, memory bounded.
//!
//! The broker here is an honest one: it checks sequences, remembers what it has, and answers each connection in order. What
//! a broken connection held it may read at any time later.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const NODES: i32 = 3;
const PARTITIONS: i32 = 4;

#[derive(Clone, Debug)]
enum Step {
    Send {
        partition: i32,
        size: usize,
    },
    Drain,
    /// The oldest request of a node is served; `code` is used where it is not a plain success.
    Serve {
        node: i32,
        code: i16,
    },
    /// A connection breaks after the broker took in some of its requests.
    Break {
        node: i32,
        served: usize,
    },
    /// The oldest request that a broken connection still holds is read.
    Late {
        connection: usize,
    },
    MoveLeader {
        partition: usize,
        leader: i32,
    },
    Pass {
        ms: i64,
    },
    ProducerId,
}

fn step() -> impl Strategy<Value = Step> {
    let codes = prop_oneof![12 => Just(0i16), 1 => Just(7), 1 => Just(19), 1 => Just(20), 1 => Just(2), 1 => Just(10),
        1 => Just(87), 1 => Just(-1), 1 => Just(56)];
    prop_oneof![
        8 => (0..PARTITIONS, 8usize..400).prop_map(|(partition, size)| Step::Send { partition, size }),
        8 => Just(Step::Drain),
        8 => (0..NODES, codes).prop_map(|(node, code)| Step::Serve { node, code }),
        2 => (0..NODES, 0usize..3).prop_map(|(node, served)| Step::Break { node, served }),
        4 => (0usize..100).prop_map(|connection| Step::Late { connection }),
        1 => (0..PARTITIONS as usize, -1..NODES).prop_map(|(partition, leader)| Step::MoveLeader { partition, leader }),
        4 => (1i64..60).prop_map(|ms| Step::Pass { ms }),
        1 => Just(Step::ProducerId),
    ]
}

/// One partition at the broker.
#[derive(Default)]
struct Log {
    tags: Vec<u64>,
    /// Epoch and next sequence by producer id.
    next: BTreeMap<i64, (i16, i32)>,
}

impl Log {
    fn append(&mut self, batch: &Seen) -> i16 {
        if batch.producer_id < 0 {
            self.tags.extend(&batch.tags);
            return 0;
        }
        // As Kafka has it: from a producer that it does not know it takes any sequence.
        let (epoch, next) = self.next.entry(batch.producer_id).or_insert((batch.producer_epoch, batch.sequence));
        if batch.producer_epoch < *epoch {
            return 47;
        }
        if batch.producer_epoch > *epoch {
            if batch.sequence != 0 {
                return 45;
            }
            (*epoch, *next) = (batch.producer_epoch, 0);
        }
        if batch.sequence < *next {
            return 46;
        }
        if batch.sequence > *next {
            return 45;
        }
        *next += batch.tags.len() as i32;
        self.tags.extend(&batch.tags);
        0
    }
}

struct World {
    bench: Bench,
    logs: Vec<Log>,
    links: BTreeMap<i32, VecDeque<NodeRequest>>,
    /// What broken connections hold.
    late: Vec<VecDeque<NodeRequest>>,
    sent: Vec<(u64, i32)>,
    next_id: i64,
}

impl World {
    fn new(config: ProducerConfig) -> World {
        let logs = (0..PARTITIONS).map(|_| Log::default()).collect();
        let bench = Bench::new(config, NODES, PARTITIONS);
        World { bench, logs, links: BTreeMap::new(), late: vec![], sent: vec![], next_id: 2 }
    }

    fn serve(&mut self, request: &NodeRequest, code: i16) -> Vec<(i16, i64)> {
        let code_of = |part: &Part| {
            let leader = self.bench.cluster.leader(TOPIC, part.index);
            if leader != Some(request.node) {
                return (NOT_LEADER, -1);
            }
            // 7, 20, -1 and 56 come after the append, the others instead of it.
            let appended = matches!(code, 0 | 7 | 20 | -1 | 56);
            let checked = if appended { self.logs[part.index as usize].append(&seen(part)) } else { 0 };
            (if checked == 0 { code } else { checked }, -1)
        };
        request.parts.iter().map(code_of).collect()
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Send { partition, size } => {
                let tag = self.sent.len() as u64;
                let mut value = tag.to_be_bytes().to_vec();
                value.resize(*size, 0);
                if self.bench.try_send(*partition, tag, value.into()).is_ok() {
                    self.sent.push((tag, *partition));
                }
            }
            Step::Drain => {
                for request in self.bench.drain() {
                    self.links.entry(request.node).or_default().push_back(request);
                }
            }
            Step::Serve { node, code } => {
                let Some(request) = self.links.entry(*node).or_default().pop_front() else { return };
                let mut codes = self.serve(&request, *code).into_iter();
                self.bench.answer_with(&request, |_| codes.next().unwrap());
            }
            Step::Break { node, served } => {
                let mut held = VecDeque::new();
                for (at, request) in std::mem::take(self.links.entry(*node).or_default()).into_iter().enumerate() {
                    self.bench.disconnect(&request);
                    if at < *served {
                        self.serve(&request, 0);
                    } else {
                        held.push_back(request);
                    }
                }
                self.late.push(held);
            }
            Step::Late { connection } => {
                let connection = connection % self.late.len().max(1);
                let Some(request) = self.late.get_mut(connection).and_then(VecDeque::pop_front) else { return };
                self.serve(&request, 0);
            }
            Step::MoveLeader { partition, leader } => set_leader(&mut self.bench.cluster, *partition, *leader),
            Step::Pass { ms } => self.bench.pass(*ms),
            Step::ProducerId => {
                if self.bench.sender.wants_producer_id() {
                    self.bench.sender.producer_id(self.next_id, 0);
                    self.next_id += 1;
                }
            }
        }
    }

    /// Everything works from here on.
    fn finish(&mut self) {
        for partition in 0..PARTITIONS as usize {
            self.step(&Step::MoveLeader { partition, leader: 0 });
        }
        for _ in 0..400 {
            self.step(&Step::Drain);
            (0..NODES).for_each(|node| self.step(&Step::Serve { node, code: 0 }));
            self.step(&Step::ProducerId);
            self.step(&Step::Pass { ms: 20 });
        }
        for connection in 0..self.late.len() {
            while !self.late[connection].is_empty() {
                self.step(&Step::Late { connection });
            }
        }
    }

    fn check(&self, ordered: bool) -> Result<(), TestCaseError> {
        let mut fates: BTreeMap<u64, &Fate> = BTreeMap::new();
        for (tag, partition, fate) in &self.bench.fates {
            prop_assert!(self.sent[*tag as usize].1 == *partition);
            prop_assert!(fates.insert(*tag, fate).is_none(), "record {} ended twice", tag);
        }
        prop_assert_eq!(fates.len(), self.sent.len(), "every record ends");
        prop_assert_eq!(self.bench.sender.memory_used(), 0);
        for (tag, partition) in &self.sent {
            let times = self.logs[*partition as usize].tags.iter().filter(|t| *t == tag).count();
            match fates[tag] {
                Fate::Acknowledged { .. } => prop_assert!(times >= 1, "{} was acknowledged and is lost", tag),
                Fate::NotSent(_) => prop_assert_eq!(times, 0, "{} was not sent and is there", tag),
                Fate::PossiblySent(_) => {}
            }
        }
        if ordered {
            for log in &self.logs {
                prop_assert!(log.tags.is_sorted_by(|a, b| a < b), "{:?}", log.tags);
            }
        }
        Ok(())
    }
}

fn run(config: ProducerConfig, steps: &[Step], ordered: bool) -> Result<(), TestCaseError> {
    let limit = config.buffer_memory;
    let mut world = World::new(config);
    for step in steps {
        world.step(step);
        // Pieces of a split batch may overdraw by their headers and what was kept free for growing.
        let slack = world.bench.sender.metrics().splits as usize * 1_000;
        prop_assert!(world.bench.sender.memory_used() <= limit + slack);
        if slack == 0 {
            prop_assert!(world.bench.sender.memory_used() <= limit);
        }
    }
    world.finish();
    world.check(ordered)
}

fn small() -> ProducerConfig {
    ProducerConfig {
        batch_size: 1_000,
        max_request_size: 2_000,
        buffer_memory: 8_000,
        request_timeout_ms: 300,
        delivery_timeout_ms: 400,
        retry_backoff_ms: 10,
        retry_backoff_max_ms: 50,
        ..ProducerConfig::default()
    }
}

proptest! {
    #[test]
    fn an_idempotent_producer_keeps_order_and_writes_nothing_twice(steps in proptest::collection::vec(step(), 1..250)) {
        run(small(), &steps, true)?;
    }

    #[test]
    fn without_idempotence_every_record_still_ends_once(steps in proptest::collection::vec(step(), 1..250)) {
        run(ProducerConfig { enable_idempotence: false, ..small() }, &steps, false)?;
    }
}
