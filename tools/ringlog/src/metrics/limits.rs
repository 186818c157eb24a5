//! Bounds of the metrics server.

use std::time::Duration;

/// How long a scrape waits for the shards.
pub const SCRAPE_WAIT: Duration = Duration::from_secs(2);
/// Connections at once; more are closed at once.
pub const CONNECTIONS: usize = 16;
/// Bytes of a request's head, and headers in it.
pub const HEAD_BYTES: usize = 8 << 10;
pub const HEADERS: usize = 64;
/// How long a request's head may take.
pub const HEAD_WAIT: Duration = Duration::from_secs(5);
/// How long a connection may last in all: it carries one request.
pub const CONNECTION_TIME: Duration = Duration::from_secs(15);
/// Pause after a connection could not be accepted: there may be no descriptor left.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
