//! The machine and the programs that a result belongs to: without them a figure means nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::gauge::Device;

/// What every line of results carries.
pub fn describe(dir: &Path, ringlog: &Path) -> Value {
    let device = Device::of(dir);
    let of = |f: fn(&Device) -> String| device.as_ref().map(f);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let (file_system, options) = file_system(&mounts, &fs::canonicalize(dir).unwrap_or_else(|_| dir.to_path_buf()));
    json!({
        "kernel": kernel(),
        "cpu": cpu_model(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        "cpus": std::thread::available_parallelism().map_or(0, usize::from),
        "memory_mib": memory_mib(&fs::read_to_string("/proc/meminfo").unwrap_or_default()),
        "disk": of(Device::name), "disk_model": of(Device::model), "disk_scheduler": of(Device::scheduler),
        "file_system": file_system, "mount_options": options,
        "ringlog": first_line(Command::new(ringlog).arg("--version")),
        "revision": revision(),
        "java": first_line(Command::new("java").arg("-version")),
        "optimised": !cfg!(debug_assertions),
    })
}

pub fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// The tree that this program was started in; `+` where it differs from its revision.
fn revision() -> Option<String> {
    let revision = first_line(Command::new("git").args(["rev-parse", "--short", "HEAD"]))?;
    let changed = Command::new("git").args(["status", "--porcelain", "--untracked-files=no"]).output().ok()?;
    Some(format!("{revision}{}", if changed.stdout.is_empty() { "" } else { "+" }))
}

/// Of what a program says; some say it on stderr.
fn first_line(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    let said = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    String::from_utf8_lossy(&said).lines().next().map(|line| line.trim().to_owned())
}

fn cpu_model(cpuinfo: &str) -> &str {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(':')).map_or("unknown", |(_, name)| name.trim())
}

fn memory_mib(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// Type and options of the mount that holds a path: the longest mount point that is a part of it.
fn file_system(mountinfo: &str, path: &Path) -> (String, String) {
    let holds = |line: &&str| line.split(' ').nth(4).is_some_and(|point| path.starts_with(point));
    let length = |line: &&str| line.split(' ').nth(4).map_or(0, str::len);
    let found = mountinfo.lines().filter(holds).max_by_key(length).unwrap_or_default();
    let options = found.split(' ').nth(5).unwrap_or_default();
    let kind = found.split_once(" - ").and_then(|(_, rest)| rest.split(' ').next()).unwrap_or("unknown");
    (kind.to_owned(), options.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mount_point_holds_a_path() {
        let mounts = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
                      40 22 8:1 / /data rw,noatime - xfs /dev/sda1 rw\n\
                      41 22 0:9 / /database ro - tmpfs none rw\n";
        let of = |path: &str| file_system(mounts, Path::new(path));
        assert_eq!(of("/data/x"), ("xfs".to_owned(), "rw,noatime".to_owned()));
        assert_eq!(of("/tmp").0, "ext4");
    }

    #[test]
    fn names_and_sizes_are_found() {
        assert_eq!(cpu_model("processor : 0\nmodel name\t: A CPU\n"), "A CPU");
        assert_eq!(memory_mib("MemTotal:       24567890 kB\n"), 23_992);
    }

    #[test]
    fn a_description_names_this_machine() {
        let host = describe(Path::new("/"), Path::new("/nonexistent"));
        assert!(host["kernel"].as_str().is_some_and(|kernel| !kernel.is_empty()), "{host}");
        assert!(host["ringlog"].is_null() && host["cpus"].as_u64() > Some(0));
    }
}
