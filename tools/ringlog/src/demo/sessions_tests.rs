use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::demo::profile::measured;

fn config(encoding: Encoding) -> GeneratorConfig {
    GeneratorConfig { encoding, rate: None, start_ms: 1_700_000_000_000, active_sessions: 200 }
}

fn bytes_of(seed: u64, events: usize, config: GeneratorConfig) -> Vec<u8> {
    let mut generator = Generator::new(seed, config);
    let mut out = Vec::new();
    for _ in 0..events {
        generator.next(&mut out);
    }
    out
}

/// 200,000 events with the size of each line, from few enough visits that most of them are seen whole.
fn stream() -> Vec<(Event, usize)> {
    let mut generator = Generator::new(42, config(Encoding::Json));
    let mut out = Vec::new();
    let mut next = || {
        out.clear();
        (generator.next(&mut out), out.len())
    };
    (0..200_000).map(|_| next()).collect()
}

fn quantile(values: &mut [i64], share: f64) -> i64 {
    values.sort_unstable();
    values[(share * (values.len() - 1) as f64) as usize]
}

fn near(value: f64, wanted: f64, tolerance: f64) -> bool {
    (value - wanted).abs() <= wanted * tolerance
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for encoding in [Encoding::Json, Encoding::Compact] {
        let first = bytes_of(7, 20_000, config(encoding));
        assert_eq!(first, bytes_of(7, 20_000, config(encoding)));
        assert_ne!(first, bytes_of(8, 20_000, config(encoding)));
    }
}

#[test]
fn the_bytes_of_a_seed_never_change() {
    // FNV-1a of the first 1,000 events: a change here breaks "the same seed, the same stream" between versions.
    let hash = bytes_of(1, 1_000, config(Encoding::Json))
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    assert_eq!(hash, 8_109_110_144_101_012_032);
}

#[test]
fn events_come_in_the_order_of_their_times() {
    let events = stream();
    assert!(events.windows(2).all(|pair| pair[0].0.at_ms <= pair[1].0.at_ms));
    let sessions: BTreeSet<u64> = events[..1_000].iter().map(|(event, _)| event.session_key).collect();
    assert!(sessions.len() > 250, "visits interleave: {}", sessions.len());
}

#[test]
fn visits_are_as_long_as_the_samples() {
    let events = stream();
    let mut by_session: BTreeMap<u64, Vec<i64>> = BTreeMap::new();
    for (event, _) in &events {
        by_session.entry(event.session_key).or_default().push(event.at_ms);
    }
    // Visits of the beginning have no beginning; those still seen in the last hours may have no end.
    let early: BTreeSet<u64> = events[..20_000].iter().map(|(event, _)| event.session_key).collect();
    let late: BTreeSet<u64> = events[180_000..].iter().map(|(event, _)| event.session_key).collect();
    let whole = by_session.iter().filter(|(key, _)| !early.contains(key) && !late.contains(key));
    let mut lengths: Vec<i64> = whole.map(|(_, times)| times.len() as i64).collect();
    assert!(lengths.len() > 20_000, "{}", lengths.len());
    let mean = lengths.iter().sum::<i64>() as f64 / lengths.len() as f64;
    assert!(near(mean, 5.9, 0.06), "{mean}");
    assert_eq!(quantile(&mut lengths, 0.5), measured::SESSION_EVENTS_P50);
    assert!((10..=13).contains(&quantile(&mut lengths, 0.9)));
    assert!(quantile(&mut lengths, 1.0) <= 58);
}

#[test]
fn pauses_are_as_long_as_the_samples() {
    let mut last: BTreeMap<u64, i64> = BTreeMap::new();
    let mut pauses = Vec::new();
    for (event, _) in stream() {
        if let Some(before) = last.insert(event.session_key, event.at_ms).filter(|before| *before < event.at_ms) {
            pauses.push(event.at_ms - before);
        }
    }
    assert!(near(quantile(&mut pauses, 0.5) as f64, measured::THINK_MS[0], 0.05), "{}", quantile(&mut pauses, 0.5));
    assert!(near(quantile(&mut pauses, 0.95) as f64, measured::THINK_MS[1], 0.1), "{}", quantile(&mut pauses, 0.95));
    assert!(quantile(&mut pauses, 1.0) < 1_800_000);
}

