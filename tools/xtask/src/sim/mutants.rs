//! The proof that the simulator finds things: each fault put in on purpose runs until a seed finds it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::options::{Options, World};
use super::runner::quietly;

/// A mutant of any crate, and the world that is to find it.
#[derive(Clone, Copy)]
enum Any {
    Log(log::mutants::Mutant),
    Replica(replica::mutants::Mutant),
    Server(server::mutants::Mutant),
}

impl Any {
    fn all() -> Vec<Any> {
        let log = log::mutants::Mutant::ALL.iter().map(|one| Any::Log(*one));
        let replica = replica::mutants::Mutant::ALL.iter().map(|one| Any::Replica(*one));
        let server = server::mutants::Mutant::ALL.iter().map(|one| Any::Server(*one));
        log.chain(replica).chain(server).collect()
    }

    fn name(self) -> String {
        match self {
            Any::Log(one) => format!("{one:?}"),
            Any::Replica(one) => format!("{one:?}"),
            Any::Server(one) => format!("{one:?}"),
        }
    }

    /// A log that goes on after a failure shows best where its clients do.
    fn world(self) -> World {
        match self {
            Any::Log(log::mutants::Mutant::OffsetReused) => World::Node,
            Any::Log(_) => World::Log,
            Any::Replica(_) | Any::Server(_) => World::Node,
        }
    }

    fn choose(self) {
        match self {
            Any::Log(one) => log::mutants::choose(Some(one)),
            Any::Replica(one) => replica::mutants::choose(Some(one)),
            Any::Server(one) => server::mutants::choose(Some(one)),
        }
    }
}

fn choose_none() {
    log::mutants::choose(None);
    replica::mutants::choose(None);
    server::mutants::choose(None);
}

struct Found {
    seed: u64,
    tried: u64,
    text: String,
}

pub fn run(options: &Options) -> Result<(), String> {
    let started = Instant::now();
    println!("{:<22} {:<5} {:>6} {:>6}  what it said", "mutant", "world", "seed", "tried");
    let is_wanted = |one: &Any| options.mutant.as_ref().is_none_or(|name| *name == one.name());
    let all: Vec<Any> =
        Any::all().into_iter().filter(|one| options.worlds.contains(&one.world()) && is_wanted(one)).collect();
    if all.is_empty() {
        return Err("there is no such mutant".to_string());
    }
    let (next, missed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let seeds = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while let Some(mutant) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (name, world) = (mutant.name(), mutant.world().name());
                    match hunt(*mutant, options, &seeds) {
                        Some(found) => {
                            println!("{name:<22} {world:<5} {:>6} {:>6}  {}", found.seed, found.tried, found.text);
                        }
                        None => {
                            let tried = options.seeds.end - options.seeds.start;
                            println!("{name:<22} {world:<5} {:>6} {tried:>6}  NOT FOUND", "-");
                            missed.lock().unwrap_or_else(PoisonError::into_inner).push(name);
                        }
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let count = all.len();
    println!(
        "{} of {count} mutants found, {} seeds in {:.0} s",
        count - missed.len(),
        seeds.load(Ordering::Relaxed),
        started.elapsed().as_secs_f64()
    );
    if missed.is_empty() { Ok(()) } else { Err(format!("not found: {}", missed.join(", "))) }
}

fn hunt(mutant: Any, options: &Options, seeds: &AtomicU64) -> Option<Found> {
    mutant.choose();
    let found = options.seeds.clone().enumerate().find_map(|(at, seed)| {
        seeds.fetch_add(1, Ordering::Relaxed);
        let text = quietly(mutant.world(), seed, false).violation?;
        Some(Found { seed, tried: at as u64 + 1, text })
    });
    choose_none();
    found
}
