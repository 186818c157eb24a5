//! Records that say who sent them. The rest of a value follows from that, so that any change of it is seen.

use bytes::Bytes;
use runtime::sim::Dice;

/// A record: its producer and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    pub producer: u32,
    pub number: u32,
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "record {} of producer {}", self.number, self.producer)
    }
}

const HEAD: usize = 8;

fn rest(id: Id, out: &mut [u8]) {
    let mut dice = Dice::new(u64::from(id.producer) << 32 | u64::from(id.number));
    for chunk in out.chunks_mut(8) {
        chunk.copy_from_slice(&dice.number().to_le_bytes()[..chunk.len()]);
    }
}

pub fn encode(id: Id, len: usize) -> Bytes {
    let mut out = vec![0; len.max(HEAD)];
    out[..4].copy_from_slice(&id.producer.to_le_bytes());
    out[4..HEAD].copy_from_slice(&id.number.to_le_bytes());
    rest(id, &mut out[HEAD..]);
    out.into()
}

/// Whose record it is; a panic for bytes that are nobody's.
pub fn decode(value: Option<&Bytes>, place: &str) -> Id {
    let value = value.filter(|value| value.len() >= HEAD);
    let Some(value) = value else { panic!("{place} holds a record that nobody sent") };
    let word = |at: usize| u32::from_le_bytes([value[at], value[at + 1], value[at + 2], value[at + 3]]);
    let id = Id { producer: word(0), number: word(4) };
    let mut expected = vec![0; value.len() - HEAD];
    rest(id, &mut expected);
    assert!(value[HEAD..] == expected[..], "{place} holds {id}, and not as it was sent");
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_who_sent_it() {
        let id = Id { producer: 7, number: 9 };
        let value = encode(id, 100);
        assert_eq!(decode(Some(&value), "here"), id);
        let mut changed = value.to_vec();
        changed[50] ^= 1;
        let changed = Bytes::from(changed);
        assert!(std::panic::catch_unwind(|| decode(Some(&changed), "here")).is_err());
    }
}
