//! `partition.metadata`: which topic id a folder belongs to. A topic made again under an old name has another id.

use model::TopicId;

pub fn encode(topic_id: TopicId) -> String {
    format!("version: 0\ntopic_id: {topic_id}\n")
}

/// `None` when the file is not understood.
pub fn decode(bytes: &[u8]) -> Option<TopicId> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.lines();
    if lines.next()?.trim_end() != "version: 0" {
        return None;
    }
    TopicId::parse(lines.next()?.strip_prefix("topic_id: ")?.trim_end())
}

/// The version, where it is newer than the one we know (Kafka's 0).
pub fn newer_version(bytes: &[u8]) -> Option<u32> {
    super::kafka_text_version(bytes, "version: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_both_ways() {
        let id = TopicId::from_random([9; 16]);
        assert_eq!(decode(encode(id).as_bytes()), Some(id));
        for bad in ["", "version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n", "version: 0\n", "version: 0\ntopic_id: x\n"] {
            assert_eq!(decode(bad.as_bytes()), None);
        }
    }
}
