//! Apache Kafka's own Java clients and console tools, from the packages that `tools/test prepare` put in the cache.
//!
//! A JVM takes a second to start and a core while it does: tests ask one call for as much as it can tell.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::Broker;
use crate::place;
use crate::process::{self, Finished, Running};

/// Longer than any tool takes on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(90);

/// The tools that the tests use.
#[derive(Clone, Copy, Debug)]
pub enum Tool {
    Topics,
    Configs,
    ConsumerGroups,
    ConsoleProducer,
    ConsoleConsumer,
    ProducerPerformance,
    ConsumerPerformance,
    VerifiableProducer,
    VerifiableConsumer,
    GetOffsets,
    DeleteRecords,
    LogDirs,
    MetadataQuorum,
    LeaderElection,
    DumpLog,
}

impl Tool {
    fn class(self) -> &'static str {
        match self {
            Tool::Topics => "TopicCommand",
            Tool::Configs => "ConfigCommand",
            Tool::ConsumerGroups => "consumer.group.ConsumerGroupCommand",
            Tool::ConsoleProducer => "ConsoleProducer",
            Tool::ConsoleConsumer => "consumer.ConsoleConsumer",
            Tool::ProducerPerformance => "ProducerPerformance",
            Tool::ConsumerPerformance => "ConsumerPerformance",
            Tool::VerifiableProducer => "VerifiableProducer",
            Tool::VerifiableConsumer => "VerifiableConsumer",
            Tool::GetOffsets => "GetOffsetShell",
            Tool::DeleteRecords => "DeleteRecordsCommand",
            Tool::LogDirs => "LogDirsCommand",
            Tool::MetadataQuorum => "MetadataQuorumCommand",
            Tool::LeaderElection => "LeaderElectionCommand",
            Tool::DumpLog => "DumpLogSegments",
        }
    }

    pub fn command(self) -> Command {
        class(&format!("org.apache.kafka.tools.{}", self.class()), "192m")
    }

    /// Runs against a broker (`--bootstrap-server` is put first).
    pub fn run(self, broker: &Broker, arguments: &[&str]) -> Finished {
        self.run_with_input(broker, arguments, b"")
    }

    pub fn run_with_input(self, broker: &Broker, arguments: &[&str], input: &[u8]) -> Finished {
        process::run(self.against(broker).args(arguments), input, LIMIT)
    }

    pub fn spawn(self, broker: &Broker, arguments: &[&str]) -> Running {
        Running::start(self.class(), self.against(broker).args(arguments))
    }

    fn against(self, broker: &Broker) -> Command {
        let mut command = self.command();
        command.args(["--bootstrap-server", &broker.bootstrap()]);
        command
    }
}

/// A JVM for `class`, tuned for a short life.
pub fn class(class: &str, heap: &str) -> Command {
    let jars = place::cached(&format!("kafka-{}", place::KAFKA_VERSION));
    let mut command = Command::new(java());
    command.args([&format!("-Xmx{heap}"), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]);
    let logging = place::workspace().join("tools/clients/log4j2.properties");
    command.arg(format!("-Dlog4j2.configurationFile={}", logging.display()));
    command.arg("-cp").arg(jars.join("*")).arg(class);
    command
}

fn java() -> PathBuf {
    std::env::var_os("JAVA_HOME").map_or_else(|| PathBuf::from("java"), |home| PathBuf::from(home).join("bin/java"))
}
