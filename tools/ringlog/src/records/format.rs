//! `-f`: how a record looks as text, on the way out (`consume`) and on the way in (`produce`). The same letters both
//! ways, kcat's where kcat has them.

use std::fmt;

use client::{ConsumerRecord, Header};

use super::position::show_time;

/// What `--help` says of the letters.
pub const LETTERS: &str = "\
  %k key               %K key's length in bytes, -1 for null
  %v or %s value       %V or %S value's length in bytes, -1 for null
  %h headers: name=value, separated by commas
  %t topic   %p partition   %o offset   %T timestamp in ms   %D the same as a date
  %e leader epoch   %n number of the record in this run
  %% a percent sign   \\n \\t \\r \\0 \\\\   \\xHH a byte";

/// Most pieces of a format.
const MAX_PIECES: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Key,
    KeyLength,
    Value,
    ValueLength,
    Headers,
    Topic,
    Partition,
    Offset,
    Timestamp,
    Date,
    LeaderEpoch,
    Number,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(Vec<u8>),
    Field(Field),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// A letter that means nothing.
    UnknownLetter(char),
    /// The format ends in the middle of an escape.
    Unfinished,
    BadEscape(char),
    TooLong,
    /// On the way in: this letter is known by the broker, not by its input.
    NotAnInput(char),
    /// On the way in: two fields with nothing between them cannot be told apart.
    NothingBetween,
    /// On the way in: a field at the very end has no end.
    OpenEnd,
    /// On the way in: no field at all, or one twice.
    Fields(&'static str),
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatError::UnknownLetter(letter) => write!(f, "%{letter} means nothing; the letters are:\n{LETTERS}"),
            FormatError::Unfinished => write!(f, "the format ends in the middle of % or \\"),
            FormatError::BadEscape(letter) => write!(f, "\\{letter} means nothing; use \\n \\t \\r \\0 \\\\ or \\xHH"),
            FormatError::TooLong => write!(f, "the format has more than {MAX_PIECES} pieces"),
            FormatError::NotAnInput(letter) => write!(f, "%{letter} cannot be produced; use %k, %v and %h"),
            FormatError::NothingBetween => write!(f, "two fields need something between them that tells them apart"),
            FormatError::OpenEnd => write!(f, "the last field needs an end, for instance \\n"),
            FormatError::Fields(what) => write!(f, "{what}"),
        }
    }
}

impl std::error::Error for FormatError {}

fn field(letter: char) -> Option<Field> {
    Some(match letter {
        'k' => Field::Key,
        'K' => Field::KeyLength,
        'v' | 's' => Field::Value,
        'V' | 'S' => Field::ValueLength,
        'h' => Field::Headers,
        't' => Field::Topic,
        'p' => Field::Partition,
        'o' => Field::Offset,
        'T' => Field::Timestamp,
        'D' => Field::Date,
        'e' => Field::LeaderEpoch,
        'n' => Field::Number,
        _ => return None,
    })
}

fn parse(text: &str) -> Result<Vec<(Piece, char)>, FormatError> {
    let mut pieces = Vec::new();
    let mut literal = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' => match chars.next().ok_or(FormatError::Unfinished)? {
                '%' => literal.push(b'%'),
                letter => {
                    let field = field(letter).ok_or(FormatError::UnknownLetter(letter))?;
                    if !literal.is_empty() {
                        pieces.push((Piece::Literal(std::mem::take(&mut literal)), ' '));
                    }
                    pieces.push((Piece::Field(field), letter));
                }
            },
            '\\' => literal.push(escape(&mut chars)?),
            c => literal.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    if !literal.is_empty() {
        pieces.push((Piece::Literal(literal), ' '));
    }
    if pieces.len() > MAX_PIECES { Err(FormatError::TooLong) } else { Ok(pieces) }
}

fn escape(chars: &mut std::str::Chars<'_>) -> Result<u8, FormatError> {
    Ok(match chars.next().ok_or(FormatError::Unfinished)? {
        'n' => b'\n',
        't' => b'\t',
        'r' => b'\r',
        '0' => 0,
        '\\' => b'\\',
        'x' => {
            let mut digit = || chars.next().and_then(|c| c.to_digit(16)).ok_or(FormatError::BadEscape('x'));
            (digit()? * 16 + digit()?) as u8
        }
        other => return Err(FormatError::BadEscape(other)),
    })
}

/// How records are printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFormat(Vec<Piece>);

impl OutputFormat {
    pub fn parse(text: &str) -> Result<OutputFormat, FormatError> {
        Ok(OutputFormat(parse(text)?.into_iter().map(|(piece, _)| piece).collect()))
    }

