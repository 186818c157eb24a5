#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::{DirectFile, OpenMode, clock, fs, random, spawn};

const FOLDER: &str = "/data";

async fn some_work() -> u64 {
    let folder = Path::new(FOLDER);
    fs::create_dir_all(folder).await.unwrap();
    let tasks: Vec<_> = (0..8u64)
        .map(|i| {
            spawn("writer", async move {
                let file = DirectFile::open(&folder.join(format!("{i}.log")), OpenMode::Create).await.unwrap();
                for block in 0..8 {
                    file.write(&[i as u8; 100], block * 4096).await.unwrap();
                    clock::sleep(Duration::from_micros(random::u64() % 500)).await;
                }
                file.fdatasync().await.unwrap();
            })
        })
        .collect();
    for task in tasks {
        task.join().await.unwrap();
    }
    clock::now_ns()
}

fn trace_of(seed: u64, keep_text: bool) -> (u64, Vec<String>) {
    let mut simulation = Simulation::new(seed, Config { keep_text, ..Config::default() });
    assert!(matches!(simulation.life(some_work()), Ended::Finished(_)));
    simulation.power_cut();
    assert!(matches!(simulation.life(some_work()), Ended::Finished(_)));
    (simulation.trace_hash(), simulation.trace_lines())
}

#[test]
fn a_seed_gives_the_same_run_and_another_seed_another() {
    let (hash, lines) = trace_of(7, true);
    assert_eq!((hash, lines.clone()), trace_of(7, true));
    assert_eq!(hash, trace_of(7, false).0, "keeping text changes nothing");
    assert!(lines.len() > 100);
    let others: Vec<u64> = (8..16).map(|seed| trace_of(seed, false).0).collect();
    assert!(others.iter().all(|other| *other != hash));
}

/// Does something with a folder that is there for good, cuts the power; gives what is there of a file in it.
fn left_by_a_cut(seed: u64, path: &'static Path, work: impl Future<Output = ()> + 'static) -> Option<Vec<u8>> {
    let mut simulation = Simulation::new(seed, Config::default());
    let ended = simulation.life(async move {
        fs::create_dir_all(Path::new(FOLDER)).await.unwrap();
        fs::sync_dir(Path::new("/")).await.unwrap();
        work.await;
    });
    assert!(matches!(ended, Ended::Finished(())));
    simulation.power_cut();
    match simulation.life(async move { fs::read_if_there(path, 1 << 20).await.unwrap() }) {
        Ended::Finished(found) => found,
        other => panic!("{other:?}"),
    }
}

/// Writes two blocks, syncs the first, cuts the power; gives what is there.
fn after_a_cut(seed: u64, sync_names: bool) -> Option<Vec<u8>> {
    let path = Path::new("/data/file");
    left_by_a_cut(seed, path, async move {
        let file = DirectFile::open(path, OpenMode::Create).await.unwrap();
        file.write(&[1; 4096], 0).await.unwrap();
        file.fdatasync().await.unwrap();
        if sync_names {
            fs::sync_dir(Path::new(FOLDER)).await.unwrap();
        }
        file.write(&[2; 8192], 4096).await.unwrap();
    })
}

/// Writes a block, then another durably, cuts the power; gives what is there of both.
fn after_a_durable_write(seed: u64) -> (bool, bool) {
    let path = Path::new("/data/file");
    let found = left_by_a_cut(seed, path, async move {
        let file = DirectFile::open(path, OpenMode::Create).await.unwrap();
        file.preallocate(8192).await.unwrap();
        file.fdatasync().await.unwrap();
        fs::sync_dir(Path::new(FOLDER)).await.unwrap();
        file.write(&[1; 4096], 0).await.unwrap();
        file.write_piece_durably(&[&[2; 4000], &[2; 96]], 4096).await.unwrap();
    });
    let found = found.unwrap();
    (found[..4096] == [1; 4096], found[4096..] == [2; 4096])
}

#[test]
fn a_durable_write_stays_and_says_nothing_of_others() {
    let found: Vec<(bool, bool)> = (0..100).map(after_a_durable_write).collect();
    assert!(found.iter().all(|(_, durable)| *durable));
    assert!(found.iter().any(|(other, _)| *other) && found.iter().any(|(other, _)| !*other));
}

