//! Bytes of the files, as pure functions: nothing here does I/O, and every reader survives any input.
//!
//! `.log`, `.index`, `.timeindex`, `leader-epoch-checkpoint` and `partition.metadata` are Apache Kafka's formats, byte
//! for byte; [`checkpoint`], [`clean_mark`] and [`identity`] are our own, with version and CRC.

pub mod checkpoint;
pub mod clean_mark;
pub mod epochs;
pub mod identity;
pub mod index;
pub mod names;
pub mod partition_metadata;
pub mod time_index;

/// The version of a text file of ours: its first line, if the last one's CRC is right.
fn text_version(bytes: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (body, crc) = text.split_at(text.rfind("crc=")?);
    if crc != format!("crc={:08x}\n", crc32fast::hash(body.as_bytes())) {
        return None;
    }
    body.lines().next()?.strip_prefix("version=")?.parse().ok()
}

/// The version in the first line of one of Kafka's text files, which have no CRC, if it is above 0.
fn kafka_text_version(bytes: &[u8], prefix: &str) -> Option<u32> {
    let line = std::str::from_utf8(bytes).ok()?.lines().next()?;
    line.strip_prefix(prefix)?.trim_end().parse().ok().filter(|version| *version > 0)
}
