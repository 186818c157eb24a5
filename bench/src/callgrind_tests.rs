#![allow(clippy::unwrap_used)]

use super::*;

/// `log::append` with something of `model` inlined and something of the standard library; `memcpy` called by it and by the
/// simulator, three to one; a library's function that nobody called.
const OUT: &str = "\
version: 1
cmd: count produce 10 a=b
positions: line
events: Ir

fl=(1) /w/engine/log/src/partition/append.rs
fn=(1) log::append
16 400
fi=(2) /w/engine/model/src/batch.rs
+3 20
fi=(6) /rustc/1/library/core/src/slice.rs
+1 30
fe=(1)
* 5
cfi=(3) ???
cfn=(2) memcpy
calls=7 0
20 9000
+1 1

fl=(3)
fn=(2)
0 8000
cfn=(5) helper
calls=1 0
0 4000

fn=(5)
0 4000

fl=(4) /w/engine/runtime/src/sim/disk.rs
fn=(3) write
5 70
cfi=(3)
cfn=(2)
calls=1 0
6 3000

fl=(5) /c/registry/src/x/bench/lib.rs
fn=(4) start
5 3
totals: 12529
";

#[test]
fn instructions_count_for_the_crate_they_are_of_or_for() {
    let counts = Profile::parse(OUT).counts();
    // 12 000 of memcpy and its helper, of which three quarters are for the log and one for the simulator.
    let wanted = [("libraries", 3.0), ("log", 436.0 + 9_000.0), ("model", 20.0), ("outside", 70.0 + 3_000.0)];
    let wanted: Counts = wanted.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
    assert_eq!(counts.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    for (name, count) in &wanted {
        assert!((counts[name] - count).abs() < 0.01, "{name}: {} instead of {count}", counts[name]);
    }
    assert!((ours(&counts) - 9_456.0).abs() < 0.01);
}

#[test]
fn functions_that_call_each_other_do_not_multiply() {
    let out = "fl=(1) ???\nfn=(1) a\n0 10\ncfn=(2) b\ncalls=1 0\n0 50\n\nfn=(2)\n0 20\ncfn=(1)\ncalls=1 0\n0 40\n\n\
               fl=(2) /w/net/wire/src/x.rs\nfn=(3) c\n1 5\ncfi=(1)\ncfn=(1)\ncalls=1 0\n1 60\n";
    let counts = Profile::parse(out).counts();
    let all: f64 = counts.values().sum();
    assert!((all - 35.0).abs() < 1e-6 && counts["wire"] > 34.9, "{counts:?}");
}

/// The start calls `memcpy` from the simulator, operations call it from the log: what they add is the log's alone.
#[test]
fn an_operation_costs_the_difference_and_not_a_share_of_the_start() {
    let run = |operations: u32| {
        let (from_log, all) = (operations * 100, 9_000 + operations * 100);
        Profile::parse(&format!(
            "fl=(1) /w/engine/log/src/x.rs\nfn=(1) append\n1 {operations}\ncfi=(2) ???\ncfn=(2) memcpy\ncalls=1 0\n1 {from_log}\n\n\
             fl=(3) /w/engine/runtime/src/sim/x.rs\nfn=(3) start\n1 50\ncfi=(2)\ncfn=(2)\ncalls=1 0\n1 9000\n\n\
             fl=(2)\nfn=(2)\n0 {all}\n"
        ))
    };
    let counts = per_operation(&run(10), &run(30), 20.0);
    assert!((counts["log"] - 101.0).abs() < 1e-6, "{counts:?}");
    assert!(counts["outside"].abs() < 1e-6 && counts["libraries"].abs() < 1e-6, "{counts:?}");
}

#[test]
fn growth_beyond_a_tenth_and_unknown_counts_are_findings() {
    let map = |count: u64| BTreeMap::from([("produce".to_owned(), count)]);
    let guards = Guards { instructions: map(1_000) };
    assert!(guards.findings(&map(1_100)).is_empty() && guards.findings(&map(10)).is_empty());
    assert_eq!(guards.findings(&map(1_101)), ["produce: 1101 instructions, 10.1 % more than the committed 1000"]);
    assert!(Guards::default().findings(&map(1))[0].contains("nothing is committed"));
}

#[test]
fn guards_are_read_back_as_they_were_written() {
    let path = std::env::temp_dir().join(format!("ringlog-guards-{}.toml", std::process::id()));
    let guards = Guards { instructions: BTreeMap::from([("produce".to_owned(), 7), ("fetch".to_owned(), 9)]) };
    guards.write(&path).unwrap();
    assert_eq!(Guards::read(&path).unwrap(), guards);
    std::fs::write(&path, "[instruction]\n").unwrap();
    assert!(Guards::read(&path).unwrap_err().contains("unknown field"));
    std::fs::remove_file(&path).unwrap();
}
