//! A seed from its first broker to the last look.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;

use client::admin::{Admin, NewTopic};
use model::ErrorCode;
use model::config::BrokerConfig;
use runtime::sim::{self, Config, Death, Dice, Ended, Process, ProcessEnd, Simulation};
use runtime::{ShardSpec, TaskGroup, clock};
use server::{Node, NodeOptions};

use super::clients::{BROKER, Stage, Staged, only, patiently, pause_ms};
use super::damage::{self, Flip};
use super::history::History;
use super::last_look::last_look;
use super::plan::{LifePlan, Plan, Trouble, outlives_requests};
use super::{churn, group, growth, producer, reader, watcher};
use crate::sim::life::Outcome;
use crate::sim::shrink::Kept;

const FOLDER: &str = "/var/data";
/// Steps that a whole seed may take.
const STEP_LIMIT: u64 = 20_000_000;

/// A seed without some of its plan's troubles; gives the others.
pub fn run_seed(seed: u64, keep_text: bool, without: &BTreeSet<usize>) -> (Outcome, Vec<Kept>) {
    let mut dice = Dice::new(seed ^ 0x0de5_0de5_0de5_0de5);
    let mut plan = Plan::throw(&mut dice);
    let kept = plan.troubles.iter().enumerate().filter(|(at, _)| !without.contains(at));
    let kept: Vec<_> = kept.map(|(at, due)| (at, due.clone())).collect();
    plan.troubles = kept.iter().map(|(_, due)| due.clone()).collect();
    let told = kept.iter().map(|(at, due)| (*at, format!("life {}: {:?}", due.life + 1, due.trouble))).collect();
    let mut simulation = Simulation::new(seed, Config { keep_text, step_limit: STEP_LIMIT, ..Config::default() });
    let records = Rc::new(Cell::new(0));
    let ended = simulation.life(run(plan, dice, records.clone()));
    sim::clear_faults();
    sim::clear_network_faults();
    let outcome = Outcome {
        hash: simulation.trace_hash(),
        steps: simulation.steps(),
        rounds: 0,
        batches: records.get(),
        violation: match ended {
            Ended::Finished(()) | Ended::Crashed => None,
            Ended::Panicked(text) | Ended::Stuck(text) => Some(text),
        },
        trace: simulation.trace_lines(),
    };
    (outcome, told)
}

async fn run(plan: Plan, mut dice: Dice, records: Rc<Cell<u64>>) {
    let mut history = History::default();
    history.late_commits = outlives_requests(&plan);
    let stage: Staged = Rc::new(Stage {
        history: Rc::new(RefCell::new(history)),
        plan,
        closing: Cell::new(false),
        actors: TaskGroup::new(),
    });
    let lives = stage.plan.lives.clone();
    for (number, life) in lives.iter().enumerate() {
        stage.history.borrow_mut().life = number;
        live(&stage, number, *life, &mut dice).await;
        pause_ms(life.pause_ms).await;
    }
    last_life(&stage, lives.len()).await;
    records.set(stage.history.borrow().records());
}

fn options(stage: &Stage) -> NodeOptions {
    let listener = format!("PLAINTEXT://{BROKER}");
    let pairs = [
        ("node.id", "1"),
        ("log.dirs", FOLDER),
        ("listeners", listener.as_str()),
        ("auto.create.topics.enable", "false"),
        ("offsets.topic.num.partitions", "2"),
        ("group.initial.rebalance.delay.ms", "0"),
        ("log.retention.check.interval.ms", "700"),
        ("ringlog.batch.cache.bytes", "4194304"),
        ("ringlog.io.memory.bytes", "4194304"),
    ];
    match BrokerConfig::from_pairs(pairs) {
        Ok(config) => NodeOptions { config, shards: vec![ShardSpec::default(); stage.plan.shards], helper_cpu: None },
        Err(error) => panic!("the broker's configuration: {error}"),
    }
}

struct Broker {
    process: Process<Result<bool, String>>,
    stop: flume::Sender<()>,
    started: flume::Receiver<bool>,
}

/// A process that serves until it is told to stop.
fn broker(stage: &Stage) -> Broker {
    let (stop, stopped) = flume::bounded::<()>(1);
    let (ready, started) = flume::bounded(1);
    let options = options(stage);
    let process = Process::start("broker", async move {
        let (node, _) = Node::start(options).await.map_err(|error| error.to_string())?;
        let _ = ready.send(true);
        let _ = stopped.recv_async().await;
        node.stop().await
    });
    Broker { process, stop, started }
}

