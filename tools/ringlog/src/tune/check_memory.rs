//! Huge pages and swap: what can stall a shard that did nothing wrong.

use super::check::Setting;
use super::parse;
use super::verdict::{Change, Level, Verdict, bytes};

/// From here on the kernel swaps out a broker's quiet memory to keep files in the page cache.
const SWAPPINESS_MOST: u64 = 10;

pub fn verdicts(setting: &Setting) -> Vec<Verdict> {
    vec![huge_pages(setting), swappiness(setting), swap(setting)]
}

fn huge_pages(setting: &Setting) -> Verdict {
    const NAME: &str = "THP";
    const FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    let text = match setting.host.text(FILE) {
        Ok(text) => text,
        Err(why) => return Verdict::unknown(NAME, why),
    };
    match parse::chosen(&text) {
        Some(choice @ ("madvise" | "never")) => Verdict::ok(NAME, choice),
        Some(choice) => {
            let change = Change { path: FILE.into(), now: choice.into(), value: "madvise".into() };
            let cost = "the kernel stops threads to gather huge pages, milliseconds at a time, and memory in use grows";
            Verdict::new(Level::Warning, NAME, choice, cost, "").with_changes(vec![change])
        }
        None => Verdict::unknown(NAME, format!("{FILE} says {text:?}, with nothing chosen")),
    }
}

fn swap_in_use(setting: &Setting) -> Result<(u64, u64), String> {
    setting.host.text("/proc/swaps").map(|text| parse::swaps(&text))
}

fn swappiness(setting: &Setting) -> Verdict {
    const NAME: &str = "swappiness";
    const FILE: &str = "/proc/sys/vm/swappiness";
    let value = match setting.host.number(FILE) {
        Ok(value) => value,
        Err(why) => return Verdict::unknown(NAME, why),
    };
    if value <= SWAPPINESS_MOST {
        return Verdict::ok(NAME, value.to_string());
    }
    if swap_in_use(setting).is_ok_and(|(_, all)| all == 0) {
        return Verdict::ok(NAME, format!("{value}, without effect: there is no swap"));
    }
    let change = Change { path: FILE.into(), now: value.to_string(), value: "1".into() };
    let cost =
        "the kernel swaps out memory that was quiet to keep more files cached; touching it again waits for the disk";
    Verdict::new(Level::Warning, NAME, value.to_string(), cost, "sysctl -w vm.swappiness=1").with_changes(vec![change])
}

fn swap(setting: &Setting) -> Verdict {
    const NAME: &str = "swap";
    match swap_in_use(setting) {
        Err(why) => Verdict::unknown(NAME, why),
        Ok((_, 0)) => Verdict::ok(NAME, "none"),
        Ok((0, all)) => Verdict::ok(NAME, format!("{}, none of it in use", bytes(all))),
        Ok((used, all)) => Verdict::new(
            Level::Warning,
            NAME,
            format!("{} of {} in use", bytes(used), bytes(all)),
            "a shard that touches swapped memory stands still until the disk has it",
            "give the broker less memory or the host more, then: swapoff -a && swapon -a",
        ),
    }
}
