//! Damages a valid input the ways that decoders fear: flipped bits, lengths that lie, ends that
//! come early, parts of other inputs.

/// Mutations on top of each other, at most.
const MOST_STEPS: u64 = 4;

/// Bytes that are moved, doubled or dropped at once, at most.
const MOST_MOVED: u64 = 64;

/// An input never grows beyond this.
const MOST_LEN: usize = 1 << 16;

/// Where lengths and counts turn over.
const LENGTHS: [i32; 12] = [0, -1, 1, 2, 0x7f, 0x80, 0x7fff, 0x8000, 0xffff, i32::MAX, i32::MIN, 0x00ff_ffff];

/// Varints at the same places, one of them too long.
const VARINTS: [&[u8]; 7] = [
    &[0x00],
    &[0x01],
    &[0x7f],
    &[0x80, 0x01],
    &[0xff, 0xff, 0x03],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
];

/// A stream of numbers from a seed (xorshift64*).
pub struct Dice {
    state: u64,
}

impl Dice {
    pub fn new(seed: u64) -> Self {
        // The state must not be zero.
        Self { state: seed.wrapping_mul(2) | 1 }
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound.max(1)
    }

    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }
}

/// Writes a damaged copy of one of `corpus` into `input`.
pub fn mutate(dice: &mut Dice, corpus: &[Vec<u8>], input: &mut Vec<u8>) {
    assert!(!corpus.is_empty(), "a target has valid inputs to start from");
    input.clear();
    input.extend_from_slice(&corpus[dice.index(corpus.len())]);
    for _ in 0..=dice.below(MOST_STEPS) {
        step(dice, corpus, input);
        input.truncate(MOST_LEN);
    }
}

fn step(dice: &mut Dice, corpus: &[Vec<u8>], input: &mut Vec<u8>) {
    if input.is_empty() {
        input.push(dice.below(256) as u8);
        return;
    }
    let at = dice.index(input.len());
    match dice.below(9) {
        0 => input[at] ^= 1 << dice.below(8),
        1 => input[at] = dice.below(256) as u8,
        2 => input.truncate(at),
        3 => overwrite(input, at, &dice.choose(&LENGTHS).to_be_bytes()),
        4 => overwrite(input, at, &(dice.choose(&LENGTHS) as i16).to_be_bytes()),
        5 => {
            let varint = dice.choose(&VARINTS);
            input.splice(at..=at, varint.iter().copied());
        }
        6 => {
            let part = part_of(dice, input);
            input.splice(at..at, part);
        }
        7 => {
            let end = (at + 1 + dice.below(MOST_MOVED) as usize).min(input.len());
            input.drain(at..end);
        }
        _ => {
            let other = dice.index(corpus.len());
            let part = part_of(dice, &corpus[other]);
            overwrite(input, at, &part);
        }
    }
}

/// Writes over what is there, and beyond the end if need be.
fn overwrite(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = input.len().min(at + bytes.len());
    input.splice(at..end, bytes.iter().copied());
}

fn part_of(dice: &mut Dice, input: &[u8]) -> Vec<u8> {
    let start = dice.index(input.len());
    let end = (start + dice.below(MOST_MOVED) as usize).min(input.len());
    input[start.min(end)..end].to_vec()
}

#[cfg(test)]
#[path = "mutate_tests.rs"]
mod tests;
