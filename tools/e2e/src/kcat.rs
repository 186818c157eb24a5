//! kcat as Debian ships it (librdkafka 2.0).

use std::process::Command;
use std::time::Duration;

use crate::Broker;
use crate::process::{self, Finished};

const LIMIT: Duration = Duration::from_secs(30);

/// `kcat -b <broker> ARGUMENTS`, with its own default settings.
#[track_caller]
pub fn kcat(broker: &Broker, arguments: &[&str], input: &[u8]) -> Finished {
    process::run(Command::new("kcat").args(["-b", &broker.bootstrap()]).args(arguments), input, LIMIT)
}

/// Produces each line of `lines` as a record of its own.
#[track_caller]
pub fn produce(broker: &Broker, topic: &str, more: &[&str], lines: &str) {
    kcat(broker, &[&["-P", "-t", topic], more].concat(), lines.as_bytes()).ok();
}

/// Everything in the topic, in the given format, ending at the end of every partition.
#[track_caller]
pub fn consume(broker: &Broker, topic: &str, format: &str) -> String {
    kcat(broker, &["-C", "-q", "-e", "-o", "beginning", "-t", topic, "-f", format], b"").ok().text()
}
