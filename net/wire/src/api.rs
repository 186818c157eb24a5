//! What an API key means for framing. The table (names, versions, first flexible version) is
//! generated; the rules of header versions and of what is advertised are here.

use std::ops::RangeInclusive;

use crate::{ApiKey, Decode, Encode, WireError};

/// A request knows its API and the type of its answer: what a client needs to pair them.
pub trait Request: Encode {
    const API: ApiKey;
    type Response<'r>: Decode<'r>;
}

impl ApiKey {
    /// Versions to put into ApiVersions. They are those served, except that Produce is advertised
    /// from 0: older librdkafka switches compression off otherwise.
    pub fn advertised_versions(self) -> RangeInclusive<i16> {
        self.advertised_first()..=*self.versions().end()
    }

    pub fn check_version(self, version: i16) -> Result<(), WireError> {
        if self.versions().contains(&version) {
            Ok(())
        } else {
            Err(WireError::UnsupportedVersion { api_key: self as i16, version })
        }
    }

    pub fn is_flexible(self, version: i16) -> bool {
        self.first_flexible().is_some_and(|first| version >= first)
    }

    /// 1 has a client id, 2 tagged fields as well. (Version 0 was for ControlledShutdown v0 alone,
    /// which no broker of today is sent.)
    pub fn request_header_version(self, version: i16) -> i16 {
        if self.is_flexible(version) { 2 } else { 1 }
    }

    /// 1 has tagged fields. ApiVersions is always answered with 0: a client that does not yet know
    /// the broker's versions must be able to read it.
    pub fn response_header_version(self, version: i16) -> i16 {
        match self {
            Self::ApiVersions => 0,
            _ => i16::from(self.is_flexible(version)),
        }
    }
}
