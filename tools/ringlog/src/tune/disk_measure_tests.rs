#![allow(clippy::unwrap_used)]
use runtime::testing::{self, TempDir};

use super::*;

#[test]
fn the_last_write_phase_is_the_one_that_fills() {
    let phases = Phase::all();
    assert_eq!(phases.len(), 2 * WRITE_SIZES.len() + WRITE_DEPTHS.len() + READ_SIZES.len() * READ_DEPTHS.len());
    let last_write = phases.iter().rposition(|p| p.kind != Kind::Read).unwrap();
    assert_eq!(phases[last_write], Phase { kind: Kind::Write, size: 1 << 20, depth: 1 });
    assert!(phases[last_write + 1..].iter().all(|p| p.kind == Kind::Read));
}

#[test]
fn each_depth_is_measured_with_writes_of_one_size() {
    let depths: Vec<usize> = Phase::all()
        .into_iter()
        .filter(|p| p.kind == Kind::WriteSync && p.size == DEPTH_WRITE_BYTES)
        .map(|p| p.depth)
        .collect();
    assert_eq!(depths, [1, 4, 16, 64]);
}

#[test]
fn phases_measure_and_nothing_stays_behind() {
    let dir = TempDir::new("disk");
    let path = dir.path().to_path_buf();
    let phases = vec![
        Phase { kind: Kind::WriteSync, size: 4096, depth: 1 },
        Phase { kind: Kind::WriteSync, size: 16_384, depth: 16 },
        Phase { kind: Kind::Write, size: 1 << 20, depth: 1 },
        Phase { kind: Kind::Read, size: 65_536, depth: 4 },
    ];
    let asked = phases.clone();
    let (rows, seen) = testing::run(move || {
        let (path, phases) = (path.clone(), asked.clone());
        async move {
            let mut seen = Vec::new();
            let rows = run(&path, &phases, 50_000_000, &mut |done, all, phase| seen.push((done, all, *phase))).await;
            (rows.unwrap(), seen)
        }
    });
    assert_eq!(rows.len(), 4);
    assert!(rows[1].operations >= 16, "each of 16 threads writes: {:?}", rows[1]);
    assert!(rows.iter().all(|row| row.operations > 0 && row.mib_per_s() > 0.0 && row.p50_us <= row.p99_us), "{rows:?}");
    assert_eq!(seen[2], (2, 4, phases[2]));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the file is gone");
}

#[test]
fn memory_begins_at_a_block_and_is_noise() {
    let mut noise = Aligned::noise(3 * BLOCK);
    let slice = noise.slice();
    assert_eq!((slice.len(), slice.as_ptr().align_offset(BLOCK)), (3 * BLOCK, 0));
    assert!(slice.iter().filter(|b| **b == 0).count() < slice.len() / 100);
}

#[test]
fn too_little_space_is_a_sentence() {
    let text = DiskError::NoSpace { dir: "/x".into(), free: 1 << 20 }.to_string();
    assert_eq!(
        text,
        "/x has 1 MiB free; measuring takes 256 MiB and leaves as much again: make room or name another folder"
    );
}
