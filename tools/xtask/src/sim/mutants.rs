//! The proof that the simulator finds things: each fault put in on purpose runs until a seed finds it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use log::mutants::{Mutant, choose};

use super::options::Options;
use super::runner::quietly;

struct Found {
    seed: u64,
    tried: u64,
    text: String,
}

pub fn run(options: &Options) -> Result<(), String> {
    let started = Instant::now();
    println!("{:<22} {:>6} {:>6}  what it said", "mutant", "seed", "tried");
    let (next, missed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let seeds = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while let Some(mutant) = Mutant::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let name = format!("{mutant:?}");
                    match hunt(*mutant, options, &seeds) {
                        Some(found) => println!("{name:<22} {:>6} {:>6}  {}", found.seed, found.tried, found.text),
                        None => {
                            println!("{name:<22} {:>6} {:>6}  NOT FOUND", "-", options.seeds.end - options.seeds.start);
                            missed.lock().unwrap_or_else(PoisonError::into_inner).push(name);
                        }
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let count = Mutant::ALL.len();
    println!(
        "{} of {count} mutants found, {} seeds in {:.0} s",
        count - missed.len(),
        seeds.load(Ordering::Relaxed),
        started.elapsed().as_secs_f64()
    );
    if missed.is_empty() { Ok(()) } else { Err(format!("not found: {}", missed.join(", "))) }
}

fn hunt(mutant: Mutant, options: &Options, seeds: &AtomicU64) -> Option<Found> {
    choose(Some(mutant));
    let found = options.seeds.clone().enumerate().find_map(|(at, seed)| {
        seeds.fetch_add(1, Ordering::Relaxed);
        let text = quietly(seed, false).violation?;
        Some(Found { seed, tried: at as u64 + 1, text })
    });
    choose(None);
    found
}
