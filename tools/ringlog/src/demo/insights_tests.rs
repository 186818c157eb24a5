use std::collections::BTreeMap;

use super::*;
use crate::demo::event::Encoding;
use crate::demo::limits::SESSION_IDLE_MS;
use crate::demo::sessions::{Generator, GeneratorConfig};

fn stream(events: usize) -> Vec<Event> {
    let config =
        GeneratorConfig { encoding: Encoding::Compact, rate: None, start_ms: 1_700_000_000_000, active_sessions: 100 };
    let mut generator = Generator::new(11, config);
    let mut out = Vec::new();
    (0..events).map(|_| generator.next(&mut out)).collect()
}

fn event(session_key: u64, kind: Kind, at_ms: i64) -> Event {
    Event { session_key, visitor: 0, kind, item: 1, at_ms, status: 200, bytes: 0, duration_ms: 0 }
}

fn observed(events: &[Event]) -> Insights {
    let mut insights = Insights::new();
    events.iter().for_each(|event| insights.observe(event));
    insights
}

/// What the summary should say, worked out from the whole stream at once.
fn naive(events: &[Event]) -> (BTreeMap<i64, u64>, BTreeMap<u32, u64>, Funnel) {
    let (mut pages, mut items) = (BTreeMap::new(), BTreeMap::new());
    let mut visits: BTreeMap<u64, Vec<(i64, Deeds)>> = BTreeMap::new();
    for event in events {
        *pages.entry(event.at_ms / 60_000 * 60_000).or_default() += u64::from(event.kind == Kind::Click);
        *items.entry(event.item).or_default() += 1;
        let deeds = Deeds { cart: event.kind == Kind::Cart, order: event.kind == Kind::Order };
        let of_session = visits.entry(event.session_key).or_default();
        match of_session.last_mut() {
            Some((last_ms, done)) if event.at_ms - *last_ms <= SESSION_IDLE_MS => {
                (*last_ms, *done) = (event.at_ms, done.and(deeds));
            }
            _ => of_session.push((event.at_ms, deeds)),
        }
    }
    let mut funnel = Funnel::default();
    visits.values().flatten().for_each(|(_, deeds)| funnel.add(Funnel::of(*deeds)));
    (pages, items, funnel)
}

fn assert_matches(insights: &Insights, events: &[Event]) {
    let (pages, items, funnel) = naive(events);
    let summary = insights.summary(20, 50);
    assert_eq!(summary.funnel, funnel);
    assert_eq!(summary.pages_per_minute.len(), 20);
    for (start_ms, count) in &summary.pages_per_minute {
        assert_eq!(*count, pages.get(start_ms).copied().unwrap_or(0), "minute {start_ms}");
    }
    assert_eq!(summary.events.iter().sum::<u64>(), events.len() as u64);
    assert_eq!(summary.top_items.len(), 50);
    for top in &summary.top_items {
        let real = items.get(&top.item).copied().unwrap_or(0);
        assert!(real <= top.count && top.count - top.error <= real, "{top:?} is {real}");
    }
    let most = items.values().max();
    assert_eq!(most, Some(&(summary.top_items[0].count)));
}

#[test]
fn aggregates_match_a_naive_recomputation() {
    let events = stream(20_000);
    let insights = observed(&events);
    assert_matches(&insights, &events);
    assert!(insights.summary(1, 1).funnel.with_both > 0, "the stream has orders");
    assert!(insights.summary(1, 1).open_sessions < 600, "ended visits are closed");
}

#[test]
fn two_consumers_together_know_what_one_would() {
    let events = stream(20_000);
    let (even, odd): (Vec<Event>, Vec<Event>) = events.iter().partition(|event| event.session_key % 2 == 0);
    let mut merged = observed(&even);
    merged.merge(&observed(&odd));
    assert_matches(&merged, &events);
    let alone = observed(&events);
    assert_eq!(merged.summary(60, 0), alone.summary(60, 0));
}

#[test]
fn a_visit_that_moved_between_consumers_is_one() {
    let mut one = observed(&[event(1, Kind::Click, 0), event(1, Kind::Cart, 1_000)]);
    let other = observed(&[event(1, Kind::Cart, 2_000), event(1, Kind::Order, 3_000)]);
    one.merge(&other);
    let wanted = Funnel { sessions: 1, with_cart: 1, with_order: 1, with_both: 1 };
    assert_eq!(one.summary(1, 1).funnel, wanted);
}

