//! Everything that can go wrong, each a sentence that names the next step where there is one.

use std::fmt;

use model::ErrorCode;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientError {
    /// None of the bootstrap addresses (or known brokers) could be connected to.
    NoBroker {
        addresses: String,
        reason: String,
    },
    /// An address that is not HOST:PORT or whose name has no address.
    BadAddress {
        address: String,
        reason: String,
    },
    /// A setting that cannot be used.
    BadConfig {
        key: &'static str,
        reason: String,
    },
    /// The node is not in the metadata.
    UnknownNode {
        node: i32,
    },
    /// The connection is not up (yet, or any more); nothing was sent.
    NotConnected {
        node: i32,
        reason: String,
    },
    /// The connection broke after the request was (perhaps) sent.
    Disconnected {
        node: i32,
        reason: String,
    },
    /// No answer before the deadline; the connection is given up with it.
    TimedOut {
        what: &'static str,
        after_ms: i64,
    },
    /// The broker serves no version of this API that we speak.
    UnsupportedApi {
        api: &'static str,
        reason: String,
    },
    /// Bytes that are no answer to what was asked.
    BadAnswer {
        reason: String,
    },
    /// A request that cannot be encoded.
    BadRequest {
        reason: String,
    },
    /// The broker's own error.
    Broker {
        code: ErrorCode,
        what: String,
        message: Option<String>,
    },
    /// A number from the broker that no table has.
    UnknownBrokerError {
        code: i16,
        what: String,
    },
    UnknownTopic {
        topic: String,
    },
    NoLeader {
        topic: String,
        partition: i32,
    },
    /// The client, producer or consumer was closed.
    Closed,
}

impl ClientError {
    /// From an error number of an answer; `Ok` for 0.
    pub fn check(code: i16, what: impl Into<String>) -> Result<(), ClientError> {
        ClientError::check_with(code, what, None)
    }

    /// The same with the broker's own words, if it has any.
    pub fn check_with(code: i16, what: impl Into<String>, message: Option<&str>) -> Result<(), ClientError> {
        match ErrorCode::from_code(code) {
            Some(ErrorCode::None) => Ok(()),
            Some(code) => {
                let message = message.filter(|text| !text.is_empty()).map(str::to_owned);
                Err(ClientError::Broker { code, what: what.into(), message })
            }
            None => Err(ClientError::UnknownBrokerError { code, what: what.into() }),
        }
    }

    /// The broker's error, if it is one.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            ClientError::Broker { code, .. } => Some(*code),
            _ => None,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::NoBroker { addresses, reason } => write!(
                f,
                "no broker answered at {addresses} ({reason}): start one with `ringlog serve`, or name another with --bootstrap HOST:PORT"
            ),
            ClientError::BadAddress { address, reason } => {
                write!(f, "{address} is no usable address ({reason}): give HOST:PORT, for instance 127.0.0.1:9092")
            }
            ClientError::BadConfig { key, reason } => write!(f, "{key}: {reason}"),
            ClientError::UnknownNode { node } => write!(f, "node {node} is not part of the cluster"),
            ClientError::NotConnected { node, reason } => write!(f, "no connection to node {node}: {reason}"),
            ClientError::Disconnected { node, reason } => {
                write!(f, "the connection to node {node} broke before it answered: {reason}")
            }
            ClientError::TimedOut { what, after_ms } => write!(f, "{what}: no answer within {after_ms} ms"),
            ClientError::UnsupportedApi { api, reason } => write!(f, "the broker does not serve {api}: {reason}"),
            ClientError::BadAnswer { reason } => write!(f, "the broker's answer cannot be read: {reason}"),
            ClientError::BadRequest { reason } => write!(f, "the request cannot be written: {reason}"),
            ClientError::Broker { code, what, message: None } => {
                write!(f, "{what}: {} ({})", code.sentence(), code.code())
            }
            ClientError::Broker { code, what, message: Some(message) } => {
                write!(f, "{what}: {message} ({})", code.code())
            }
            ClientError::UnknownBrokerError { code, what } => {
                write!(f, "{what}: the broker answered error {code}, which this client does not know")
            }
            ClientError::UnknownTopic { topic } => write!(
                f,
                "topic {topic} does not exist: make it with `ringlog topic create {topic}`, or see `ringlog topic list`"
            ),
            ClientError::NoLeader { topic, partition } => {
                write!(f, "partition {partition} of {topic} has no leader at the moment")
            }
            ClientError::Closed => write!(f, "the client was closed"),
        }
    }
}

impl std::error::Error for ClientError {}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