#[test]
fn the_mix_of_events_is_that_of_the_samples() {
    let mut mix = [0_u32; 3];
    stream().iter().for_each(|(event, _)| mix[event.kind as usize] += 1);
    let shares = mix.map(|events| f64::from(events) / 200_000.0);
    let wanted = measured::EVENT_MIX.map(|events| f64::from(events) / 862.0);
    assert!(near(shares[0], wanted[0], 0.01), "clicks {} for {}", shares[0], wanted[0]);
    assert!(near(shares[1], wanted[1], 0.15), "carts {} for {}", shares[1], wanted[1]);
    // Ten orders were measured, so their share is only known to about a third.
    assert!(near(shares[2], wanted[2], 0.35), "orders {} for {}", shares[2], wanted[2]);
}

#[test]
fn items_are_as_skewed_as_the_samples() {
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    stream().iter().for_each(|(event, _)| *counts.entry(event.item).or_default() += 1);
    assert!(counts.len() <= profile::CATALOGUE && counts.len() > profile::CATALOGUE * 9 / 10, "{}", counts.len());
    let first = f64::from(counts[&profile::item_of_rank(0)]) / 200_000.0;
    assert!(near(first, measured::ITEM_TOP_SHARE, 0.06), "{first}");
    assert_eq!(counts.values().max(), counts.get(&profile::item_of_rank(0)));
}

#[test]
fn lines_are_as_long_as_the_samples() {
    let mut sizes: Vec<i64> = stream().iter().map(|(_, bytes)| *bytes as i64).collect();
    let (p50, p99) = (quantile(&mut sizes, 0.5), quantile(&mut sizes, 0.99));
    assert!(near(p50 as f64, measured::LINE_BYTES[0] as f64, 0.03), "{p50}");
    assert!(near(p99 as f64, measured::LINE_BYTES[1] as f64, 0.03), "{p99}");
    assert!(quantile(&mut sizes, 1.0) <= measured::LINE_BYTES[2]);
}

#[test]
fn visitors_are_as_skewed_as_the_samples() {
    let events = stream();
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    events.iter().for_each(|(event, _)| *counts.entry(event.visitor).or_default() += 1);
    let mut shares: Vec<f64> = counts.values().map(|&count| f64::from(count) / 200_000.0).collect();
    shares.sort_by(|one, other| other.total_cmp(one));
    for (share, wanted) in shares.iter().zip(measured::VISITOR_SHARES) {
        assert!(near(*share, wanted, 0.15), "{share} for {wanted}");
    }
    let distinct = events[100_000..110_000].iter().map(|(event, _)| event.visitor).collect::<BTreeSet<_>>().len();
    assert!((1_400..2_100).contains(&distinct), "1,753 in 10,000 lines were measured: {distinct}");
}

#[test]
fn a_rate_spaces_the_events_evenly() {
    let mut generator = Generator::new(3, GeneratorConfig { rate: Some(2_000.0), ..config(Encoding::Compact) });
    let mut out = Vec::new();
    let times: Vec<i64> = (0..4_001).map(|_| generator.next(&mut out).at_ms - 1_700_000_000_000).collect();
    assert_eq!((times[0], times[1], times[2], times[4_000]), (0, 0, 1, 2_000));
}

#[test]
fn one_visit_at_a_time_is_enough() {
    let mut generator = Generator::new(3, GeneratorConfig { active_sessions: 1, ..config(Encoding::Compact) });
    let mut out = Vec::new();
    let keys: Vec<u64> = (0..1_000).map(|_| generator.next(&mut out).session_key).collect();
    let changes = keys.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(changes + 1, keys.iter().collect::<BTreeSet<_>>().len(), "a visit that ended never comes back");
}

#[test]
fn orders_buy_what_was_put_into_the_cart() {
    let mut carted: BTreeMap<u64, u32> = BTreeMap::new();
    let mut bought = 0;
    for (event, _) in stream() {
        match event.kind {
            Kind::Click => {}
            Kind::Cart => {
                carted.insert(event.session_key, event.item);
            }
            Kind::Order => {
                bought += u32::from(carted.contains_key(&event.session_key));
                assert!(carted.get(&event.session_key).is_none_or(|item| *item == event.item));
            }
        }
    }
    assert!(bought > 100, "{bought}");
}
