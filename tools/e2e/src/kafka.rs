//! Apache Kafka as the reference: one KRaft node from its Maven packages.
//!
//! What passes against it is Kafka's behaviour; a test that fails against it is wrong.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::broker::START_LIMIT;
use crate::java;
use crate::place;
use crate::process::{self, Running};

/// Any valid id does: a folder is formatted once and never meets another cluster.
const CLUSTER_ID: &str = "cmluZ2xvZy1lMmUtdGVzdA";

/// Starts the broker on `port` with its data below `dir`, formatting it first where it is new.
pub fn launch(dir: &Path, port: u16, settings: &[(String, String)]) -> Running {
    let file = dir.join("server.properties");
    if !file.exists() {
        fs::write(&file, properties(dir, port, settings)).expect("the test's folder is writable");
        let mut format = java::class("kafka.tools.StorageTool", "128m");
        format.args(["format", "-t", CLUSTER_ID, "-c"]).arg(&file);
        process::run(&mut format, b"", START_LIMIT).ok();
    }
    let mut command = java::class("kafka.Kafka", "384m");
    let process = Running::start("kafka", command.arg(&file));
    wait_until_it_answers(process, port)
}

fn properties(dir: &Path, port: u16, settings: &[(String, String)]) -> String {
    let controller = place::free_port();
    let mut text = format!(
        "node.id=1\nprocess.roles=broker,controller\nlog.dirs={}\n\
         listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
         advertised.listeners=PLAINTEXT://127.0.0.1:{port}\ncontroller.listener.names=CONTROLLER\n\
         controller.quorum.voters=1@127.0.0.1:{controller}\noffsets.topic.replication.factor=1\n\
         transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n\
         log.initial.task.delay.ms=300\n",
        dir.join("data").display()
    );
    for (key, value) in settings {
        text += &format!("{key}={value}\n");
    }
    text
}

fn wait_until_it_answers(mut process: Running, port: u16) -> Running {
    let end = Instant::now() + START_LIMIT;
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(process.is_alive(), "kafka ended at its start");
        assert!(Instant::now() < end, "kafka does not listen");
        thread::sleep(Duration::from_millis(50));
    }
    process
}
