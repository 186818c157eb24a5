#![allow(clippy::unwrap_used)]
use runtime::testing::TempDir;

use super::super::verdict::Change;
use super::*;

/// A host of four CPUs (two cores of two threads), one NVMe drive with a partition, one network card. Files can be
/// replaced and removed before the host is judged.
struct Fake {
    dir: TempDir,
}

const FILES: &[(&str, &str)] = &[
    ("/proc/sys/kernel/osrelease", "6.1.0-18-amd64"),
    (
        "/proc/self/limits",
        "Limit Soft Hard\nMax open files            65536   65536 files\nMax locked memory         unlimited unlimited bytes\n",
    ),
    ("/proc/self/status", "Name:\tx\nUid:\t1000\t1000\t1000\t1000\n"),
    ("/proc/sys/net/core/somaxconn", "4096"),
    ("/proc/meminfo", "MemTotal:       16777216 kB\n"),
    ("/proc/swaps", "Filename Type Size Used Priority\n"),
    ("/proc/sys/vm/swappiness", "60"),
    ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
    ("/sys/devices/system/cpu/online", "0-3"),
    ("/sys/devices/system/node/node0/cpulist", "0-3"),
    ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
    ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm"),
    ("/proc/self/mountinfo", "1 0 259:2 / / rw,relatime - ext4 /dev/nvme0n1p2 rw\n"),
    ("/sys/devices/pci/nvme/nvme0/nvme0n1/nvme0n1p2/partition", "2"),
    ("/sys/devices/pci/nvme/nvme0/nvme0n1/queue/scheduler", "[none] mq-deadline"),
    ("/sys/devices/pci/nvme/nvme0/nvme0n1/queue/rotational", "0"),
    ("/sys/devices/pci/nvme/nvme0/nvme0n1/queue/write_cache", "write through"),
    ("/sys/devices/pci/nvme/nvme0/nvme0n1/queue/logical_block_size", "512"),
    ("/sys/devices/pci/nvme/nvme0/nvme0n1/queue/physical_block_size", "4096"),
    ("/sys/devices/pci/net/msi_irqs/41", ""),
    ("/sys/devices/pci/net/virtio3/net/eth0/mtu", "1500"),
    (
        "/proc/interrupts",
        "      CPU0 CPU1 CPU2 CPU3\n 36: 0 500 0 0 PCI-MSI 1-edge nvme0q1\n 37: 0 0 0 0 PCI-MSI 2-edge nvme0q2\n \
         41: 7 0 0 0 PCI-MSI 3-edge virtio3-rx\n 50: 9 0 0 0 IO-APIC 4-edge ttyS0\nNMI: 0 0 0 0 x\n",
    ),
    ("/proc/irq/36/effective_affinity_list", "1"),
    ("/proc/irq/41/smp_affinity_list", "0"),
];

const LINKS: &[(&str, &str)] = &[
    ("/sys/dev/block/259:2", "/sys/devices/pci/nvme/nvme0/nvme0n1/nvme0n1p2"),
    ("/sys/class/block/nvme0n1p2", "/sys/devices/pci/nvme/nvme0/nvme0n1/nvme0n1p2"),
    ("/sys/class/block/nvme0n1", "/sys/devices/pci/nvme/nvme0/nvme0n1"),
    ("/sys/block/nvme0n1", "/sys/devices/pci/nvme/nvme0/nvme0n1"),
    ("/sys/devices/pci/nvme/nvme0/nvme0n1/device", "/sys/devices/pci/nvme/nvme0"),
    ("/sys/class/net/eth0", "/sys/devices/pci/net/virtio3/net/eth0"),
    ("/sys/devices/pci/net/virtio3/net/eth0/device", "/sys/devices/pci/net/virtio3"),
];

