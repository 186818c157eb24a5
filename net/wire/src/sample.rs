//! Seeded example messages: every field filled with values that its version can carry, edge values
//! often. Tests, the fuzzer's corpus and benches are made of them; the broker is built without.

use bytes::Bytes;

use crate::Records;

/// Strings of the lengths where encodings change, and beyond ASCII.
const STRINGS: [&str; 8] = [
    "",
    "a",
    "orders",
    "clicks.v1-eu_west",
    "héllo wörld",
    "日本語のトピック",
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456",
    "01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567",
];

/// Elements per array, at most: enough for "none", "one" and "several".
const MAX_ELEMENTS: u64 = 3;

/// Longer than what the writer copies, so that both of its ways are taken.
const MAX_BYTES_LEN: u64 = 700;

pub trait Sample: Sized {
    fn sample(source: &mut SampleSource, version: i16) -> Self;
}

/// A stream of values from a seed (splitmix64). The same seed gives the same messages everywhere.
#[derive(Debug, Clone)]
pub struct SampleSource {
    state: u64,
}

impl SampleSource {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A value below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound.max(1)
    }

    pub fn bool(&mut self) -> bool {
        self.below(2) == 1
    }

    pub fn i64(&mut self) -> i64 {
        match self.below(6) {
            0 => 0,
            1 => -1,
            2 => i64::MAX,
            3 => i64::MIN,
            4 => self.below(1000) as i64,
            _ => self.next_u64() as i64,
        }
    }

    pub fn i32(&mut self) -> i32 {
        match self.below(6) {
            0 => 0,
            1 => -1,
            2 => i32::MAX,
            3 => i32::MIN,
            4 => self.below(1000) as i32,
            _ => self.next_u64() as i32,
        }
    }

    pub fn i16(&mut self) -> i16 {
        self.i32() as i16
    }

    pub fn u16(&mut self) -> u16 {
        self.i32() as u16
    }

    pub fn i8(&mut self) -> i8 {
        self.i32() as i8
    }

    pub fn f64(&mut self) -> f64 {
        self.i32() as f64 / 16.0
    }

    pub fn uuid(&mut self) -> [u8; 16] {
        if self.below(4) == 0 {
            return [0; 16];
        }
        (u128::from(self.next_u64()) << 64 | u128::from(self.next_u64())).to_be_bytes()
    }

    pub fn string(&mut self) -> &'static str {
        STRINGS[self.below(STRINGS.len() as u64) as usize]
    }

    pub fn bytes(&mut self) -> Bytes {
        let len = match self.below(3) {
            0 => 0,
            1 => self.below(16),
            _ => self.below(MAX_BYTES_LEN),
        };
        (0..len).map(|_| self.next_u64() as u8).collect::<Vec<_>>().into()
    }

    pub fn records(&mut self) -> Records {
        self.nullable(Self::bytes).into()
    }

    pub fn nullable<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(3) > 0).then(|| value(self))
    }

    pub fn array<T>(&mut self, mut element: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.below(MAX_ELEMENTS + 1);
        (0..count).map(|_| element(self)).collect()
    }
}
