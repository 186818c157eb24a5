//! The data folder's file system, and the drives under it: scheduler and write cache.

use std::path::Path;

use super::check::Setting;
use super::host::Host;
use super::parse::{self, Mount};
use super::verdict::{Change, Level, Verdict, bytes};

/// Layers of device mapper, RAID and partitions that are followed.
const LAYERS_MAX: usize = 8;
/// Drives under one folder.
const DISKS_MAX: usize = 256;

pub fn verdicts(setting: &Setting) -> Vec<Verdict> {
    let mount = mount_of(&setting.host, &setting.data_dir);
    let disks = mount.clone().and_then(|mount| disks_of(&setting.host, &mount));
    let of_mount = |name, judge: fn(&Setting, &Mount) -> Verdict| match &mount {
        Ok(mount) => judge(setting, mount),
        Err(why) => Verdict::unknown(name, why.as_str()),
    };
    let of_disks = |name, judge: fn(&Setting, &[String]) -> Verdict| match &disks {
        Ok(disks) => judge(setting, disks),
        Err(why) => Verdict::unknown(name, why.as_str()),
    };
    vec![
        of_mount(FILE_SYSTEM, file_system),
        of_mount(OPTIONS, options),
        of_disks(BLOCK_SIZE, block_size),
        of_disks(SCHEDULER, scheduler),
        of_disks(WRITE_CACHE, write_cache),
    ]
}

/// The mount that holds an absolute path.
pub fn mount_of(host: &Host, dir: &Path) -> Result<Mount, String> {
    let text = host.text("/proc/self/mountinfo")?;
    let mounts = parse::mounts(&text);
    let found = parse::holder(&mounts, dir).cloned();
    found.ok_or_else(|| format!("no mount holds {}", dir.display()))
}

/// The whole drives under the data folder: through partitions, device mapper and software RAID.
pub fn disks_of(host: &Host, mount: &Mount) -> Result<Vec<String>, String> {
    let by_number = host.link_name(&format!("/sys/dev/block/{}", mount.device));
    // btrfs and the like have a number of their own; what they were mounted from says it.
    let by_source = || host.link_name(&mount.source).filter(|_| mount.source.starts_with("/dev/"));
    let Some(top) = by_number.or_else(by_source) else {
        return Err(format!("{} ({}) lies on no block device that sysfs shows", mount.point.display(), mount.kind));
    };
    let mut layer = vec![top];
    for _ in 0..LAYERS_MAX {
        let mut below = Vec::new();
        for name in &layer {
            let folder = format!("/sys/class/block/{name}");
            let slaves = host.names(&format!("{folder}/slaves"));
            let whole = host.exists(&format!("{folder}/partition")).then(|| host.link_name(&format!("{folder}/..")));
            match whole.flatten() {
                Some(whole) => below.push(whole),
                None if slaves.is_empty() => below.push(name.clone()),
                None => below.extend(slaves),
            }
        }
        below.sort();
        below.dedup();
        below.truncate(DISKS_MAX);
        if below == layer {
            break;
        }
        layer = below;
    }
    Ok(layer)
}

const FILE_SYSTEM: &str = "file system";

fn file_system(setting: &Setting, mount: &Mount) -> Verdict {
    let found = format!("{} at {}", mount.kind, mount.point.display());
    let judge = |level, cost: &str, mend: &str| Verdict::new(level, FILE_SYSTEM, found.clone(), cost, mend);
    match mount.kind.as_str() {
        "ext4" | "xfs" => {
            use std::os::unix::fs::MetadataExt;
            let path = setting.host.at(&setting.data_dir.to_string_lossy());
            match std::fs::metadata(&path) {
                Ok(meta) => Verdict::ok(FILE_SYSTEM, format!("{found}, blocks of {}", bytes(meta.blksize()))),
                Err(e) => Verdict::unknown(FILE_SYSTEM, format!("{found}; {} cannot be read: {e}", path.display())),
            }
        }
        "btrfs" => judge(
            Level::Note,
            "every overwrite of a tail block is copied elsewhere: segments fragment and syncs take longer",
            "chattr +C DATA_DIR while it is empty, or put it on ext4 or xfs",
        ),
        "tmpfs" | "ramfs" => judge(
            Level::Warning,
            "a restart of the host loses every record, acknowledged or not",
            "choose a --data-dir on ext4 or xfs",
        ),
        "nfs" | "nfs4" | "cifs" | "9p" | "fuse" | "overlay" | "zfs" | "virtiofs" => judge(
            Level::Problem,
            "direct I/O, or a sync that reaches the device, is not promised there",
            "choose a --data-dir on ext4, xfs or btrfs",
        ),
        _ => Verdict::unknown(
            FILE_SYSTEM,
            format!("{found}: the broker was not tried on it; ext4, xfs and btrfs it was"),
        ),
    }
}

const OPTIONS: &str = "mount options";

