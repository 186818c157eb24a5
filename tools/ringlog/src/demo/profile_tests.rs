use std::collections::BTreeSet;

use super::*;

#[test]
fn the_text_needs_no_escapes_in_json() {
    let text = PRODUCT_PAGES.iter().chain(&AGENTS).chain(&REFERRERS).chain(&WORDS).chain([&CART_PAGE, &ORDER_PAGE]);
    for part in text {
        assert!(part.bytes().all(|b| (b' '..0x7f).contains(&b) && b != b'"' && b != b'\\'), "{part}");
    }
}

#[test]
fn every_rank_has_its_own_item_of_five_digits() {
    let items: BTreeSet<u32> = (0..CATALOGUE).map(item_of_rank).collect();
    assert_eq!(items.len(), CATALOGUE);
    assert!(items.iter().all(|item| (10_000..100_000).contains(item)));
}

#[test]
fn quantiles_rise_and_span_everything() {
    fn check(points: &[(f64, f64)]) {
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
        assert_eq!((points[0].0, points[points.len() - 1].0), (0.0, 1.0));
    }
    check(&THINK_MS);
    check(&LINE_BYTES);
    check(&ANSWER_BYTES);
    check(&ANSWER_MS);
}

#[test]
fn the_counts_add_up_to_what_was_measured() {
    assert_eq!(SESSION_EVENTS.iter().map(|&(visits, _, _)| visits).sum::<u32>(), 144);
    assert_eq!(measured::EVENT_MIX.iter().sum::<u32>(), 862);
    assert_eq!(STATUS.iter().map(|&(_, requests)| requests).sum::<u32>(), 10_000);
    assert!(REFERRERS.windows(2).all(|pair| pair[0].len() < pair[1].len()), "referrers by length");
}

#[test]
fn visits_for_a_rate_are_bounded() {
    assert_eq!(sessions_for_rate(0.0), 1);
    assert_eq!(sessions_for_rate(100.0), 7_619);
    assert_eq!(sessions_for_rate(f64::INFINITY), USUAL_ACTIVE_SESSIONS);
    assert_eq!(sessions_for_rate(f64::NAN), 1);
}
