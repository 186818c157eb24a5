//! # One refresh of the demo
//!
//! A [`Snapshot`] in, text out. The layout is the same at every refresh: the same lines at the same places, however
//! large the figures, so that [`frame`] can draw over the last one. No line is wider than the screen. Without a terminal
//! [`summary_line`] says the same in one line. No state, no output of its own; the caller knows whether there is a
//! terminal and how wide it is.

use super::insights::Summary;
use super::limits::{MAX_LAG_BARS, MAX_SCREEN_WIDTH, MIN_SCREEN_WIDTH};
use super::profile;

/// Lines of pages and of items.
pub const TABLE_ROWS: usize = 10;

/// Milliseconds from producing to consuming.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Latency {
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
}

/// What one refresh shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    pub elapsed_s: f64,
    pub records_per_s: f64,
    pub mb_per_s: f64,
    pub produced: u64,
    pub consumed: u64,
    /// End to end.
    pub latency: Latency,
    /// (partition, records behind).
    pub lag: Vec<(i32, i64)>,
    /// Taken with [`TABLE_ROWS`] minutes and items, or more: the last minutes and the first items are shown.
    pub insights: Summary,
}

/// The lines of one refresh for a terminal of `width` columns (fewer than 80 are taken as 80). With `ansi` headings are
/// bold.
#[must_use]
pub fn render(snapshot: &Snapshot, width: usize, ansi: bool) -> Vec<String> {
    let width = width.clamp(MIN_SCREEN_WIDTH, MAX_SCREEN_WIDTH);
    let clock = clock(snapshot.elapsed_s);
    let title = "Ringlog clickstream demo";
    let mut lines = vec![
        heading(&format!("{title}{clock:>room$}", room = width - title.len()), width, ansi),
        fit(&rates(snapshot), width),
        fit(&latency(snapshot), width),
        fit(&lag_figures(&snapshot.lag), width),
        fit(&lag_bars(&snapshot.lag), width),
        String::new(),
        fit(&events(&snapshot.insights), width),
        fit(&funnel(&snapshot.insights), width),
        String::new(),
    ];
    // Item pages have at most 24 characters: all of them fit beside the narrowest bars.
    let left_width = width * 2 / 5;
    let right_width = width - 2 - left_width;
    let head = format!("{:<left_width$}  {}", "pages per minute (event time)", "top items");
    lines.push(heading(&head, width, ansi));
    let left = page_rows(&snapshot.insights, left_width);
    let right = item_rows(&snapshot.insights, right_width);
    for (left, right) in left.iter().zip(&right) {
        let row = format!("{left}{:pad$}  {right}", "", pad = left_width.saturating_sub(left.chars().count()));
        lines.push(fit(row.trim_end(), width));
    }
    lines.push(String::new());
    lines.push(fit(profile::ATTRIBUTION, width));
    lines
}

/// The same as one string that draws over the last refresh: from the top left, each line cleared to its end, what is
/// below cleared too. For terminals only.
#[must_use]
pub fn frame(snapshot: &Snapshot, width: usize, ansi: bool) -> String {
    let mut out = String::from("\x1b[H");
    for line in render(snapshot, width, ansi) {
        out.push_str(&line);
        out.push_str("\x1b[K\n");
    }
    out.push_str("\x1b[J");
    out
}

/// One line that stands for the refresh where there is no terminal.
#[must_use]
pub fn summary_line(snapshot: &Snapshot) -> String {
    let (sum, max, _) = lag_totals(&snapshot.lag);
    format!(
        "{} {} records/s {:.1} MB/s produced {} consumed {} p50 {} ms p99 {} ms p99.9 {} ms lag {} (max {}) \
         sessions {} orders {}",
        clock(snapshot.elapsed_s),
        grouped(whole(snapshot.records_per_s)),
        finite(snapshot.mb_per_s),
        grouped(snapshot.produced),
        grouped(snapshot.consumed),
        millis(snapshot.latency.p50_ms),
        millis(snapshot.latency.p99_ms),
        millis(snapshot.latency.p999_ms),
        grouped(sum),
        grouped(max),
        grouped(snapshot.insights.funnel.sessions),
        grouped(snapshot.insights.events[2]),
    )
}

fn rates(snapshot: &Snapshot) -> String {
    format!(
        "records/s {:>11}   MB/s {:>8.1}   produced {:>8}   consumed {:>8}",
        grouped(whole(snapshot.records_per_s)),
        finite(snapshot.mb_per_s),
        short(snapshot.produced),
        short(snapshot.consumed)
    )
}

fn latency(snapshot: &Snapshot) -> String {
    let Latency { p50_ms, p99_ms, p999_ms } = snapshot.latency;
    let (p50, p99, p999) = (millis(p50_ms), millis(p99_ms), millis(p999_ms));
    format!("latency   p50 {p50:>8} ms   p99 {p99:>8} ms   p99.9 {p999:>8} ms   end to end")
}

fn lag_figures(lag: &[(i32, i64)]) -> String {
    let (sum, max, worst) = lag_totals(lag);
    let worst = worst.map_or_else(String::new, |partition| format!(" (partition {partition})"));
    format!("lag       sum {:>8}   max {:>8}{worst:<22} partitions {:>5}", short(sum), short(max), lag.len())
}

