//! Randomness from the simulation's seed.

use crate::sim::world::with;

/// Fills `out` from the simulation's dice.
pub fn fill(out: &mut [u8]) {
    with(|world| {
        for chunk in out.chunks_mut(8) {
            chunk.copy_from_slice(&world.dice.number().to_le_bytes()[..chunk.len()]);
        }
    });
}

pub fn bytes<const N: usize>() -> [u8; N] {
    let mut out = [0; N];
    fill(&mut out);
    out
}

pub fn u64() -> u64 {
    u64::from_le_bytes(bytes())
}