impl Fake {
    fn new() -> Fake {
        let fake = Fake { dir: TempDir::new("host") };
        FILES.iter().for_each(|(path, text)| fake.put(path, text));
        for cpu in 0..4 {
            let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
            fake.put(&format!("{folder}/topology/thread_siblings_list"), &format!("{},{}", cpu % 2, cpu % 2 + 2));
            fake.put(&format!("{folder}/topology/physical_package_id"), "0");
            fake.put(&format!("{folder}/cpufreq/scaling_governor"), "performance");
        }
        for (from, to) in LINKS {
            let from = fake.host().at(from);
            std::fs::create_dir_all(from.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(fake.host().at(to), from).unwrap();
        }
        fake
    }

    fn host(&self) -> Host {
        Host::new(self.dir.path())
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.host().at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn remove(&self, path: &str) {
        std::fs::remove_file(self.host().at(path)).unwrap();
    }

    /// The setting of pinned shards on these CPUs.
    fn setting(&self, shard_cpus: &[usize]) -> Setting {
        let host = self.host();
        Setting {
            topology: host.topology(),
            host,
            shard_cpus: shard_cpus.to_vec(),
            pinned: true,
            config: BrokerConfig::default(),
            data_dir: PathBuf::from("/"),
            io_uring: Ok(()),
            clock_read_ns: Some(25),
        }
    }

    fn judge(&self, name: &str) -> Verdict {
        judge(&self.setting(&[2, 3]), name)
    }
}

fn judge(setting: &Setting, name: &str) -> Verdict {
    let all = verdicts(setting);
    all.into_iter().find(|verdict| verdict.name == name).unwrap_or_else(|| panic!("no check is called {name}"))
}

fn level(verdict: &Verdict) -> &'static str {
    verdict.level.as_str()
}

#[test]
fn a_good_host_has_nothing_to_mend() {
    let fake = Fake::new();
    let all = verdicts(&fake.setting(&[2, 3]));
    let bad: Vec<&Verdict> = all.iter().filter(|v| v.level != Level::Ok).collect();
    assert!(bad.is_empty(), "{bad:#?}");
    assert_eq!(all.len(), 19);
}

#[test]
fn a_host_that_says_nothing_gets_reasons_for_every_check() {
    let dir = TempDir::new("bare");
    let mut setting = Fake::new().setting(&[0]);
    setting.host = Host::new(dir.path());
    setting.topology = Topology::flat(&[0]);
    for verdict in verdicts(&setting) {
        let known = ["io_uring", "SMT siblings"].contains(&verdict.name);
        assert_eq!(verdict.level == Level::Unknown, !known, "{verdict:?}");
        assert!(!verdict.found.is_empty(), "{verdict:?}");
    }
}

#[test]
fn kernel_and_io_uring() {
    let fake = Fake::new();
    fake.put("/proc/sys/kernel/osrelease", "5.10.0");
    assert_eq!(level(&fake.judge("kernel")), "problem");
    let mut setting = fake.setting(&[2]);
    setting.io_uring = Err("io_uring is forbidden here".into());
    assert_eq!(level(&judge(&setting, "io_uring")), "problem");
}

#[test]
fn locked_memory_has_to_be_enough_for_rings() {
    let fake = Fake::new();
    let limits = |bytes: u64| {
        fake.put(
            "/proc/self/limits",
            &format!("Max open files 65536 65536 files\nMax locked memory {bytes} {bytes} bytes"),
        );
        fake.judge("RLIMIT_MEMLOCK")
    };
    assert_eq!(level(&limits(8 << 20)), "ok");
    assert_eq!(level(&limits(64 << 10)), "problem");
}

#[test]
fn open_files_leave_room_for_connections() {
    let fake = Fake::new();
    let limits = |files: u64| {
        fake.put("/proc/self/limits", &format!("Max open files {files} {files} files\n"));
        fake.judge("RLIMIT_NOFILE")
    };
    assert_eq!((level(&limits(1024)), level(&limits(100)), level(&limits(2048))), ("warning", "problem", "ok"));
    assert!(limits(1024).mend.starts_with("ulimit -n 2048"));
}

#[test]
fn a_backlog_that_is_cut_is_told() {
    let fake = Fake::new();
    fake.put("/proc/sys/net/core/somaxconn", "16");
    let verdict = fake.judge("listen backlog");
    assert_eq!((level(&verdict), verdict.mend.as_str()), ("warning", "sysctl -w net.core.somaxconn=50"));
    assert_eq!(verdict.changes[0].value, "50");
}

#[test]
fn memory_that_does_not_fit_is_told() {
    let fake = Fake::new();
    fake.put("/proc/meminfo", "MemTotal: 524288 kB");
    assert_eq!(level(&fake.judge("memory")), "warning");
}

#[test]
fn governors() {
    let fake = Fake::new();
    fake.put("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "powersave");
    let verdict = fake.judge("CPU governor");
    assert_eq!((level(&verdict), verdict.changes.len()), ("warning", 1));
    assert_eq!(verdict.found, "performance on CPUs 2; powersave on CPUs 3");
    fake.put("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "schedutil");
    assert_eq!(level(&fake.judge("CPU governor")), "note");
    // CPUs without a shard do not matter.
    assert_eq!(level(&judge(&fake.setting(&[2]), "CPU governor")), "ok");
}

#[test]
fn shards_that_share_a_core() {
    let fake = Fake::new();
    let verdict = judge(&fake.setting(&[0, 1, 2]), "SMT siblings");
    assert_eq!((level(&verdict), verdict.found.as_str()), ("warning", "shards share cores: CPUs 0+2"));
}

#[test]
fn interrupts_on_the_cpu_of_a_shard() {
    let fake = Fake::new();
    let verdict = judge(&fake.setting(&[1, 2]), "IRQ affinity");
    assert_eq!(level(&verdict), "warning");
    assert_eq!(verdict.found, "36 (nvme0n1: nvme0q1) on CPU 1, 500 so far");
    let change = Change { path: "/proc/irq/36/smp_affinity_list".into(), now: "1".into(), value: "0,3".into() };
    assert_eq!(verdict.changes, [change]);
    // By number through the PCI device, by the word of smp_affinity_list.
    let card = judge(&fake.setting(&[0, 2]), "IRQ affinity");
    assert_eq!(card.found, "41 (eth0: virtio3-rx) on CPU 0, 7 so far");
    // With a shard on every CPU there is nowhere to go.
    let full = judge(&fake.setting(&[0, 1, 2, 3]), "IRQ affinity");
    assert_eq!((level(&full), full.changes.len()), ("note", 0));
}

#[test]
fn schedulers_and_write_caches() {
    let fake = Fake::new();
    let queue = "/sys/devices/pci/nvme/nvme0/nvme0n1/queue";
    fake.put(&format!("{queue}/scheduler"), "none mq-deadline [bfq]");
    fake.put(&format!("{queue}/write_cache"), "write back");
    let verdict = fake.judge("I/O scheduler");
    assert_eq!((level(&verdict), verdict.mend.as_str()), ("warning", "echo none > /sys/block/nvme0n1/queue/scheduler"));
    assert_eq!(level(&fake.judge("write cache")), "note");
    fake.put(&format!("{queue}/rotational"), "1");
    fake.put(&format!("{queue}/scheduler"), "none [mq-deadline]");
    assert_eq!(level(&fake.judge("I/O scheduler")), "ok");
}

#[test]
fn large_device_blocks_are_a_problem() {
    let fake = Fake::new();
    fake.put("/sys/devices/pci/nvme/nvme0/nvme0n1/queue/logical_block_size", "16384");
    assert_eq!(level(&fake.judge("device block")), "problem");
}

#[test]
fn drives_are_found_through_device_mapper() {
    let fake = Fake::new();
    fake.put("/proc/self/mountinfo", "1 0 253:0 / / rw - xfs /dev/mapper/data rw\n");
    fake.put("/sys/devices/virtual/dm-0/slaves/nvme0n1p2", "");
    let links =
        [("/sys/dev/block/253:0", "/sys/devices/virtual/dm-0"), ("/sys/class/block/dm-0", "/sys/devices/virtual/dm-0")];
    for (from, to) in links {
        std::os::unix::fs::symlink(fake.host().at(to), fake.host().at(from)).unwrap();
    }
    assert_eq!(fake.judge("I/O scheduler").found, "nvme0n1: none");
}

#[test]
fn file_systems_and_their_options() {
    let fake = Fake::new();
    let mounted = |kind: &str, options: &str, name: &str| {
        fake.put("/proc/self/mountinfo", &format!("1 0 259:2 / / rw,relatime - {kind} /dev/nvme0n1p2 {options}\n"));
        fake.judge(name)
    };
    for (kind, expected) in
        [("xfs", "ok"), ("btrfs", "note"), ("tmpfs", "warning"), ("overlay", "problem"), ("f2fs", "unknown")]
    {
        assert_eq!(level(&mounted(kind, "rw", "file system")), expected, "{kind}");
    }
    for (options, expected) in [
        ("rw", "ok"),
        ("rw,nobarrier", "problem"),
        ("rw,data=journal", "warning"),
        ("rw,discard", "note"),
        ("ro", "problem"),
    ] {
        assert_eq!(level(&mounted("ext4", options, "mount options")), expected, "{options}");
    }
}

#[test]
fn memory_stalls() {
    let fake = Fake::new();
    fake.put("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never");
    assert_eq!(fake.judge("THP").mend, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
    assert_eq!(level(&fake.judge("swappiness")), "ok", "without swap it has no effect");
    fake.put("/proc/swaps", "Filename Type Size Used Priority\n/dev/sda partition 2048 0 -2\n");
    assert_eq!((level(&fake.judge("swappiness")), level(&fake.judge("swap"))), ("warning", "ok"));
    fake.put("/proc/swaps", "Filename Type Size Used Priority\n/dev/sda partition 2048 1024 -2\n");
    assert_eq!(fake.judge("swap").found, "1 MiB of 2 MiB in use");
}

#[test]
fn clocks() {
    let fake = Fake::new();
    let mut slow = fake.setting(&[2]);
    slow.clock_read_ns = Some(900);
    assert_eq!(level(&judge(&slow, "clock source")), "warning");
    fake.put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet");
    let verdict = fake.judge("clock source");
    assert_eq!((level(&verdict), verdict.changes[0].value.as_str()), ("warning", "tsc"));
}

#[test]
fn what_cannot_be_read_is_told_with_its_reason() {
    let fake = Fake::new();
    fake.remove("/proc/sys/vm/swappiness");
    let verdict = fake.judge("swappiness");
    assert_eq!((level(&verdict), verdict.found.as_str()), ("unknown", "there is no /proc/sys/vm/swappiness here"));
}

#[test]
fn a_folder_that_is_not_there_yet_is_judged_by_the_one_above() {
    let dir = TempDir::new("nearest");
    let real = std::fs::canonicalize(dir.path()).unwrap();
    assert_eq!(nearest_folder(&dir.path().join("a/b")).unwrap(), real);
}
