#![allow(clippy::unwrap_used)]
use super::*;
use proptest::prelude::*;

fn history(entries: &[(i32, i64)]) -> EpochHistory {
    let mut history = EpochHistory::default();
    for &(epoch, start) in entries {
        history.assign(LeaderEpoch(epoch), Offset(start));
    }
    history
}

#[test]
fn text_is_kafkas() {
    let history = history(&[(0, 0), (3, 17)]);
    assert_eq!(history.encode(), "0\n2\n0 0\n3 17\n");
    assert_eq!(EpochHistory::decode(b"0\n2\n0 0\n3 17\n"), Some(history));
    for bad in ["", "1\n0\n", "0\n1\n", "0\n2\n3 0\n1 4\n", "0\n1\n0 0\n1 1\n", "0\n1\n-1 0\n", "0\nx\n"] {
        assert_eq!(EpochHistory::decode(bad.as_bytes()), None, "{bad:?}");
    }
}

#[test]
fn the_end_of_an_epoch_is_the_start_of_the_next() {
    let history = history(&[(2, 0), (4, 10), (7, 20)]);
    let end = Offset(25);
    // Older than what is known: gone, and ended by where that begins.
    assert_eq!(history.end_of(LeaderEpoch(1), end), Some((LeaderEpoch(1), history.entries()[0].start_offset)));
    assert_eq!(history.end_of(LeaderEpoch(2), end), Some((LeaderEpoch(2), Offset(10))));
    assert_eq!(history.end_of(LeaderEpoch(3), end), Some((LeaderEpoch(2), Offset(10))));
    assert_eq!(history.end_of(LeaderEpoch(7), end), Some((LeaderEpoch(7), end)));
    assert_eq!(history.end_of(LeaderEpoch(9), end), Some((LeaderEpoch(7), end)));
    assert_eq!(history.of_offset(Offset(9)), Some(LeaderEpoch(2)));
    assert_eq!(history.of_offset(Offset(10)), Some(LeaderEpoch(4)));
}

#[test]
fn a_leadership_without_records_gives_way() {
    let mut history = history(&[(1, 0), (2, 5), (3, 5)]);
    assert_eq!(history.encode(), "0\n2\n1 0\n3 5\n");
    assert!(!history.assign(LeaderEpoch(3), Offset(9)));
    assert!(!history.assign(LeaderEpoch(-1), Offset(9)));
    assert!(history.truncate_from_end(Offset(5)));
    assert_eq!(history.latest(), Some(LeaderEpoch(1)));
}

#[test]
fn cutting_the_start_moves_the_holder() {
    let mut history = history(&[(1, 0), (2, 5), (3, 9)]);
    assert!(history.truncate_from_start(Offset(7)));
    assert_eq!(history.encode(), "0\n2\n2 7\n3 9\n");
    assert!(!history.truncate_from_start(Offset(7)));
    assert!(history.truncate_from_start(Offset(30)));
    assert_eq!(history.encode(), "0\n1\n3 30\n");
}

proptest! {
    #[test]
    fn any_text_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = EpochHistory::decode(&bytes);
    }

    #[test]
    fn decode_gives_back_what_was_encoded(steps in prop::collection::vec((1i32..5, 1i64..100), 0..50)) {
        let mut history = EpochHistory::default();
        let (mut epoch, mut offset) = (0, 0);
        for (e, o) in steps {
            epoch += e;
            offset += o;
            prop_assert!(history.assign(LeaderEpoch(epoch), Offset(offset)));
        }
        prop_assert_eq!(EpochHistory::decode(history.encode().as_bytes()), Some(history));
    }
}
