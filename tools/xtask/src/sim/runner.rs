//! Runs seeds on all cores, tells how far it is, and shows the seeds that fail.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use super::life::{Outcome, run_seed};
use super::options::Options;

/// How often the progress is told.
const TELL_EVERY: Duration = Duration::from_secs(5);
/// Failing seeds after which a run ends.
const MOST_FAILURES: usize = 5;

thread_local! {
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// One seed; where it panicked goes with what it said, and nothing goes to the terminal.
pub fn quietly(seed: u64, keep_text: bool) -> Outcome {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
            PLACE.with_borrow_mut(|first| *first = first.take().or(place));
        }));
    });
    PLACE.set(None);
    let mut outcome = run_seed(seed, keep_text);
    if let (Some(text), Some(place)) = (&mut outcome.violation, PLACE.take()) {
        text.push_str(&format!(" ({place})"));
    }
    outcome
}

#[derive(Default)]
struct Progress {
    seeds: AtomicU64,
    steps: AtomicU64,
    batches: AtomicU64,
    rounds: AtomicU64,
    failures: Mutex<Vec<(u64, String)>>,
}

impl Progress {
    fn failures(&self) -> std::sync::MutexGuard<'_, Vec<(u64, String)>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self, all: u64, started: Instant) -> String {
        let (seeds, seconds) = (self.seeds.load(Ordering::Relaxed), started.elapsed().as_secs_f64());
        format!(
            "sim: {seeds} of {all} seeds in {seconds:.0} s ({:.1} a second), {} steps, {} batches, {} rounds of the journal, {} failed",
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
    let (progress, next, started) = (Progress::default(), AtomicU64::new(options.seeds.start), Instant::now());
    let all = options.seeds.end - options.seeds.start;
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
    Err(failures.iter().map(|(seed, text)| report(*seed, text, options.trace)).collect::<Vec<_>>().join("\n\n"))
}

fn work(options: &Options, progress: &Progress, next: &AtomicU64) {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= options.seeds.end || progress.failures().len() >= MOST_FAILURES {
            return;
        }
        let outcome = quietly(seed, false);
        progress.seeds.fetch_add(1, Ordering::Relaxed);
        progress.steps.fetch_add(outcome.steps, Ordering::Relaxed);
        progress.batches.fetch_add(outcome.batches, Ordering::Relaxed);
        progress.rounds.fetch_add(outcome.rounds, Ordering::Relaxed);
        if let Some(text) = outcome.violation {
            println!("seed {seed}: {text}");
            progress.failures().push((seed, text));
        }
    }
}

/// The seed again, now with its trace: it is the same run.
fn report(seed: u64, text: &str, lines: usize) -> String {
    let outcome = quietly(seed, true);
    let from = outcome.trace.len().saturating_sub(lines);
    let same = if outcome.violation.as_deref() == Some(text) { "" } else { "\nIT DID NOT REPEAT" };
    format!(
        "{}\nseed {seed}: {text}{same}\nrepeat: cargo xtask sim --seed {seed} --trace {lines}",
        outcome.trace[from..].join("\n")
    )
}

fn show(options: &Options) -> Result<(), String> {
    let seed = options.seeds.start;
    let outcome = quietly(seed, true);
    match outcome.violation {
        Some(text) => Err(report(seed, &text, options.trace)),
        None => {
            let from = outcome.trace.len().saturating_sub(options.trace);
            println!("{}", outcome.trace[from..].join("\n"));
            println!(
                "seed {seed}: {} steps, {} batches, {} rounds of the journal, trace {:016x}, good",
                outcome.steps, outcome.batches, outcome.rounds, outcome.hash
            );
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_seeds_are_good_and_repeat() {
        for seed in 0..20 {
            let outcome = quietly(seed, false);
            assert_eq!(outcome.violation, None, "seed {seed}");
            assert!(outcome.steps > 0);
            if seed < 3 {
                let again = quietly(seed, true);
                assert_eq!((again.hash, again.steps), (outcome.hash, outcome.steps), "seed {seed} does not repeat");
            }
        }
    }
}
