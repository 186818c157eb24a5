#![allow(clippy::unwrap_used)]
use std::collections::BTreeSet;

use model::batch::{CRC_FROM, crc32c};
use model::builder::BatchBuilder;
use model::{ProducerEpoch, ProducerId};
use proptest::prelude::*;

use super::*;

const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;

fn indexed(piece: &[u8]) -> OffsetMap {
    let map = OffsetMap::new(1 << 16, 0.9, 1000, [1; 16], Offset(-1));
    let mut indexer = Indexer::new(map, Offset(0));
    indexer.take_piece(piece).unwrap();
    indexer.map
}

fn rewritten(map: OffsetMap, rules: Rules, piece: &[u8]) -> Rewriter {
    let mut rewriter = Rewriter::new(map, rules, Offset(0), 0);
    rewriter.take_piece(piece, true).unwrap();
    rewriter
}

fn bases(bytes: &[u8]) -> Vec<(i64, i32)> {
    let (mut at, mut found) = (0, Vec::new());
    while at < bytes.len() {
        let batch = BatchView::parse(&bytes[at..]).unwrap();
        batch.check_crc().unwrap();
        found.push((batch.header.base_offset.0, batch.header.record_count));
        at += batch.bytes.len();
    }
    found
}

fn keyed(offset: i64, attributes: i16, key: &[u8]) -> Vec<u8> {
    let builder = BatchBuilder::new().base_offset(Offset(offset)).attributes(attributes);
    builder.producer(ProducerId(3), ProducerEpoch(0), 0).record(5, Some(key), Some(b"v")).finish()
}

#[test]
fn what_a_transaction_wrote_neither_goes_nor_hides_anything() {
    let piece =
        [keyed(0, 0, b"k"), keyed(1, TRANSACTIONAL, b"k"), keyed(2, TRANSACTIONAL | CONTROL, b"\0\0\0\x01")].concat();
    let made = rewritten(indexed(&piece), Rules { now_ms: 1000, ..Rules::default() }, &piece);
    assert_eq!(made.out, piece);
    assert!(!made.tally.changed);
}

#[test]
fn a_marker_goes_like_a_tombstone_once_nothing_of_its_transaction_is_left() {
    let piece = [keyed(0, TRANSACTIONAL | CONTROL, b"\0\0\0\x01"), keyed(1, 0, b"k")].concat();
    let rules = |now_ms| Rules {
        now_ms,
        delete_retention_ms: 100,
        empty_markers: BTreeSet::from([Offset(0)]),
        ..Rules::default()
    };
    let first = rewritten(indexed(&piece), rules(1000), &piece);
    let header = BatchHeader::parse(&first.out).unwrap();
    assert_eq!((delete_horizon_ms(&header), first.tally.next_horizon_ms), (Some(1100), Some(1100)));
    let record = BatchView::parse(&first.out).unwrap().records().next().unwrap().unwrap();
    assert_eq!(1100 + record.timestamp_delta_ms, 5);
    let second = rewritten(indexed(&first.out), rules(1099), &first.out);
    assert_eq!(bases(&second.out), [(0, 1), (1, 1)]);
    let third = rewritten(indexed(&second.out), rules(1100), &second.out);
    assert_eq!(bases(&third.out), [(1, 1)]);
}

#[test]
fn damage_is_found_where_it_is() {
    let mut piece = [keyed(0, 0, b"k"), keyed(1, 0, b"k")].concat();
    let second = piece.len() / 2;
    let last = piece.len() - 1;
    piece[last] ^= 1;
    let map = OffsetMap::new(1 << 16, 0.9, 10, [1; 16], Offset(-1));
    let damage = Indexer::new(map, Offset(0)).take_piece(&piece).unwrap_err();
    assert_eq!(damage.at, second);
    let map = OffsetMap::new(1 << 16, 0.9, 10, [1; 16], Offset(-1));
    let mut rewriter = Rewriter::new(map, Rules::default(), Offset(0), 0);
    assert_eq!(rewriter.take_piece(&piece, true).unwrap_err().at, second);
}

#[test]
fn records_behind_what_the_map_saw_stay_as_they_are() {
    let piece = [keyed(0, 0, b"a"), keyed(1, 0, b"b"), keyed(2, 0, b"a")].concat();
    let mut map = OffsetMap::new(1 << 16, 0.9, 10, [1; 16], Offset(-1));
    map.put(b"a", Offset(0)).unwrap();
    let made = rewritten(map, Rules::default(), &piece);
    assert_eq!(bases(&made.out), [(0, 1), (1, 1), (2, 1)]);
}

#[test]
fn a_batch_that_lost_its_records_once_goes_when_nobody_needs_its_place() {
    let piece = [keyed(0, 0, b"a"), keyed(1, 0, b"a"), keyed(2, 0, b"b")].concat();
    let rules = Rules { producers: [(ProducerId(3), Offset(0))].into(), ..Rules::default() };
    let kept = rewritten(indexed(&piece), rules, &piece);
    assert_eq!(bases(&kept.out), [(0, 0), (1, 1), (2, 1)]);
    let gone = rewritten(indexed(&kept.out), Rules::default(), &kept.out);
    assert_eq!(bases(&gone.out), [(1, 1), (2, 1)]);
    assert_eq!(gone.fill.size, gone.out.len() as u64);
}

proptest! {
    /// Whatever stands behind a sound CRC: an error, or batches that can be read again.
    #[test]
    fn nonsense_behind_a_sound_crc_is_survived(
        flips in prop::collection::vec((21usize..200, any::<u8>()), 0..6),
        cut in 61usize..200,
    ) {
        let builder = BatchBuilder::new().base_offset(Offset(3)).producer(ProducerId(1), ProducerEpoch(0), 4);
        let builder = builder.record(5, Some(b"key"), Some(&[7; 40])).record(6, Some(b"other"), None);
        let mut batch = builder.record(7, None, Some(&[8; 40])).finish();
        batch.truncate(cut);
        for (at, by) in flips {
            if let Some(byte) = batch.get_mut(at) {
                *byte ^= by;
            }
        }
        let length = batch.len() as i32 - 12;
        batch[8..12].copy_from_slice(&length.to_be_bytes());
        let crc = crc32c(&batch[CRC_FROM..]);
        batch[17..21].copy_from_slice(&crc.to_be_bytes());
        let map = || OffsetMap::new(1 << 16, 0.9, 10, [1; 16], Offset(-1));
        let mut indexer = Indexer::new(map(), Offset(0));
        let _ = indexer.take_piece(&batch);
        let mut rewriter = Rewriter::new(indexer.map, Rules { now_ms: 9, ..Rules::default() }, Offset(0), 0);
        if rewriter.take_piece(&batch, true).is_ok() {
            prop_assert_eq!(bases(&rewriter.out).len(), 1);
        }
    }
}
