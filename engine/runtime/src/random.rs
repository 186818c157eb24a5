//! Randomness: ids, incarnations, jitter. Never for anything that has to be secret from a fast attacker's guess at load
//! balancing; all of it comes from the kernel.

use std::io::Read;

/// Fills `out` from the kernel's generator.
pub fn fill(out: &mut [u8]) {
    // SAFETY: the pointer and length describe `out`.
    let got = unsafe { libc::getrandom(out.as_mut_ptr().cast(), out.len(), 0) };
    if got == out.len() as isize {
        return;
    }
    // A kernel older than io_uring has no getrandom; a signal may cut a long call short.
    let mut file = std::fs::File::open("/dev/urandom").expect("/dev/urandom opens on every Linux");
    file.read_exact(out).expect("/dev/urandom never ends");
}

pub fn bytes<const N: usize>() -> [u8; N] {
    let mut out = [0; N];
    fill(&mut out);
    out
}

pub fn u64() -> u64 {
    u64::from_le_bytes(bytes())
}
