//! # What a consumer knows of the shop, live
//!
//! Pages per minute of event time, top items, and how visits turn into carts and orders. One [`Insights`] belongs to one
//! consuming thread; sessions are the records' keys, so each visit is seen by one consumer and merging is adding. A
//! rebalance may move a visit half way: it is joined again if both sides still hold it open, and counts twice if not.
//!
//! Memory is bounded whatever comes: [`PAGE_MINUTES`] counts, the sketch's counters, [`MAX_OPEN_SESSIONS`] visits.
//! The clock is the latest event time seen, so an event far in the future ages everything before it.

use super::event::{Event, Kind};
use super::limits::{MAX_OPEN_SESSIONS, PAGE_MINUTES};
use super::open_sessions::{Deeds, OpenSessions};
pub use super::top_items::TopItem;
use super::top_items::TopItems;

const MINUTE_MS: i64 = 60_000;

/// How far visits got. Every visit counts from its first event on, open or closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Funnel {
    pub sessions: u64,
    pub with_cart: u64,
    pub with_order: u64,
    pub with_both: u64,
}

/// The aggregates as figures to show.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Clicks, carts and orders.
    pub events: [u64; 3],
    /// Pages looked at by minute of event time (its beginning in ms), oldest first, without gaps, from the first minute
    /// seen; the last one is the
    /// current, unfinished one.
    pub pages_per_minute: Vec<(i64, u64)>,
    pub top_items: Vec<TopItem>,
    pub funnel: Funnel,
    pub open_sessions: usize,
    /// Pages older than the window of minutes when they came.
    pub late: u64,
    /// Visits closed early to stay within memory.
    pub evicted: u64,
}

/// The aggregates. See the module.
#[derive(Debug, Clone)]
pub struct Insights {
    events: [u64; 3],
    /// Pages of each minute of the window, minute `m` at `m % PAGE_MINUTES`.
    pages: [u64; PAGE_MINUTES],
    /// The latest minute seen; none before the first event.
    newest_minute: Option<i64>,
    /// The earliest minute seen: what is before it is not shown as empty.
    oldest_minute: i64,
    now_ms: i64,
    late: u64,
    items: TopItems,
    open: OpenSessions,
    funnel: Funnel,
}

impl Default for Insights {
    fn default() -> Insights {
        Insights::new()
    }
}

impl Insights {
    #[must_use]
    pub fn new() -> Insights {
        Insights::with_capacity(MAX_OPEN_SESSIONS)
    }

    fn with_capacity(open_sessions: usize) -> Insights {
        Insights {
            events: [0; 3],
            pages: [0; PAGE_MINUTES],
            newest_minute: None,
            oldest_minute: i64::MAX,
            now_ms: i64::MIN,
            late: 0,
            items: TopItems::default(),
            open: OpenSessions::new(open_sessions),
            funnel: Funnel::default(),
        }
    }

    /// Takes one event in.
    pub fn observe(&mut self, event: &Event) {
        self.events[event.kind as usize] += 1;
        self.items.add(event.item);
        let minute = event.at_ms.div_euclid(MINUTE_MS);
        self.move_window(minute);
        self.oldest_minute = self.oldest_minute.min(minute);
        if event.kind == Kind::Click {
            self.add_pages(minute, 1);
        }
        self.now_ms = self.now_ms.max(event.at_ms);
        let deeds = Deeds { cart: event.kind == Kind::Cart, order: event.kind == Kind::Order };
        let before = self.open.touch(event.session_key, event.at_ms, deeds);
        self.funnel.replace(before, before.unwrap_or_default().and(deeds));
        self.open.close_idle(self.now_ms);
    }

