#![allow(clippy::unwrap_used)]

use model::config::BrokerConfig;

use super::*;
use crate::CpuText;

fn flat(count: usize) -> Topology {
    Topology::flat(&(0..count).collect::<Vec<_>>())
}

/// Sockets of `cores` cores with two threads each, numbered as Linux does: first threads of all sockets, then second
/// ones. A NUMA node is a socket.
fn threaded(sockets: usize, cores: usize) -> Topology {
    let all = sockets * cores;
    let cpus: Vec<CpuText> = (0..2 * all)
        .map(|id| CpuText {
            id,
            siblings: format!("{},{}", id % all, id % all + all),
            package: (id % all / cores).to_string(),
        })
        .collect();
    let nodes: Vec<(usize, String)> = (0..sockets)
        .map(|node| {
            let first = node * cores;
            (node, format!("{first}-{},{}-{}", first + cores - 1, first + all, first + all + cores - 1))
        })
        .collect();
    Topology::parse(&cpus, &nodes)
}

fn shipped() -> [(&'static str, &'static str, Topology, Vec<usize>); 4] {
    [
        ("two-core.toml", include_str!("../two-core.toml"), flat(2), vec![0, 1]),
        ("laptop.toml", include_str!("../laptop.toml"), threaded(1, 4), vec![0, 1]),
        ("sixteen-core-nvme.toml", include_str!("../sixteen-core-nvme.toml"), threaded(1, 16), (2..16).collect()),
        ("two-socket-many-nvme.toml", include_str!("../two-socket-many-nvme.toml"), threaded(2, 24), (2..24).collect()),
    ]
}

#[test]
fn every_shipped_profile_fits_its_machine_and_the_configuration_table() {
    for (name, text, topology, placed) in shipped() {
        let profile = Profile::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let placement = profile.place(&topology, 0).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(placement, placed, "{name}");
        assert!(topology.sharing_a_core(&placement).is_empty(), "{name}");
        let pairs = profile.pairs(placement.len());
        let pairs = pairs.iter().map(|(key, value)| (*key, value.as_str()));
        let config = BrokerConfig::from_pairs(pairs).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_ne!(config, BrokerConfig::default(), "{name} changes nothing");
        let helper = profile.helper(&topology).unwrap();
        assert!(helper.is_none_or(|cpu| !placement.contains(&cpu)), "{name}");
    }
}

#[test]
fn cpus_are_taken_in_the_order_named() {
    let profile = Profile::parse("cpus = [5, 3, 1]\nleave_out = [3, 77]\n").unwrap();
    assert_eq!(profile.place(&flat(8), 0).unwrap(), [5, 1]);
    assert_eq!(profile.place(&flat(8), 1).unwrap(), [5]);
}

#[test]
fn spreads() {
    let place = |text: &str| Profile::parse(text).unwrap().place(&threaded(2, 2), 0).unwrap();
    assert_eq!(place(""), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(place("placement = \"one-per-core\""), [0, 1, 2, 3]);
    assert_eq!(place("placement = \"cores-first\"\nshards = 5"), [0, 1, 2, 3, 4]);
    assert_eq!(place("numa_node = 1"), [2, 3, 6, 7]);
    assert_eq!(place("numa_node = 1\nplacement = \"one-per-core\""), [2, 3]);
    // A thread left out takes its core's other thread with it, where cores are what counts.
    assert_eq!(place("leave_out = [4]\nplacement = \"one-per-core\""), [1, 2, 3]);
    assert_eq!(place("leave_out = [4]"), [0, 1, 2, 3, 5, 6, 7]);
}

#[test]
fn one_per_core_takes_the_thread_that_is_open_to_the_process() {
    let part = threaded(1, 4).restricted_to(&[1, 6, 5]);
    let profile = Profile::parse("placement = \"one-per-core\"").unwrap();
    assert_eq!(profile.place(&part, 0).unwrap(), [1, 6]);
}

#[test]
fn refusals_are_sentences() {
    let refusal = |text: &str, shards: usize| {
        let topology = Topology::flat(&[0, 1, 2, 3, 8]);
        Profile::parse(text).and_then(|profile| profile.place(&topology, shards)).unwrap_err().to_string()
    };
    assert_eq!(
        refusal("cpus = [1, 12]", 0),
        "CPU 12 does not exist or is not open to this process; it may use CPUs 0-3, 8."
    );
    assert!(refusal("helper_cpu = 999", 0).starts_with("CPU 999 does not exist"));
    assert_eq!(refusal("cpus = [1, 1]", 0), "CPU 1 is named twice in cpus.");
    for none_left in ["cpus = []", "leave_out = [0, 1, 2, 3, 8]"] {
        assert_eq!(refusal(none_left, 0), "No CPU is left for a shard: cpus is empty, or leave_out takes all of them.");
    }
    assert_eq!(refusal("shards = 0", 0), "shards=0 would serve nobody; use at least 1, or leave it out.");
    assert_eq!(
        refusal("shards = 2", 6),
        "6 shards do not fit on 5 CPUs: each shard needs a CPU of its own; use at most 5."
    );
    assert!(refusal("numa_node = 3", 0).starts_with("numa_node=3 cannot be found"));
    let two_nodes = Profile::parse("numa_node = 3").unwrap().place(&threaded(2, 2), 0).unwrap_err().to_string();
    assert_eq!(two_nodes, "NUMA node 3 has no CPU for this process; nodes with CPUs: 0, 1.");
}
