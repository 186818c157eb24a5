//! kafka-python, in the virtual environment that `tools/test prepare` makes; one script holds all that the tests ask of it.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::Broker;
use crate::place;
use crate::process::{self, Running};
use crate::sample::Sample;

const LIMIT: Duration = Duration::from_secs(60);

fn script(broker: &Broker, arguments: &[&str]) -> Command {
    let mut command = Command::new(place::cached("venv/bin/python"));
    command.arg("-u").arg(place::workspace().join("tools/clients/kafka_python_client.py"));
    command.arg(broker.bootstrap()).args(arguments);
    command
}

/// Runs one command of the script; its answer is one JSON value.
#[track_caller]
pub fn call(broker: &Broker, arguments: &[&str], input: &[u8]) -> Value {
    let finished = process::run(&mut script(broker, arguments), input, LIMIT).ok();
    let text = finished.text();
    serde_json::from_str(text.trim()).unwrap_or_else(|error| panic!("{error}: {text:?}\n{}", finished.errors()))
}

/// One command of the script in the background.
pub fn spawn(broker: &Broker, arguments: &[&str]) -> Running {
    Running::start(&format!("kafka-python {arguments:?}"), &mut script(broker, arguments))
}

/// A member of a group that knows one assignor only, `range` or `cooperative-sticky`; else as the script's `member`.
pub fn spawn_member(broker: &Broker, group: &str, topic: &str, assignor: &str) -> Running {
    let class = match assignor {
        "range" => "range.RangePartitionAssignor",
        "cooperative-sticky" => "cooperative_sticky.CooperativeStickyAssignor",
        other => panic!("no assignor of kafka-python is known as {other}"),
    };
    let (module, class) = class.split_once('.').expect("a module and a class");
    let wrapper = format!(
        "import runpy, sys\nfrom kafka import KafkaConsumer\nfrom kafka.coordinator.assignors.{module} import {class}\n\
         KafkaConsumer.DEFAULT_CONFIG['partition_assignment_strategy'] = ({class},)\n\
         sys.argv = sys.argv[1:]\nrunpy.run_path(sys.argv[0], run_name='__main__')\n"
    );
    let mut command = Command::new(place::cached("venv/bin/python"));
    command.args(["-u", "-c", &wrapper]).arg(place::workspace().join("tools/clients/kafka_python_client.py"));
    command.args([&broker.bootstrap(), "member", group, topic]);
    Running::start("kafka-python member", &mut command)
}

#[track_caller]
pub fn produce(broker: &Broker, topic: &str, codec: &str, samples: &[Sample]) {
    let records = Value::from(samples.iter().map(Sample::to_json).collect::<Vec<_>>());
    call(broker, &["produce", topic, codec], records.to_string().as_bytes());
}

/// The topic's partition 0 from its beginning to its end.
#[track_caller]
pub fn consume(broker: &Broker, topic: &str) -> Vec<Sample> {
    let answer = call(broker, &["consume", topic], b"");
    answer.as_array().expect("a list of records").iter().map(Sample::from_json).collect()
}
