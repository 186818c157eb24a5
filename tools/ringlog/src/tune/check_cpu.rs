//! CPUs: frequency governor, threads that share a core, NUMA nodes, the clock.

use std::collections::BTreeMap;

use tuning::cpu_list;

use super::check::Setting;
use super::verdict::{Change, Level, Verdict};

/// A clock that is read without a system call takes less, even on a slow machine.
const CLOCK_SLOW_NS: u64 = 250;

pub fn verdicts(setting: &Setting) -> Vec<Verdict> {
    vec![governor(setting), siblings(setting), nodes(setting), clock(setting)]
}

fn governor(setting: &Setting) -> Verdict {
    const NAME: &str = "CPU governor";
    let mut by_governor: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for &cpu in &setting.shard_cpus {
        let path = governor_file(cpu);
        match setting.host.text(&path) {
            Ok(text) => by_governor.entry(text).or_default().push(cpu),
            Err(why) => {
                let why = format!("{why}: the hypervisor or the firmware sets the frequency");
                return Verdict::unknown(NAME, why);
            }
        }
    }
    let shown: Vec<String> =
        by_governor.iter().map(|(name, cpus)| format!("{name} on CPUs {}", cpu_list::format(cpus))).collect();
    let slow: Vec<(usize, &String)> = by_governor
        .iter()
        .filter(|(name, _)| *name != "performance")
        .flat_map(|(name, cpus)| cpus.iter().map(move |&cpu| (cpu, name)))
        .collect();
    if slow.is_empty() {
        return Verdict::ok(NAME, shown.join("; "));
    }
    let level = if slow.iter().any(|(_, name)| *name == "powersave") { Level::Warning } else { Level::Note };
    let changes = slow.iter().map(|(cpu, now)| Change {
        path: governor_file(*cpu),
        now: (*now).clone(),
        value: "performance".into(),
    });
    let cost = "a core that slept runs slowly for its first milliseconds: p99 of quiet topics suffers most";
    Verdict::new(level, NAME, shown.join("; "), cost, "cpupower frequency-set -g performance")
        .with_changes(changes.collect())
}

fn governor_file(cpu: usize) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")
}

fn siblings(setting: &Setting) -> Verdict {
    const NAME: &str = "SMT siblings";
    let topology = &setting.topology;
    let sharing = topology.sharing_a_core(&setting.shard_cpus);
    if sharing.is_empty() {
        let threads = topology.cpus().iter().map(|cpu| cpu.siblings.len()).max().unwrap_or(1);
        let found = match threads {
            0 | 1 => "every CPU is a core of its own".to_owned(),
            threads => format!("{threads} threads a core, one shard a core"),
        };
        return Verdict::ok(NAME, found);
    }
    let pairs: Vec<String> = sharing.iter().map(|cpus| cpu_list::format(cpus).replace(", ", "+")).collect();
    let level = if setting.pinned { Level::Warning } else { Level::Note };
    let cost = "shards on one core share its units: two give some 1.2 times the work of one, at a higher latency";
    let mend = "set placement = \"one-per-core\" in the tuning profile";
    Verdict::new(level, NAME, format!("shards share cores: CPUs {}", pairs.join(", ")), cost, mend)
}

fn nodes(setting: &Setting) -> Verdict {
    const NAME: &str = "NUMA";
    let known = setting.topology.nodes();
    let used: std::collections::BTreeSet<usize> =
        setting.shard_cpus.iter().filter_map(|&cpu| setting.topology.cpu(cpu)?.numa_node).collect();
    match (known.len(), used.len()) {
        (0, _) => Verdict::unknown(NAME, "sysfs shows no NUMA node with CPUs of this process"),
        (1, _) => Verdict::ok(NAME, "one node"),
        (_, 1) => Verdict::ok(NAME, format!("all shards on one of {} nodes", known.len())),
        (_, used) => Verdict::new(
            Level::Note,
            NAME,
            format!("shards on {used} nodes"),
            "memory and devices of the other node take about twice as long",
            "set numa_node in the tuning profile to the node of the network card and the drives",
        ),
    }
}

fn clock(setting: &Setting) -> Verdict {
    const NAME: &str = "clock source";
    const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
    let current = match setting.host.text(&format!("{FOLDER}/current_clocksource")) {
        Ok(text) => text,
        Err(why) => return Verdict::unknown(NAME, why),
    };
    let took = setting.clock_read_ns.map_or_else(String::new, |ns| format!(", {ns} ns a look"));
    let found = format!("{current}{took}");
    let needs_a_call = matches!(current.as_str(), "hpet" | "acpi_pm" | "xen" | "jiffies" | "refined-jiffies");
    let slow = setting.clock_read_ns.is_some_and(|ns| ns > CLOCK_SLOW_NS);
    if !needs_a_call && !slow {
        return Verdict::ok(NAME, found);
    }
    let available = setting.host.text(&format!("{FOLDER}/available_clocksource")).unwrap_or_default();
    let better = available.split_whitespace().find(|name| *name == "tsc" || *name == "kvm-clock");
    let better = better.filter(|_| needs_a_call);
    let cost = "shards look at the clock at every turn; this one asks the kernel or the device each time";
    let verdict = Verdict::new(Level::Warning, NAME, found, cost, "");
    match better {
        Some(better) => verdict.with_changes(vec![Change {
            path: format!("{FOLDER}/current_clocksource"),
            now: current,
            value: better.to_owned(),
        }]),
        None => Verdict {
            mend: "start the kernel with clocksource=tsc where the CPU's counter is invariant".into(),
            ..verdict
        },
    }
}
