//! The threads of a broker sit where its tuning profile says, as `/proc` shows, and a profile that names a CPU that is not
//! there is refused with a sentence.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use runtime::testing::TempDir;

const RINGLOG: &str = env!("CARGO_BIN_EXE_ringlog");

fn serve(dir: &Path, profile: &str) -> Command {
    let file = dir.join("profile.toml");
    std::fs::write(&file, profile).unwrap();
    let mut command = Command::new(RINGLOG);
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(dir.join("data")).arg("--tuning").arg(file);
    command
}

struct Broker {
    child: Child,
    /// What it printed up to the line that says it is ready.
    printed: String,
}

impl Broker {
    fn start(command: &mut Command) -> Broker {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut printed = String::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            printed.push_str(&line.unwrap());
            printed.push('\n');
            if printed.contains("  ready") {
                break;
            }
        }
        assert!(printed.contains("  ready"), "it ended early:\n{printed}");
        Broker { child, printed }
    }

    /// Name and allowed CPUs of each thread.
    fn threads(&self) -> Vec<(String, String)> {
        let tasks = PathBuf::from(format!("/proc/{}/task", self.child.id()));
        let thread = |folder: PathBuf| {
            // A thread may end while the folder is read.
            let name = std::fs::read_to_string(folder.join("comm")).ok()?.trim().to_owned();
            Some((name, allowed_cpus(&std::fs::read_to_string(folder.join("status")).ok()?)))
        };
        std::fs::read_dir(tasks).unwrap().filter_map(|entry| thread(entry.unwrap().path())).collect()
    }

    fn cpus_of(&self, name: &str) -> Vec<String> {
        let all = self.threads();
        let found: Vec<String> =
            all.iter().filter(|(n, _)| n.starts_with(name)).map(|(_, cpus)| cpus.clone()).collect();
        assert!(!found.is_empty(), "no thread is called {name}: {all:?}");
        found
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn allowed_cpus(status: &str) -> String {
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default().trim().to_owned()
}

fn has_cpus_0_and_1() -> bool {
    let list = allowed_cpus(&std::fs::read_to_string("/proc/self/status").unwrap());
    let cpus = tuning::cpu_list::parse(&list).unwrap();
    cpus.contains(&0) && cpus.contains(&1)
}

#[test]
fn threads_sit_where_the_profile_says() {
    if !has_cpus_0_and_1() {
        eprintln!("skipped: CPUs 0 and 1 are not both open to this process");
        return;
    }
    let dir = TempDir::new("pinning");
    let broker = Broker::start(&mut serve(dir.path(), "cpus = [1]\nhelper_cpu = 0\n"));
    let line = |name: &str| broker.printed.lines().find(|l| l.trim_start().starts_with(name)).unwrap().to_owned();
    assert!(line("shards").contains("1 on CPU 1 (pinned)"), "{}", broker.printed);
    assert!(
        line("tuning").contains("profile.toml") && line("tuning").contains("helper threads on CPU 0"),
        "{}",
        broker.printed
    );
    assert!(broker.cpus_of("shard-0").iter().any(|cpus| cpus == "1"), "{:?}", broker.threads());
    assert_eq!(broker.cpus_of("ringlog-accept"), ["0"]);
    assert_eq!(broker.cpus_of("ringlog-pulse"), ["0"]);
}

#[test]
fn shards_take_the_cpus_in_the_order_named() {
    if !has_cpus_0_and_1() {
        eprintln!("skipped: CPUs 0 and 1 are not both open to this process");
        return;
    }
    let dir = TempDir::new("pinning");
    let broker = Broker::start(&mut serve(dir.path(), "cpus = [1, 0]\n"));
    assert!(broker.cpus_of("shard-0").iter().any(|cpus| cpus == "1"), "{:?}", broker.threads());
    assert!(broker.cpus_of("shard-1").iter().any(|cpus| cpus == "0"), "{:?}", broker.threads());
}

#[test]
fn without_a_profile_nothing_is_pinned_and_the_derived_one_is_named() {
    let dir = TempDir::new("pinning");
    let mut command = Command::new(RINGLOG);
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(dir.path().join("data"));
    let broker = Broker::start(&mut command);
    assert!(broker.printed.contains("  tuning     derived for "), "{}", broker.printed);
    let ours = allowed_cpus(&std::fs::read_to_string("/proc/self/status").unwrap());
    assert!(broker.cpus_of("shard-").iter().all(|cpus| *cpus == ours), "{:?}", broker.threads());
}

#[test]
fn a_profile_of_the_disk_alone_pins_nothing_and_is_in_force() {
    let dir = TempDir::new("pinning");
    let profile = "disk_write_max_bytes = 131072\ndisk_queue_depth = 4\ndisk_expected_write_us = 900\n";
    let broker = Broker::start(&mut serve(dir.path(), profile));
    let line = broker.printed.lines().find(|l| l.trim_start().starts_with("tuning")).unwrap();
    assert!(line.contains("profile.toml for the disk, the rest derived for "), "{line}");
    assert!(line.contains("disk writes up to 128 KiB, 4 at once, 900 µs expected"), "{line}");
    let ours = allowed_cpus(&std::fs::read_to_string("/proc/self/status").unwrap());
    assert!(broker.cpus_of("shard-").iter().all(|cpus| *cpus == ours), "{:?}", broker.threads());
}

#[test]
fn a_disk_that_the_broker_cannot_use_is_refused() {
    let dir = TempDir::new("pinning");
    let output = serve(dir.path(), "disk_write_max_bytes = 70000\n").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("ringlog.disk.write.max.bytes") && text.contains("a multiple of 4096"), "{text}");
}

#[test]
fn a_cpu_that_does_not_exist_is_refused() {
    for profile in ["cpus = [999]\n", "helper_cpu = 999\n"] {
        let dir = TempDir::new("pinning");
        let output = serve(dir.path(), profile).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{profile}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("CPU 999 does not exist or is not open to this process; it may use CPU"), "{text}");
        assert!(!dir.path().join("data").exists(), "nothing was started");
    }
}
