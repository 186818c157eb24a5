//! One address of `listeners` or `advertised.listeners`.

use std::fmt;

use super::error::ConfigError;
use super::property::Property;

/// `PLAINTEXT://host:port`. The host is kept as written; IPv6 addresses lose their brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    pub host: String,
    pub port: u16,
}

const PLAINTEXT: &str = "PLAINTEXT";

impl Listener {
    /// Reads `host:port`, with or without the `PLAINTEXT://` before it.
    pub fn parse(text: &str) -> Option<Listener> {
        let address = match text.split_once("://") {
            Some((name, address)) if name.eq_ignore_ascii_case(PLAINTEXT) => address,
            Some(_) => return None,
            None => text,
        };
        let (host, port) = address.rsplit_once(':')?;
        let port = port.parse().ok()?;
        let host = match host.strip_prefix('[') {
            Some(inner) => inner.strip_suffix(']')?,
            None if host.contains(':') => return None,
            None => host,
        };
        let known = |c: char| c.is_ascii_alphanumeric() || ".-_:%".contains(c);
        host.chars().all(known).then(|| Listener { host: host.to_owned(), port })
    }

    /// Reads `host:port` alone, with a host.
    pub fn parse_plain(text: &str) -> Option<Listener> {
        Listener::parse(text).filter(|listener| !text.contains("://") && !listener.host.is_empty())
    }

    pub(super) fn parse_list(property: &Property, items: &[String]) -> Result<Vec<Listener>, ConfigError> {
        let read = |item: &String| {
            Listener::parse(item).ok_or_else(|| ConfigError::BadValue {
                name: property.name,
                value: item.clone(),
                want: "addresses like PLAINTEXT://host:port; TLS, SASL and controller listeners are not built yet"
                    .to_owned(),
            })
        };
        items.iter().map(read).collect()
    }

    /// Every address of the machine: clients cannot be told to connect to it.
    pub fn is_wildcard(&self) -> bool {
        matches!(self.host.as_str(), "" | "0.0.0.0" | "::" | "0:0:0:0:0:0:0:0")
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "{PLAINTEXT}://[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{PLAINTEXT}://{}:{}", self.host, self.port)
        }
    }
}
