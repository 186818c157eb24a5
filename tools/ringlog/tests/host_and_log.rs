//! `ringlog tune` and `ringlog log dump` as a script sees them: exit codes, stdout, stderr.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use model::Offset;
use model::builder::BatchBuilder;
use runtime::testing::TempDir;

fn ringlog(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ringlog")).args(args).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A partition of one sound batch.
fn partition(dir: &Path) -> String {
    let folder = dir.join("orders-0");
    std::fs::create_dir(&folder).unwrap();
    let batch = BatchBuilder::new().base_offset(Offset(0)).record(5, Some(b"k"), Some(b"a value")).finish();
    std::fs::write(folder.join("00000000000000000000.log"), batch).unwrap();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn a_sound_log_is_0_and_a_damaged_one_is_3() {
    let dir = TempDir::new("dump");
    let folder = partition(dir.path());
    let sound = ringlog(&["log", "dump", "--records", &folder]);
    assert_eq!(code(&sound), 0, "{}", text(&sound.stderr));
    assert!(text(&sound.stdout).contains("\"k\" = \"a value\""), "{}", text(&sound.stdout));

    let file = format!("{folder}/00000000000000000000.log");
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let damaged = ringlog(&["log", "dump", "--json", dir.path().to_str().unwrap()]);
    assert_eq!(code(&damaged), 3);
    assert!(text(&damaged.stdout).contains("\"crc_ok\":false"), "{}", text(&damaged.stdout));
    assert_eq!(text(&damaged.stderr), "ringlog: 1 damaged place found\n");
    assert_eq!(std::fs::read(&file).unwrap(), bytes, "nothing is mended");
}

#[test]
fn what_is_no_log_is_1_and_a_wrong_line_is_2() {
    let dir = TempDir::new("dump");
    let empty = ringlog(&["log", "dump", dir.path().to_str().unwrap()]);
    assert_eq!(code(&empty), 1);
    assert!(text(&empty.stderr).contains("holds no log: give a data folder"), "{}", text(&empty.stderr));
    assert_eq!(code(&ringlog(&["log", "dump", "/no/such/folder"])), 1);
    assert_eq!(code(&ringlog(&["log", "dump"])), 2);
    assert_eq!(code(&ringlog(&["tune", "disk", "/tmp", "--seconds", "1"])), 2);
}

#[test]
fn tune_check_judges_this_host() {
    let output = ringlog(&["tune", "check", "--json"]);
    assert!([0, 3].contains(&code(&output)), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let verdicts = json["verdicts"].as_array().unwrap();
    assert_eq!(verdicts.len(), 19);
    let problem = verdicts.iter().any(|v| v["verdict"] == "problem");
    assert_eq!(code(&output) == 3, problem);
    assert!(verdicts.iter().all(|v| v["found"].as_str().is_some_and(|found| !found.is_empty())));
}

#[test]
fn tune_check_judges_by_the_profile() {
    let dir = TempDir::new("tune");
    let file = dir.path().join("profile.toml");
    std::fs::write(&file, "cpus = [999]\n").unwrap();
    let output = ringlog(&["tune", "check", "--tuning", file.to_str().unwrap()]);
    assert_eq!(code(&output), 1);
    assert!(text(&output.stderr).contains("CPU 999 does not exist"), "{}", text(&output.stderr));
}

#[test]
fn tune_disk_measures_and_leaves_nothing() {
    let dir = TempDir::new("tune");
    let folder = dir.path().to_str().unwrap();
    let output = ringlog(&["tune", "disk", folder, "--seconds", "2", "--json"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["phases"].as_array().unwrap().len(), 23);
    assert!(json["derived"]["sync_p50_us"].as_u64().is_some(), "{json:#}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(code(&ringlog(&["tune", "disk", "/no/such/folder"])), 1);
}

#[test]
fn tune_disk_writes_a_profile_once() {
    let dir = TempDir::new("tune");
    let (folder, file) = (dir.path().to_str().unwrap(), dir.path().join("disk.toml"));
    let args = ["tune", "disk", folder, "--seconds", "2", "--write", file.to_str().unwrap()];
    let output = ringlog(&args);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("use it with: ringlog serve --tuning "), "{}", text(&output.stderr));
    let written = std::fs::read_to_string(&file).unwrap();
    let profile = tuning::Profile::parse(&written).unwrap();
    assert!(profile.is_disk_only() && profile.disk_expected_write_us.is_some_and(|us| us > 0), "{written}");
    assert!(text(&output.stdout).contains(&format!("disk_queue_depth = {}", profile.disk_queue_depth.unwrap())));

    let began = std::time::Instant::now();
    let again = ringlog(&args);
    assert_eq!(code(&again), 1);
    assert!(text(&again.stderr).contains("exists already: --force overwrites it"), "{}", text(&again.stderr));
    assert!(began.elapsed() < std::time::Duration::from_secs(2), "refused before it measures");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), written);
    assert_eq!(code(&ringlog(&["tune", "disk", folder, "--force"])), 2);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn tune_apply_only_shows_without_yes() {
    let output = ringlog(&["tune", "apply"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("Nothing was written") || shown.contains("Nothing that this command can write"), "{shown}");
}
