//! A broker, or the bare contestant, as a child process: started on a free port in a fresh folder, its CPU time and memory read from `/proc`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for a first answer.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Kernel clock ticks in a second, as `/proc` counts CPU time (the same on every Linux that matters here).
const TICKS_PER_SECOND: f64 = 100.0;

/// Longest wait for a stop.
const STOP_LIMIT: Duration = Duration::from_secs(60);
const NO_SETTINGS: &[&str] = &[];

/// Which broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ringlog,
    Kafka,
    /// The program of [`crate::bare`].
    Bare,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ringlog => "Ringlog",
            Kind::Kafka => "Apache Kafka 4.4.0",
            Kind::Bare => "bare io_uring",
        }
    }
}

/// Where the programs are.
#[derive(Clone, Debug)]
pub struct Programs {
    pub ringlog: PathBuf,
    /// Folder of Apache Kafka's packages.
    pub kafka_packages: PathBuf,
    /// The `bench` program, whose command `bare` is the bare contestant.
    pub bench: PathBuf,
    /// CPUs that the broker may use, as `taskset -c` takes them; none: all.
    pub cpus: Option<String>,
}

impl Programs {
    /// Ringlog alone, on all CPUs.
    pub fn ringlog(program: &Path) -> Programs {
        Programs { ringlog: program.to_path_buf(), kafka_packages: PathBuf::new(), bench: PathBuf::new(), cpus: None }
    }

    /// A command that becomes the program itself, on the CPUs that are allowed.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let Some(cpus) = &self.cpus else { return Command::new(program) };
        let mut command = Command::new("taskset");
        command.arg("-c").arg(cpus).arg(program);
        command
    }
}

/// A running broker; killed when dropped.
#[derive(Debug)]
pub struct Broker {
    child: Child,
    pub port: u16,
    pub started_in: Duration,
}

impl Broker {
    pub fn start(kind: Kind, programs: &Programs, dir: &Path) -> Result<Broker, String> {
        Broker::start_with(kind, programs, dir, NO_SETTINGS)
    }

    /// The same with settings of Ringlog's or the bare contestant's, `key=value`.
    pub fn start_with(
        kind: Kind,
        programs: &Programs,
        dir: &Path,
        settings: &[impl AsRef<str>],
    ) -> Result<Broker, String> {
        let port = free_port()?;
        fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        let mut command = match kind {
            Kind::Ringlog => ringlog(programs, dir, port, settings),
            Kind::Kafka => kafka(programs, dir, port)?,
            Kind::Bare => bare(programs, dir, port, settings),
        };
        let log = fs::File::create(dir.join("output")).map_err(|e| e.to_string())?;
        let errors = log.try_clone().map_err(|e| e.to_string())?;
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
        let begun = Instant::now();
        let child = command.spawn().map_err(|e| format!("{} does not start: {e}", kind.name()))?;
        let mut broker = Broker { child, port, started_in: Duration::ZERO };
        while !crate::client::answers(port) {
            if begun.elapsed() > START_LIMIT || broker.child.try_wait().is_ok_and(|s| s.is_some()) {
                let output = fs::read_to_string(dir.join("output")).unwrap_or_default();
                return Err(format!("{} does not answer: {output}", kind.name()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        broker.started_in = begun.elapsed();
        Ok(broker)
    }

    fn proc_file(&self, name: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{name}", self.child.id())).unwrap_or_default()
    }

    /// User and system CPU seconds of the process so far.
    pub fn cpu_seconds(&self) -> f64 {
        let stat = self.proc_file("stat");
        let behind_name = stat.rsplit(')').next().unwrap_or_default();
        let ticks = behind_name.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<f64>().ok()).sum::<f64>();
        ticks / TICKS_PER_SECOND
    }

    /// Resident memory now, MiB.
    pub fn resident_mib(&self) -> f64 {
        self.field("status", "VmRSS:") / 1024.0
    }

    /// The most resident memory so far, MiB.
    pub fn resident_peak_mib(&self) -> f64 {
        self.field("status", "VmHWM:") / 1024.0
    }

    /// Bytes that the process caused to be written to storage, as the kernel counts them when pages are dirtied or
    /// direct writes are issued.
    pub fn written_bytes(&self) -> f64 {
        self.field("io", "write_bytes:")
    }

    fn field(&self, file: &str, name: &str) -> f64 {
        let text = self.proc_file(file);
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|value| value.parse().ok()).unwrap_or(0.0)
    }
}

impl Broker {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn open_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).map_or(0, Iterator::count)
    }

    /// Stops with SIGTERM; gives the time it took.
    pub fn stop(mut self) -> Result<Duration, String> {
        let begun = Instant::now();
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().map_err(|e| e.to_string())?;
        let status = loop {
            if let Some(status) = self.child.try_wait().map_err(|e| e.to_string())? {
                break status;
            }
            if begun.elapsed() > STOP_LIMIT {
                return Err(format!("the broker does not stop within {} s", STOP_LIMIT.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        // A JVM that ends in order at SIGTERM says 143.
        let in_order = status.success() || status.code() == Some(143);
        if in_order { Ok(begun.elapsed()) } else { Err(format!("the broker ended with {status}")) }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    listener.local_addr().map(|a| a.port()).map_err(|e| e.to_string())
}

fn ringlog(programs: &Programs, dir: &Path, port: u16, settings: &[impl AsRef<str>]) -> Command {
    let mut command = programs.command(&programs.ringlog);
    command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"]).arg(dir.join("data"));
    for setting in settings {
        command.args(["--set", setting.as_ref()]);
    }
    command
}

fn bare(programs: &Programs, dir: &Path, port: u16, settings: &[impl AsRef<str>]) -> Command {
    let mut command = programs.command(&programs.bench);
    command.args(["bare", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"]).arg(dir.join("data"));
    command.args(settings.iter().map(|setting| format!("--{}", setting.as_ref())));
    command
}

/// One KRaft node with the JVM flags of Kafka's own start script.
fn kafka(programs: &Programs, dir: &Path, port: u16) -> Result<Command, String> {
    let controller = free_port()?;
    let properties = dir.join("server.properties");
    let text = format!(
        "node.id=1\nprocess.roles=broker,controller\nlog.dirs={}\nlisteners=PLAINTEXT://127.0.0.1:{port},\
         CONTROLLER://127.0.0.1:{controller}\nadvertised.listeners=PLAINTEXT://127.0.0.1:{port}\n\
         controller.listener.names=CONTROLLER\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n\
         offsets.topic.replication.factor=1\n",
        dir.join("data").display()
    );
    fs::write(&properties, text).map_err(|e| e.to_string())?;
    let java = |heap: &str| {
        let mut command = programs.command("java");
        command.args([&format!("-Xms{heap}"), &format!("-Xmx{heap}")]);
        command.args(["-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"]);
        command.args(["-Djava.awt.headless=true", "-cp"]);
        command.arg(format!("{}/*", programs.kafka_packages.display()));
        command
    };
    if !dir.join("data/meta.properties").exists() {
        let mut format = java("256m");
        format.args(["kafka.tools.StorageTool", "format", "-t", "cmluZ2xvZy1iZW5jaC1ydW", "-c"]).arg(&properties);
        let output = format.output().map_err(|e| format!("java does not start: {e}"))?;
        if !output.status.success() {
            return Err(format!("Kafka's folder was not formatted: {}", String::from_utf8_lossy(&output.stderr)));
        }
    }
    let mut command = java("1g");
    command.arg("kafka.Kafka").arg(&properties);
    Ok(command)
}
