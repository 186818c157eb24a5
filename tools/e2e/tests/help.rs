//! `--help` of every sub-command has an example, and every example works as pasted.
//!
//! "As pasted" means against the default address. The tests run beside others, so that address is given by
//! `RINGLOG_BOOTSTRAP`, and an example that starts a broker gets a port and a folder of the test's. What an example talks
//! about (the topic clicks, the group dashboard) is made before it, as a reader would have done.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ringlog_e2e::broker::{listening_port, ringlog_serve};
use ringlog_e2e::cli::{self, FINDINGS, LIMIT};
use ringlog_e2e::place::{self, TempDir};
use ringlog_e2e::process::{self, Running};
use ringlog_e2e::raw::Raw;
use ringlog_e2e::{Broker, requests};

/// The longest example runs for 20 s.
const EXAMPLE_LIMIT: Duration = Duration::from_secs(90);
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// A sub-command by its words (`["topic", "create"]`) and what its `--help` says.
struct Page {
    words: Vec<String>,
    help: String,
}

impl Page {
    fn read(words: Vec<String>) -> Page {
        let mut arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        arguments.push("--help");
        let help = process::run(&mut cli::alone(&arguments), b"", LIMIT).ok().text();
        Page { words, help }
    }

    /// The words behind `Commands:`.
    fn sub_commands(&self) -> Vec<String> {
        let lines = self.help.lines().skip_while(|line| *line != "Commands:").skip(1);
        let lines = lines.take_while(|line| !line.is_empty());
        let entry = |line: &str| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')).map(first_word);
        lines.filter_map(entry).filter(|word| word != "help").collect()
    }

    /// The lines of every section called `Example:` or `Examples:`.
    fn examples(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut inside = false;
        for line in self.help.lines() {
            match line.strip_prefix("  ") {
                _ if matches!(line, "Example:" | "Examples:") => inside = true,
                Some(example) if inside => found.push(example.to_owned()),
                _ => inside = false,
            }
        }
        found
    }
}

fn first_word(line: &str) -> String {
    line.split_whitespace().next().unwrap_or_default().to_owned()
}

/// Every page but that of `ringlog` itself, parents before their children.
fn pages() -> Vec<Page> {
    let mut found = Vec::new();
    let mut waiting = vec![Page::read(Vec::new())];
    while let Some(page) = waiting.pop() {
        for word in page.sub_commands().iter().rev() {
            let words = page.words.iter().chain([word]).cloned().collect();
            waiting.push(Page::read(words));
        }
        if !page.words.is_empty() {
            found.push(page);
        }
    }
    found
}

#[test]
fn every_sub_command_has_an_example_of_itself() {
    let pages = pages();
    assert!(pages.len() >= 30, "only {} pages were found", pages.len());
    let mut without = Vec::new();
    for page in &pages {
        let name = format!("ringlog {}", page.words.join(" "));
        let examples = page.examples();
        if examples.is_empty() {
            without.push(name);
        } else {
            let own = examples.iter().any(|example| example.contains(&name));
            assert!(own, "the example of `{name}` shows something else: {examples:?}");
        }
    }
    assert!(without.is_empty(), "no example in the help of: {}", without.join(", "));
}

/// Where examples run: a broker, and a folder of their own with a stopped broker's `ringlog-data` and the least that is a
/// `kafka-data` in it.
struct Setting {
    broker: Broker,
    dir: TempDir,
}

impl Setting {
    fn new() -> Setting {
        let setting = Setting { broker: Broker::start(), dir: TempDir::new() };
        let data = setting.dir.path().join("ringlog-data");
        let partition = setting.dir.path().join("kafka-data/orders-0");
        std::fs::create_dir_all(&partition).unwrap();
        std::fs::write(partition.join("00000000000000000000.log"), []).unwrap();
        let mut serve = Running::start("ringlog", &mut ringlog_serve(&data, "127.0.0.1:0"));
        let mut raw = Raw::connect_to(listening_port(&serve).expect("it listens"));
        requests::create_topic(&mut raw, "clicks", 2, &[]);
        requests::produce(&mut raw, "clicks", &ringlog_e2e::batch::Batch::of(&["a", "b"]));
        assert!(serve.terminate(STOP_LIMIT).success(), "{}", serve.tail());
        setting
    }