    /// Adds what another consumer saw.
    pub fn merge(&mut self, other: &Insights) {
        for (ours, theirs) in self.events.iter_mut().zip(other.events) {
            *ours += theirs;
        }
        self.late += other.late;
        if let Some(newest) = other.newest_minute {
            self.move_window(newest);
            for minute in window(newest) {
                let pages = other.pages[place(minute)];
                if pages > 0 {
                    self.add_pages(minute, pages);
                }
            }
        }
        self.oldest_minute = self.oldest_minute.min(other.oldest_minute);
        self.items.merge(&other.items);
        self.funnel.add(other.funnel);
        let funnel = &mut self.funnel;
        self.open.merge(&other.open, |ours, theirs| {
            funnel.remove(ours);
            funnel.replace(Some(theirs), ours.and(theirs));
        });
        self.now_ms = self.now_ms.max(other.now_ms);
        self.open.close_idle(self.now_ms);
    }

    /// The figures to show, with the last `minutes` minutes (at most [`PAGE_MINUTES`]) and `top` items.
    #[must_use]
    pub fn summary(&self, minutes: usize, top: usize) -> Summary {
        let shown = minutes.min(PAGE_MINUTES);
        let pages_per_minute = self.newest_minute.map_or_else(Vec::new, |newest| {
            let minutes = window(newest).skip(PAGE_MINUTES - shown).filter(|minute| *minute >= self.oldest_minute);
            minutes.map(|minute| (minute.saturating_mul(MINUTE_MS), self.pages[place(minute)])).collect()
        });
        Summary {
            events: self.events,
            pages_per_minute,
            top_items: self.items.top(top),
            funnel: self.funnel,
            open_sessions: self.open.len(),
            late: self.late,
            evicted: self.open.evicted(),
        }
    }

    /// Makes `minute` part of the window if it is newer than all of it.
    fn move_window(&mut self, minute: i64) {
        let newest = *self.newest_minute.get_or_insert(minute);
        if minute <= newest {
            return;
        }
        // Minutes that were skipped are empty; further than a whole window there is nothing to keep.
        let skipped = (minute - newest).min(PAGE_MINUTES as i64);
        for fresh in minute - skipped + 1..=minute {
            self.pages[place(fresh)] = 0;
        }
        self.newest_minute = Some(minute);
    }

    fn add_pages(&mut self, minute: i64, pages: u64) {
        let newest = self.newest_minute.unwrap_or(minute);
        if newest - minute < PAGE_MINUTES as i64 {
            self.pages[place(minute)] += pages;
        } else {
            self.late += pages;
        }
    }
}

/// The minutes of the window that ends with `newest`, oldest first.
fn window(newest: i64) -> impl Iterator<Item = i64> {
    newest - PAGE_MINUTES as i64 + 1..=newest
}

fn place(minute: i64) -> usize {
    minute.rem_euclid(PAGE_MINUTES as i64) as usize
}

impl Funnel {
    /// Share of visits that ordered; 0 before the first visit.
    #[must_use]
    pub fn conversion(&self) -> f64 {
        share(self.with_order, self.sessions)
    }

    /// Share of visits that filled a cart.
    #[must_use]
    pub fn cart_rate(&self) -> f64 {
        share(self.with_cart, self.sessions)
    }

    /// Share of the visits with a cart that ordered.
    #[must_use]
    pub fn carts_ordered(&self) -> f64 {
        share(self.with_both, self.with_cart)
    }

    /// A visit known as `before` (`None`: a new one) is now known as `after`.
    fn replace(&mut self, before: Option<Deeds>, after: Deeds) {
        if let Some(before) = before {
            self.remove(before);
        }
        self.add(Funnel::of(after));
    }

    fn remove(&mut self, deeds: Deeds) {
        let one = Funnel::of(deeds);
        self.sessions -= one.sessions;
        self.with_cart -= one.with_cart;
        self.with_order -= one.with_order;
        self.with_both -= one.with_both;
    }

    fn add(&mut self, other: Funnel) {
        self.sessions += other.sessions;
        self.with_cart += other.with_cart;
        self.with_order += other.with_order;
        self.with_both += other.with_both;
    }

    fn of(deeds: Deeds) -> Funnel {
        Funnel {
            sessions: 1,
            with_cart: u64::from(deeds.cart),
            with_order: u64::from(deeds.order),
            with_both: u64::from(deeds.cart && deeds.order),
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
#[path = "insights_tests.rs"]
mod tests;
