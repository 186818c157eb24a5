//! A member of a group: what it said when it joined, what it was assigned, and which of its requests wait.
//!
//! Owned by its [`Group`](crate::group::Group); changes that the group counts (waiting joins, protocols) go through it.

use crate::limits;
use crate::response::Ticket;
use crate::timers::TimerId;
use bytes::Bytes;
use std::sync::Arc;

/// A protocol (assignor) that a member can use, with the member's metadata for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    pub name: String,
    pub metadata: Bytes,
}

/// When a member's session ends, and the timer that will look. The timer may stand earlier than the deadline, never later.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Session {
    pub(crate) deadline_ms: i64,
    pub(crate) armed: Option<TimerId>,
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) id: Arc<str>,
    pub(crate) instance_id: Option<Arc<str>>,
    pub(crate) client_id: String,
    pub(crate) client_host: String,
    pub(crate) rebalance_timeout_ms: i32,
    pub(crate) session_timeout_ms: i32,
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) assignment: Bytes,
    pub(crate) awaiting_join: Option<Ticket>,
    pub(crate) awaiting_sync: Option<Ticket>,
    /// Has not completed a rebalance yet: it sends no heartbeats, and waiting does not keep it alive for ever.
    pub(crate) is_new: bool,
    pub(crate) session: Session,
}

impl Member {
    /// The member's metadata for a protocol; empty for one that it did not list.
    pub(crate) fn metadata(&self, protocol: &str) -> Bytes {
        self.protocols.iter().find(|p| p.name == protocol).map(|p| p.metadata.clone()).unwrap_or_default()
    }

    /// A member whose request waits here is alive without heartbeats.
    pub(crate) fn has_satisfied_heartbeat(&self) -> bool {
        !self.is_new && (self.awaiting_join.is_some() || self.awaiting_sync.is_some())
    }
}

/// A member id as Kafka makes them: client or instance id, a dash, and a UUID of version 4.
pub(crate) fn generate_member_id(prefix: &str, random: u128) -> Arc<str> {
    let mut end = prefix.len().min(limits::MAX_MEMBER_ID_PREFIX_BYTES);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    let bits = (random & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    let (a, b, c, d, e) = (&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
    Arc::from(format!("{}-{a}-{b}-{c}-{d}-{e}", &prefix[..end]))
}

/// A list of protocols to keep: each name once (the first mention counts, as in Kafka's keyed collection), and copied, so
/// that a member does not pin the buffer that its request came in.
pub(crate) fn to_keep(protocols: Vec<Protocol>) -> Vec<Protocol> {
    let mut kept: Vec<Protocol> = Vec::with_capacity(protocols.len());
    for protocol in protocols {
        if kept.iter().all(|k| k.name != protocol.name) {
            kept.push(Protocol { name: protocol.name, metadata: Bytes::copy_from_slice(&protocol.metadata) });
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_ids_look_like_kafkas() {
        assert_eq!(&*generate_member_id("consumer-1", 0), "consumer-1-00000000-0000-4000-8000-000000000000");
        assert_eq!(&*generate_member_id("c", u128::MAX), "c-ffffffff-ffff-4fff-bfff-ffffffffffff");
    }

    #[test]
    fn a_long_client_id_is_cut_at_a_character() {
        let id = generate_member_id(&"\u{20ac}".repeat(20_000), 7);
        assert!(id.len() <= limits::MAX_MEMBER_ID_PREFIX_BYTES + 37);
        assert!(id.starts_with('\u{20ac}'));
    }

    #[test]
    fn duplicate_protocols_count_once() {
        let p = |name: &str, metadata: &'static [u8]| Protocol { name: name.into(), metadata: metadata.into() };
        assert_eq!(to_keep(vec![p("a", b"1"), p("b", b"2"), p("a", b"3")]), vec![p("a", b"1"), p("b", b"2")]);
    }
}
