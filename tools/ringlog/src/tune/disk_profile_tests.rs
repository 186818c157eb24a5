#![allow(clippy::unwrap_used)]
use runtime::testing::TempDir;
use tuning::Profile;

use super::*;
use crate::tune::disk_measure::Phase;

fn row(kind: Kind, size: usize, depth: usize, operations: u64, p50_us: u64) -> Row {
    let phase = Phase { kind, size, depth };
    Row { phase, operations, took_ns: 1_000_000_000, p50_us, p99_us: 9_000, max_us: 10_000 }
}

fn rows() -> Vec<Row> {
    let synced = |size, depth, operations, p50| row(Kind::WriteSync, size, depth, operations, p50);
    vec![
        // More throughput than any size that the broker takes: does not count.
        synced(4 << 10, 1, 1_000_000, 1),
        synced(16 << 10, 1, 1000, 700),
        synced(64 << 10, 1, 800, 900),
        synced(128 << 10, 1, 720, 1100),
        synced(256 << 10, 1, 380, 2100),
        synced(1 << 20, 1, 100, 8000),
        synced(16 << 10, 4, 3000, 1200),
        synced(16 << 10, 16, 9500, 1600),
        synced(16 << 10, 64, 10_000, 6000),
        row(Kind::Write, 64 << 10, 1, 100_000, 10),
        row(Kind::Read, 16 << 10, 1, 1_000_000, 10),
    ]
}

#[test]
fn the_smallest_that_reaches_nine_tenths_is_chosen() {
    // 50, 90, 95 and 100 MiB/s; 1000, 3000, 9500 and 10 000 a second.
    let choice = Choice { write_max_bytes: 128 << 10, queue_depth: 16, expected_write_us: 1600 };
    assert_eq!(Choice::of(&rows()), Some(choice));
    let mut slower = rows();
    slower[3].operations = 719;
    slower[3].p50_us = 1;
    let choice = Choice { write_max_bytes: 256 << 10, queue_depth: 16, expected_write_us: 2100 };
    assert_eq!(Choice::of(&slower), Some(choice));
    assert_eq!(Choice::of(&rows()[..1]), None);
}

#[test]
fn the_file_is_a_profile_whatever_the_host_is_called() {
    let host = vec![("folder", "/data\n[memory]\rx = 1".to_owned()), ("kernel", "6.1".to_owned())];
    let report = Report { host, in_memory: false, rows: rows() };
    let choice = Choice::of(&report.rows).unwrap();
    let text = choice.toml(&report);
    let profile = Profile::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert!(profile.is_disk_only());
    assert_eq!(profile.disk_write_max_bytes, Some(128 << 10));
    assert_eq!((profile.disk_queue_depth, profile.disk_expected_write_us), (Some(16), Some(1600)));
    assert!(text.contains("\n# write 16 KiB and fdatasync, 64 at once") && text.contains("kernel       6.1"), "{text}");
}

#[test]
fn a_file_that_exists_is_kept_unless_forced() {
    let dir = TempDir::new("disk-profile");
    let path = dir.path().join("disk.toml");
    assert_eq!(check(&path, false), Ok(()));
    write(&path, "a long text", false).unwrap();
    for refused in [check(&path, false), write(&path, "b", false)] {
        assert_eq!(refused.unwrap_err(), format!("{} exists already: --force overwrites it", path.display()));
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a long text");
    assert_eq!(check(&path, true), Ok(()));
    write(&path, "b", true).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "b");
    assert!(check(dir.path(), true).unwrap_err().contains("is a folder"));
    assert!(check(&dir.path().join("none/disk.toml"), false).unwrap_err().contains("folder is not there"));
}
