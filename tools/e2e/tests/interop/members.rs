//! Members of one group: ours by `ringlog consume`, and those of others. Each is a process that tells what it reads.

use std::process::Command;
use std::time::{Duration, Instant};

use ringlog_e2e::java::Tool;
use ringlog_e2e::process::Running;
use ringlog_e2e::{Broker, cli, python};

/// A JVM on a busy machine, or a member that leaves while a rebalance is under way.
const LEAVE_LIMIT: Duration = Duration::from_secs(40);

pub const GROUP: &str = "mixed";
pub const TOPIC: &str = "shared";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Client {
    Ours,
    Java,
    Librdkafka,
    KafkaPython,
}

pub struct Member {
    client: Client,
    name: &'static str,
    process: Running,
}

impl Member {
    pub fn join(broker: &Broker, client: Client, assignor: &str, name: &'static str) -> Member {
        let process = match client {
            Client::Ours => {
                let arguments = ["consume", TOPIC, "--group", GROUP, "--assignor", assignor, "-f", "record %p %o\\n"];
                cli::spawn(broker, &arguments)
            }
            Client::Java => java(broker, assignor),
            Client::Librdkafka => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_librdkafka_member"));
                Running::start("librdkafka", command.args([&broker.bootstrap(), GROUP, TOPIC, assignor]))
            }
            Client::KafkaPython => python::spawn_member(broker, GROUP, TOPIC, assignor),
        };
        Member { client, name, process }
    }

    /// Partition and offset of every record that it has read.
    pub fn read(&self) -> Vec<(i32, i64)> {
        self.read_when().into_iter().map(|(_, record)| record).collect()
    }

    /// The same with the time when it said so.
    pub fn read_when(&self) -> Vec<(Instant, (i32, i64))> {
        let parse = if self.client == Client::Java { java_record } else { record };
        let lines = self.process.timed_lines();
        lines.iter().filter_map(|(when, line)| Some((*when, parse(line)?))).collect()
    }

    #[track_caller]
    pub fn leave(&mut self) {
        match self.client {
            Client::Librdkafka => self.process.end_input(),
            Client::Ours => self.process.signal("INT"),
            Client::Java | Client::KafkaPython => self.process.signal("TERM"),
        }
        let status = self.process.wait(LEAVE_LIMIT);
        let status = status.unwrap_or_else(|| panic!("{:?} does not end:\n{}", self.client, self.process.tail()));
        // A JVM that ends on SIGTERM reports 143.
        assert!(
            status.success() || self.client == Client::Java,
            "{:?}: {status}\n{}",
            self.client,
            self.process.tail()
        );
    }

    pub fn kill(&mut self) {
        self.process.kill();
    }

    pub fn client(&self) -> Client {
        self.client
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn tail(&self) -> String {
        format!("{}, {:?}: {}", self.name, self.client, self.process.tail())
    }
}

fn java(broker: &Broker, assignor: &str) -> Running {
    let class = match assignor {
        "range" => "org.apache.kafka.clients.consumer.RangeAssignor",
        "cooperative-sticky" => "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        other => panic!("no assignor of Java is known as {other}"),
    };
    let strategy = format!("partition.assignment.strategy={class}");
    let consumer = [&strategy, "auto.offset.reset=earliest", "session.timeout.ms=6000", "heartbeat.interval.ms=500"];
    let consumer = consumer.iter().flat_map(|property| ["--command-property", property]);
    let shown = ["print.partition=true", "print.offset=true", "print.value=false"];
    let shown = shown.iter().flat_map(|property| ["--formatter-property", property]);
    let arguments: Vec<&str> = ["--topic", TOPIC, "--group", GROUP].into_iter().chain(consumer).chain(shown).collect();
    Tool::ConsoleConsumer.spawn(broker, &arguments)
}

/// `record PARTITION OFFSET`
fn record(line: &str) -> Option<(i32, i64)> {
    let (partition, offset) = line.strip_prefix("record ")?.split_once(' ')?;
    Some((partition.parse().ok()?, offset.parse().ok()?))
}

/// `Partition:3\tOffset:17`
fn java_record(line: &str) -> Option<(i32, i64)> {
    let (partition, offset) = line.strip_prefix("Partition:")?.split_once("\tOffset:")?;
    Some((partition.parse().ok()?, offset.parse().ok()?))
}
