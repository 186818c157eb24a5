//! Runs seeds on all cores, tells how far it is, and shows the seeds that fail.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use super::life::{self, Outcome};
use super::node;
use super::options::{Options, World};
use super::shrink::{self, Kept};

/// How often the progress is told.
const TELL_EVERY: Duration = Duration::from_secs(5);
/// Failing seeds after which a run ends.
const MOST_FAILURES: usize = 5;

thread_local! {
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// One seed; where it panicked goes with what it said, and nothing goes to the terminal.
pub fn quietly(world: World, seed: u64, keep_text: bool) -> Outcome {
    without(world, seed, keep_text, &BTreeSet::new()).0
}

/// The same with some of its troubles left out; gives the others.
fn without(world: World, seed: u64, keep_text: bool, without: &BTreeSet<usize>) -> (Outcome, Vec<Kept>) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
            PLACE.with_borrow_mut(|first| *first = first.take().or(place));
        }));
    });
    PLACE.set(None);
    let (mut outcome, kept) = match world {
        World::Log => life::run_seed(seed, keep_text, without),
        World::Node => node::run_seed(seed, keep_text, without),
    };
    if let (Some(text), Some(place)) = (&mut outcome.violation, PLACE.take()) {
        text.push_str(&format!(" ({place})"));
    }
    (outcome, kept)
}

#[derive(Default)]
struct Progress {
    seeds: AtomicU64,
    steps: AtomicU64,
    batches: AtomicU64,
    rounds: AtomicU64,
    failures: Mutex<Vec<(World, u64, String)>>,
}

impl Progress {
    fn failures(&self) -> std::sync::MutexGuard<'_, Vec<(World, u64, String)>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self, all: u64, started: Instant) -> String {
        let (seeds, seconds) = (self.seeds.load(Ordering::Relaxed), started.elapsed().as_secs_f64());
        format!(
            "sim: {seeds} of {all} seeds in {seconds:.0} s ({:.1} a second), {} steps, {} batches or records, {} rounds of the \
             journal, {} failed",
            seeds as f64 / seconds,
            self.steps.load(Ordering::Relaxed),
            self.batches.load(Ordering::Relaxed),
            self.rounds.load(Ordering::Relaxed),
            self.failures().len()
        )
    }
}

pub fn run(options: &Options) -> Result<(), String> {
    if options.one {
        return show(options);
    }
    let (progress, next, started) = (Progress::default(), AtomicU64::new(0), Instant::now());
    let all = (options.seeds.end - options.seeds.start) * options.worlds.len() as u64;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..options.jobs).map(|_| scope.spawn(|| work(options, &progress, &next))).collect();
        let mut told = started;
        while workers.iter().any(|worker| !worker.is_finished()) {
            std::thread::sleep(Duration::from_millis(50));
            if told.elapsed() >= TELL_EVERY {
                told = Instant::now();
                println!("{}", progress.line(all, started));
            }
        }
    });
    println!("{}", progress.line(all, started));
    let mut failures = std::mem::take(&mut *progress.failures());
    failures.sort();
    if failures.is_empty() {
        return Ok(());
    }
    let reports = failures.iter().map(|(world, seed, text)| report(*world, *seed, text, options));
    Err(reports.collect::<Vec<_>>().join("\n\n"))
}

fn work(options: &Options, progress: &Progress, next: &AtomicU64) {
    loop {
        let worlds = options.worlds.len() as u64;
        let number = next.fetch_add(1, Ordering::Relaxed);
        let (world, seed) = (options.worlds[(number % worlds) as usize], options.seeds.start + number / worlds);
        if seed >= options.seeds.end || progress.failures().len() >= MOST_FAILURES {
            return;
        }
        let outcome = quietly(world, seed, false);
        progress.seeds.fetch_add(1, Ordering::Relaxed);
        progress.steps.fetch_add(outcome.steps, Ordering::Relaxed);
        progress.batches.fetch_add(outcome.batches, Ordering::Relaxed);
        progress.rounds.fetch_add(outcome.rounds, Ordering::Relaxed);
        if let Some(text) = outcome.violation {
            println!("{} seed {seed}: {text}", world.name());
            progress.failures().push((world, seed, text));
        }
    }
}

/// The seed again, now with its trace: it is the same run. And what of its troubles it needs.
fn report(world: World, seed: u64, text: &str, options: &Options) -> String {
    let (outcome, _) = without(world, seed, true, &options.without);
    let same = if outcome.violation.as_deref() == Some(text) { "" } else { "\nIT DID NOT REPEAT" };
    let repeat = command(world, seed, &options.without, options.trace);
    let troubles = if options.without.is_empty() { needs(world, seed, options.trace) } else { String::new() };
    let name = world.name();
    format!("{}\n{name} seed {seed}: {text}{same}\nrepeat: {repeat}{troubles}", tail(&outcome, options.trace))
}

fn tail(outcome: &Outcome, lines: usize) -> String {
    outcome.trace[outcome.trace.len().saturating_sub(lines)..].join("\n")
}

fn command(world: World, seed: u64, without: &BTreeSet<usize>, lines: usize) -> String {
    let numbers: Vec<String> = without.iter().map(usize::to_string).collect();
    let left_out = if numbers.is_empty() { String::new() } else { format!(" --without {}", numbers.join(",")) };
    format!("cargo xtask sim --world {} --seed {seed}{left_out} --trace {lines}", world.name())
}

fn needs(world: World, seed: u64, lines: usize) -> String {
    let Some(shrunk) = shrink::shrink(|left_out| without(world, seed, false, left_out)) else { return String::new() };
    let troubles: Vec<&str> = shrunk.needs.iter().map(|(_, text)| text.as_str()).collect();
    let needs = match troubles.join("; ") {
        none if none.is_empty() => "it fails without any trouble".to_string(),
        some => format!("it fails with these alone: {some}"),
    };
    let repeat = command(world, seed, &shrunk.without, lines);
    format!("\n{needs}\nand says then: {}\nrepeat that: {repeat}", shrunk.says)
}

fn show(options: &Options) -> Result<(), String> {
    let seed = options.seeds.start;
    for world in &options.worlds {
        let (outcome, kept) = without(*world, seed, true, &options.without);
        if let Some(text) = outcome.violation {
            return Err(report(*world, seed, &text, options));
        }
        println!("{}", tail(&outcome, options.trace));
        kept.iter().for_each(|(at, text)| println!("trouble {at}: {text}"));
        println!(
            "{} seed {seed}: {} steps, {} batches or records, trace {:016x}, good",
            world.name(),
            outcome.steps,
            outcome.batches,
            outcome.hash
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_seeds_are_good_and_repeat() {
        for seed in 0..20 {
            let outcome = quietly(World::Log, seed, false);
            assert_eq!(outcome.violation, None, "seed {seed}");
            assert!(outcome.steps > 0);
            if seed < 3 {
                let again = quietly(World::Log, seed, true);
                assert_eq!((again.hash, again.steps), (outcome.hash, outcome.steps), "seed {seed} does not repeat");
            }
        }
    }

    #[test]
    fn whole_nodes_are_good_and_repeat() {
        for seed in 0..4 {
            let outcome = quietly(World::Node, seed, false);
            assert_eq!(outcome.violation, None, "seed {seed}");
            let again = quietly(World::Node, seed, true);
            assert_eq!((again.hash, again.steps), (outcome.hash, outcome.steps), "seed {seed} does not repeat");
        }
    }
}
