//! One line on stderr for work that takes longer than a second: how much, how fast, how long still. Nothing is shown
//! where stderr is no terminal, or before the first second is over.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Least time between two refreshes.
const REFRESH: Duration = Duration::from_millis(250);
/// Work that ends sooner shows nothing.
const QUIET: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    /// What `done` counts up to, where that is known.
    total: Option<u64>,
    begun: Instant,
    shown: Option<Instant>,
    is_terminal: bool,
}

impl Progress {
    pub fn new(what: &'static str, total: Option<u64>) -> Progress {
        Progress { what, total, begun: Instant::now(), shown: None, is_terminal: std::io::stderr().is_terminal() }
    }

    /// Tells how much is done in all; shows it if it is time.
    pub fn at(&mut self, done: u64) {
        let now = Instant::now();
        let is_due = self.shown.map_or(now - self.begun >= QUIET, |shown| now - shown >= REFRESH);
        if self.is_terminal && is_due {
            self.shown = Some(now);
            eprint!("\r{}\x1b[K", line(self.what, done, self.total, now - self.begun));
            let _ = std::io::stderr().flush();
        }
    }

    /// Takes the line away.
    pub fn end(&mut self) {
        if self.shown.take().is_some() {
            eprint!("\r\x1b[K");
            let _ = std::io::stderr().flush();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}

fn line(what: &str, done: u64, total: Option<u64>, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(1e-9);
    let rate = done as f64 / seconds;
    match total {
        Some(total) if total > 0 => {
            let share = 100.0 * done.min(total) as f64 / total as f64;
            let left = if rate > 0.0 { total.saturating_sub(done) as f64 / rate } else { f64::INFINITY };
            let left = if left.is_finite() { format!(", {} left", duration(left)) } else { String::new() };
            format!("{what}: {done} of {total} ({share:.0} %), {rate:.0}/s{left}")
        }
        _ => format!("{what}: {done}, {rate:.0}/s, {}", duration(seconds)),
    }
}

fn duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_much_how_fast_and_how_long_still() {
        let two = Duration::from_secs(2);
        assert_eq!(line("records", 50, Some(200), two), "records: 50 of 200 (25 %), 25/s, 6 s left");
        assert_eq!(line("records", 0, Some(200), two), "records: 0 of 200 (0 %), 0/s");
        assert_eq!(line("records", 7_400_000, None, two), "records: 7400000, 3700000/s, 2 s");
        assert_eq!(duration(3_725.0), "1 h 2 min");
        assert_eq!(duration(61.0), "1 min 1 s");
    }
}
