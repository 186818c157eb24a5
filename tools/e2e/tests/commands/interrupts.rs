//! Ctrl-C: what was begun is finished, what was printed is committed, the group is left, the exit code tells.

use std::time::{Duration, Instant};

use ringlog_e2e::Broker;
use ringlog_e2e::cli::{self, INTERRUPTED, LIMIT};

/// A member that leaves is gone at once; one that does not is there for its session timeout of 45 s.
const LEAVE_LIMIT: Duration = Duration::from_secs(15);

#[test]
fn a_groups_member_commits_and_leaves() {
    for signal in ["INT", "TERM"] {
        let broker = Broker::start();
        cli::create_topic(&broker, "t", 3);
        let mut member = cli::spawn(&broker, &["consume", "t", "--group", "g", "-f", "%v\\n"]);
        cli::wait_for_shares(&broker, "g", 1, 3);
        cli::produce(&broker, "t", &["--round-robin"], (0..30).map(|at| format!("{at}\n")).collect::<String>());
        let all = ringlog_e2e::requests::within(LIMIT, || (member.lines().len() == 30).then_some(()));
        assert!(all.is_some(), "{}", member.tail());
        let begun = Instant::now();
        member.signal(signal);
        let status = member.wait(LIMIT).unwrap();
        assert_eq!(status.code(), Some(0), "without an end of its own this is how it ends: {}", member.tail());
        assert_eq!(cli::shares(&broker, "g"), Some(vec![]), "SIG{signal}: it left");
        assert!(begun.elapsed() < LEAVE_LIMIT, "SIG{signal}: {:?}", begun.elapsed());
        assert!(cli::has_read_all(&broker, "g", 3), "SIG{signal}: {:?}", cli::lag(&broker, "g"));
        assert_eq!(cli::consume(&broker, "t", &["--group", "g"]), "", "SIG{signal}: nothing twice");
    }
}

#[test]
fn produce_flushes_what_it_read_and_ends_with_130() {
    let broker = Broker::start();
    cli::create_topic(&broker, "t", 1);
    let mut producer = cli::spawn(&broker, &["produce", "t", "--linger-ms", "60000"]);
    producer.say("one\ntwo");
    // With such a linger nothing is sent before the end, and nothing tells that the lines were read: look, then ask.
    std::thread::sleep(Duration::from_millis(1500));
    producer.signal("INT");
    let status = producer.wait(LIMIT).unwrap();
    assert_eq!(status.code(), Some(INTERRUPTED), "{}", producer.tail());
    assert_eq!(cli::consume(&broker, "t", &[]), "one\ntwo\n");
}

#[test]
fn consume_that_has_an_end_and_a_second_ctrl_c() {
    let broker = Broker::start();
    cli::create_topic(&broker, "t", 1);
    cli::produce(&broker, "t", &[], "one\n");
    let mut reader = cli::spawn(&broker, &["consume", "t", "-n", "5"]);
    reader.wait_for_line(LIMIT, "one");
    reader.signal("INT");
    assert_eq!(reader.wait(LIMIT).unwrap().code(), Some(INTERRUPTED), "it was told to print five: {}", reader.tail());
    let mut reader = cli::spawn(&broker, &["consume", "t"]);
    reader.wait_for_line(LIMIT, "one");
    reader.signal("INT");
    assert_eq!(reader.wait(LIMIT).unwrap().code(), Some(0), "{}", reader.tail());
}
