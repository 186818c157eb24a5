//! Where a dump goes: lines for people or one JSON object a line, and a progress line on stderr while it takes long.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use crate::cli::progress::Progress;

/// What is printed of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    pub json: bool,
    pub records: bool,
    /// No line for each batch.
    pub summary: bool,
    /// Offsets that are missing are no damage.
    pub compacted: bool,
}

pub struct Out<'a> {
    pub detail: Detail,
    to: &'a mut dyn Write,
    progress: Option<Progress>,
    done_bytes: u64,
    /// Findings of damage so far.
    pub damage: u64,
}

impl<'a> Out<'a> {
    pub fn new(detail: Detail, to: &'a mut dyn Write, total_bytes: Option<u64>) -> Out<'a> {
        let progress = total_bytes.map(|total| Progress::new("MiB", Some(total >> 20)));
        Out { detail, to, progress, done_bytes: 0, damage: 0 }
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
        self.done_bytes += bytes;
        if let Some(progress) = &mut self.progress {
            progress.at(self.done_bytes >> 20);
        }
    }

    pub fn finish(&mut self) -> io::Result<()> {
        if let Some(progress) = &mut self.progress {
            progress.end();
        }
        self.to.flush()
    }
}

/// Whether a progress line would be seen and would not run into the dump itself.
pub fn wants_progress(detail: Detail) -> bool {
    io::stderr().is_terminal() && (detail.summary || !io::stdout().is_terminal())
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
}
