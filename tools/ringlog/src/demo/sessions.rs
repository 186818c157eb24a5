//! # Endless shop visits from a seed
//!
//! A [`Generator`] keeps a fixed number of visits in flight and emits the event that is due next among all of them; a
//! visit that ends is replaced by a new one. The same seed and config give the same bytes, for ever and everywhere.
//!
//! Time is the generator's own: at first visits are as far along as they would be in a shop that has been open for a
//! while, then each waits its measured pauses. [`GeneratorConfig::rate`] replaces the pauses by an even spacing and
//! keeps their order: with [`profile::sessions_for_rate`] visits in flight both are about the same.
//!
//! Owned by one thread. Memory is fixed at the start: 64 bytes a visit and 50 KiB of tables.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::event::{Dressing, Encoding, Event, Kind};
use super::limits::MAX_ACTIVE_SESSIONS;
use super::profile;
use super::random::{Alias, Quantiles, Rng, mix};

/// What a generator makes.
#[derive(Debug, Clone)]
pub struct GeneratorConfig {
    pub encoding: Encoding,
    /// Events per second of event time, evenly spaced. Without it event time follows the visits' own pauses, about
    /// `active_sessions / 76` events a second.
    pub rate: Option<f64>,
    /// Event time of the beginning, milliseconds since 1970.
    pub start_ms: i64,
    /// Visits in flight.
    pub active_sessions: usize,
}

/// One visit in flight.
#[derive(Debug, Clone, Copy)]
struct Session {
    key: u64,
    visitor: u32,
    /// The item of the last event.
    item: u32,
    /// The item last put into the cart; an order buys it.
    carted: Option<u32>,
    /// Events still to come, the next one included.
    left: u16,
    /// The kind of the next event.
    kind: Kind,
}

#[derive(Debug)]
struct Tables {
    think_ms: Quantiles,
    line_bytes: Quantiles,
    answer_bytes: Quantiles,
    answer_ms: Quantiles,
    items: Alias,
    lengths: Alias,
    visitors: Alias,
    status: Alias,
}

/// The endless stream. See the module.
#[derive(Debug)]
pub struct Generator {
    config: GeneratorConfig,
    seed: u64,
    rng: Rng,
    tables: Tables,
    sessions: Vec<Session>,
    /// When each visit's next event is due, in milliseconds since the beginning; the slot breaks ties, so that the
    /// order never depends on the heap.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    emitted: u64,
    started: u64,
}

impl Generator {
    /// # Panics
    /// If `active_sessions` is not in `1..=MAX_ACTIVE_SESSIONS` or the rate is not a positive number.
    #[must_use]
    pub fn new(seed: u64, config: GeneratorConfig) -> Generator {
        assert!((1..=MAX_ACTIVE_SESSIONS).contains(&config.active_sessions), "visits in flight are bounded");
        assert!(config.rate.is_none_or(|rate| rate.is_finite() && rate > 0.0), "a rate is a positive number");
        let active = config.active_sessions;
        let mut generator = Generator {
            config,
            seed,
            rng: Rng::new(seed),
            tables: Tables::new(),
            sessions: Vec::with_capacity(active),
            due: BinaryHeap::with_capacity(active),
            emitted: 0,
            started: 0,
        };
        for slot in 0..active {
            generator.begin_midway(slot as u32);
        }
        generator
    }

    /// Appends the next event to `out` and returns it. Event times never go back.
    pub fn next(&mut self, out: &mut Vec<u8>) -> Event {
        let Some(&Reverse((due_ms, slot))) = self.due.peek() else {
            unreachable!("visits are replaced, never removed")
        };
        let mut session = self.sessions[slot as usize];
        session.item = self.choose_item(&session);
        let event = self.event(&session, due_ms);
        self.emitted += 1;
        self.write(&event, out);
        let pause_ms = self.advance(&mut session);
        self.sessions[slot as usize] = session;
        if let Some(mut first) = self.due.peek_mut() {
            // In place: one walk down the heap instead of a removal and an insertion.
            *first = Reverse((due_ms + pause_ms, slot));
            drop::<PeekMut<'_, _>>(first);
        }
        event
    }

    /// The visits of the beginning: somewhere in their middle, and their first pause is partly over.
    fn begin_midway(&mut self, slot: u32) {
        let mut session = self.new_session();
        session.left -= self.rng.below(u32::from(session.left)) as u16;
        let pause_ms = self.tables.think_ms.sample(&mut self.rng) * self.rng.unit();
        self.sessions.push(session);
        self.due.push(Reverse((pause_ms as u64, slot)));
    }

