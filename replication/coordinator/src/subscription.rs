//! The topics in a consumer's metadata. Groups need them to know which offsets are in use (OffsetDelete, expiry).
//!
//! Kafka's ConsumerProtocol: a 16-bit version, then the topics; everything behind differs by version and is not read. So
//! every version, future ones too, is understood.

use crate::records::reader::Reader;
use std::collections::BTreeSet;

/// Adds the topics of one member. `None` when the bytes are not such metadata.
pub(crate) fn add_topics(metadata: &[u8], topics: &mut BTreeSet<String>) -> Option<()> {
    let mut reader = Reader::new(metadata, false);
    let version = reader.int16().ok()?;
    if version < 0 {
        return None;
    }
    for _ in 0..reader.array_count().ok()?? {
        topics.insert(reader.string().ok()?);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(metadata: &[u8]) -> Option<Vec<String>> {
        let mut topics = BTreeSet::new();
        add_topics(metadata, &mut topics)?;
        Some(topics.into_iter().collect())
    }

    fn metadata(version: i16, topics: &[&str], tail: &[u8]) -> Vec<u8> {
        let mut out = version.to_be_bytes().to_vec();
        out.extend((topics.len() as i32).to_be_bytes());
        for topic in topics {
            out.extend((topic.len() as i16).to_be_bytes());
            out.extend(topic.as_bytes());
        }
        out.extend(tail);
        out
    }

    #[test]
    fn reads_every_version() {
        for version in [0, 1, 2, 3, 9] {
            let bytes = metadata(version, &["a", "topic-2"], &[0xff; 7]);
            assert_eq!(topics(&bytes), Some(vec!["a".to_owned(), "topic-2".to_owned()]));
        }
        assert_eq!(topics(&metadata(0, &[], &[])), Some(vec![]));
    }

    #[test]
    fn refuses_what_is_cut_or_counts_too_much() {
        let bytes = metadata(1, &["abc"], &[]);
        for cut in 0..bytes.len() {
            assert_eq!(topics(&bytes[..cut]), None, "cut at {cut}");
        }
        assert_eq!(topics(&[0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0]), None);
        assert_eq!(topics(&metadata(-1, &["a"], &[])), None);
    }
}
