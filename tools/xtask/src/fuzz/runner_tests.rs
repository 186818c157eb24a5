#![allow(clippy::unwrap_used)]
use super::*;

fn arguments(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn every_target_runs_and_finds_nothing_in_a_moment() {
    for target in TARGETS {
        let options = Options { target, seconds: 0, seed: 5, replay: None };
        assert_eq!(fuzz(&options), Ok(()), "{}", target.name);
    }
}

#[test]
fn a_panic_is_a_finding_that_is_kept() {
    let target = Target {
        name: "test_target",
        sentence: "panics",
        run: |input| assert!(input.len() < 3, "as it should"),
        corpus: || vec![vec![1, 2, 3]],
    };
    assert_eq!(try_input(&target, &[1]), Ok(()));
    let sentence = try_input(&target, &[1, 2, 3]).unwrap_err();
    assert!(sentence.contains("test_target panics on 3 bytes"), "{sentence}");
    let file = keep(&target, &[1, 2, 3]).unwrap();
    assert_eq!(fs::read(&file).unwrap(), [1, 2, 3]);
    fs::remove_file(&file).unwrap();
}

#[test]
fn flags_are_understood_or_refused_with_a_sentence() {
    let options = parse(&arguments("wire_request --seconds 5 --seed 9")).unwrap();
    assert_eq!((options.target.name, options.seconds, options.seed), ("wire_request", 5, 9));
    assert!(parse(&arguments("wire_request --seconds many")).is_err());
    assert!(parse(&arguments("wire_request --seconds")).is_err());
    assert!(parse(&arguments("nothing")).is_err());
    assert!(parse(&[]).is_err());
}
