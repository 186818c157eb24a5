//! Where a dump goes: lines for people or one JSON object a line, and a progress line on stderr while it takes long.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use serde_json::Value;

/// From here on a command says how far it is.
const QUIET_FOR: Duration = Duration::from_secs(1);
const REDRAW_AFTER: Duration = Duration::from_millis(200);

/// What is printed of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    pub json: bool,
    pub records: bool,
    /// No line for each batch.
    pub summary: bool,
}

pub struct Out<'a> {
    pub detail: Detail,
    to: &'a mut dyn Write,
    progress: Option<Progress>,
    /// Findings of damage so far.
    pub damage: u64,
}

impl<'a> Out<'a> {
    pub fn new(detail: Detail, to: &'a mut dyn Write, total_bytes: Option<u64>) -> Out<'a> {
        let now = Instant::now();
        let progress = total_bytes.map(|total| Progress { total, done: 0, started: now, drawn: now, shown: false });
        Out { detail, to, progress, damage: 0 }
    }

    /// One item: `text` for people, `json` for scripts.
    pub fn item(&mut self, text: impl FnOnce() -> String, json: impl FnOnce() -> Value) -> io::Result<()> {
        if self.detail.json { writeln!(self.to, "{}", json()) } else { writeln!(self.to, "{}", text()) }
    }

    /// An item that says what is damaged.
    pub fn damage(&mut self, text: impl FnOnce() -> String, json: impl FnOnce() -> Value) -> io::Result<()> {
        self.damage += 1;
        self.item(text, json)
    }

    /// So many bytes were looked at.
    pub fn advance(&mut self, bytes: u64) {
        if let Some(progress) = &mut self.progress {
            progress.advance(bytes);
        }
    }

    pub fn finish(&mut self) -> io::Result<()> {
        if self.progress.as_ref().is_some_and(|p| p.shown) {
            eprint!("\r\x1b[K");
        }
        self.to.flush()
    }
}

/// Whether a progress line would be seen and would not run into the dump itself.
pub fn wants_progress(detail: Detail) -> bool {
    io::stderr().is_terminal() && (detail.summary || !io::stdout().is_terminal())
}

struct Progress {
    total: u64,
    done: u64,
    started: Instant,
    drawn: Instant,
    shown: bool,
}

impl Progress {
    fn advance(&mut self, bytes: u64) {
        self.done += bytes;
        let (elapsed, since) = (self.started.elapsed(), self.drawn.elapsed());
        if elapsed < QUIET_FOR || since < REDRAW_AFTER {
            return;
        }
        (self.drawn, self.shown) = (Instant::now(), true);
        eprint!("\r\x1b[K{} ", progress_text(self.done, self.total, elapsed));
    }
}

fn progress_text(done: u64, total: u64, elapsed: Duration) -> String {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let rate = mib(done) / elapsed.as_secs_f64().max(1e-9);
    let left_s = (mib(total.saturating_sub(done)) / rate.max(1e-9)).ceil();
    format!("{:.0} of {:.0} MiB, {rate:.0} MiB/s, {left_s:.0} s left", mib(done), mib(total))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn items_are_lines_in_either_shape() {
        for (as_json, expected) in [(false, "words\n"), (true, "{\"a\":1}\n")] {
            let mut to = Vec::new();
            let mut out = Out::new(Detail { json: as_json, ..Detail::default() }, &mut to, None);
            out.damage(|| "words".to_owned(), || json!({ "a": 1 })).unwrap();
            assert_eq!(out.damage, 1);
            out.finish().unwrap();
            assert_eq!(String::from_utf8(to).unwrap(), expected);
        }
    }

    #[test]
    fn progress_has_rate_and_time_left() {
        let text = progress_text(100 << 20, 400 << 20, Duration::from_secs(2));
        assert_eq!(text, "100 of 400 MiB, 50 MiB/s, 6 s left");
    }
}
