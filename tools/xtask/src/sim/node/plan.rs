//! What a seed stands for. Everything is thrown before the first step, so that a run with a trouble left out is the same
//! run otherwise, as far as that can be.

use client::producer::Acks;
use runtime::sim::{Dice, Fault, NetworkFault, NetworkFaultKind, Operation};

use super::damage::Flip;

/// Stalls are 10 ms times two to the power of less than this: the longest outlive a request's time-out and its next
/// attempts, so that brokers read copies of a batch that its client has given up.
const STALLS: u64 = 9;

/// A topic that is there from the beginning to the end.
#[derive(Clone, Debug)]
pub struct TopicPlan {
    pub name: String,
    pub partitions: i32,
    pub configs: Vec<(String, String)>,
    /// Old segments go by themselves.
    pub retains: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct ProducerPlan {
    pub acks: Acks,
    pub idempotent: bool,
    pub linger_ms: i64,
    pub in_flight: usize,
    /// Mean pause between two records.
    pub pause_ms: u64,
    pub largest_value: u64,
    pub transient: bool,
}

/// A broker process.
#[derive(Clone, Copy, Debug)]
pub struct LifePlan {
    /// How long it runs at least, if nothing befalls it; then it is stopped cleanly.
    pub run_ms: u64,
    /// How long there is none after it.
    pub pause_ms: u64,
}

#[derive(Clone, Debug)]
pub enum Trouble {
    /// After so many steps of the process.
    Kill(u64),
    PowerCut(u64),
    Disk(Fault),
    /// A page of a write lands one page behind its place, and everybody is told that all is well.
    Astray {
        passes: u64,
    },
    /// A bit of an old block is another than was written.
    Flip(Flip),
    /// Counted from the life's begin.
    Network(NetworkFault),
    /// The wall clock jumps at the life's begin.
    ClockJump(i64),
}

/// A trouble and the life that it befalls.
#[derive(Clone, Debug)]
pub struct Due {
    pub life: usize,
    pub trouble: Trouble,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub shards: usize,
    pub topics: Vec<TopicPlan>,
    pub producers: Vec<ProducerPlan>,
    pub readers: u64,
    /// Members of the consumer group.
    pub members: u64,
    pub churners: u64,
    pub deletes_records: bool,
    /// Topics get more partitions.
    pub grows: bool,
    pub request_timeout_ms: i64,
    pub lives: Vec<LifePlan>,
    pub troubles: Vec<Due>,
    pub is_damaged: bool,
}

fn pick<T: Copy>(dice: &mut Dice, from: &[T]) -> T {
    from[dice.below(from.len() as u64) as usize]
}

impl Plan {
    pub fn throw(dice: &mut Dice) -> Plan {
        let lives: Vec<LifePlan> = (0..2 + dice.below(4))
            .map(|_| LifePlan { run_ms: 200 << dice.below(6), pause_ms: pick(dice, &[0, 20, 300, 2_500]) })
            .collect();
        let (astray, flips) = (dice.one_in(12), dice.one_in(8));
        let mut troubles = if astray { damage(dice) } else { troubles(dice, lives.len()) };
        if flips {
            flip_bits(dice, &lives, &mut troubles);
        }
        Plan {
            shards: 1 + dice.below(3) as usize,
            topics: (0..1 + dice.below(3)).map(|number| topic(dice, number, flips)).collect(),
            producers: (0..1 + dice.below(3)).map(|_| producer(dice)).collect(),
            readers: 1 + dice.below(2),
            members: dice.below(3),
            churners: dice.below(2),
            deletes_records: dice.one_in(3),
            grows: dice.one_in(3),
            request_timeout_ms: pick(dice, &[400, 1_000, 2_000]),
            lives,
            troubles,
            is_damaged: astray || flips,
        }
    }
}

/// A broker may read a request after its client gave it up and made the next.
pub fn outlives_requests(plan: &Plan) -> bool {
    let long = |ms: u64| ms as i64 >= plan.request_timeout_ms;
    plan.troubles.iter().any(|due| match due.trouble {
        Trouble::Network(NetworkFault { kind: NetworkFaultKind::StallMs(ms), .. }) => long(ms),
        _ => false,
    })
}

/// `short`: with many closed segments.
fn topic(dice: &mut Dice, number: u64, short: bool) -> TopicPlan {
    let retains = dice.one_in(4);
    let (index_bytes, interval): (&[&str], &[&str]) =
        if short { (&["16", "80"], &["0", "500"]) } else { (&["16", "80", "800"], &["0", "500", "4096"]) };
    let mut configs = vec![
        // Segments are closed when their index is full, for the size of one cannot be set as low as a simulation needs.
        ("segment.index.bytes".to_string(), pick(dice, index_bytes).to_string()),
        ("index.interval.bytes".to_string(), pick(dice, interval).to_string()),
        ("file.delete.delay.ms".to_string(), pick(dice, &["0", "100", "1000"]).to_string()),
    ];
    if retains {
        configs.push(("retention.bytes".to_string(), "20000".to_string()));
    }
    TopicPlan { name: format!("steady-{number}"), partitions: 1 + dice.below(3) as i32, configs, retains }
}

fn producer(dice: &mut Dice) -> ProducerPlan {
    let idempotent = dice.one_in(2);
    let acks = if idempotent { Acks::All } else { pick(dice, &[Acks::All, Acks::All, Acks::Leader, Acks::None]) };
    ProducerPlan {
        acks,
        idempotent,
        linger_ms: pick(dice, &[0, 0, 5, 50]),
        in_flight: pick(dice, &[1, 2, 5]),
        pause_ms: pick(dice, &[5, 20, 60]),
        largest_value: pick(dice, &[40, 600, 6_000]),
        transient: dice.one_in(4),
    }
}

fn troubles(dice: &mut Dice, lives: usize) -> Vec<Due> {
    let mut all = Vec::new();
    for life in 0..lives {
        let mut due = |trouble| all.push(Due { life, trouble });
        let most = 1 << (8 + dice.below(9));
        let steps = 1 + dice.below(most);
        match dice.below(10) {
            0..3 => due(Trouble::Kill(steps)),
            3..8 => due(Trouble::PowerCut(steps)),
            _ => {}
        }
        if dice.below(10) < 3 {
            for _ in 0..1 + dice.below(2) {
                due(Trouble::Disk(disk_fault(dice)));
            }
        }
        if dice.below(10) < 5 {
            for _ in 0..1 + dice.below(4) {
                due(Trouble::Network(network_fault(dice)));
            }
        }
        if dice.one_in(8) {
            due(Trouble::ClockJump(pick(dice, &[-3_600_000, -1_000, 60_000, 3_600_000])));
        }
    }
    all
}

/// In the first life only, which ends with a clean stop: what a crash leaves of a log whose tail was damaged is no
/// question that a log can answer.
fn damage(dice: &mut Dice) -> Vec<Due> {
    let most = 1 << dice.below(8);
    let passes = dice.below(most);
    vec![Due { life: 0, trouble: Trouble::Astray { passes } }]
}

/// In lives that have old blocks, before they begin or while they run.
fn flip_bits(dice: &mut Dice, lives: &[LifePlan], all: &mut Vec<Due>) {
    for _ in 0..1 + dice.below(3) {
        let life = 1 + dice.below(lives.len() as u64 - 1) as usize;
        let after_ms = if dice.one_in(2) { 0 } else { dice.below(lives[life].run_ms) as i64 };
        all.push(Due { life, trouble: Trouble::Flip(Flip { after_ms, chance: dice.number() }) });
    }
}

fn disk_fault(dice: &mut Dice) -> Fault {
    let (operation, path_part, errno) = pick(
        dice,
        &[
            (Operation::Sync, ".log", libc::EIO),
            (Operation::Sync, ".log", libc::EIO),
            (Operation::Write, ".log", libc::EIO),
            (Operation::Write, ".log", libc::ENOSPC),
            (Operation::Reserve, ".log", libc::ENOSPC),
            (Operation::Read, ".log", libc::EIO),
            (Operation::Open, ".log", libc::EIO),
            (Operation::Write, "index", libc::ENOSPC),
            (Operation::Write, "checkpoint", libc::ENOSPC),
            (Operation::Sync, "checkpoint", libc::EIO),
            (Operation::SyncDir, "", libc::EIO),
            (Operation::Create, "", libc::ENOSPC),
            (Operation::Remove, "", libc::EIO),
            (Operation::Write, "__cluster_metadata", libc::EIO),
            (Operation::Sync, "__cluster_metadata", libc::EIO),
        ],
    );
    let passes = 1 << dice.below(9);
    let times = if dice.one_in(3) { 3 } else { 1 };
    Fault { operation, path_part: path_part.to_owned(), passes: dice.below(passes), times, errno }
}

fn network_fault(dice: &mut Dice) -> NetworkFault {
    let kind = match dice.below(8) {
        0..3 => NetworkFaultKind::Reset,
        3 | 4 => NetworkFaultKind::Silence,
        5 | 6 => NetworkFaultKind::StallMs(10 << dice.below(STALLS)),
        _ => NetworkFaultKind::NoAnswer,
    };
    let most = 1 << (4 + dice.below(14));
    NetworkFault { connection: dice.below(12), after_bytes: dice.below(most), kind }
}
