//! Programs with a time limit on everything: none outlives the value that started it, and what it printed is kept.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How often an ending process is looked at.
const POLL: Duration = Duration::from_millis(2);
/// Standard output and standard error.
const STREAMS: usize = 2;

/// What a program that has ended left behind.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Finished {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Both streams, for programs that do not care which they use.
    pub fn all(&self) -> String {
        self.text() + &self.errors()
    }

    /// The same, after making sure that the program was content.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert!(self.status.success(), "{}\n{}\n{}", self.status, self.text(), self.errors());
        self
    }
}

/// Runs a program to its end; panics with what it printed when it takes longer than `limit`.
#[track_caller]
pub fn run(command: &mut Command, input: &[u8], limit: Duration) -> Finished {
    let shown = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {shown}: {error}"));
    let (mut stdin, mut out, mut err) =
        (child.stdin.take().unwrap(), child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let input = input.to_vec();
    let writer = thread::spawn(move || drop(stdin.write_all(&input)));
    let stdout = thread::spawn(move || read_all(&mut out));
    let stderr = thread::spawn(move || read_all(&mut err));
    let status = wait(&mut child, limit);
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
    let _ = writer.join();
    let Some(status) = status else {
        let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        panic!("{shown} took longer than {limit:?}\n{out}\n{err}");
    };
    Finished { status, stdout, stderr }
}

fn read_all(from: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = from.read_to_end(&mut bytes);
    bytes
}

fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().expect("a child of ours can be waited for") {
            return Some(status);
        }
        if Instant::now() >= end {
            return None;
        }
        thread::sleep(POLL);
    }
}

#[derive(Default)]
struct Printed {
    so_far: Mutex<Output>,
    more: Condvar,
}

#[derive(Default)]
struct Output {
    lines: Vec<String>,
    /// When each line came.
    times: Vec<Instant>,
    streams_ended: usize,
}

impl Printed {
    fn follow(self: &Arc<Self>, stream: impl Read + Send + 'static) {
        let printed = Arc::clone(self);
        thread::spawn(move || {
            let mut reader = BufReader::new(stream);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                let mut so_far = printed.so_far.lock().unwrap();
                so_far.lines.push(text);
                so_far.times.push(Instant::now());
                drop(so_far);
                printed.more.notify_all();
                line.clear();
            }
            printed.so_far.lock().unwrap().streams_ended += 1;
            printed.more.notify_all();
        });
    }
}

/// A program in the background; killed when dropped, its output shown when the test is failing.
pub struct Running {
    name: String,
    child: Child,
    printed: Arc<Printed>,
    ended: Option<ExitStatus>,
}

impl Running {
    #[track_caller]
    pub fn start(name: &str, command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let printed = Arc::new(Printed::default());
        printed.follow(child.stdout.take().unwrap());
        printed.follow(child.stderr.take().unwrap());
        Running { name: name.to_owned(), child, printed, ended: None }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Every line printed so far, of both streams.
    pub fn lines(&self) -> Vec<String> {
        self.printed.so_far.lock().unwrap().lines.clone()
    }

    /// The same with the time when each came.
    pub fn timed_lines(&self) -> Vec<(Instant, String)> {
        let so_far = self.printed.so_far.lock().unwrap();
        so_far.times.iter().copied().zip(so_far.lines.iter().cloned()).collect()
    }

    /// Waits for the first printed line that `wanted` maps to something; None after `limit` or the program's end.
    pub fn find_line<T>(&self, limit: Duration, wanted: impl Fn(&str) -> Option<T>) -> Option<T> {
        let end = Instant::now() + limit;
        let mut seen = 0;
        let mut output = self.printed.so_far.lock().unwrap();
        loop {
            if let Some(found) = output.lines[seen..].iter().find_map(|line| wanted(line)) {
                return Some(found);
            }
            seen = output.lines.len();
            let left = end.checked_duration_since(Instant::now()).filter(|_| output.streams_ended < STREAMS)?;
            output = self.printed.more.wait_timeout(output, left).unwrap().0;
        }
    }

    #[track_caller]
    pub fn wait_for_line(&self, limit: Duration, part: &str) -> String {
        let found = self.find_line(limit, |line| line.contains(part).then(|| line.to_owned()));
        found.unwrap_or_else(|| panic!("{} printed no {part:?} within {limit:?}:\n{}", self.name, self.tail()))
    }

    /// A line to the program's standard input.
    pub fn say(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().expect("standard input is open");
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).expect("the program reads its input");
    }

    /// The end of the program's standard input.
    pub fn end_input(&mut self) {
        self.child.stdin = None;
    }

    pub fn is_alive(&mut self) -> bool {
        self.wait(Duration::ZERO).is_none()
    }

    /// The exit status once it has ended; None after `limit`.
    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = wait(&mut self.child, limit);
        }
        self.ended
    }

    pub fn signal(&mut self, name: &str) {
        if self.is_alive() {
            let pid = self.pid().to_string();
            let sent = Command::new("kill").args([&format!("-{name}"), pid.as_str()]).status();
            assert!(sent.expect("`kill` is installed").success(), "no signal to {}", self.name);
        }
    }

    /// SIGTERM, then at most `limit` for a clean end.
    #[track_caller]
    pub fn terminate(&mut self, limit: Duration) -> ExitStatus {
        self.signal("TERM");
        let ended = self.wait(limit);
        ended.unwrap_or_else(|| panic!("{} did not stop within {limit:?} of SIGTERM:\n{}", self.name, self.tail()))
    }

    /// kill -9, and gone when this returns.
    pub fn kill(&mut self) {
        if self.ended.is_none() {
            let _ = self.child.kill();
            self.ended = self.child.wait().ok();
        }
    }

    pub fn tail(&self) -> String {
        let lines = self.lines();
        lines[lines.len().saturating_sub(120)..].join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            eprintln!("---- {} printed:\n{}\n----", self.name, self.tail());
        }
    }
}
