//! What the kernel and the process's limits allow: version, io_uring, locked memory, open files, backlog, memory.

use runtime::limits::MIN_MEMLOCK_BYTES;

use super::check::Setting;
use super::parse;
use super::verdict::{Change, Level, Verdict, bytes};

/// Oldest kernel that the broker is built for.
const KERNEL_MIN: (u32, u32) = (5, 15);
/// Descriptors beside segments: connections, rings, listeners.
const OTHER_FILES: u64 = 1024;
/// With fewer nothing works.
const FILES_MIN: u64 = 256;

pub fn verdicts(setting: &Setting) -> Vec<Verdict> {
    vec![
        kernel(setting),
        io_uring(setting),
        locked_memory(setting),
        open_files(setting),
        backlog(setting),
        memory(setting),
    ]
}

fn kernel(setting: &Setting) -> Verdict {
    const NAME: &str = "kernel";
    let text = match setting.host.text("/proc/sys/kernel/osrelease") {
        Ok(text) => text,
        Err(why) => return Verdict::unknown(NAME, why),
    };
    match parse::kernel(&text) {
        None => Verdict::unknown(NAME, format!("{text:?} is no version this command understands")),
        Some(version) if version >= KERNEL_MIN => Verdict::ok(NAME, text),
        Some(_) => Verdict::new(
            Level::Problem,
            NAME,
            text,
            "io_uring lacks operations that the broker uses",
            "run Linux 5.15 or newer",
        ),
    }
}

fn io_uring(setting: &Setting) -> Verdict {
    match &setting.io_uring {
        Ok(()) => Verdict::ok("io_uring", "a ring can be set up"),
        Err(why) => Verdict::new(
            Level::Problem,
            "io_uring",
            why.as_str(),
            "the broker cannot start",
            "sysctl -w kernel.io_uring_disabled=0",
        ),
    }
}

/// The hard one, to which the broker raises its own.
fn hard_limit(setting: &Setting, row: &str) -> Result<Option<u64>, String> {
    let text = setting.host.text("/proc/self/limits")?;
    parse::limit(&text, row).ok_or_else(|| format!("/proc/self/limits has no row {row:?}"))
}

fn locked_memory(setting: &Setting) -> Verdict {
    const NAME: &str = "RLIMIT_MEMLOCK";
    let limit = match hard_limit(setting, "Max locked memory") {
        Ok(None) => return Verdict::ok(NAME, "unlimited"),
        Ok(Some(limit)) => limit,
        Err(why) => return Verdict::unknown(NAME, why),
    };
    if limit < MIN_MEMLOCK_BYTES {
        let found = format!("{}, and rings alone need {}", bytes(limit), bytes(MIN_MEMLOCK_BYTES));
        let mend = "ulimit -l 8192 (LimitMEMLOCK=infinity in a systemd unit, --ulimit memlock=-1 for a container)";
        return Verdict::new(Level::Problem, NAME, found, "the broker cannot start", mend);
    }
    Verdict::ok(NAME, format!("{}; rings need {}", bytes(limit), bytes(MIN_MEMLOCK_BYTES)))
}

fn open_files(setting: &Setting) -> Verdict {
    const NAME: &str = "RLIMIT_NOFILE";
    let limit = match hard_limit(setting, "Max open files") {
        Ok(None) => return Verdict::ok(NAME, "unlimited"),
        Ok(Some(limit)) => limit,
        Err(why) => return Verdict::unknown(NAME, why),
    };
    let shards = &setting.config.shards;
    let segments = shards.open_segments(limit) as u64;
    // Where nothing is set segments take half.
    let wanted = shards.max_open_segments.map_or(OTHER_FILES, |set| set as u64) + OTHER_FILES;
    if limit >= wanted {
        let left = limit - segments;
        return Verdict::ok(NAME, format!("{limit}: {segments} for segments, {left} for connections and the rest"));
    }
    let level = if limit < FILES_MIN { Level::Problem } else { Level::Warning };
    let found = format!("{limit} for {segments} open segments and connections");
    let mend = format!("ulimit -n {wanted} (LimitNOFILE= in a systemd unit)");
    Verdict::new(level, NAME, found, "connections are refused once it is used up", mend)
}

fn backlog(setting: &Setting) -> Verdict {
    const NAME: &str = "listen backlog";
    const FILE: &str = "/proc/sys/net/core/somaxconn";
    let asked = u64::from(setting.config.connections.listen_backlog);
    match setting.host.number(FILE) {
        Err(why) => Verdict::unknown(NAME, why),
        Ok(most) if most >= asked => Verdict::ok(NAME, format!("{asked} asked for, somaxconn is {most}")),
        Ok(most) => {
            let cost = "when all clients come back at once, those beyond it retry after a second";
            let found = format!("{asked} asked for, somaxconn cuts it to {most}");
            let change = Change { path: FILE.into(), now: most.to_string(), value: asked.to_string() };
            let mend = format!("sysctl -w net.core.somaxconn={asked}");
            Verdict::new(Level::Warning, NAME, found, cost, mend).with_changes(vec![change])
        }
    }
}

fn memory(setting: &Setting) -> Verdict {
    const NAME: &str = "memory";
    let Some(total) = setting.host.memory_bytes() else {
        return Verdict::unknown(NAME, "/proc/meminfo has no MemTotal");
    };
    let shards = setting.shard_cpus.len() as u64;
    let in_flight = setting.config.connections.max_inflight_bytes_per_shard as u64 * shards;
    let planned = setting.io_memory_bytes() + setting.config.shards.batch_cache_bytes as u64 + in_flight;
    let found = format!("the profile may use {} of {}", bytes(planned), bytes(total));
    if planned <= total / 2 {
        return Verdict::ok(NAME, found);
    }
    let cost =
        "little is left for the page cache, which closed segments are read through; beyond all of it the kernel kills";
    let mend = "lower batch_cache_bytes, inflight_bytes_per_shard or io_memory_bytes in the tuning profile";
    Verdict::new(Level::Warning, NAME, found, cost, mend)
}
