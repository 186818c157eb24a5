//! What a shard counts of its connections and requests while serving: plain cells, added to between awaits.
//!
//! Budget: a handful of additions for a request, none for a record; no clock is read for them, connections read it anyway.

use std::cell::Cell;

use model::ErrorCode;
use runtime::histogram::Histogram;
use wire::ApiKey;

use super::figures::{ApiFigures, TrafficFigures};
use crate::dispatch::SERVED;
use crate::mail::{FetchResult, ProduceResult};

/// One more than the highest key of an API that is served, with room for a few.
const API_SLOTS: usize = 96;
/// Error codes from -1 on.
const ERROR_SLOTS: usize = 136;

#[derive(Debug)]
pub struct Counters {
    requests: [Cell<u64>; API_SLOTS],
    /// Those that closed their connection.
    closed: [Cell<u64>; API_SLOTS],
    produce_errors: Box<[Cell<u64>; ERROR_SLOTS]>,
    fetch_errors: Box<[Cell<u64>; ERROR_SLOTS]>,
    produce: Histogram,
    fetch: Histogram,
    received_bytes: Cell<u64>,
    sent_bytes: Cell<u64>,
    fetched_bytes: Cell<u64>,
}

impl Default for Counters {
    fn default() -> Counters {
        let zeros = || Box::new(std::array::from_fn(|_| Cell::new(0)));
        Counters {
            requests: std::array::from_fn(|_| Cell::new(0)),
            closed: std::array::from_fn(|_| Cell::new(0)),
            produce_errors: zeros(),
            fetch_errors: zeros(),
            produce: Histogram::default(),
            fetch: Histogram::default(),
            received_bytes: Cell::new(0),
            sent_bytes: Cell::new(0),
            fetched_bytes: Cell::new(0),
        }
    }
}

#[inline]
fn add(cell: &Cell<u64>, more: u64) {
    cell.set(cell.get() + more);
}

fn count_error(errors: &[Cell<u64>; ERROR_SLOTS], code: i16) {
    // 0, no error, is not counted.
    if let Some(cell) = usize::try_from(code + 1).ok().filter(|_| code != 0).and_then(|at| errors.get(at)) {
        add(cell, 1);
    }
}

impl Counters {
    #[inline]
    pub fn request(&self, api: ApiKey) {
        if let Some(cell) = self.requests.get(api as usize) {
            add(cell, 1);
        }
    }

    /// It was no good, and its connection is closed for it.
    pub fn request_closed(&self, api: ApiKey) {
        if let Some(cell) = self.closed.get(api as usize) {
            add(cell, 1);
        }
    }

    /// Its answer has left, so long after its last byte came.
    #[inline]
    pub fn answered(&self, api: ApiKey, took_ns: u64) {
        match api {
            ApiKey::Produce => self.produce.record(took_ns),
            ApiKey::Fetch => self.fetch.record(took_ns),
            _ => {}
        }
    }

    #[inline]
    pub fn received(&self, bytes: usize) {
        add(&self.received_bytes, bytes as u64);
    }

    #[inline]
    pub fn sent(&self, bytes: usize) {
        add(&self.sent_bytes, bytes as u64);
    }

    pub fn produced<'a>(&self, results: impl Iterator<Item = &'a ProduceResult>) {
        results.for_each(|result| count_error(&self.produce_errors, result.error_code));
    }

    pub fn fetched(&self, results: &[FetchResult]) {
        let mut bytes = 0;
        for result in results {
            bytes += result.bytes;
            count_error(&self.fetch_errors, result.error_code);
        }
        add(&self.fetched_bytes, bytes as u64);
    }

    pub fn traffic(&self) -> TrafficFigures {
        let api = |api: &ApiKey| ApiFigures {
            api: *api,
            requests: self.requests[*api as usize].get(),
            closed: self.closed[*api as usize].get(),
        };
        let errors = |counts: &[Cell<u64>; ERROR_SLOTS]| {
            let named = |(at, count): (usize, &Cell<u64>)| {
                let code = ErrorCode::from_code(at as i16 - 1)?;
                (count.get() > 0).then(|| (code, count.get()))
            };
            counts.iter().enumerate().filter_map(named).collect()
        };
        TrafficFigures {
            apis: SERVED.iter().map(api).collect(),
            produce_errors: errors(&self.produce_errors),
            fetch_errors: errors(&self.fetch_errors),
            produce: self.produce.snapshot(),
            fetch: self.fetch.snapshot(),
            received_bytes: self.received_bytes.get(),
            sent_bytes: self.sent_bytes.get(),
            fetched_bytes: self.fetched_bytes.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_api_and_every_code_has_its_place() {
        assert!(SERVED.iter().all(|api| (*api as usize) < API_SLOTS));
        assert_eq!(ErrorCode::from_code(ERROR_SLOTS as i16 - 1), None, "a newer code has no place");
    }

    #[test]
    fn what_is_counted_comes_out() {
        let counters = Counters::default();
        counters.request(ApiKey::Fetch);
        counters.request(ApiKey::Fetch);
        counters.request_closed(ApiKey::Fetch);
        counters.answered(ApiKey::Fetch, 1);
        counters.answered(ApiKey::Metadata, 1);
        let refused = ProduceResult::error(0, ErrorCode::UnknownServerError);
        let fine = ProduceResult { error_code: 0, ..refused.clone() };
        counters.produced([&refused, &fine].into_iter());
        let read = FetchResult { bytes: 7, ..FetchResult::error(0, ErrorCode::None) };
        counters.fetched(&[read, FetchResult::error(1, ErrorCode::OffsetOutOfRange)]);
        let seen = counters.traffic();
        let fetch = seen.apis.iter().find(|figures| figures.api == ApiKey::Fetch);
        assert_eq!(fetch.map(|figures| (figures.requests, figures.closed)), Some((2, 1)));
        assert_eq!(seen.produce_errors, [(ErrorCode::UnknownServerError, 1)]);
        assert_eq!(seen.fetch_errors, [(ErrorCode::OffsetOutOfRange, 1)]);
        assert_eq!((seen.fetched_bytes, seen.fetch.count(), seen.produce.count()), (7, 1, 0));
    }
}
