//! Kafka's properties files: `key=value` lines, `#` and `!` comments, a backslash at the end continues a line.

use super::error::ConfigError;

/// One pair and the line it starts in, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyLine {
    pub line: usize,
    pub key: String,
    pub value: String,
}

/// Reads a whole file's text. Later lines win over earlier ones where the pairs are put to use.
pub fn parse_properties(text: &str) -> Result<Vec<PropertyLine>, ConfigError> {
    let mut pairs = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, first)) = lines.next() {
        let first = first.trim();
        if first.is_empty() || first.starts_with(['#', '!']) {
            continue;
        }
        let mut whole = String::from(first);
        while ends_open(&whole) {
            whole.pop();
            match lines.next() {
                Some((_, next)) => whole.push_str(next.trim()),
                None => break,
            }
        }
        let line = index + 1;
        let (key, value) = parse_pair(&whole).map_err(|error| ConfigError::AtLine { line, error: Box::new(error) })?;
        pairs.push(PropertyLine { line, key: key.to_owned(), value: unescape(value) });
    }
    Ok(pairs)
}

/// Splits `key=value` (or `key: value`, which Java's files allow) at the first separator. The value may be empty.
pub fn parse_pair(text: &str) -> Result<(&str, &str), ConfigError> {
    let (key, value) = text.split_once(['=', ':']).ok_or_else(|| ConfigError::Syntax(text.to_owned()))?;
    let (key, value) = (key.trim(), value.trim());
    if key.is_empty() { Err(ConfigError::Syntax(text.to_owned())) } else { Ok((key, value)) }
}

/// Whether the line goes on in the next: an odd number of backslashes at its end.
fn ends_open(line: &str) -> bool {
    line.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1
}

fn unescape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some(other) => out.push(other),
                None => {}
            },
            other => out.push(other),
        }
    }
    out
}
