#![allow(clippy::unwrap_used)]

use runtime::OpenMode;

use super::*;

const FILE: u64 = 32 << 10;

async fn ring_of(folder: &runtime::testing::TempDir, files_max: usize) -> Ring {
    let mut ring = Ring::new(JournalConfig { file_bytes: FILE, files_max, ..JournalConfig::default() });
    for file in 0..files_max {
        let path = folder.path().join(format!("{file}"));
        ring.add(DirectFile::open(&path, OpenMode::Create).await.unwrap());
    }
    ring
}

/// Rounds of a block until the newest file has room for nothing but its mark.
fn fill(ring: &mut Ring, sequence: &mut u64) -> Place {
    let mut place = ring.place(BLOCK, *sequence);
    *sequence += 1;
    while ring.current_rest() > 0 {
        place = ring.place(BLOCK, *sequence);
        *sequence += 1;
    }
    place
}

#[test]
fn a_file_that_is_over_is_free_when_a_durable_round_says_so() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-ring");
        let mut ring = ring_of(&folder, 2).await;
        let mut sequence = 1;
        assert_eq!(fill(&mut ring, &mut sequence).lap, 1);
        let second = ring.place(BLOCK, sequence);
        assert_eq!((second.lap, second.oldest_needed, second.oldest_lap), (2, 1, 1));
        assert_eq!((ring.retire(), ring.release(1)), (1, 0), "its rounds count: what is durable says so");
        assert!(!ring.has_free() && ring.comes_free());
        assert_eq!(ring.used_laps(), 2, "a start would read both");
        let third = ring.place(BLOCK, sequence + 1);
        assert_eq!((third.oldest_needed, third.oldest_lap), (sequence, 2));
        assert_eq!(ring.release(third.oldest_lap), 1);
        assert!(ring.has_free() && ring.recycles() == 1);
    });
}

#[test]
fn a_full_ring_keeps_room_for_a_mark() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-ring");
        let mut ring = ring_of(&folder, 2).await;
        let mut sequence = 1;
        fill(&mut ring, &mut sequence);
        assert_eq!(ring.waits_for_mark(0), None, "a file is free");
        let second = fill(&mut ring, &mut sequence);
        assert_eq!(ring.waits_for_mark(0), None, "none is over");
        assert_eq!((ring.retire(), ring.room(0)), (1, 0));
        assert_eq!(ring.waits_for_mark(0), Some(1));
        let mark = ring.place_mark(sequence);
        assert_eq!((mark.lap, mark.position, mark.oldest_lap), (2, FILE - BLOCK, 2));
        assert_eq!(mark.oldest_needed, second.oldest_needed + FILE / BLOCK - 1, "the first round of the second file");
        assert_eq!(ring.release(mark.oldest_lap), 1);
        assert_eq!(ring.waits_for_mark(0), None);
        assert_eq!(ring.room(0), FILE - BLOCK);
    });
}

#[test]
fn the_only_file_says_itself_that_it_is_over() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-ring");
        let mut ring = ring_of(&folder, 1).await;
        ring.place(2 * BLOCK, 1);
        assert!(ring.close_current());
        assert_eq!((ring.retire(), ring.needed_laps(), ring.used_laps()), (1, 0, 1));
        let mark = ring.place_mark(2);
        assert_eq!((mark.lap, mark.position), (1, 2 * BLOCK));
        assert_eq!((mark.oldest_needed, mark.oldest_lap), (2, 2), "nothing before itself");
        assert_eq!(ring.release(mark.oldest_lap), 1);
        let place = ring.place(BLOCK, 3);
        assert_eq!((place.lap, place.position, place.oldest_needed), (2, 0, 3));
    });
}

#[test]
fn a_round_that_the_rest_of_a_file_is_too_small_for_gets_a_file_that_is_free() {
    runtime::testing::run(|| async {
        let folder = runtime::testing::TempDir::new("log-ring");
        let mut ring = ring_of(&folder, 2).await;
        ring.place(2 * BLOCK, 1);
        let rest = FILE - 3 * BLOCK;
        assert_eq!((ring.room(0), ring.room(rest), ring.room(rest + 1)), (rest, rest, FILE - BLOCK));
        assert_eq!(ring.place(rest + BLOCK, 2).lap, 2);
        assert_eq!(ring.waits_for_mark(u64::MAX), None, "nothing is over");
    });
}
