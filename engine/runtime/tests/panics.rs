//! A panic in a task ends the process with a sentence; no client waits for a dead task.
#![allow(clippy::unwrap_used)]
#![cfg(not(feature = "sim"))]

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

#[test]
fn a_panicking_task_ends_the_process_with_its_name() {
    if std::env::var_os("RINGLOG_TEST_PANIC").is_some() {
        ringlog_runtime::testing::run(|| async {
            ringlog_runtime::spawn("doomed", async { panic!("on purpose") }).join().await;
        });
        unreachable!("the process ended");
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_panicking_task_ends_the_process_with_its_name", "--nocapture"])
        .env("RINGLOG_TEST_PANIC", "1")
        .output()
        .unwrap();
    assert_eq!(output.status.signal(), Some(6), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("task `doomed` panicked: on purpose"), "{text}");
}
