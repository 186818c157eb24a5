//! Which partition of `__consumer_offsets` a group lives in: FindCoordinator asks this for every client.

/// Kafka's rule: Java's `String.hashCode` (over UTF-16 units, wrapping) without its sign bit, modulo the partition count,
/// which is fixed when the topic is made.
///
/// A count of 0 is a programmer error.
pub fn partition_for(group_id: &str, partition_count: i32) -> i32 {
    assert!(partition_count > 0, "an internal topic has at least one partition");
    let hash = group_id.encode_utf16().fold(0i32, |h, unit| h.wrapping_mul(31).wrapping_add(i32::from(unit)));
    (hash & 0x7fff_ffff) % partition_count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_java() {
        // Hashes by `String.hashCode`: "" 0, "a" 97, "abc" 96354, "hello" 99162322, "polygenelubricants" i32::MIN.
        assert_eq!(partition_for("", 50), 0);
        assert_eq!(partition_for("a", 50), 47);
        assert_eq!(partition_for("abc", 50), 4);
        assert_eq!(partition_for("hello", 50), 22);
        assert_eq!(partition_for("polygenelubricants", 50), 0);
    }

    #[test]
    fn counts_utf16_units_not_code_points() {
        // U+1F600 is the pair D83D DE00: 0xd83d * 31 + 0xde00 = 1772899.
        assert_eq!(partition_for("\u{1f600}", 1_000_000), 772_899);
    }

    #[test]
    fn every_partition_is_used() {
        let mut seen = [false; 50];
        for i in 0..2000 {
            seen[partition_for(&format!("group-{i}"), 50) as usize] = true;
        }
        assert!(seen.iter().all(|s| *s));
    }
}
