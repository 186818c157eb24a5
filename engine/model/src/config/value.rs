//! A property's value, read from text and checked against its row.

use std::fmt;

use super::error::ConfigError;
use super::property::{BLOCK_BYTES, Bounds, Effect, Kind, Property};

/// A value of any of the table's types. Its text form is the canonical one that DescribeConfigs shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Bool(bool),
    /// int, short and long: the row's bounds keep it within its type.
    Number(i64),
    Double(f64),
    /// string, class and password.
    Text(String),
    List(Vec<String>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => value.fmt(f),
            Value::Number(value) => value.fmt(f),
            Value::Double(value) if value.abs() >= 1e7 => write!(f, "{value:E}"),
            Value::Double(value) => write!(f, "{value:?}"),
            Value::Text(value) => f.write_str(value),
            Value::List(items) => f.write_str(&items.join(",")),
        }
    }
}

/// Reads `text` as a value of `property`; type, bounds and refusals are checked.
pub fn parse(property: &Property, text: &str) -> Result<Value, ConfigError> {
    let text = text.trim();
    let value = parse_kind(property.kind, text).ok_or_else(|| ConfigError::bad(property, text))?;
    if !within(property.bounds, &value) {
        return Err(ConfigError::bad(property, text));
    }
    if let Effect::Refused(reason) = property.effect
        && !is_default(property, &value)
    {
        let value = if property.is_sensitive() { "(hidden)".to_owned() } else { text.to_owned() };
        return Err(ConfigError::Refused { name: property.name.to_owned(), value, default: property.default, reason });
    }
    Ok(value)
}

fn is_default(property: &Property, value: &Value) -> bool {
    property.default.and_then(|text| parse_kind(property.kind, text)).as_ref() == Some(value)
}

fn parse_kind(kind: Kind, text: &str) -> Option<Value> {
    let number = |least: i64, most: i64| {
        let value: i64 = text.parse().ok()?;
        (least..=most).contains(&value).then_some(Value::Number(value))
    };
    match kind {
        Kind::Bool if text.eq_ignore_ascii_case("true") => Some(Value::Bool(true)),
        Kind::Bool if text.eq_ignore_ascii_case("false") => Some(Value::Bool(false)),
        Kind::Bool => None,
        Kind::Short => number(i64::from(i16::MIN), i64::from(i16::MAX)),
        Kind::Int => number(i64::from(i32::MIN), i64::from(i32::MAX)),
        Kind::Long => number(i64::MIN, i64::MAX),
        Kind::Double => text.parse().ok().filter(|value: &f64| value.is_finite()).map(Value::Double),
        Kind::String | Kind::Class | Kind::Password => Some(Value::Text(text.to_owned())),
        Kind::List => Some(Value::List(split_list(text))),
    }
}

/// Comma-separated, blanks around items dropped, no text is no item. Brackets around the whole are Kafka's console
/// tools' way of passing a list.
fn split_list(text: &str) -> Vec<String> {
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if text.trim().is_empty() {
        return Vec::new();
    }
    text.split(',').map(|item| item.trim().to_owned()).collect()
}

fn within(bounds: Bounds, value: &Value) -> bool {
    match (bounds, value) {
        (Bounds::AtLeast(least), Value::Number(value)) => *value >= least,
        (Bounds::Between(least, most), Value::Number(value)) => (least..=most).contains(value),
        (Bounds::Blocks(least, most), Value::Number(value)) => {
            (least..=most).contains(value) && value % BLOCK_BYTES == 0
        }
        (Bounds::BetweenOrUnset(least, most), Value::Number(value)) => *value == -1 || (least..=most).contains(value),
        (Bounds::Reals(least, most), Value::Double(value)) => (least..=most).contains(value),
        (Bounds::OneOf(words), Value::Text(text)) => words.contains(&text.as_str()),
        (Bounds::OneOf(words), Value::List(items)) => items.iter().all(|item| words.contains(&item.as_str())),
        (Bounds::Replicas, Value::List(items)) => {
            items.len() == 1 && items[0] == "*" || items.iter().all(|item| is_replica(item))
        }
        (Bounds::Any, _) => true,
        _ => false,
    }
}

/// `partition:broker`.
fn is_replica(item: &str) -> bool {
    item.split_once(':').is_some_and(|(partition, broker)| {
        let is_id = |text: &str| text.parse::<u32>().is_ok();
        is_id(partition) && is_id(broker)
    })
}
