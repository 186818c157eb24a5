#![allow(clippy::unwrap_used)]

use model::config::BrokerConfig;

use super::*;

const SHIPPED: [(&str, &str, usize); 3] = [
    ("two-core.toml", include_str!("../two-core.toml"), 2),
    ("laptop.toml", include_str!("../laptop.toml"), 8),
    ("sixteen-core-nvme.toml", include_str!("../sixteen-core-nvme.toml"), 16),
];

fn configured(profile: &Profile) -> BrokerConfig {
    let pairs = profile.pairs();
    BrokerConfig::from_pairs(pairs.iter().map(|(name, value)| (*name, value.as_str()))).unwrap()
}

#[test]
fn every_shipped_profile_fits_its_machine_and_the_configuration_table() {
    for (name, text, cpu_count) in SHIPPED {
        let profile = Profile::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let usable: Vec<usize> = (0..cpu_count).collect();
        let placement = profile.placement(&usable, 0).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!placement.is_empty() && placement.len() <= cpu_count, "{name}");
        assert_ne!(configured(&profile), BrokerConfig::default(), "{name} changes nothing");
    }
}

#[test]
fn shipped_placements() {
    let placement = |index: usize| {
        let (_, text, cpu_count) = SHIPPED[index];
        Profile::parse(text).unwrap().placement(&(0..cpu_count).collect::<Vec<_>>(), 0).unwrap()
    };
    assert_eq!(placement(0), [0, 1]);
    assert_eq!(placement(1), [0, 1]);
    assert_eq!(placement(2), (2..16).collect::<Vec<_>>());
}

#[test]
fn derived_profiles_fit_any_machine() {
    for cpu_count in [1, 2, 3, 7, 8, 64, 512] {
        let profile = Profile::derive(cpu_count);
        let usable: Vec<usize> = (0..cpu_count).collect();
        let shards = profile.placement(&usable, 0).unwrap().len();
        assert_eq!(shards, if cpu_count >= 8 { cpu_count - 1 } else { cpu_count });
        let config = configured(&profile);
        let cache_per_cpu = if cpu_count <= 4 { 16 << 20 } else { 32 << 20 };
        assert_eq!(config.shards.batch_cache_bytes, cpu_count * cache_per_cpu);
    }
    // In a container with CPUs that do not begin at 0, nothing is lost.
    assert_eq!(Profile::derive(2).placement(&[6, 7], 0).unwrap(), [6, 7]);
}

#[test]
fn every_key_reaches_the_configuration() {
    let text = "shards = 3\npreempt_timer_us = 500\npulse_interval_ms = 7\nio_memory_bytes = 8388608\n\
                batch_cache_bytes = 16777216\nmax_open_segments = 99\nlisten_backlog = 1024\n";
    let config = configured(&Profile::parse(text).unwrap());
    assert_eq!((config.shards.shards, config.shards.preempt_timer_us, config.shards.pulse_interval_ms), (3, 500, 7));
    assert_eq!((config.shards.io_memory_bytes, config.shards.batch_cache_bytes), (8_388_608, 16_777_216));
    assert_eq!((config.shards.max_open_segments, config.connections.listen_backlog), (99, 1024));
}

#[test]
fn cpus_are_taken_in_the_order_named() {
    let profile = Profile::parse("cpus = [5, 3, 1]\nleave_out = [3, 77]\n").unwrap();
    let usable: Vec<usize> = (0..8).collect();
    assert_eq!(profile.placement(&usable, 0).unwrap(), [5, 1]);
    assert_eq!(profile.placement(&usable, 1).unwrap(), [5]);
}

#[test]
fn refusals_are_sentences() {
    let refusal = |text: &str, shards: usize| {
        let placed = Profile::parse(text).and_then(|profile| profile.placement(&[0, 1, 2, 3, 8], shards));
        placed.unwrap_err().to_string()
    };
    assert_eq!(
        refusal("cpus = [1, 12]", 0),
        "CPU 12 does not exist or is not open to this process; it may use CPUs 0-3, 8."
    );
    assert_eq!(refusal("cpus = [1, 1]", 0), "CPU 1 is named twice in cpus.");
    for none_left in ["cpus = []", "leave_out = [0, 1, 2, 3, 8]"] {
        assert_eq!(refusal(none_left, 0), "No CPU is left for a shard: cpus is empty, or leave_out takes all of them.");
    }
    assert_eq!(refusal("shards = 0", 0), "shards=0 would serve nobody; use at least 1, or leave it out.");
    assert_eq!(
        refusal("shards = 2", 6),
        "6 shards do not fit on 5 CPUs: each shard needs a CPU of its own; use at most 5."
    );
    assert!(
        refusal("\nshard = 2", 0)
            .starts_with("line 2: shard is not a key of a tuning profile; the keys are shards, cpus")
    );
    assert_eq!(refusal("shards = \"two\"", 0), "line 1: invalid type: string \"two\", expected usize.");
    assert!(refusal("shards = ", 0).starts_with("line 1: "));
}
