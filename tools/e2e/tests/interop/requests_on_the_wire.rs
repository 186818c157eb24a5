//! How many requests our client sends, counted between it and the broker.

use ringlog_e2e::proxy::Proxy;
use ringlog_e2e::{Broker, cli};

const PARTITIONS: usize = 64;

fn behind_a_proxy() -> (Broker, Proxy) {
    let proxy = Proxy::new();
    let (key, value) = proxy.setting();
    let broker = Broker::with(&[(key, &value)]);
    proxy.forward_to(broker.port());
    (broker, proxy)
}

#[test]
fn a_flush_to_all_partitions_of_a_broker_is_one_produce_request() {
    let (broker, proxy) = behind_a_proxy();
    cli::create_topic(&broker, "wide", PARTITIONS);
    // A broker that has just made a topic may not lead all of its partitions yet, and refuse what comes for them.
    assert_eq!(cli::consume(&broker, "wide", &[]), "");
    // Nothing is due before the end of the input, which flushes.
    let lines: String = (0..PARTITIONS * 3).map(|at| format!("{at}\n")).collect();
    cli::produce(&broker, "wide", &["--round-robin", "--linger-ms", "60000"], &lines);
    let requests = proxy.produce_requests();
    let partitions: Vec<usize> = requests.iter().map(|request| request.produced_partitions()).collect();
    assert_eq!(partitions, [PARTITIONS], "partitions of each Produce request");
    let read = cli::consume(&broker, "wide", &["-f", "%p\\n"]);
    let distinct: std::collections::BTreeSet<&str> = read.lines().collect();
    assert_eq!((read.lines().count(), distinct.len()), (PARTITIONS * 3, PARTITIONS));
}

#[test]
fn a_consumer_of_many_partitions_asks_for_all_of_them_at_once() {
    const FETCH: i16 = 1;
    let (broker, proxy) = behind_a_proxy();
    cli::create_topic(&broker, "wide", PARTITIONS);
    cli::produce(&broker, "wide", &["--round-robin"], "x\n".repeat(PARTITIONS));
    assert_eq!(cli::consume(&broker, "wide", &[]).lines().count(), PARTITIONS);
    let fetches = proxy.seen().iter().filter(|seen| seen.api_key == FETCH).count();
    assert!((1..=8).contains(&fetches), "{fetches} Fetch requests for {PARTITIONS} partitions of a record each");
}
