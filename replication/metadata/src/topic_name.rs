//! Which topic names are allowed, as Kafka has it. Judged when a command is applied, so that no way around it exists.

use crate::limits::MAX_TOPIC_NAME_LEN;

/// Says what is wrong with `name`, if anything.
pub fn check_topic_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("it is empty");
    }
    if name == "." || name == ".." {
        return Err("it is '.' or '..'");
    }
    if name.len() > MAX_TOPIC_NAME_LEN {
        return Err("it is longer than 249 characters");
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')) {
        return Err("it has a character other than ASCII letters and digits, '.', '_' and '-'");
    }
    Ok(())
}

/// What two names must not share: metric names turn '.' into '_', so `a.b` and `a_b` would be one. `None` for names
/// without either character, which can collide with nothing.
pub fn collision_key(name: &str) -> Option<String> {
    name.contains(['.', '_']).then(|| name.replace('.', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_kafkas_rules() {
        for good in ["a", "a.b_c-D9", "...", "_", "__consumer_offsets", &"x".repeat(249)] {
            assert_eq!(check_topic_name(good), Ok(()), "{good}");
        }
        for bad in ["", ".", "..", "a b", "ä", "a/b", "a\0", &"x".repeat(250)] {
            assert!(check_topic_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn dots_and_underscores_collide() {
        assert_eq!(collision_key("a.b_c"), collision_key("a_b.c"));
        assert_eq!(collision_key("ab-c"), None);
    }
}
