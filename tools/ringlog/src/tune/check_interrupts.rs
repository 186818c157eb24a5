//! Interrupts of the network card and of the drive under the data folder against the CPUs of the shards.

use tuning::cpu_list;

use super::check::Setting;
use super::check_storage;
use super::parse::{self, Interrupt};
use super::verdict::{Change, Level, Verdict};

const NAME: &str = "IRQ affinity";
/// Interrupts named in the table; the others are counted.
const SHOWN: usize = 4;

/// A device interrupt that fires, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Placed {
    number: u32,
    /// `eth0: virtio2-input.0`
    label: String,
    total: u64,
    cpus: Vec<usize>,
}

pub fn verdict(setting: &Setting) -> Verdict {
    let text = match setting.host.text("/proc/interrupts") {
        Ok(text) => text,
        Err(why) => return Verdict::unknown(NAME, why),
    };
    let devices = devices(setting);
    if devices.is_empty() {
        return Verdict::unknown(NAME, "sysfs shows neither a network card nor the drive of the data folder");
    }
    let mut placed = Vec::new();
    for interrupt in parse::interrupts(&text).into_iter().filter(|i| i.total() > 0) {
        let Some(device) = owner(&devices, &interrupt) else { continue };
        match cpus_of(setting, interrupt.number) {
            Ok(cpus) => placed.push(Placed {
                number: interrupt.number,
                label: format!("{device}: {}", interrupt.device),
                total: interrupt.total(),
                cpus,
            }),
            Err(why) => return Verdict::unknown(NAME, why),
        }
    }
    if placed.is_empty() {
        let names: Vec<&str> = devices.iter().map(|d| d.name.as_str()).collect();
        return Verdict::unknown(NAME, format!("no interrupt of {} is listed in /proc/interrupts", names.join(", ")));
    }
    judge(setting, placed)
}

fn judge(setting: &Setting, placed: Vec<Placed>) -> Verdict {
    let free: Vec<usize> = setting.topology.ids().into_iter().filter(|cpu| !setting.shard_cpus.contains(cpu)).collect();
    let count = placed.len();
    let mut on_shards: Vec<Placed> =
        placed.into_iter().filter(|p| p.cpus.iter().any(|cpu| setting.shard_cpus.contains(cpu))).collect();
    if on_shards.is_empty() {
        return Verdict::ok(NAME, format!("{count} interrupts of network and drive, none on a shard's CPU"));
    }
    on_shards.sort_by_key(|p| std::cmp::Reverse(p.total));
    let shown: Vec<String> = on_shards
        .iter()
        .take(SHOWN)
        .map(|p| format!("{} ({}) on CPU {}, {} so far", p.number, p.label, cpu_list::format(&p.cpus), p.total))
        .collect();
    let more = on_shards.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let found = format!("{}{more}", shown.join("; "));
    let cost = "each interrupt takes a few microseconds from the shard of its CPU, in bursts under load";
    if free.is_empty() {
        let mend = "every CPU has a shard: leave_out = [0] in a tuning profile frees one where there are many";
        return Verdict::new(Level::Note, NAME, found, cost, mend);
    }
    let level = if setting.pinned { Level::Warning } else { Level::Note };
    let target = cpu_list::format(&free).replace(' ', "");
    let change = |p: &Placed| Change {
        path: format!("/proc/irq/{}/smp_affinity_list", p.number),
        now: cpu_list::format(&p.cpus).replace(' ', ""),
        value: target.clone(),
    };
    let mend = format!("stop irqbalance, then: ringlog tune apply --yes (steers them to CPUs {target})");
    let changes = on_shards.iter().map(change).collect();
    Verdict::new(level, NAME, found, cost, mend).with_changes(changes)
}

/// Where an interrupt goes: the kernel's own word where it gives one, what it was told otherwise.
fn cpus_of(setting: &Setting, number: u32) -> Result<Vec<usize>, String> {
    let folder = format!("/proc/irq/{number}");
    let effective = setting.host.text(&format!("{folder}/effective_affinity_list")).ok().filter(|t| !t.is_empty());
    let text = match effective {
        Some(text) => text,
        None => setting.host.text(&format!("{folder}/smp_affinity_list"))?,
    };
    cpu_list::parse(&text).ok_or_else(|| format!("{folder} says {text:?}, which is no list of CPUs"))
}

/// A network card or a drive, with what its interrupts can be known by.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Device {
    name: String,
    /// Interrupt numbers of the PCI device behind it.
    numbers: Vec<u32>,
    /// How a driver may begin an interrupt's name: the device's name, the bus's (`virtio2`), the controller's (`nvme0`).
    prefixes: Vec<String>,
}

fn devices(setting: &Setting) -> Vec<Device> {
    let host = &setting.host;
    let cards = host.names("/sys/class/net");
    let cards = cards.iter().filter(|card| host.exists(&format!("/sys/class/net/{card}/device")));
    let mut found: Vec<Device> =
        cards.map(|card| device(setting, card, &format!("/sys/class/net/{card}/device"))).collect();
    let mount = check_storage::mount_of(host, &setting.data_dir);
    for disk in mount.and_then(|mount| check_storage::disks_of(host, &mount)).unwrap_or_default() {
        found.push(device(setting, &disk, &format!("/sys/block/{disk}/device")));
    }
    found
}

fn device(setting: &Setting, name: &str, link: &str) -> Device {
    let host = &setting.host;
    let folders = [format!("{link}/msi_irqs"), format!("{link}/device/msi_irqs"), format!("{link}/../msi_irqs")];
    let lists = folders.iter().map(|folder| host.names(folder)).find(|names| !names.is_empty());
    let numbers = lists.unwrap_or_default().iter().filter_map(|name| name.parse().ok()).collect();
    let mut prefixes = vec![name.to_owned()];
    prefixes.extend(host.link_name(link).filter(|bus| bus.starts_with("virtio") || bus.starts_with("nvme")));
    Device { name: name.to_owned(), numbers, prefixes }
}

/// The device of an interrupt, by number or by name. `virtio1` does not own `virtio10-req.0`.
fn owner<'a>(devices: &'a [Device], interrupt: &Interrupt) -> Option<&'a str> {
    let named = |prefix: &String| {
        let rest = interrupt.device.strip_prefix(prefix.as_str());
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let by_name = |device: &&Device| device.numbers.contains(&interrupt.number) || device.prefixes.iter().any(named);
    devices.iter().find(by_name).map(|device| device.name.as_str())
}