/// One broker process, from its start to its end, with what befalls it.
async fn live(stage: &Staged, number: usize, life: LifePlan, dice: &mut Dice) {
    let (mut power_cut, mut faulty) = (false, false);
    let mut flips = flips(stage, number);
    flip_bits(stage, &mut flips, 0).await;
    let broker = broker(stage);
    for due in stage.plan.troubles.iter().filter(|due| due.life == number) {
        match &due.trouble {
            Trouble::Kill(steps) => broker.process.kill_after(*steps, Death::Killed),
            Trouble::PowerCut(steps) => {
                power_cut = true;
                broker.process.kill_after(*steps, Death::PowerCut);
            }
            Trouble::Disk(fault) => {
                faulty = true;
                sim::inject(fault.clone());
            }
            Trouble::Astray { passes } => sim::lead_astray("steady", *passes),
            Trouble::Flip(_) => {}
            Trouble::Network(fault) => sim::inject_network(*fault),
            Trouble::ClockJump(ms) => sim::jump_wall(*ms),
        }
    }
    if broker.started.recv_async().await.is_ok() && stage.actors.running() == 0 {
        set_up(stage, &broker.process, dice).await;
    }
    let began_ms = clock::now_ms();
    while broker.process.is_running() && clock::now_ms() < began_ms + life.run_ms as i64 {
        pause_ms(20).await;
        flip_bits(stage, &mut flips, clock::now_ms() - began_ms).await;
    }
    let _ = broker.stop.send(());
    // A stop waits for its connections no longer than a second or so, and for the disk.
    let ended = patiently("the end of a broker", 120, broker.process.ended()).await;
    let struck = sim::clear_faults();
    sim::clear_network_faults();
    sim::note("life", [number as u64, struck], || format!("{} ended: {ended:?}", number + 1));
    if power_cut && matches!(ended, ProcessEnd::Killed) {
        sim::power_cut();
    }
    match ended {
        ProcessEnd::Killed if power_cut => stage.history.borrow_mut().weaken(),
        ProcessEnd::Finished(Err(text)) => assert!(faulty, "the broker ended: {text}"),
        ProcessEnd::Exited(text) => assert!(faulty, "the broker ended itself: {text}"),
        _ => {}
    }
    if struck > 0 {
        stage.history.borrow_mut().weaken();
    }
}

/// The bits that flip in a life.
fn flips(stage: &Stage, number: usize) -> Vec<Flip> {
    let due = stage.plan.troubles.iter().filter(|due| due.life == number);
    due.filter_map(|due| if let Trouble::Flip(flip) = due.trouble { Some(flip) } else { None }).collect()
}

/// Those that are due when the life is so old.
async fn flip_bits(stage: &Staged, flips: &mut Vec<Flip>, age_ms: i64) {
    for flip in flips.extract_if(.., |flip| flip.after_ms <= age_ms) {
        damage::flip(stage, Path::new(FOLDER), flip).await;
    }
}

/// The first broker that stands gets its topics, and the actors begin.
async fn set_up(stage: &Staged, process: &Process<Result<bool, String>>, dice: &mut Dice) {
    let client = stage.client("set-up");
    let admin = Admin::new(client.clone());
    let plans = stage.plan.topics.clone();
    for plan in &plans {
        let topic = NewTopic {
            partitions: plan.partitions,
            replication_factor: 1,
            configs: plan.configs.clone(),
            ..NewTopic::new(&plan.name)
        };
        loop {
            match only(admin.create_topics(std::slice::from_ref(&topic), false).await) {
                Ok(Ok(_)) => break,
                Ok(Err(error)) if error.code() == Some(ErrorCode::TopicAlreadyExists) => break,
                _ if !process.is_running() => return,
                _ => pause_ms(50).await,
            }
        }
    }
    for plan in &plans {
        let mut history = stage.history.borrow_mut();
        growth::first(plan).for_each(|at| history.add_partition(at, plan.retains));
        history.grown(&plan.name, plan.partitions);
    }
    begin_actors(stage, dice);
}

fn begin_actors(stage: &Staged, dice: &mut Dice) {
    let mut dice = || Dice::new(dice.number());
    let actors = &stage.actors;
    for (number, plan) in stage.plan.producers.iter().enumerate() {
        actors.spawn("producer", producer::produce(stage.clone(), *plan, number as u32 + 1, dice()));
    }
    for number in 0..stage.plan.readers {
        actors.spawn("reader", reader::read(stage.clone(), number, dice()));
    }
    for number in 0..stage.plan.members {
        actors.spawn("member", group::take_part(stage.clone(), number, dice()));
    }
    for number in 0..stage.plan.churners {
        actors.spawn("churner", churn::churn(stage.clone(), number, dice()));
    }
    actors.spawn("watcher", watcher::watch(stage.clone(), dice()));
}

/// A broker that nothing befalls: the actors come to their end, then everything is read once more, and it stops.
async fn last_life(stage: &Staged, number: usize) {
    stage.history.borrow_mut().life = number;
    let broker = broker(stage);
    let stands = broker.started.recv_async().await;
    if stands.is_err() {
        panic!("nothing is in its way, and the broker does not start: {:?}", broker.process.ended().await);
    }
    pause_ms(300).await;
    stage.closing.set(true);
    patiently("the end of the actors", 180, stage.actors.wait()).await;
    // What was only written is durable by then, and what was found at the start is open: before that a folder is not
    // called clean.
    pause_ms(3_000).await;
    if !stage.history.borrow().all().is_empty() {
        last_look(stage).await;
    }
    let _ = broker.stop.send(());
    match patiently("the last stop", 60, broker.process.ended()).await {
        ProcessEnd::Finished(Ok(clean)) => assert!(clean || stage.plan.is_damaged, "the last stop was not clean"),
        ended => panic!("the last broker ended so: {ended:?}"),
    }
}
