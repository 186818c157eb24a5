#![allow(clippy::unwrap_used)]
use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn decode_gives_back_what_was_encoded(steps in prop::collection::vec((1i32..1000, 1i32..100_000), 0..200)) {
        let (mut relative, mut position) = (0, 0);
        let entries: Vec<IndexEntry> = steps
            .into_iter()
            .map(|(r, p)| {
                relative += r;
                position += p;
                IndexEntry { relative, position }
            })
            .collect();
        let bytes = encode(&entries);
        prop_assert_eq!(decode(&bytes, u64::from(u32::MAX)), Some(entries.clone()));
        // A segment that ends before the last entry's batch cannot own this index.
        if let Some(last) = entries.last() {
            prop_assert_eq!(decode(&bytes, last.position as u64), None);
        }
    }

    #[test]
    fn search_agrees_with_a_walk(relatives in prop::collection::btree_set(0i32..500, 0..60), wanted in 0i64..600) {
        let entries: Vec<IndexEntry> =
            relatives.iter().enumerate().map(|(i, &relative)| IndexEntry { relative, position: i as i32 * 10 + 1 }).collect();
        let walked = entries.iter().rfind(|e| i64::from(e.relative) <= wanted).map_or(0, |e| e.position as u64);
        prop_assert_eq!(position_before(&entries, Offset(1000), Offset(1000 + wanted)), walked);
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        if let Some(entries) = decode(&bytes, 1 << 31) {
            prop_assert_eq!(encode(&entries), bytes);
        }
    }
}

#[test]
fn relative_offsets_leave_the_format_at_i32() {
    assert_eq!(relative(Offset(5), Offset(5)), Some(0));
    assert_eq!(relative(Offset(5), Offset(5 + i64::from(i32::MAX))), Some(i32::MAX));
    assert_eq!(relative(Offset(5), Offset(6 + i64::from(i32::MAX))), None);
    assert_eq!(relative(Offset(5), Offset(4)), None);
}
