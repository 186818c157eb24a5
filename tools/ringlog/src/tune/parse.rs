//! Texts of `/proc` and `/sys`, read into values. Pure functions: a host that writes nonsense gets `None`, not a panic.

use std::path::{Path, PathBuf};

/// Hard limit of a row of `/proc/self/limits`; `None` inside is unlimited.
pub fn limit(text: &str, row: &str) -> Option<Option<u64>> {
    let rest = text.lines().find_map(|line| line.strip_prefix(row))?;
    match rest.split_whitespace().nth(1)? {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    }
}

/// The choice in brackets of a line like `always [madvise] never`.
pub fn chosen(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

/// Whether such a line offers a choice.
pub fn offers(text: &str, choice: &str) -> bool {
    text.split_whitespace().any(|word| word.trim_matches(['[', ']']) == choice)
}

/// A row of `/proc/meminfo` in bytes.
pub fn meminfo(text: &str, row: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(row)?.strip_prefix(':'))?;
    rest.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Swap space in use and in all, in bytes, from `/proc/swaps`; memory-backed swap (zram) counts like the rest.
pub fn swaps(text: &str) -> (u64, u64) {
    let mut sums = (0u64, 0u64);
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let kib = |at: usize| fields.get(at).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
        sums = (sums.0.saturating_add(kib(3).saturating_mul(1024)), sums.1.saturating_add(kib(2).saturating_mul(1024)));
    }
    sums
}

/// Major and minor number of `6.18.44-fc`.
pub fn kernel(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// A numbered line of `/proc/interrupts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt {
    pub number: u32,
    /// Interrupts since boot, by CPU, in the order of the header.
    pub counts: Vec<(usize, u64)>,
    /// What follows the counts: controller, trigger, device.
    pub device: String,
}

impl Interrupt {
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }
}

/// Device interrupts; the architecture's own (LOC, TLB and so on) have no number and are left out.
pub fn interrupts(text: &str) -> Vec<Interrupt> {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    let cpus: Vec<usize> =
        header.split_whitespace().filter_map(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
    lines.filter_map(|line| interrupt(line, &cpus)).collect()
}

fn interrupt(line: &str, cpus: &[usize]) -> Option<Interrupt> {
    let (number, rest) = line.split_once(':')?;
    let mut words = rest.split_whitespace();
    let mut counts = Vec::with_capacity(cpus.len());
    for &cpu in cpus {
        counts.push((cpu, words.next()?.parse().ok()?));
    }
    let device = words.next_back().unwrap_or_default().to_owned();
    Some(Interrupt { number: number.trim().parse().ok()?, counts, device })
}

/// A line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// `major:minor` of the device.
    pub device: String,
    pub point: PathBuf,
    pub kind: String,
    /// What is mounted: a device, mostly.
    pub source: String,
    /// Options of the mount and of the file system.
    pub options: Vec<String>,
}

pub fn mounts(text: &str) -> Vec<Mount> {
    text.lines().filter_map(mount).collect()
}

fn mount(line: &str) -> Option<Mount> {
    let (own, shared) = line.split_once(" - ")?;
    let own: Vec<&str> = own.split(' ').collect();
    let shared: Vec<&str> = shared.split(' ').collect();
    let options = own.get(5)?.split(',').chain(shared.get(2).unwrap_or(&"").split(','));
    let mut options: Vec<String> = options.filter(|o| !o.is_empty()).map(str::to_owned).collect();
    options.dedup();
    Some(Mount {
        device: (*own.get(2)?).to_owned(),
        point: PathBuf::from(unescape(own.get(4)?)),
        kind: (*shared.first()?).to_owned(),
        source: unescape(shared.get(1)?),
        options,
    })
}

/// mountinfo writes spaces and the like as `\040`.
fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'\\').then(|| text.get(at + 1..at + 4)).flatten();
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 4;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The mount that holds `path`: the deepest one above it, and of several at one place the newest.
pub fn holder<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| mount.point.components().count())
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
