//! # The shape of the traffic
//!
//! A few dozen numbers measured once from two public samples, which are not shipped:
//!
//! - *shop*: public shop sessions by OTTO, CC-BY 4.0: 862 events of 20 shoppers. Cut at pauses of over 30 minutes they
//!   are 144 visits; a visit is what the demo calls a session.
//! - *web*: a public web-server log, Apache-2.0: 10,000 requests by 1,753 visitors in four days.
//!
//! The shop sample holds ten orders only: figures about orders are honest to it, not precise. Names of pages, agents and
//! referrers are invented. Nothing here is state.

use super::limits::USUAL_ACTIVE_SESSIONS;

/// Shown wherever figures shaped by the samples are shown: the licence of the shop sample asks for the name.
pub const ATTRIBUTION: &str = "visits shaped after public shop sessions by OTTO, CC-BY 4.0";

/// Events of a visit, as (visits, shortest, longest) of the 144 in *shop*. Median 3, mean 6.
pub const SESSION_EVENTS: [(u32, u16, u16); 16] = [
    (41, 1, 1),
    (26, 2, 2),
    (10, 3, 3),
    (12, 4, 4),
    (12, 5, 5),
    (10, 6, 6),
    (5, 7, 7),
    (5, 8, 8),
    (2, 9, 9),
    (4, 10, 10),
    (5, 12, 12),
    (2, 15, 16),
    (1, 21, 21),
    (3, 23, 23),
    (4, 32, 49),
    (2, 49, 58),
];

/// What a visit begins with (click, cart, order), *shop*.
pub const FIRST_KIND: [u32; 3] = [140, 4, 0];

/// What follows a click, a cart or an order within a visit (click, cart, order), *shop*.
pub const NEXT_KIND: [[u32; 3]; 3] = [[617, 43, 4], [41, 5, 1], [2, 0, 5]];

/// Share of orders that end their visit, *shop*: 3 of 10.
pub const ORDER_ENDS: f64 = 0.3;

/// Share of clicks that stay on the item of the click before, *shop*: 29 of 617.
pub const CLICK_SAME_ITEM: f64 = 0.047;

/// Share of carts that take the item just looked at, *shop*: 39 of 43.
pub const CART_SAME_ITEM: f64 = 0.907;

/// Milliseconds between two events of a visit as (share of pauses below, pause), *shop*, 713 pauses. The orders of one
/// basket carry the same time and are not among them.
pub const THINK_MS: [(f64, f64); 16] = [
    (0.0, 1_269.0),
    (0.01, 2_014.0),
    (0.05, 4_370.0),
    (0.1, 7_068.0),
    (0.2, 11_189.0),
    (0.3, 15_771.0),
    (0.4, 22_779.0),
    (0.5, 30_328.0),
    (0.6, 40_703.0),
    (0.7, 57_408.0),
    (0.8, 81_735.0),
    (0.9, 146_196.0),
    (0.95, 227_562.0),
    (0.98, 678_969.0),
    (0.99, 998_931.0),
    (1.0, 1_766_569.0),
];

/// The mean pause of the same 713.
pub const THINK_MEAN_MS: f64 = 76_191.0;

/// Items: as many as *web* has distinct paths.
pub const CATALOGUE: usize = 1_498;

/// The item of rank `r` (from 0) is asked for in proportion to `(r + 1 + ITEM_SHIFT)^-ITEM_EXPONENT`: Zipf's law with
/// Mandelbrot's shift, the likeliest fit to the paths of *web*.
pub const ITEM_EXPONENT: f64 = 1.16;
/// See [`ITEM_EXPONENT`].
pub const ITEM_SHIFT: f64 = 1.5;

/// Requests in 10,000 by each of the twelve busiest visitors, *web*. The others are strangers seen once or twice.
pub const BUSY_VISITORS: [u32; 12] = [482, 364, 357, 273, 113, 102, 99, 84, 83, 82, 74, 65];

/// Bytes of a line as (share of lines below, bytes), *web*.
pub const LINE_BYTES: [(f64, f64); 12] = [
    (0.0, 78.0),
    (0.01, 94.0),
    (0.05, 140.0),
    (0.1, 158.0),
    (0.25, 184.0),
    (0.5, 230.0),
    (0.75, 283.0),
    (0.9, 315.0),
    (0.95, 333.0),
    (0.99, 445.0),
    (0.999, 585.0),
    (1.0, 1_363.0),
];

/// HTTP status codes and how many of 10,000 requests got them, *web*.
pub const STATUS: [(u16, u32); 6] = [(200, 9_129), (304, 445), (404, 213), (301, 164), (206, 46), (500, 3)];

