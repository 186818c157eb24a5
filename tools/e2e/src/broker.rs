//! The broker under test: Ringlog, or Apache Kafka where `RINGLOG_E2E_BROKER=kafka` says so.
//!
//! Each test starts its own, in a folder and on a port of its own. A restart keeps both, so that clients which live
//! through it find the broker again.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::kafka;
use crate::place::{self, TempDir};
use crate::process::Running;

/// How long a start may take before the test gives up; a JVM on a busy machine needs it.
pub const START_LIMIT: Duration = Duration::from_secs(60);
/// How long a clean stop may take.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// What a broker gets unless the test says otherwise: small internal topics and no wait for a group's first members.
const DEFAULTS: &[(&str, &str)] = &[("group.initial.rebalance.delay.ms", "0"), ("offsets.topic.num.partitions", "4")];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Ringlog,
    Kafka,
}

/// Which broker this run is about.
pub fn kind() -> Kind {
    match std::env::var("RINGLOG_E2E_BROKER").as_deref() {
        Ok("kafka") => Kind::Kafka,
        Ok("ringlog") | Err(_) => Kind::Ringlog,
        Ok(other) => panic!("RINGLOG_E2E_BROKER is {other:?}: say ringlog or kafka"),
    }
}

/// True where a test is about Ringlog alone and this run is about Kafka; it prints why.
pub fn skip_on_kafka(why: &str) -> bool {
    let skip = kind() == Kind::Kafka;
    if skip {
        eprintln!("skipped against Apache Kafka: {why}");
    }
    skip
}

/// `ringlog serve` with the arguments that every test wants.
pub fn ringlog_serve(data_dir: &Path, listen: &str) -> Command {
    let mut command = Command::new(place::ringlog());
    command.arg("serve").arg("--data-dir").arg(data_dir).args(["--listen", listen]);
    command.env("RUST_BACKTRACE", "1");
    command
}

pub struct Broker {
    kind: Kind,
    // Before the folder: fields are dropped in order, and the process must be gone before its files.
    process: Option<Running>,
    port: u16,
    settings: Vec<(String, String)>,
    dir: TempDir,
}

impl Broker {
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts with settings under Kafka's names on top of the defaults.
    pub fn with(settings: &[(&str, &str)]) -> Self {
        let mut broker = Self::prepare(settings);
        broker.launch();
        broker
    }

    /// The same on a copy of a data folder.
    pub fn on(data: &Path, settings: &[(&str, &str)]) -> Self {
        let mut broker = Self::prepare(settings);
        crate::fixture::copy(data, &broker.data_dir());
        broker.launch();
        broker
    }

    fn prepare(settings: &[(&str, &str)]) -> Self {
        let mut all: Vec<(String, String)> = Vec::new();
        for (key, value) in DEFAULTS.iter().chain(settings) {
            all.retain(|(known, _)| known != key);
            all.push(((*key).to_owned(), (*value).to_owned()));
        }
        Broker { kind: kind(), process: None, port: 0, settings: all, dir: TempDir::new() }
    }

    fn launch(&mut self) {
        assert!(self.process.is_none(), "started twice");
        match self.kind {
            Kind::Ringlog => self.launch_ringlog(),
            Kind::Kafka => {
                if self.port == 0 {
                    self.port = place::free_port();
                }
                self.process = Some(kafka::launch(self.dir.path(), self.port, &self.settings));
            }
        }
    }

    fn launch_ringlog(&mut self) {
        let mut command = ringlog_serve(&self.data_dir(), &format!("127.0.0.1:{}", self.port));
        for (key, value) in &self.settings {
            command.arg("--set").arg(format!("{key}={value}"));
        }
        let mut process = Running::start("ringlog", &mut command);
        self.port = listening_port(&process).unwrap_or_else(|| {
            let state = process.wait(Duration::ZERO).map_or("it runs".to_owned(), |status| status.to_string());
            panic!("ringlog did not say where it listens ({state})")
        });
        self.process = Some(process);
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub fn process(&mut self) -> &mut Running {
        self.process.as_mut().expect("the broker runs")
    }

    /// SIGTERM and a clean end.
    #[track_caller]
    pub fn stop(&mut self) {
        let mut process = self.process.take().expect("the broker runs");
        let status = process.terminate(STOP_LIMIT);
        // A JVM that ends on SIGTERM reports 143.
        assert!(status.success() || self.kind == Kind::Kafka, "unclean stop ({status}):\n{}", process.tail());
    }

    pub fn kill(&mut self) {
        self.process.take().expect("the broker runs").kill();
    }

    /// Starts on the same folder and port; how long until it answers at its port.
    pub fn start_again(&mut self) -> Duration {
        let begun = Instant::now();
        self.launch();
        std::net::TcpStream::connect(("127.0.0.1", self.port)).expect("a started broker accepts");
        begun.elapsed()
    }

    #[track_caller]
    pub fn restart(&mut self) {
        self.stop();
        self.start_again();
    }

    /// The folder of one partition, wherever in the data folder the broker keeps it.
    pub fn partition_dir(&self, topic: &str, partition: i32) -> PathBuf {
        let name = format!("{topic}-{partition}");
        let in_folder = |path: &Path| path.parent().and_then(Path::file_name).is_some_and(|folder| *folder == *name);
        let files = place::files_below(&self.data_dir(), in_folder);
        let file = files.first().unwrap_or_else(|| panic!("no folder {name} in {}", self.data_dir().display()));
        file.parent().unwrap().to_path_buf()
    }
}

/// The port in the printed line `listening on HOST:PORT`.
pub fn listening_port(process: &Running) -> Option<u16> {
    let port_of = |line: &str| {
        let address = line.split("listening on ").nth(1)?;
        address.split([' ', ',']).next()?.rsplit(':').next()?.parse().ok()
    };
    process.find_line(START_LIMIT, port_of)
}