#[test]
fn old_minutes_leave_the_window_and_late_pages_are_counted() {
    let minute = 60_000;
    let mut insights = observed(&[event(1, Kind::Click, 0), event(2, Kind::Click, 5 * minute)]);
    assert_eq!(insights.summary(6, 0).pages_per_minute.iter().map(|p| p.1).collect::<Vec<_>>(), [1, 0, 0, 0, 0, 1]);
    insights.observe(&event(3, Kind::Click, 60 * minute));
    let pages = insights.summary(usize::MAX, 0).pages_per_minute;
    assert_eq!((pages.len(), pages[0], pages[4]), (60, (minute, 0), (5 * minute, 1)));
    insights.observe(&event(4, Kind::Click, minute - 1));
    insights.observe(&event(4, Kind::Click, minute));
    let summary = insights.summary(60, 0);
    assert_eq!((summary.late, summary.pages_per_minute[0].1), (1, 1));
}

#[test]
fn a_jump_over_the_whole_window_empties_it() {
    let mut insights = observed(&[event(1, Kind::Click, 0)]);
    insights.observe(&event(2, Kind::Click, crate::demo::limits::MAX_AT_MS));
    let pages = insights.summary(60, 0).pages_per_minute;
    assert_eq!(pages.iter().map(|(_, count)| count).sum::<u64>(), 1);
    assert_eq!(insights.summary(60, 0).open_sessions, 1, "the first visit is long over");
}

#[test]
fn times_of_any_size_are_taken() {
    let mut insights = Insights::new();
    for at_ms in [i64::MIN, i64::MAX, 0, -1] {
        insights.observe(&event(1, Kind::Click, at_ms));
    }
    let mut other = observed(&[event(1, Kind::Click, i64::MIN)]);
    other.merge(&insights);
    assert_eq!(other.summary(60, 1).pages_per_minute.len(), 60);
    assert_eq!(other.summary(60, 1).events, [5, 0, 0]);
}

#[test]
fn memory_is_bounded_whatever_the_number_of_sessions() {
    let mut insights = Insights::with_capacity(64);
    (0..10_000).for_each(|session| insights.observe(&event(session, Kind::Click, 1_000)));
    let summary = insights.summary(1, 1);
    assert_eq!((summary.open_sessions, summary.evicted, summary.funnel.sessions), (64, 9_936, 10_000));
}

#[test]
fn no_visit_that_goes_on_is_forgotten_at_the_usual_number_of_visits() {
    let rate = 20_000.0;
    let active_sessions = crate::demo::profile::sessions_for_rate(rate);
    let config = GeneratorConfig { encoding: Encoding::Compact, rate: Some(rate), start_ms: 0, active_sessions };
    let mut generator = Generator::new(12, config);
    let (mut insights, mut sessions, mut out) = (Insights::new(), std::collections::HashSet::new(), Vec::new());
    for _ in 0..450_000 {
        out.clear();
        let event = generator.next(&mut out);
        sessions.insert(event.session_key);
        insights.observe(&event);
    }
    let summary = insights.summary(1, 1);
    assert!(summary.evicted > 10_000, "the bound was reached: {}", summary.evicted);
    assert_eq!(summary.funnel.sessions, sessions.len() as u64);
}

#[test]
fn minutes_before_the_first_event_are_not_shown() {
    let mut insights = observed(&[event(1, Kind::Click, 600_000)]);
    assert_eq!(insights.summary(10, 0).pages_per_minute, [(600_000, 1)]);
    insights.merge(&observed(&[event(2, Kind::Click, 480_000)]));
    assert_eq!(insights.summary(10, 0).pages_per_minute, [(480_000, 1), (540_000, 0), (600_000, 1)]);
}

#[test]
fn nothing_seen_is_nothing_shown() {
    assert_eq!(Insights::new().summary(10, 10), Summary::default());
    let mut merged = Insights::new();
    merged.merge(&Insights::new());
    assert_eq!(merged.summary(10, 10), Summary::default());
    assert_eq!(Funnel::default().conversion(), 0.0);
}

#[test]
fn shares_are_of_the_right_whole() {
    let funnel = Funnel { sessions: 200, with_cart: 40, with_order: 12, with_both: 10 };
    assert_eq!((funnel.conversion(), funnel.cart_rate(), funnel.carts_ordered()), (0.06, 0.2, 0.25));
}