    fn new_session(&mut self) -> Session {
        let (_, shortest, longest) = profile::SESSION_EVENTS[self.tables.lengths.sample(&mut self.rng)];
        let key = mix(self.seed.wrapping_add(self.started.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        self.started += 1;
        Session {
            key,
            visitor: self.choose_visitor(),
            item: 0,
            carted: None,
            left: shortest + self.rng.below(u32::from(longest - shortest) + 1) as u16,
            kind: Kind::ALL[self.rng.pick(&profile::FIRST_KIND)],
        }
    }

    /// One of the few busy visitors, or a stranger out of 10.0.0.0/8.
    fn choose_visitor(&mut self) -> u32 {
        let index = self.tables.visitors.sample(&mut self.rng);
        let host = match profile::BUSY_VISITORS.get(index) {
            Some(_) => mix(index as u64 + 1) as u32,
            None => self.rng.next_u64() as u32,
        };
        (10 << 24) | (host & 0x00ff_ffff)
    }

    fn choose_item(&mut self, session: &Session) -> u32 {
        let stays = match session.kind {
            Kind::Click => self.rng.chance(profile::CLICK_SAME_ITEM),
            Kind::Cart => self.rng.chance(profile::CART_SAME_ITEM),
            Kind::Order => true,
        };
        let kept = if session.kind == Kind::Order { session.carted.unwrap_or(session.item) } else { session.item };
        // A visit's first event has no item before it.
        if stays && kept != 0 { kept } else { profile::item_of_rank(self.tables.items.sample(&mut self.rng)) }
    }

    fn event(&mut self, session: &Session, due_ms: u64) -> Event {
        let (status, _) = profile::STATUS[self.tables.status.sample(&mut self.rng)];
        let bytes = self.tables.answer_bytes.sample(&mut self.rng) as u32;
        let since_ms = match self.config.rate {
            Some(rate) => (self.emitted as f64 * 1_000.0 / rate) as i64,
            None => due_ms as i64,
        };
        Event {
            session_key: session.key,
            visitor: session.visitor,
            kind: session.kind,
            item: session.item,
            at_ms: self.config.start_ms.saturating_add(since_ms),
            status,
            // "Not modified" has no body.
            bytes: if status == 304 { 0 } else { bytes },
            duration_ms: self.tables.answer_ms.sample(&mut self.rng) as u32,
        }
    }

    fn write(&mut self, event: &Event, out: &mut Vec<u8>) {
        match self.config.encoding {
            Encoding::Compact => event.write_compact(out),
            Encoding::Json => {
                let dressing = Dressing {
                    agent: profile::AGENTS[mix(u64::from(event.visitor)) as usize % profile::AGENTS.len()],
                    line_bytes: self.tables.line_bytes.sample(&mut self.rng) as usize,
                    words_from: self.rng.next_u64() as usize,
                };
                event.write_json(&dressing, out);
            }
        }
    }

    /// Moves the visit past the event just emitted, or replaces it, and says after how long the next one is due.
    fn advance(&mut self, session: &mut Session) -> u64 {
        let was = session.kind;
        session.left -= 1;
        if was == Kind::Cart {
            session.carted = Some(session.item);
        }
        let over = session.left == 0 || (was == Kind::Order && self.rng.chance(profile::ORDER_ENDS));
        if over {
            *session = self.new_session();
        } else {
            session.kind = Kind::ALL[self.rng.pick(&profile::NEXT_KIND[was as usize])];
            if was == Kind::Order && session.kind == Kind::Order {
                // One basket, one moment.
                return 0;
            }
        }
        self.tables.think_ms.sample(&mut self.rng) as u64
    }
}

impl Tables {
    fn new() -> Tables {
        let items: Vec<f64> = (0..profile::CATALOGUE)
            .map(|rank| (rank as f64 + 1.0 + profile::ITEM_SHIFT).powf(-profile::ITEM_EXPONENT))
            .collect();
        let lengths = profile::SESSION_EVENTS.map(|(visits, _, _)| f64::from(visits));
        let strangers = 10_000 - profile::BUSY_VISITORS.iter().sum::<u32>();
        let visitors: Vec<f64> = profile::BUSY_VISITORS.iter().chain([&strangers]).map(|&n| f64::from(n)).collect();
        Tables {
            think_ms: Quantiles::new(&profile::THINK_MS),
            line_bytes: Quantiles::new(&profile::LINE_BYTES),
            answer_bytes: Quantiles::new(&profile::ANSWER_BYTES),
            answer_ms: Quantiles::new(&profile::ANSWER_MS),
            items: Alias::new(&items),
            lengths: Alias::new(&lengths),
            visitors: Alias::new(&visitors),
            status: Alias::new(&profile::STATUS.map(|(_, requests)| f64::from(requests))),
        }
    }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