#[test]
fn what_was_synced_stays_and_the_rest_may_be_there() {
    let found: Vec<Vec<u8>> = (0..100).map(|seed| after_a_cut(seed, true).unwrap()).collect();
    assert!(found.iter().all(|bytes| bytes[..4096] == [1; 4096]));
    assert!(found.iter().any(|bytes| bytes.len() == 4096));
    assert!(found.iter().any(|bytes| bytes.len() == 3 * 4096 && bytes[4096..].iter().all(|b| *b == 2)));
    let holed = |bytes: &Vec<u8>| bytes.len() == 3 * 4096 && bytes[4096] == 0 && bytes[8192] == 2;
    assert!(found.iter().any(holed), "a page in the middle may be missing");
}

#[test]
fn a_name_is_lost_unless_its_folder_was_synced() {
    let there = (0..100).filter(|seed| after_a_cut(*seed, false).is_some()).count();
    assert!((1..100).contains(&there), "{there}");
}

#[test]
fn a_failed_sync_forgets_what_it_was_to_write() {
    let mut lost = 0;
    for seed in 0..50 {
        let mut simulation = Simulation::new(seed, Config::default());
        let path = Path::new("/file");
        inject(Fault { operation: Operation::Sync, path_part: "file".into(), passes: 0, times: 1, errno: libc::EIO });
        let ended = simulation.life(async move {
            let file = DirectFile::open(path, OpenMode::Create).await.unwrap();
            fs::sync_dir(Path::new("/")).await.unwrap();
            file.write(&[1; 4096], 0).await.unwrap();
            assert!(file.fdatasync().await.is_err());
            file.fdatasync().await.unwrap();
        });
        assert!(matches!(ended, Ended::Finished(())), "{ended:?}");
        assert_eq!(clear_faults(), 1);
        simulation.power_cut();
        let ended = simulation.life(async move { fs::read(path, 1 << 20).await.unwrap() });
        let Ended::Finished(bytes) = ended else { panic!("{ended:?}") };
        lost += usize::from(bytes.iter().all(|b| *b == 0));
    }
    assert!((1..50).contains(&lost), "{lost}");
}

#[test]
fn a_sync_covers_what_came_back_before_it_and_nothing_else() {
    let mut lost = 0;
    for seed in 0..100 {
        let mut simulation = Simulation::new(seed, Config::default());
        let ended = simulation.life(async {
            let file = DirectFile::open(Path::new("/file"), OpenMode::Create).await.unwrap();
            fs::sync_dir(Path::new("/")).await.unwrap();
            file.write(&[1; 4096], 0).await.unwrap();
            let late = file.clone();
            let beside = spawn("late", async move { late.write(&[2; 4096], 4096).await.unwrap() });
            file.fdatasync().await.unwrap();
            beside.join().await.unwrap();
        });
        assert!(matches!(ended, Ended::Finished(())), "{ended:?}");
        simulation.power_cut();
        let ended = simulation.life(async { fs::read(Path::new("/file"), 1 << 20).await.unwrap() });
        let Ended::Finished(bytes) = ended else { panic!("{ended:?}") };
        assert_eq!(bytes[0], 1);
        lost += usize::from(bytes.get(4096) != Some(&2));
    }
    assert!((1..100).contains(&lost), "{lost}");
}

#[test]
fn a_crash_ends_every_task_and_a_deadlock_is_told() {
    let mut simulation = Simulation::new(1, Config::default());
    simulation.crash_after(50);
    let ended = simulation.life(async {
        loop {
            clock::sleep(Duration::from_millis(1)).await;
        }
    });
    assert!(matches!(ended, Ended::<()>::Crashed));
    let ended = simulation.life(std::future::pending::<()>());
    assert!(matches!(ended, Ended::Stuck(text) if text.contains("main")));
    let ended = simulation.life(async {
        spawn("bad", async { panic!("on purpose") });
        clock::sleep(Duration::from_millis(1)).await;
    });
    assert!(matches!(ended, Ended::Panicked(text) if text.contains("`bad`") && text.contains("on purpose")));
}
