//! The checker sees each kind of contradiction, and none where there is none.

use std::collections::BTreeMap;

use super::{History, ReadBack};

fn history() -> History {
    let mut history = History::default();
    for number in 1..=4 {
        history.send(0, number);
    }
    for number in 1..=3 {
        history.acknowledge(0, number, number as i64 + 9);
    }
    history
}

fn judged(read: &[(i64, u64)]) -> String {
    let read: BTreeMap<i32, ReadBack> = [(0, read.to_vec())].into();
    history().contradictions(&read).join("; ")
}

#[test]
fn a_record_of_unknown_fate_may_be_there_or_not() {
    assert_eq!(judged(&[(10, 1), (11, 2), (12, 3)]), "");
    assert_eq!(judged(&[(10, 1), (11, 2), (12, 3), (13, 4)]), "");
}

#[test]
fn each_contradiction_is_seen() {
    assert!(judged(&[(10, 1), (12, 3)]).contains("2 was acknowledged at 11 and is lost"));
    assert!(judged(&[(10, 1), (11, 2), (12, 3), (13, 3)]).contains("3 is there twice"));
    assert!(judged(&[(10, 1), (11, 2), (14, 3)]).contains("3 was acknowledged at 12, is at 14"));
    assert!(judged(&[(10, 2), (11, 1), (12, 3)]).contains("1 (offset 11) stands behind 2"));
    assert!(judged(&[(10, 1), (11, 2), (12, 3), (12, 4)]).contains("offset 12 was read after 12"));
    assert!(judged(&[(10, 1), (11, 2), (12, 3), (13, 9)]).contains("9 was never sent"));
    assert!(judged(&[]).contains("lost"));
}