/// Bytes of an answer as (share of answers below, bytes), *web*.
pub const ANSWER_BYTES: [(f64, f64); 10] = [
    (0.0, 0.0),
    (0.1, 332.0),
    (0.25, 3_638.0),
    (0.5, 10_571.0),
    (0.75, 32_907.0),
    (0.9, 65_536.0),
    (0.95, 131_072.0),
    (0.99, 1_168_622.0),
    (0.999, 54_306_753.0),
    (1.0, 69_192_717.0),
];

/// Milliseconds to answer. Neither sample records it: a plausible web server, invented.
pub const ANSWER_MS: [(f64, f64); 6] =
    [(0.0, 1.0), (0.5, 14.0), (0.9, 60.0), (0.99, 350.0), (0.999, 1_200.0), (1.0, 3_000.0)];

/// Beginnings of product pages; the item's number follows.
pub const PRODUCT_PAGES: [&str; 12] = [
    "/garden/oak-bench-",
    "/shoes/runner-",
    "/kitchen/kettle-",
    "/books/atlas-",
    "/toys/wooden-train-",
    "/lamps/reading-",
    "/bags/day-pack-",
    "/bikes/city-",
    "/sound/headset-",
    "/wool/jumper-",
    "/tools/drill-",
    "/tea/darjeeling-",
];

/// Page of a cart and of an order; the item's number follows.
pub const CART_PAGE: &str = "/cart/add/";
/// See [`CART_PAGE`].
pub const ORDER_PAGE: &str = "/checkout/done/";

/// Browsers and robots, each visitor has one for ever.
pub const AGENTS: [&str; 8] = [
    "Firefox/128.0 (Linux)",
    "Firefox/127.0 (Windows 11)",
    "Safari/17.5 (iPhone)",
    "Safari/17.4 (Mac)",
    "Chrome/126.0 (Android 14)",
    "Chrome/126.0 (Windows 10)",
    "ShopApp/5.2 (Android)",
    "tidy-crawler/2.1",
];

/// Beginnings of referrers by the room they need; words fill the rest of the line.
pub const REFERRERS: [&str; 5] = [
    "/s?q=",
    "/search?sort=new&q=",
    "https://find.example/?q=",
    "https://shop.example/search?sort=rating&q=",
    "https://mail.example/letter/open?medium=email&campaign=spring&items=",
];

/// What referrers are filled with.
pub const WORDS: [&str; 8] = [
    "garden+bench+oak+",
    "blue+kettle+",
    "world+atlas+",
    "wooden+train+set+",
    "reading+lamp+brass+",
    "city+bike+",
    "wool+jumper+grey+",
    "green+tea+",
];

/// Number of the item of popularity `rank` (0 is the first). Spread, so that neighbours in rank are not neighbours in
/// number; always five digits.
#[must_use]
pub fn item_of_rank(rank: usize) -> u32 {
    debug_assert!(rank < CATALOGUE);
    10_000 + (rank * 389 % CATALOGUE) as u32
}

/// Beginning of the product page of `item`.
#[must_use]
pub fn product_page(item: u32) -> &'static str {
    PRODUCT_PAGES[item as usize % PRODUCT_PAGES.len()]
}

/// Visits in flight for `events_per_s`: as many as leave the pauses as long as they were measured, but at most
/// [`USUAL_ACTIVE_SESSIONS`]. Above 131 events a second visitors are therefore quicker than the real ones.
#[must_use]
pub fn sessions_for_rate(events_per_s: f64) -> usize {
    let wanted = events_per_s.max(0.0) * THINK_MEAN_MS / 1_000.0;
    (wanted as usize).clamp(1, USUAL_ACTIVE_SESSIONS)
}

/// What the samples are as a whole; generated streams are held to it.
#[cfg(test)]
pub mod measured {
    /// Median events of a visit, *shop*.
    pub const SESSION_EVENTS_P50: i64 = 3;
    /// Clicks, carts and orders, *shop*.
    pub const EVENT_MIX: [u32; 3] = [800, 52, 10];
    /// Median and 95th percentile of the pauses, *shop*.
    pub const THINK_MS: [f64; 2] = [30_328.0, 227_562.0];
    /// Share of the first item under the fit to *web* (itself: 8.1 %).
    pub const ITEM_TOP_SHARE: f64 = 0.095;
    /// Median, 99th percentile and maximum of a line, *web*.
    pub const LINE_BYTES: [i64; 3] = [230, 445, 1_363];
    /// Shares of the three busiest visitors, *web*.
    pub const VISITOR_SHARES: [f64; 3] = [0.0482, 0.0364, 0.0357];
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
