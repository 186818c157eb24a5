use super::*;

fn corpus() -> Vec<Vec<u8>> {
    vec![(0..200).collect(), vec![7; 30], Vec::new()]
}

#[test]
fn the_seed_decides_everything() {
    let run = |seed| {
        let (mut dice, mut input, mut inputs) = (Dice::new(seed), Vec::new(), Vec::new());
        for _ in 0..100 {
            mutate(&mut dice, &corpus(), &mut input);
            inputs.push(input.clone());
        }
        inputs
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn mutations_change_most_inputs_and_stay_bounded() {
    let (corpus, mut dice, mut input) = (corpus(), Dice::new(3), Vec::new());
    let mut changed = 0;
    for _ in 0..10_000 {
        mutate(&mut dice, &corpus, &mut input);
        assert!(input.len() <= MOST_LEN);
        changed += usize::from(!corpus.contains(&input));
    }
    assert!(changed > 9_000, "{changed} of 10000 inputs were changed");
}
