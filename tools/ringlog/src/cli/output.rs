//! What a command prints: a table for people, JSON for scripts. Results go to stdout, everything else to stderr.
//!
//! A closed pipe (`ringlog topic list | head -1`) ends printing quietly.

use std::io::{self, Write};

use serde_json::Value;

/// Rows of text under headings; numbers are set to the right.
#[derive(Clone, Debug, Default)]
pub struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(headings: &[&str]) -> Table {
        Table { headings: headings.iter().map(|&h| h.to_owned()).collect(), rows: Vec::new() }
    }

    /// A row has as many cells as there are headings.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.headings.len(), "a row has a cell for each heading");
        self.rows.push(cells);
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as lines, without space at their ends.
    pub fn render(&self) -> String {
        let columns = self.headings.len();
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| &row[column]).chain([&self.headings[column]]);
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let right: Vec<bool> = (0..columns).map(|column| self.is_numeric(column)).collect();
        let mut out = String::new();
        for row in [&self.headings].into_iter().chain(&self.rows) {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[column] - cell.chars().count());
                let gap = if column == 0 { "" } else { "  " };
                let text = if right[column] { format!("{gap}{pad}{cell}") } else { format!("{gap}{cell}{pad}") };
                line.push_str(&text);
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    fn is_numeric(&self, column: usize) -> bool {
        let is_number = |cell: &str| {
            cell == "-"
                || (!cell.is_empty() && cell.trim_start_matches('-').chars().all(|c| c.is_ascii_digit() || c == '.'))
        };
        !self.rows.is_empty() && self.rows.iter().all(|row| is_number(&row[column]))
    }
}

/// Prints to stdout. A reader that went away is no failure.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// One JSON value and a line's end.
pub fn print_json(value: &Value) -> io::Result<()> {
    print(&format!("{value:#}\n"))
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
