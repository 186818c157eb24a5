#![allow(clippy::unwrap_used)]
use super::*;
use model::builder::BatchBuilder;

fn batch(base: i64, count: i64, epoch: i32) -> Vec<u8> {
    let mut batch = BatchBuilder::new();
    for i in 0..count {
        batch.push(i, Some(b"key"), Some(b"value"), &[]);
    }
    let mut bytes = batch.finish();
    model::batch::patch_position(&mut bytes, Offset(base), LeaderEpoch(epoch));
    bytes
}

fn order(at: i64, gaps: bool) -> Order {
    let entries =
        [(3, 0), (5, 14)].map(|(epoch, start)| EpochEntry { epoch: LeaderEpoch(epoch), start_offset: Offset(start) });
    Order::begins(Offset(at), Offset(100), gaps, Arc::from(entries))
}

/// What is wrong with the batch, by a word.
fn wrong(order: &Order, bytes: &[u8]) -> Option<String> {
    order.clone().take(&BatchHeader::parse(bytes).unwrap()).err()
}

#[test]
fn offsets_go_on_where_they_ended() {
    assert_eq!(wrong(&order(10, false), &batch(10, 2, 3)), None);
    for base in [9, 11, 1 << 40] {
        assert!(wrong(&order(10, false), &batch(base, 2, 3)).unwrap().contains("has to be"), "{base}");
    }
    // Compaction leaves gaps, and never goes back.
    assert_eq!(wrong(&order(10, true), &batch(11, 2, 3)), None);
    assert!(wrong(&order(10, true), &batch(9, 2, 3)).is_some());
    assert!(wrong(&order(99, false), &batch(99, 2, 5)).unwrap().contains("ends at 100"));
}

#[test]
fn an_index_says_where_its_batch_ends() {
    let from_index = order(0, false).ends(Offset(11));
    assert_eq!(from_index.next_offset(), None);
    assert_eq!(wrong(&from_index, &batch(10, 2, 3)), None);
    assert!(wrong(&from_index, &batch(10, 3, 3)).unwrap().contains("the index has 11"));
}

#[test]
fn leader_epochs_are_the_historys() {
    for (base, epoch, fits) in
        [(10, 3, true), (10, 5, false), (10, 2, false), (14, 5, true), (14, 3, false), (20, 5, true), (20, 6, false)]
    {
        assert_eq!(wrong(&order(base, false), &batch(base, 2, epoch)).is_none(), fits, "{base} {epoch}");
    }
    // Kafka's first versions wrote none.
    assert_eq!(wrong(&order(10, false), &batch(10, 2, -1)), None);
    // Without a history they still only rise.
    let mut unknown = Order::begins(Offset(0), Offset(100), false, Arc::from([]));
    unknown.take(&BatchHeader::parse(&batch(0, 2, 7)).unwrap()).unwrap();
    assert!(wrong(&unknown, &batch(2, 2, 6)).unwrap().contains("comes after"));
}

#[test]
fn a_walk_says_what_is_whole_and_what_is_not() {
    let parts = [batch(0, 2, 3), batch(2, 1, 3), batch(3, 4, 3)];
    let bytes = parts.concat();
    let sizes = [parts[0].len(), parts[0].len() + parts[1].len(), bytes.len()];
    for cut in 0..=bytes.len() {
        let mut at = order(0, false);
        let whole = sizes.iter().rfind(|size| **size <= cut).copied().unwrap_or(0);
        match walk(&bytes[..cut], &mut at) {
            Walked::Sound { bytes, need } => assert!(bytes == whole && whole + need > cut, "{cut}"),
            damaged => panic!("{cut}: {damaged:?}"),
        }
    }
    for flip in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[flip] ^= 1;
        let first = sizes.iter().filter(|size| **size <= flip).count();
        let whole = if first == 0 { 0 } else { sizes[first - 1] };
        match walk(&bad, &mut order(0, false)) {
            Walked::Damaged { at, .. } => assert_eq!(at, whole, "{flip}"),
            // A length that says more than there is.
            Walked::Sound { bytes, need } => assert!(bytes == whole && whole + need > bad.len(), "{flip}"),
        }
    }
}

#[test]
fn behind_damage_only_a_sound_batch_that_fits_counts() {
    let find = |bytes: &[u8], crc_bytes: &mut u64| {
        find_batch(bytes, false, Offset(3), Offset(100), &order(0, false), crc_bytes)
    };
    let mut bytes = vec![2; 500];
    // Too early, beyond the segment, of an epoch that did not write there, damaged; and then a sound one.
    let mut broken = batch(10, 2, 3);
    broken[70] ^= 1;
    for part in [batch(1, 2, 3), batch(99, 2, 5), batch(10, 2, 5), broken, batch(12, 2, 3)] {
        bytes.extend_from_slice(&part);
        bytes.extend_from_slice(&[0; 9]);
    }
    let found = find(&bytes, &mut 10_000).unwrap();
    assert!(matches!(found, Candidate::Sound { header, .. } if header.base_offset == Offset(12)), "{found:?}");
    assert_eq!(find(&bytes, &mut 50), None, "what may be spent on CRCs is over");
    let cut = find(&bytes[..bytes.len() - 20], &mut 10_000).unwrap();
    assert!(matches!(cut, Candidate::Longer { size, .. } if size == batch(12, 2, 3).len()), "{cut:?}");
}
