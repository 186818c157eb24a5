#![allow(clippy::unwrap_used)]

use bytes::Bytes;

use super::*;
use crate::buffers::ChunkPool;
use crate::file::{DirectFile, OpenMode};
use crate::testing::{TempDir, run};

const FILE_BYTES: usize = 256 << 10;

fn content() -> Vec<u8> {
    (0..FILE_BYTES).map(|i| (i / 7 + i / 4096) as u8).collect()
}

fn lent_bytes() -> usize {
    LENDER.with(|lender| {
        lender.take_back();
        lender.lent.get()
    })
}

/// A file with [`content`]; the folder goes with the guard.
async fn file() -> (TempDir, DirectFile, ChunkPool) {
    let dir = TempDir::new("lent");
    DirectFile::probe_device(dir.path(), 0).await.unwrap();
    let file = DirectFile::open(&dir.path().join("data"), OpenMode::CreateNew).await.unwrap();
    file.write(&content(), 0).await.unwrap();
    (dir, file, ChunkPool::new(1 << 20))
}

#[test]
fn bytes_on_loan_are_those_of_the_file_and_come_back() {
    run(|| async {
        let (_dir, file, pool) = file().await;
        let content = content();
        for (position, len) in [(0, 4096), (1, 10), (5000, 70_000), (FILE_BYTES - 100, 100), (FILE_BYTES - 9, 4096)] {
            let bytes = file.read_lent(position as u64, len, &pool).await.unwrap();
            assert!(lent_bytes() > 0, "{position}+{len} is on loan");
            assert_eq!(bytes, content[position..(position + len).min(FILE_BYTES)]);
            drop(bytes);
            assert_eq!(lent_bytes(), 0);
        }
        assert_eq!(file.read_lent(FILE_BYTES as u64, 10, &pool).await.unwrap(), Bytes::new());
        assert_eq!(lent_bytes(), 0, "nothing was read, nothing is out");
    });
}

#[test]
fn a_slice_keeps_the_loan_on_any_thread() {
    run(|| async {
        let (_dir, file, pool) = file().await;
        let slice = file.read_lent(0, 9000, &pool).await.unwrap().slice(4096..8192);
        let expected = content()[4096..8192].to_vec();
        let elsewhere = std::thread::spawn(move || assert_eq!(slice, expected));
        elsewhere.join().unwrap();
        assert_eq!(lent_bytes(), 0);
    });
}

#[test]
fn memory_on_loan_is_not_used_by_later_reads() {
    run(|| async {
        let (_dir, file, pool) = file().await;
        let content = content();
        let first = file.read_lent(0, 4096, &pool).await.unwrap();
        for block in 1..32 {
            let other = file.read(block * 4096, 4096).await.unwrap();
            assert_eq!(other, content[block as usize * 4096..][..4096]);
        }
        assert_eq!(first, content[..4096]);
    });
}

#[test]
fn beyond_the_limit_and_for_more_than_one_operation_reads_are_copied() {
    run(|| async {
        let (_dir, file, pool) = file().await;
        may_lend(8 << 10);
        let content = content();
        let first = file.read_lent(0, 8192, &pool).await.unwrap();
        assert_eq!(lent_bytes(), 8192);
        let second = file.read_lent(4096, 8192, &pool).await.unwrap();
        assert_eq!(lent_bytes(), 8192, "the second is a copy");
        assert_eq!((first.as_ref(), second.as_ref()), (&content[..8192], &content[4096..12288]));
        drop(first);
        let third = file.read_lent(0, 4097, &pool).await.unwrap();
        assert_eq!((lent_bytes(), third.len()), (8192, 4097));
        drop(third);
        may_lend(64 << 20);
        let long = file.read_lent(0, crate::limits::MAX_IO_BYTES + 1, &pool).await.unwrap();
        assert_eq!((lent_bytes(), long.as_ref()), (0, &content[..]));
    });
}

#[test]
fn reads_under_way_together_stay_within_the_limit() {
    run(|| async {
        let (_dir, file, pool) = file().await;
        may_lend(8 << 10);
        let both = crate::sync::all((0..2).map(|n| file.read_lent(n * 8192, 8192, &pool)).collect()).await;
        assert_eq!(lent_bytes(), 8192, "there was room for one of them");
        let content = content();
        for (bytes, expected) in both.into_iter().zip(content.chunks(8192)) {
            assert_eq!(bytes.unwrap(), expected);
        }
        assert_eq!(lent_bytes(), 0);
    });
}

#[test]
fn room_that_is_not_used_goes_back() {
    run(|| async {
        may_lend(8 << 10);
        let reserved = reserve(8 << 10);
        assert!(reserved.is_some() && reserve(4096).is_none());
        drop(reserved);
        assert_eq!(lent_bytes(), 0);
    });
}

#[test]
fn no_more_reads_are_lent_than_have_a_place_to_come_back() {
    run(|| async {
        let (_dir, file, pool) = file().await;
        may_lend(usize::MAX / 2);
        // Those beyond the registered memory lie in ordinary memory; they count as well.
        let mut out = Vec::new();
        for _ in 0..=LENT_READS {
            out.push(file.read_lent(0, 16, &pool).await.unwrap());
        }
        assert_eq!(lent_bytes(), LENT_READS * 4096);
        drop(out);
        assert_eq!(lent_bytes(), 0);
    });
}

#[test]
fn what_is_out_when_its_shard_ends_stays_readable() {
    let bytes = run(|| async {
        let (_dir, file, pool) = file().await;
        file.read_lent(100, 50_000, &pool).await.unwrap()
    });
    assert_eq!(bytes, content()[100..50_100]);
}
