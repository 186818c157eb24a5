//! The time index: largest timestamp so far i64, relative offset of its batch's last record i32. Used by ListOffsets
//! and by retention, which asks a segment for its largest timestamp.

/// Bytes of an entry in the file.
pub const ENTRY_LEN: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeEntry {
    pub timestamp_ms: i64,
    pub relative: i32,
}

impl TimeEntry {
    pub fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.timestamp_ms.to_be_bytes());
        out.extend_from_slice(&self.relative.to_be_bytes());
    }

    /// One entry as it stands in the file, whatever it says.
    pub fn decode(bytes: &[u8]) -> Option<TimeEntry> {
        let timestamp_ms = i64::from_be_bytes(bytes.get(0..8)?.try_into().ok()?);
        let relative = i32::from_be_bytes(bytes.get(8..12)?.try_into().ok()?);
        Some(TimeEntry { timestamp_ms, relative })
    }
}

pub fn encode(entries: &[TimeEntry]) -> Vec<u8> {
    let mut out = Vec::with_capacity(entries.len() * ENTRY_LEN);
    for entry in entries {
        entry.encode(&mut out);
    }
    out
}

/// Reads a whole file. `None` when it is no time index of a segment with offsets up to `last_relative`.
pub fn decode(bytes: &[u8], last_relative: i64) -> Option<Vec<TimeEntry>> {
    if !bytes.len().is_multiple_of(ENTRY_LEN) {
        return None;
    }
    let mut entries: Vec<TimeEntry> = Vec::with_capacity(bytes.len() / ENTRY_LEN);
    for chunk in bytes.chunks_exact(ENTRY_LEN) {
        let entry = TimeEntry::decode(chunk)?;
        let in_order =
            entries.last().is_none_or(|l| l.timestamp_ms < entry.timestamp_ms && l.relative < entry.relative);
        if !in_order || entry.timestamp_ms < 0 || entry.relative < 0 || i64::from(entry.relative) > last_relative {
            return None;
        }
        entries.push(entry);
    }
    Some(entries)
}

/// Relative offset from which a scan for `timestamp_ms` may start: everything before that entry's batch is older.
pub fn relative_before(entries: &[TimeEntry], timestamp_ms: i64) -> i32 {
    let after = entries.partition_point(|e| e.timestamp_ms <= timestamp_ms);
    after.checked_sub(1).map_or(0, |i| entries[i].relative)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decode_gives_back_what_was_encoded(steps in prop::collection::vec((1i64..1000, 1i32..100), 0..100)) {
            let (mut timestamp_ms, mut relative) = (0, 0);
            let entries: Vec<TimeEntry> = steps
                .into_iter()
                .map(|(t, r)| {
                    timestamp_ms += t;
                    relative += r;
                    TimeEntry { timestamp_ms, relative }
                })
                .collect();
            let bytes = encode(&entries);
            prop_assert_eq!(decode(&bytes, i64::from(relative)), Some(entries.clone()));
            if let Some(last) = entries.last() {
                prop_assert_eq!(decode(&bytes, i64::from(last.relative) - 1), None);
                prop_assert_eq!(relative_before(&entries, last.timestamp_ms), last.relative);
                prop_assert_eq!(relative_before(&entries, entries[0].timestamp_ms - 1), 0);
            }
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
            if let Some(entries) = decode(&bytes, 1 << 31) {
                prop_assert_eq!(encode(&entries), bytes);
            }
        }
    }
}