fn options(_: &Setting, mount: &Mount) -> Verdict {
    let has = |wanted: &[&str]| mount.options.iter().find(|o| wanted.contains(&o.as_str())).cloned();
    let remount = |option: &str| format!("mount -o remount,{option} {}", mount.point.display());
    let judge = |level, found, cost: &str, mend| Verdict::new(level, OPTIONS, found, cost, mend);
    if let Some(found) = has(&["ro"]) {
        return judge(Level::Problem, found, "nothing can be written", remount("rw"));
    }
    if let Some(found) = has(&["nobarrier", "barrier=0"]) {
        let cost = "a sync does not reach the device: acknowledged records are lost in a power cut";
        return judge(Level::Problem, found, cost, remount("barrier=1"));
    }
    if let Some(found) = has(&["data=journal", "sync", "dirsync"]) {
        let cost = "every write goes out twice, or alone: the broker syncs itself where it has to";
        return judge(
            Level::Warning,
            found,
            cost,
            format!("change it in /etc/fstab and mount {} anew", mount.point.display()),
        );
    }
    if let Some(found) = has(&["strictatime"]) {
        return judge(Level::Note, found, "every read of a file writes its time", remount("noatime"));
    }
    if let Some(found) = has(&["discard"]) {
        let mend = format!("{} and systemctl enable --now fstrim.timer", remount("nodiscard"));
        return judge(
            Level::Note,
            found,
            "deleting a segment sends the drive a trim at once, and writes wait behind it",
            mend,
        );
    }
    Verdict::ok(OPTIONS, mount.options.join(","))
}

const BLOCK_SIZE: &str = "device block";

fn block_size(setting: &Setting, disks: &[String]) -> Verdict {
    let mut shown = Vec::new();
    let mut largest = 0;
    for disk in disks {
        let read = |file: &str| setting.host.number(&format!("/sys/block/{disk}/queue/{file}"));
        match (read("logical_block_size"), read("physical_block_size")) {
            (Ok(logical), Ok(physical)) => {
                largest = largest.max(logical);
                shown.push(format!("{disk}: {logical} bytes, {physical} inside"));
            }
            (Err(why), _) | (_, Err(why)) => return Verdict::unknown(BLOCK_SIZE, why),
        }
    }
    if largest <= runtime::limits::BLOCK as u64 {
        return Verdict::ok(BLOCK_SIZE, shown.join("; "));
    }
    let cost = "the broker writes in multiples of 4096 bytes, which this drive refuses";
    Verdict::new(Level::Problem, BLOCK_SIZE, shown.join("; "), cost, "format the drive with 512 or 4096 byte blocks")
}

const SCHEDULER: &str = "I/O scheduler";

fn scheduler(setting: &Setting, disks: &[String]) -> Verdict {
    let (mut shown, mut changes) = (Vec::new(), Vec::new());
    for disk in disks {
        let path = format!("/sys/block/{disk}/queue/scheduler");
        let text = match setting.host.text(&path) {
            Ok(text) => text,
            Err(why) => return Verdict::unknown(SCHEDULER, why),
        };
        // A virtual drive says that it rotates whatever is behind it; its host sorts.
        let virtual_drive = disk.starts_with("vd") || disk.starts_with("xvd");
        let rotational = setting.host.number(&format!("/sys/block/{disk}/queue/rotational"));
        let rotates = rotational == Ok(1) && !virtual_drive;
        let wanted = if rotates { "mq-deadline" } else { "none" };
        let now = parse::chosen(&text).unwrap_or(&text).to_owned();
        shown.push(format!("{disk}: {now}{}", if rotates { " (rotates)" } else { "" }));
        if now != wanted && parse::offers(&text, wanted) {
            changes.push(Change { path, now, value: wanted.into() });
        }
    }
    let worst = changes.iter().map(|c| if c.now == "bfq" { Level::Warning } else { Level::Note }).max();
    match worst {
        None => Verdict::ok(SCHEDULER, shown.join("; ")),
        Some(level) => {
            let cost = "the broker orders its writes itself; sorting them again costs CPU and holds syncs back";
            Verdict::new(level, SCHEDULER, shown.join("; "), cost, "").with_changes(changes)
        }
    }
}

const WRITE_CACHE: &str = "write cache";

fn write_cache(setting: &Setting, disks: &[String]) -> Verdict {
    let (mut shown, mut volatile) = (Vec::new(), false);
    for disk in disks {
        match setting.host.text(&format!("/sys/block/{disk}/queue/write_cache")) {
            Ok(text) => {
                volatile |= text == "write back";
                shown.push(format!("{disk}: {text}"));
            }
            Err(why) => return Verdict::unknown(WRITE_CACHE, why),
        }
    }
    if !volatile {
        return Verdict::ok(WRITE_CACHE, format!("{}: a sync has nothing to flush", shown.join("; ")));
    }
    let cost = "every fdatasync flushes the drive's cache; ringlog tune disk measures how long that takes";
    let mend = "use drives with power-loss protection; never turn the flush off without them";
    Verdict::new(Level::Note, WRITE_CACHE, shown.join("; "), cost, mend)
}
