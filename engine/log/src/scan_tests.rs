#![allow(clippy::unwrap_used)]
use super::*;
use model::builder::BatchBuilder;

fn batch(base: i64, count: i64, epoch: i32) -> Vec<u8> {
    let mut batch = BatchBuilder::new().base_offset(Offset(base));
    for i in 0..count {
        batch = batch.record(base + i, Some(b"key"), Some(b"value"));
    }
    let mut bytes = batch.finish();
    model::batch::patch_position(&mut bytes, Offset(base), LeaderEpoch(epoch));
    bytes
}

fn scan(bytes: &[u8]) -> (SegmentScan, Step) {
    let mut scan = SegmentScan::new(Offset(10), Fill::empty(Offset(10)), LeaderEpoch::UNKNOWN, 64);
    let step = scan.feed(bytes, bytes.len() as u64);
    (scan, step)
}

fn all(from: i64) -> (Offset, ReadLimits) {
    (Offset(from), ReadLimits { max_bytes: usize::MAX, min_one_batch: true, upper_bound: Offset(i64::MAX) })
}

#[test]
fn the_log_ends_at_the_last_whole_batch_wherever_it_is_cut() {
    let parts = [batch(10, 2, 1), batch(12, 1, 1), batch(13, 3, 2)];
    let bytes = parts.concat();
    for cut in 0..=bytes.len() {
        let (scan, step) = scan(&bytes[..cut]);
        let mut whole = 0;
        let mut next = 10;
        for (part, count) in parts.iter().zip([2, 1, 3]) {
            if whole + part.len() <= cut {
                whole += part.len();
                next += count;
            } else {
                break;
            }
        }
        assert_eq!((scan.fill.size, scan.fill.next_offset), (whole as u64, Offset(next)), "cut at {cut}");
        // The first bytes of an offset are zeros, which cannot be told from preallocated ones.
        let expected: &[EndReason] =
            if cut == whole { &[EndReason::FileEnd] } else { &[EndReason::Cut, EndReason::Preallocated] };
        assert!(expected.iter().any(|reason| step == Step::End(*reason)), "cut at {cut}: {step:?}");
    }
}

#[test]
fn zeros_and_garbage_are_no_data() {
    for zeros in [1, 60, 61, 4096] {
        let mut bytes = batch(10, 2, 0);
        let whole = bytes.len() as u64;
        bytes.resize(bytes.len() + zeros, 0);
        let (scan, step) = scan(&bytes);
        assert_eq!((scan.fill.size, step), (whole, Step::End(EndReason::Preallocated)));
    }
    let mut bytes = batch(10, 2, 0);
    let whole = bytes.len() as u64;
    bytes.resize(bytes.len() + 500, 0xa5);
    let (scan, step) = scan(&bytes);
    assert_eq!((scan.fill.size, step), (whole, Step::End(EndReason::Damaged)));
}

#[test]
fn old_batches_that_line_up_are_refused() {
    // Offsets that go back, and an epoch that goes back.
    for second in [batch(11, 1, 3), batch(12, 1, 2)] {
        let first = batch(10, 2, 3);
        let (scan, step) = scan(&[first.clone(), second].concat());
        assert_eq!((scan.fill.size, step), (first.len() as u64, Step::End(EndReason::OutOfOrder)));
    }
}

#[test]
fn every_flipped_bit_in_a_batch_ends_the_log_before_it() {
    let first = batch(10, 1, 0);
    let second = batch(11, 1, 0);
    for at in 0..second.len() {
        let mut damaged = second.clone();
        damaged[at] ^= 0x40;
        // Offsets and epoch lie outside the CRC; moving them up is not damage that a scan can see.
        if (0..8).contains(&at) || (12..16).contains(&at) {
            continue;
        }
        let (scan, _) = scan(&[first.clone(), damaged].concat());
        assert_eq!(scan.fill.size, first.len() as u64, "byte {at}");
    }
}

#[test]
fn windows_of_any_size_give_the_same_verdict() {
    let bytes = [batch(10, 2, 1), batch(12, 40, 1), batch(52, 1, 4)].concat();
    let (whole, _) = scan(&bytes);
    for window in [1usize, 61, 100, 1000] {
        let mut scan = SegmentScan::new(Offset(10), Fill::empty(Offset(10)), LeaderEpoch::UNKNOWN, 64);
        let mut len = window;
        loop {
            let at = scan.position() as usize;
            let left = bytes.len() - at;
            match scan.feed(&bytes[at..at + len.min(left)], left as u64) {
                Step::Need(need) => len = need.max(window),
                Step::End(reason) => {
                    assert_eq!(reason, EndReason::FileEnd);
                    break;
                }
            }
        }
        assert_eq!((scan.fill, &scan.index, &scan.epochs), (whole.fill, &whole.index, &whole.epochs));
    }
    assert_eq!(whole.epochs.len(), 2);
}

#[test]
fn selection_starts_at_the_batch_that_holds_the_offset() {
    let (first, second) = (batch(0, 2, 0), batch(2, 2, 0));
    let bytes = [first.clone(), second.clone()].concat();
    let pick = |from, max_bytes, bound| {
        let limits = ReadLimits { max_bytes, min_one_batch: true, upper_bound: Offset(bound) };
        let found = select(&bytes, Offset(from), limits);
        (found.start, found.end, found.next_offset.0)
    };
    assert_eq!(pick(1, usize::MAX, 100), (0, bytes.len(), 4));
    assert_eq!(pick(3, usize::MAX, 100), (first.len(), bytes.len(), 4));
    assert_eq!(pick(0, 1, 100), (0, first.len(), 2));
    assert_eq!(pick(0, usize::MAX, 3), (0, first.len(), 2));
    assert_eq!(pick(2, usize::MAX, 3), (first.len(), first.len(), 2));
}

#[test]
fn selection_asks_for_more_only_when_the_wanted_batch_is_cut() {
    let (first, second) = (batch(0, 2, 0), batch(2, 2, 0));
    let bytes = [first.clone(), second.clone()].concat();
    let (from, limits) = all(2);
    for cut in 0..bytes.len() {
        let found = select(&bytes[..cut], from, limits);
        assert_eq!(found.start, found.end, "cut at {cut}");
        let need = found.need.unwrap();
        assert!(found.start + need > cut && need <= second.len().max(first.len()), "cut at {cut}");
    }
    let none = ReadLimits { max_bytes: 10, min_one_batch: false, ..limits };
    assert_eq!(select(&bytes, from, none).need, None);
    let found = select(&[0xff; 100], Offset(0), limits);
    assert_eq!(found.broken_at, Some(0));
}
