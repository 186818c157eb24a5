#![allow(clippy::unwrap_used)]

use model::config::BrokerConfig;

use super::*;

fn configured(profile: &Profile, shards: usize) -> BrokerConfig {
    let pairs = profile.pairs(shards);
    BrokerConfig::from_pairs(pairs.iter().map(|(name, value)| (*name, value.as_str()))).unwrap()
}

fn refusal(text: &str) -> String {
    Profile::parse(text).unwrap_err().to_string()
}

#[test]
fn derived_profiles_fit_any_machine() {
    for cpu_count in [1, 2, 3, 7, 8, 64, 512] {
        let topology = Topology::flat(&(0..cpu_count).collect::<Vec<_>>());
        let profile = Profile::derive(&topology, None);
        let shards = profile.place(&topology, 0).unwrap().len();
        assert_eq!(shards, if cpu_count >= 8 { cpu_count - 1 } else { cpu_count });
        let cache_per_cpu = if cpu_count <= 4 { 16 << 20 } else { 32 << 20 };
        assert_eq!(configured(&profile, shards).shards.batch_cache_bytes, cpu_count * cache_per_cpu);
    }
    // In a container with CPUs that do not begin at 0, nothing is lost.
    let part = Topology::flat(&[6, 7]);
    assert_eq!(Profile::derive(&part, None).place(&part, 0).unwrap(), [6, 7]);
}

#[test]
fn a_small_host_gets_a_small_cache() {
    let topology = Topology::flat(&(0..32).collect::<Vec<_>>());
    assert_eq!(Profile::derive(&topology, Some(1 << 30)).batch_cache_bytes, Some(128 << 20));
    assert_eq!(Profile::derive(&topology, Some(1 << 20)).batch_cache_bytes, Some(4 << 20), "never below the least");
}

#[test]
fn hyper_threads_of_a_larger_machine_stay_free() {
    let texts: Vec<crate::CpuText> = (0..16)
        .map(|id| crate::CpuText { id, siblings: format!("{},{}", id % 8, id % 8 + 8), package: "0".into() })
        .collect();
    let topology = Topology::parse(&texts, &[]);
    let profile = Profile::derive(&topology, None);
    assert_eq!(profile.place(&topology, 0).unwrap(), [1, 2, 3, 4, 5, 6, 7], "core 0 takes interrupts");
}

#[test]
fn every_key_reaches_the_configuration() {
    let text = "shards = 3\npreempt_timer_us = 500\npulse_interval_ms = 7\nio_memory_bytes = 8388608\n\
                batch_cache_bytes = 16777216\nmax_open_segments = 99\nlisten_backlog = 1024\n\
                inflight_bytes_per_shard = 2097152\ninflight_bytes_per_connection = 131072\n\
                disk_write_max_bytes = 262144\ndisk_queue_depth = 16\ndisk_expected_write_us = 900\n";
    let config = configured(&Profile::parse(text).unwrap(), 3);
    assert_eq!((config.shards.shards, config.shards.preempt_timer_us, config.shards.pulse_interval_ms), (3, 500, 7));
    assert_eq!((config.shards.io_memory_bytes, config.shards.batch_cache_bytes), (8_388_608, 16_777_216));
    assert_eq!((config.shards.max_open_segments, config.connections.listen_backlog), (Some(99), 1024));
    assert_eq!(config.connections.max_inflight_bytes_per_shard, 2_097_152);
    assert_eq!(config.connections.max_inflight_bytes_per_connection, 131_072);
    assert_eq!((config.shards.disk_write_max_bytes, config.shards.disk_queue_depth), (262_144, 16));
    assert_eq!(config.shards.disk_expected_write_us, 900);
}

#[test]
fn a_profile_of_the_disk_alone_leaves_the_rest_to_the_machine() {
    let disk = Profile::parse("disk_queue_depth = 4\n").unwrap();
    assert!(disk.is_disk_only());
    for other in ["", "shards = 1\n", "shards = 1\ndisk_queue_depth = 4\n", "leave_out = [1]\ndisk_queue_depth = 4\n"] {
        assert!(!Profile::parse(other).unwrap().is_disk_only(), "{other}");
    }
    let derived = Profile::derive(&Topology::flat(&[0, 1]), None);
    let whole = derived.clone().with_disk_of(&disk);
    assert_eq!((whole.disk_queue_depth, whole.batch_cache_bytes), (Some(4), derived.batch_cache_bytes));
}

#[test]
fn a_disk_that_the_table_does_not_allow_is_refused_by_it() {
    for text in ["disk_write_max_bytes = 70000", "disk_write_max_bytes = 4096", "disk_queue_depth = 0"] {
        let pairs = Profile::parse(text).unwrap().pairs(1);
        assert!(BrokerConfig::from_pairs(pairs.iter().map(|(k, v)| (*k, v.as_str()))).is_err(), "{text}");
    }
}

#[test]
fn memory_of_a_shard_is_split() {
    let text =
        "[memory]\nper_shard_bytes = 1_000_000_000\nbatch_cache_percent = 50\nin_flight_percent = 30\nio_percent = 20";
    let config = configured(&Profile::parse(text).unwrap(), 4);
    assert_eq!(config.shards.batch_cache_bytes, 4 * 500_000_000);
    assert_eq!(config.connections.max_inflight_bytes_per_shard, 300_000_000);
    assert_eq!(config.shards.io_memory_bytes, 200_000_000);
}

#[test]
fn a_split_of_little_memory_still_starts() {
    let text = "[memory]\nper_shard_bytes = 1\nbatch_cache_percent = 98\nin_flight_percent = 1\nio_percent = 1";
    let config = configured(&Profile::parse(text).unwrap(), 1);
    assert_eq!((config.shards.batch_cache_bytes, config.shards.io_memory_bytes), (4 << 20, 4 << 20));
}

#[test]
fn keys_that_contradict_each_other_are_refused() {
    let split = |a, b, c| {
        format!("[memory]\nper_shard_bytes = 9\nbatch_cache_percent = {a}\nin_flight_percent = {b}\nio_percent = {c}")
    };
    assert_eq!(refusal(&split(50, 30, 30)), "The percentages of [memory] add up to 110; they must give 100.");
    assert_eq!(
        refusal(&format!("io_memory_bytes = 8388608\n{}", split(50, 30, 20))),
        "[memory] and io_memory_bytes answer the same question; keep one of them."
    );
    for other in ["placement = \"all\"", "numa_node = 0"] {
        assert!(refusal(&format!("cpus = [1]\n{other}")).starts_with("cpus and "), "{other}");
    }
}

#[test]
fn wrong_lines_are_named() {
    assert!(
        refusal("\nshard = 2").starts_with("line 2: shard is not a key of a tuning profile; the keys are shards, cpus")
    );
    assert!(refusal("[memory]\nper_shard = 2").contains("per_shard is not a key"));
    assert_eq!(refusal("shards = \"two\""), "line 1: invalid type: string \"two\", expected usize.");
    assert!(refusal("placement = \"everywhere\"").contains("one-per-core"));
    assert!(refusal("shards = ").starts_with("line 1: "));
}
