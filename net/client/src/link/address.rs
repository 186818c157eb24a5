//! HOST:PORT, and the socket addresses behind it. Names are resolved anew for each attempt to connect, on the pool
//! thread: a name may move, and looking it up may block.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use crate::ClientError;
use crate::limits::MAX_ADDRESSES_PER_NAME;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Address {
    pub host: String,
    pub port: u16,
}

impl Address {
    /// HOST:PORT, or [HOST]:PORT where the host has colons itself.
    pub fn parse(text: &str) -> Result<Address, ClientError> {
        let bad = |reason: &str| ClientError::BadAddress { address: text.to_string(), reason: reason.to_string() };
        let (host, port) = text.trim().rsplit_once(':').ok_or_else(|| bad("it has no port"))?;
        let port: u16 = port.parse().map_err(|_| bad("its port is no number from 1 to 65535"))?;
        if port == 0 {
            return Err(bad("its port is no number from 1 to 65535"));
        }
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        match bare {
            None if host.contains(':') => Err(bad("an IPv6 host stands in [ ]")),
            None if host.is_empty() => Err(bad("it has no host")),
            _ => Ok(Address { host: bare.unwrap_or(host).to_string(), port }),
        }
    }

    /// Every socket address of the name, in the resolver's order.
    pub async fn resolve(&self) -> Result<Vec<SocketAddr>, String> {
        // Looking a name up may block for long, and all of the shard's connections share the pool: not for numbers.
        if let Ok(number) = self.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(number, self.port)]);
        }
        let (host, port) = (self.host.clone(), self.port);
        let found = runtime::spawn_blocking(move || {
            (host.as_str(), port).to_socket_addrs().map(|all| all.take(MAX_ADDRESSES_PER_NAME).collect::<Vec<_>>())
        })
        .await
        .map_err(|panic| panic.to_string())?
        .map_err(|error| format!("{self}: the name cannot be resolved: {error}"))?;
        if found.is_empty() { Err(format!("{self}: the name has no address")) } else { Ok(found) }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