/// A bar a partition, in the order given: `·` for none behind, then an eighth of a block for each factor of four.
fn lag_bars(lag: &[(i32, i64)]) -> String {
    const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |behind: i64| match u64::try_from(behind) {
        Ok(0) | Err(_) => '·',
        Ok(records) => EIGHTHS[(records.ilog2() as usize / 2).min(EIGHTHS.len() - 1)],
    };
    let bars: String = lag.iter().take(MAX_LAG_BARS).map(|&(_, behind)| bar(behind)).collect();
    let more = lag.len().saturating_sub(MAX_LAG_BARS);
    if more == 0 { format!("          {bars}") } else { format!("          {bars} +{more}") }
}

/// (sum, highest, partition of the highest).
fn lag_totals(lag: &[(i32, i64)]) -> (u64, u64, Option<i32>) {
    let behind = |value: i64| u64::try_from(value).unwrap_or(0);
    let sum = lag.iter().fold(0_u64, |sum, &(_, value)| sum.saturating_add(behind(value)));
    let worst = lag.iter().rev().max_by_key(|&&(_, value)| behind(value)).filter(|&&(_, value)| value > 0);
    (sum, worst.map_or(0, |&(_, value)| behind(value)), worst.map(|&(partition, _)| partition))
}

fn events(insights: &Summary) -> String {
    let [clicks, carts, orders] = insights.events.map(short);
    let sessions = short(insights.funnel.sessions);
    let open = short(insights.open_sessions as u64);
    format!("sessions {sessions:>7}  open {open:>7}  clicks {clicks:>7}  carts {carts:>7}  orders {orders:>7}")
}

fn funnel(insights: &Summary) -> String {
    let funnel = &insights.funnel;
    format!(
        "conversion {:>6.2} % of sessions   with a cart {:>6.2} %   carts ordered {:>6.2} %",
        funnel.conversion() * 100.0,
        funnel.cart_rate() * 100.0,
        funnel.carts_ordered() * 100.0
    )
}

/// [`TABLE_ROWS`] rows, the newest minute first, so that minutes move down and none jumps.
fn page_rows(insights: &Summary, width: usize) -> Vec<String> {
    let shown: Vec<(i64, u64)> = insights.pages_per_minute.iter().rev().take(TABLE_ROWS).copied().collect();
    let most = shown.iter().map(|&(_, pages)| pages).max().unwrap_or(0).max(1);
    let room = width.saturating_sub(16);
    let row = |index: usize| match shown.get(index) {
        None => String::new(),
        Some(&(start_ms, pages)) => {
            let minute = start_ms.div_euclid(60_000).rem_euclid(24 * 60);
            let bar = "█".repeat((u128::from(pages) * room as u128 / u128::from(most)) as usize);
            format!("{:02}:{:02} {:>9} {bar}", minute / 60, minute % 60, short(pages))
        }
    };
    (0..TABLE_ROWS).map(row).collect()
}

fn item_rows(insights: &Summary, width: usize) -> Vec<String> {
    let total = insights.events.iter().fold(0_u64, |sum, &count| sum.saturating_add(count)).max(1);
    let name_width = width.saturating_sub(22);
    let row = |index: usize| match insights.top_items.get(index) {
        None => String::new(),
        Some(top) => {
            let name = fit(&format!("{}{}", profile::product_page(top.item), top.item), name_width);
            let percent = top.count as f64 * 100.0 / total as f64;
            format!("{:>2} {name:<name_width$} {:>8} {percent:>5.2} %", index + 1, short(top.count))
        }
    };
    (0..TABLE_ROWS).map(row).collect()
}

fn heading(line: &str, width: usize, ansi: bool) -> String {
    let line = fit(line, width);
    if ansi { format!("\x1b[1m{line}\x1b[0m") } else { line }
}

/// At most `width` characters; each of ours takes one column.
fn fit(line: &str, width: usize) -> String {
    line.chars().take(width).collect()
}

fn clock(elapsed_s: f64) -> String {
    let seconds = whole(elapsed_s);
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// Three digits that matter, the size of the latency decides how many after the point.
fn millis(ms: f64) -> String {
    match finite(ms) {
        ms if ms < 10.0 => format!("{ms:.2}"),
        ms if ms < 100.0 => format!("{ms:.1}"),
        ms => grouped(whole(ms)),
    }
}

/// At most seven characters: whole below 100,000, then four digits and a suffix.
fn short(value: u64) -> String {
    const UNITS: [(&str, u64); 6] = [
        ("E", 1_000_000_000_000_000_000),
        ("P", 1_000_000_000_000_000),
        ("T", 1_000_000_000_000),
        ("G", 1_000_000_000),
        ("M", 1_000_000),
        ("k", 1_000),
    ];
    if value < 100_000 {
        return grouped(value);
    }
    let (unit, size) = UNITS.iter().find(|(_, size)| value >= *size).unwrap_or(&UNITS[UNITS.len() - 1]);
    let scaled = value as f64 / *size as f64;
    // What would round up to a digit more is cut instead.
    if scaled < 99.995 { format!("{scaled:.2} {unit}") } else { format!("{:.1} {unit}", scaled.min(999.9)) }
}

fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn finite(value: f64) -> f64 {
    if value.is_finite() { value.max(0.0) } else { 0.0 }
}

fn whole(value: f64) -> u64 {
    finite(value).round() as u64
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