    /// Puts everything back to what a reader of the example has.
    fn prepare(&self, words: &[String]) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if words == ["topic", "create"] {
            cli::run(&self.broker, &["topic", "delete", "clicks", "--if-exists"]).ok();
            requests::until("clicks is gone", || {
                let list = cli::json(&self.broker, &["topic", "list"]);
                list.as_array()?.iter().all(|topic| topic["topic"] != "clicks").then_some(())
            });
            return;
        }
        for (topic, partitions) in [("clicks", 4), ("greetings", 1), ("load", 4)] {
            let create = ["topic", "create", topic, "-p", &partitions.to_string(), "--if-not-exists"];
            cli::run(&self.broker, &create).ok();
        }
        if words[0] == "group" {
            requests::until("clicks can be used", || cli::try_json(&self.broker, &["topic", "describe", "clicks"]));
            cli::produce(&self.broker, "clicks", &[], "/home\n/cart\n");
            cli::consume(&self.broker, "clicks", &["--group", "dashboard"]);
        }
    }

    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        let programs = place::ringlog().parent().unwrap().to_path_buf();
        let path = std::env::var("PATH").unwrap_or_default();
        command.args(["-c", line]).current_dir(self.dir.path());
        command.env("PATH", format!("{}:{path}", programs.display()));
        command.env("RINGLOG_BOOTSTRAP", self.broker.bootstrap());
        command
    }

    #[track_caller]
    fn runs(&self, page: &Page, example: &str) {
        if example.contains("--yes") {
            assert_eq!(page.words, ["tune", "apply"], "only this example changes the host: {example}");
            return;
        }
        self.prepare(&page.words);
        match page.words[0].as_str() {
            "serve" => self.serves(example),
            "demo" if !example.contains("--duration") => self.runs_until_ctrl_c(example),
            _ => {
                let ended = process::run(&mut self.shell(example), b"", EXAMPLE_LIMIT);
                // A host with a problem is no fault of the example.
                let found =
                    page.words[0] == "tune" && example.contains("check") && ended.status.code() == Some(FINDINGS);
                assert!(ended.status.success() || found, "{example}\n{}\n{}", ended.status, ended.all());
                assert!(!ended.all().trim().is_empty(), "{example} shows nothing");
            }
        }
    }

    fn serves(&self, example: &str) {
        let data = self.dir.path().join("served");
        let moved = with_value(&with_value(example, "--listen", "127.0.0.1:0"), "--data-dir", data.to_str().unwrap());
        let mut serve = Running::start(example, &mut self.shell(&format!("exec {moved}")));
        let port = listening_port(&serve).unwrap_or_else(|| panic!("{example} does not listen:\n{}", serve.tail()));
        requests::all_topics(&mut Raw::connect_to(port));
        assert!(Path::exists(&data), "{example} keeps its data where it says");
        assert!(serve.terminate(STOP_LIMIT).success(), "{example}\n{}", serve.tail());
    }

    fn runs_until_ctrl_c(&self, example: &str) {
        let mut running = Running::start(example, &mut self.shell(&format!("exec {example}")));
        running.wait_for_line(EXAMPLE_LIMIT, "consumed");
        running.signal("INT");
        let status = running.wait(EXAMPLE_LIMIT);
        assert!(status.is_some_and(|status| status.success()), "{example}: {status:?}\n{}", running.tail());
    }
}

/// The command line with another value behind `flag`.
fn with_value(line: &str, flag: &str, value: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    match words.iter().position(|word| *word == flag) {
        Some(at) => words[at + 1] = value,
        None => words.extend([flag, value]),
    }
    words.join(" ")
}

#[track_caller]
fn run_examples(of: impl Fn(&str) -> bool) {
    let setting = Setting::new();
    let mut count = 0;
    for page in pages().iter().filter(|page| of(&page.words[0])) {
        for example in page.examples() {
            setting.runs(page, &example);
            count += 1;
        }
    }
    assert!(count > 0, "no example was run");
    println!("{count} examples");
}

/// Those that run for a while have tests of their own, so that they run beside the others.
const SLOW: [&str; 3] = ["perf", "demo", "tune"];

#[test]
fn every_example_works() {
    run_examples(|word| !SLOW.contains(&word));
}

#[test]
fn every_example_of_load_and_demo_works() {
    run_examples(|word| ["perf", "demo"].contains(&word));
}

#[test]
fn every_example_of_tuning_works() {
    run_examples(|word| word == "tune");
}
