//! `ringlog tune apply`: writes what a process may write itself under `/proc/sys` and `/sys`, once `--yes` is given, and
//! prints the rest as commands. Nothing here lasts beyond the next start of the host, and it says so.

use std::process::ExitCode;

use clap::Args;

use super::check::{HostArgs, Setting, verdicts};
use super::host::Host;
use super::verdict::{Change, Level, Verdict};

pub const AFTER_HELP: &str = "\
Without --yes nothing is written. With it, root is needed. What was written holds until the host starts anew.

Exit codes: 0 done (or nothing to do), 1 something could not be written, 2 the command line is wrong.

Example:
  ringlog tune apply
  sudo ringlog tune apply --yes";

#[derive(Debug, Args)]
pub struct ApplyArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Write what the table shows.
    #[arg(long)]
    yes: bool,
}

pub fn run(args: &ApplyArgs) -> Result<ExitCode, String> {
    let (setting, _) = Setting::of_this_host(&args.host)?;
    let verdicts = verdicts(&setting);
    let changes: Vec<(&Verdict, &Change)> =
        verdicts.iter().flat_map(|verdict| verdict.changes.iter().map(move |change| (verdict, change))).collect();
    let mut out = String::new();
    let failed = match changes.is_empty() {
        true => {
            out.push_str("Nothing that this command can write itself.\n");
            0
        }
        false => write_all(&setting.host, &changes, args.yes, &mut out),
    };
    let rest = rest(&verdicts);
    if !rest.is_empty() {
        out.push_str(&format!("\nBy hand:\n{rest}\n"));
    }
    out.push_str(match (changes.len(), args.yes, failed) {
        (0, _, _) => "",
        (_, false, _) => "\nNothing was written: ringlog tune apply --yes does it, as root.\n",
        (_, true, 0) => {
            "\nWritten, until the host starts anew. To keep it: /etc/sysctl.d for /proc/sys, udev rules for /sys.\n"
        }
        (_, true, _) => "",
    });
    super::print(&out)?;
    match failed {
        0 => Ok(ExitCode::SUCCESS),
        failed => Err(format!("{failed} of {} values could not be written; see the table above", changes.len())),
    }
}

/// Makes the table, writing each line's value first where asked. Gives the number of failures.
fn write_all(host: &Host, changes: &[(&Verdict, &Change)], yes: bool, out: &mut String) -> usize {
    let path_width = changes.iter().map(|(_, c)| c.path.len()).max().unwrap_or(0);
    let mut failed = 0;
    for (verdict, change) in changes {
        let came = if yes { write(host, change) } else { Ok(()) };
        let state = match (&came, yes) {
            (Ok(()), true) => "  written".to_owned(),
            (Ok(()), false) => String::new(),
            (Err(why), _) => format!("  failed: {why}"),
        };
        failed += usize::from(came.is_err());
        let (path, now, value) = (&change.path, &change.now, &change.value);
        out.push_str(&format!("{:<14}  {path:<path_width$}  {now} -> {value}{state}\n", verdict.name));
    }
    failed
}

/// Writes one value, and looks at whether the kernel took it: some files take a value and keep their own.
fn write(host: &Host, change: &Change) -> Result<(), String> {
    let path = host.at(&change.path);
    std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, change.value.as_bytes()))
        .map_err(|e| match e.kind() {
            std::io::ErrorKind::PermissionDenied => format!("{e}; be root"),
            _ => format!("{e}; the kernel or the driver does not let it go"),
        })?;
    let now = host.text(&change.path)?;
    let taken =
        now == change.value || super::parse::chosen(&now) == Some(&change.value) || is_same_list(&now, &change.value);
    if taken { Ok(()) } else { Err(format!("the kernel keeps {now:?}")) }
}

fn is_same_list(one: &str, other: &str) -> bool {
    let lists = (tuning::cpu_list::parse(one), tuning::cpu_list::parse(other));
    matches!(lists, (Some(one), Some(other)) if one == other && !one.is_empty())
}

/// Findings with a mend that no process can write for the user.
fn rest(verdicts: &[Verdict]) -> String {
    let by_hand = verdicts.iter().filter(|v| v.level >= Level::Note && v.changes.is_empty() && !v.mend.is_empty());
    by_hand.map(|v| format!("{:<14}  {}", v.name, v.mend)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use runtime::testing::TempDir;

    use super::*;

    fn change(value: &str) -> Change {
        Change { path: "/proc/sys/vm/swappiness".into(), now: "60".into(), value: value.into() }
    }

    fn fake() -> (TempDir, Host) {
        let dir = TempDir::new("apply");
        std::fs::create_dir_all(dir.path().join("proc/sys/vm")).unwrap();
        std::fs::write(dir.path().join("proc/sys/vm/swappiness"), "60").unwrap();
        let host = Host::new(dir.path());
        (dir, host)
    }

    #[test]
    fn nothing_is_written_without_yes() {
        let (_dir, host) = fake();
        let verdict = Verdict::ok("swappiness", "60");
        assert_eq!(write_all(&host, &[(&verdict, &change("1"))], false, &mut String::new()), 0);
        assert_eq!(host.text("/proc/sys/vm/swappiness").unwrap(), "60");
    }

    #[test]
    fn what_the_kernel_does_not_take_counts_as_failed() {
        let (_dir, host) = fake();
        // A plain file keeps its second digit under a shorter value: the kernel "keeps" 10.
        assert!(write(&host, &change("1")).unwrap_err().contains("keeps"));
        assert_eq!(write(&host, &change("99")), Ok(()));
        let gone = Change { path: "/sys/none".into(), ..change("1") };
        assert!(write(&host, &gone).is_err());
        assert!(!host.exists("/sys/none"), "a file that is not there is not made");
    }

    #[test]
    fn lists_of_cpus_are_compared_by_what_they_mean() {
        assert!(is_same_list("0-1", "0,1") && !is_same_list("0", "1") && !is_same_list("", ""));
    }

    #[test]
    fn the_rest_is_what_has_a_mend_and_no_change() {
        let one = Verdict::new(Level::Note, "write cache", "x", "y", "buy drives");
        let two = Verdict::new(Level::Note, "swappiness", "x", "y", "").with_changes(vec![change("1")]);
        let text = rest(&[one, two, Verdict::ok("kernel", "6")]);
        assert!(text.contains("buy drives") && !text.contains("swappiness"), "{text}");
    }
}
