#![allow(clippy::unwrap_used)]
use super::*;

fn arguments(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

const PANICKING: Target = Target {
    name: "test_target",
    sentence: "panics",
    run: |input| {
        assert!(input.len() < 3, "as it should");
        assert!(input.first() != Some(&9), "elsewhere");
    },
    corpus: || vec![vec![1, 2, 3], vec![9]],
    seals: &[],
};

#[test]
fn every_target_runs_and_finds_nothing_in_a_moment() {
    for target in TARGETS {
        let report = fuzz(target, Duration::ZERO, 5, false).unwrap();
        let inputs = (target.corpus)().len() as u64 + INPUTS_PER_LOOK;
        assert_eq!(report.runs, inputs * (1 + target.seals.len() as u64), "{}", target.name);
        assert_eq!(report.sentences(), Vec::<String>::new());
    }
}

#[test]
fn each_place_that_panics_is_a_finding_and_fails_the_run() {
    let report = fuzz(&PANICKING, Duration::ZERO, 5, false).unwrap();
    assert_eq!(report.findings.len(), 2);
    assert_eq!(fs::read(&report.findings[0].file).unwrap(), [1, 2, 3]);
    assert_eq!(fs::read(&report.findings[1].file).unwrap(), [9]);
    let sentences = report.sentences();
    assert!(sentences[0].contains("runner_tests.rs") && sentences[0].contains("as it should"), "{}", sentences[0]);
    assert!(sentences[1].contains("elsewhere"), "{}", sentences[1]);
    let sentence = fuzz_each(&[PANICKING], 0, 5).unwrap_err();
    assert!(sentence.contains("--replay"), "a finding fails the whole run: {sentence}");
    report.findings.iter().for_each(|finding| fs::remove_file(&finding.file).unwrap());
}

#[test]
fn flags_are_understood_or_refused_with_a_sentence() {
    let options = parse(&arguments("wire_request --seconds 5 --seed 9")).unwrap();
    assert_eq!((options.targets[0].name, options.seconds, options.seed), ("wire_request", 5, 9));
    assert_eq!(parse(&arguments("all --seconds 5")).unwrap().targets.len(), TARGETS.len());
    assert!(run(&arguments("all --replay file")).is_err());
    for refused in ["wire_request --seconds many", "wire_request --seconds", "nothing", ""] {
        assert!(parse(&arguments(refused)).is_err(), "{refused}");
    }
}
