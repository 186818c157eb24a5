//! Newtypes for what is numbered in Kafka, so that an offset cannot be passed where an epoch belongs.
//!
//! All are plain `Copy` values without ownership; they travel through mailboxes and files.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// Position of a record in a partition, from 0. Negative values are protocol sentinels, never positions.
    Offset(i64)
);
number!(
    /// Counts the leaderships of a partition (KIP-101). -1 means unknown.
    LeaderEpoch(i32)
);
number!(
    /// Index of a partition within its topic, from 0.
    PartitionIndex(i32)
);
number!(
    /// A broker's id as clients see it, from 0. -1 means no node.
    NodeId(i32)
);
number!(
    /// A shard (one core, one ring) of this process, from 0. Local to a process: no file names it.
    ShardId(u16)
);
number!(
    /// Producer id of an idempotent producer (KIP-98). -1 means none.
    ProducerId(i64)
);
number!(
    /// Epoch of a producer id. -1 means none.
    ProducerEpoch(i16)
);

impl Offset {
    pub const ZERO: Offset = Offset(0);

    /// The offset `count` records later. Saturates, because an offset near `i64::MAX` comes only from bad input.
    #[must_use]
    pub fn plus(self, count: i64) -> Offset {
        Offset(self.0.saturating_add(count))
    }
}

impl LeaderEpoch {
    pub const UNKNOWN: LeaderEpoch = LeaderEpoch(-1);
}

impl NodeId {
    pub const NONE: NodeId = NodeId(-1);
}

impl ProducerId {
    pub const NONE: ProducerId = ProducerId(-1);
}

impl ProducerEpoch {
    pub const NONE: ProducerEpoch = ProducerEpoch(-1);
}

/// Topic id (KIP-516): 128 random bits, printed as Kafka prints them, URL-safe base64 without padding.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub [u8; 16]);

const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BASE64_LEN: usize = 22;

impl TopicId {
    /// "No id": requests older than topic ids carry it.
    pub const ZERO: TopicId = TopicId([0; 16]);

    /// Makes an id of random bits. The patterns that Kafka reserves (all zero, and 1 as used for its metadata topic)
    /// and ids whose text would begin with a dash (awkward on command lines) are avoided by setting one bit.
    pub fn from_random(mut bytes: [u8; 16]) -> TopicId {
        // Version 4 UUID, as Kafka's Uuid.randomUuid gives.
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        if bytes[0] >> 2 == 62 {
            bytes[0] &= 0x7f;
        }
        TopicId(bytes)
    }

    pub fn is_zero(self) -> bool {
        self == TopicId::ZERO
    }

    /// Reads the base64 text. `None` when it is not 22 characters of the URL-safe alphabet.
    pub fn parse(text: &str) -> Option<TopicId> {
        if text.len() != BASE64_LEN {
            return None;
        }
        let mut bits: u32 = 0;
        let mut count = 0;
        let mut bytes = [0u8; 16];
        let mut filled = 0;
        for c in text.bytes() {
            let value = BASE64_URL.iter().position(|&b| b == c)?;
            bits = (bits << 6) | u32::try_from(value).ok()?;
            count += 6;
            if count >= 8 {
                count -= 8;
                bytes[filled] = (bits >> count) as u8;
                filled += 1;
                bits &= (1 << count) - 1;
                if filled == 16 {
                    break;
                }
            }
        }
        (bits == 0).then_some(TopicId(bytes))
    }
}

impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = u128::from_be_bytes(self.0);
        let mut text = [0u8; BASE64_LEN];
        for (i, c) in text.iter_mut().enumerate() {
            // 22 characters are 132 bits: the last one carries four bits of padding.
            let shift = 128 - 6 * (i as i32 + 1);
            let index = if shift >= 0 { value >> shift } else { value << -shift } & 63;
            *c = BASE64_URL[index as usize];
        }
        for c in text {
            fmt::Write::write_char(f, c as char)?;
        }
        Ok(())
    }
}

impl fmt::Debug for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TopicId({self})")
    }
}

/// A partition by its topic's id: the key of everything a shard owns. A topic made again under an old name is another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionKey {
    pub topic_id: TopicId,
    pub partition: PartitionIndex,
}

impl fmt::Display for PartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic_id, self.partition)
    }
}

#[cfg(test)]
#[path = "ids_tests.rs"]
mod tests;
