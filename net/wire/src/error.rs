//! Everything that can be wrong with bytes from the wire, or with a message for it. Copy, so that
//! the produce way can carry it without allocating; the connection decides what it means (a closed
//! connection, mostly).

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireError {
    /// The frame ended inside a value.
    UnexpectedEnd { needed: usize, left: usize },
    /// A collection claims more elements than the bytes left can hold.
    CountTooLarge { count: usize, left: usize },
    /// A string is not UTF-8.
    InvalidUtf8,
    /// A variable-length integer has more than 32 bits.
    InvalidVarint,
    /// A value that has no null at this version is null.
    NullNotAllowed { field: &'static str },
    /// A string is longer than Kafka's 32 767 bytes.
    StringTooLong { len: usize },
    /// A value or a message is longer than its 32-bit length can say.
    TooLong { len: usize },
    /// A field was set that this version cannot carry and that must not be dropped.
    UnsupportedField { field: &'static str, version: i16 },
    /// The API key is none that is known.
    UnknownApi { api_key: i16 },
    /// The API is known, this version of it is not served.
    UnsupportedVersion { api_key: i16, version: i16 },
    /// The size prefix is over the limit in force.
    FrameTooLarge { size: usize, limit: usize },
    /// The size prefix is zero or negative.
    FrameSizeInvalid { size: i32 },
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::UnexpectedEnd { needed, left } => {
                write!(f, "the frame ends where {needed} more bytes were expected and {left} are left")
            }
            Self::CountTooLarge { count, left } => {
                write!(f, "a collection of {count} elements cannot be in the {left} bytes left of the frame")
            }
            Self::InvalidUtf8 => write!(f, "a string is not valid UTF-8"),
            Self::InvalidVarint => write!(f, "a variable-length integer is longer than 32 bits"),
            Self::NullNotAllowed { field } => write!(f, "{field} is null, which this version does not allow"),
            Self::StringTooLong { len } => {
                write!(f, "a string of {len} bytes is over the protocol's limit of 32767")
            }
            Self::TooLong { len } => write!(f, "{len} bytes or elements are over the protocol's limit of 2147483647"),
            Self::UnsupportedField { field, version } => {
                write!(f, "{field} is set, but version {version} cannot carry it")
            }
            Self::UnknownApi { api_key } => write!(f, "API key {api_key} is unknown"),
            Self::UnsupportedVersion { api_key, version } => {
                write!(f, "version {version} of API key {api_key} is not served")
            }
            Self::FrameTooLarge { size, limit } => {
                write!(f, "a frame of {size} bytes is over the limit of {limit}")
            }
            Self::FrameSizeInvalid { size } => {
                write!(f, "a frame announces a size of {size} bytes; it must be at least 1")
            }
        }
    }
}

impl std::error::Error for WireError {}
