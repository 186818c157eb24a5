//! Why a configuration is not taken. Each variant is a sentence that says what would be.

use std::fmt;

use super::property::{Property, Scope};
use super::{suggest, table};
use crate::error_code::ErrorCode;

/// An operating error: the words came from a file, a command line or a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    Unknown {
        name: String,
        scope: Scope,
    },
    BadValue {
        name: &'static str,
        value: String,
        want: String,
    },
    Refused {
        name: String,
        value: String,
        default: Option<&'static str>,
        reason: &'static str,
    },
    ReadOnly {
        name: &'static str,
    },
    PerBroker {
        name: &'static str,
    },
    /// Two values that are fine alone contradict each other.
    Conflict(String),
    /// Not `key=value`.
    Syntax(String),
    /// Another error, with the line of the file it stands in.
    AtLine {
        line: usize,
        error: Box<ConfigError>,
    },
}

impl ConfigError {
    pub(super) fn bad(property: &Property, value: &str) -> ConfigError {
        let shown = if property.is_sensitive() { "(hidden)" } else { value };
        ConfigError::BadValue { name: property.name, value: shown.to_owned(), want: want(property) }
    }

    /// What a client is told.
    pub fn code(&self) -> ErrorCode {
        match self {
            ConfigError::ReadOnly { .. } | ConfigError::PerBroker { .. } => ErrorCode::InvalidRequest,
            ConfigError::AtLine { error, .. } => error.code(),
            _ => ErrorCode::InvalidConfig,
        }
    }
}

/// "a long in ms, at least -1".
fn want(property: &Property) -> String {
    let mut text = format!("{} {}", if property.kind.word() == "int" { "an" } else { "a" }, property.kind.word());
    if !property.unit.word().is_empty() {
        text = format!("{text} in {}", property.unit.word());
    }
    let bounds = property.bounds_text();
    if bounds.is_empty() { text } else { format!("{text}: {bounds}") }
}

fn unknown(f: &mut fmt::Formatter<'_>, name: &str, scope: Scope) -> fmt::Result {
    write!(f, "Unknown {} config name: {name}.", scope.word())?;
    if scope == Scope::Broker
        && let Some(property) = table::find(Scope::Topic, name)
    {
        write!(f, " It is a topic's property.")?;
        if let Some(default) = property.synonyms.first() {
            write!(f, " For all topics, set {default}.")?;
        }
        return Ok(());
    }
    if scope == Scope::Topic
        && let Some(property) = table::all().find(|p| p.scope == Scope::Topic && p.synonyms.contains(&name))
    {
        return write!(f, " It is a broker's property; the topic's is {}.", property.name);
    }
    match suggest::nearest(scope, name) {
        Some(near) => write!(f, " Did you mean {near}?"),
        None => Ok(()),
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Unknown { name, scope } => unknown(f, name, *scope),
            ConfigError::BadValue { name, value, want } => {
                write!(f, "Invalid value {value} for configuration {name}: it takes {want}.")
            }
            ConfigError::Refused { name, value, default, reason } => {
                write!(f, "{name}={value} is not supported: {reason}.")?;
                match default {
                    Some("") => write!(f, " Leave it empty."),
                    Some(default) => write!(f, " Leave it at {default}."),
                    None => write!(f, " Leave it out."),
                }
            }
            ConfigError::ReadOnly { name } => {
                write!(f, "{name} cannot be changed while the node runs; set it in its file and restart.")
            }
            ConfigError::PerBroker { name } => write!(f, "{name} can only be changed for one named broker."),
            ConfigError::Conflict(text) => f.write_str(text),
            ConfigError::Syntax(text) => write!(f, "\"{text}\" is not key=value."),
            ConfigError::AtLine { line, error } => write!(f, "line {line}: {error}"),
        }
    }
}

impl std::error::Error for ConfigError {}