    /// Appends one record to `out`. Null keys and values are nothing.
    pub fn write(&self, record: &ConsumerRecord, number: u64, out: &mut Vec<u8>) {
        let length = |bytes: Option<&bytes::Bytes>| bytes.map_or(-1, |b| b.len() as i64);
        for piece in &self.0 {
            let number = match piece {
                Piece::Literal(bytes) => {
                    out.extend_from_slice(bytes);
                    continue;
                }
                Piece::Field(field) => match field {
                    Field::Key => {
                        out.extend_from_slice(record.key.as_deref().unwrap_or_default());
                        continue;
                    }
                    Field::Value => {
                        out.extend_from_slice(record.value.as_deref().unwrap_or_default());
                        continue;
                    }
                    Field::Topic => {
                        out.extend_from_slice(record.topic.as_bytes());
                        continue;
                    }
                    Field::Date => {
                        out.extend_from_slice(show_time(record.timestamp_ms).as_bytes());
                        continue;
                    }
                    Field::Headers => {
                        write_headers(&record.headers, out);
                        continue;
                    }
                    Field::KeyLength => length(record.key.as_ref()),
                    Field::ValueLength => length(record.value.as_ref()),
                    Field::Partition => i64::from(record.partition),
                    Field::Offset => record.offset,
                    Field::Timestamp => record.timestamp_ms,
                    Field::LeaderEpoch => i64::from(record.leader_epoch),
                    Field::Number => number as i64,
                },
            };
            out.extend_from_slice(number.to_string().as_bytes());
        }
    }
}

fn write_headers(headers: &[Header], out: &mut Vec<u8>) {
    for (i, header) in headers.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        out.extend_from_slice(&header.key);
        out.push(b'=');
        out.extend_from_slice(header.value.as_deref().unwrap_or_default());
    }
}

/// How records are read: fields, each ended by the bytes behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFormat {
    /// Bytes before the first field.
    lead: Vec<u8>,
    fields: Vec<(Field, Vec<u8>)>,
}

/// Name and value of a header.
pub type InputHeader = (Vec<u8>, Vec<u8>);

/// One record of the input; what the format does not have is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<InputHeader>,
}

/// What a look at buffered input gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// A record, and how many bytes it took.
    Record(Input, usize),
    /// The bytes so far are a beginning.
    More,
    /// The bytes cannot be a record of this format; why.
    Unusable(String),
}

impl InputFormat {
    pub fn parse(text: &str) -> Result<InputFormat, FormatError> {
        let (mut lead, mut fields) = (Vec::new(), Vec::<(Field, Vec<u8>)>::new());
        for (piece, letter) in parse(text)? {
            match piece {
                Piece::Literal(bytes) => match fields.last_mut() {
                    Some((_, end)) => *end = bytes,
                    None => lead = bytes,
                },
                Piece::Field(field @ (Field::Key | Field::Value | Field::Headers)) => {
                    if fields.last().is_some_and(|(_, end)| end.is_empty()) {
                        return Err(FormatError::NothingBetween);
                    }
                    if fields.iter().any(|(other, _)| *other == field) {
                        return Err(FormatError::Fields("each of %k, %v and %h can be there once"));
                    }
                    fields.push((field, Vec::new()));
                }
                Piece::Field(_) => return Err(FormatError::NotAnInput(letter)),
            }
        }
        match fields.last() {
            None => Err(FormatError::Fields("the format has none of %k, %v and %h")),
            Some((_, end)) if end.is_empty() => Err(FormatError::OpenEnd),
            Some(_) => Ok(InputFormat { lead, fields }),
        }
    }

    /// Takes the first record off `bytes`. At the end of the input (`at_end`) the last field may end with it.
    pub fn take(&self, bytes: &[u8], at_end: bool) -> Taken {
        if bytes.len() < self.lead.len() {
            return if at_end { Taken::Unusable("it ends before a record begins".to_owned()) } else { Taken::More };
        }
        if !bytes.starts_with(&self.lead) {
            return Taken::Unusable("it does not begin as the format says".to_owned());
        }
        let mut at = self.lead.len();
        let mut input = Input::default();
        for (i, (field, end)) in self.fields.iter().enumerate() {
            let is_last = i + 1 == self.fields.len();
            let text = match find(&bytes[at..], end) {
                Some(len) => {
                    let text = &bytes[at..at + len];
                    at += len + end.len();
                    text
                }
                None if !at_end => return Taken::More,
                None if is_last => {
                    let text = &bytes[at..];
                    at = bytes.len();
                    text
                }
                None => return Taken::Unusable(format!("{:?} is missing", String::from_utf8_lossy(end))),
            };
            match field {
                Field::Key => input.key = Some(text.to_vec()),
                Field::Headers => match headers(text) {
                    Ok(headers) => input.headers = headers,
                    Err(reason) => return Taken::Unusable(reason),
                },
                _ => input.value = Some(text.to_vec()),
            }
        }
        Taken::Record(input, at)
    }
}

fn find(bytes: &[u8], end: &[u8]) -> Option<usize> {
    match end {
        [one] => bytes.iter().position(|b| b == one),
        _ => bytes.windows(end.len()).position(|window| window == end),
    }
}

fn headers(text: &[u8]) -> Result<Vec<InputHeader>, String> {
    let pairs = text.split(|&b| b == b',').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let at = pair.iter().position(|&b| b == b'=');
            let at = at.ok_or_else(|| format!("header {:?} is not name=value", String::from_utf8_lossy(pair)))?;
            Ok((pair[..at].to_vec(), pair[at + 1..].to_vec()))
        })
        .collect()
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
