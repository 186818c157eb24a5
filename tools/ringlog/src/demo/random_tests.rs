use super::*;

#[test]
fn numbers_are_those_of_splitmix64() {
    // The published reference's first outputs for seed 1234567.
    let mut rng = Rng::new(1_234_567);
    assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
    assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
}

#[test]
fn draws_stay_below_their_bound() {
    let mut rng = Rng::new(1);
    assert!((0..10_000).all(|_| rng.below(7) < 7));
    assert!((0..10_000).all(|_| (0.0..1.0).contains(&rng.unit())));
}

#[test]
fn picks_follow_their_weights() {
    let mut rng = Rng::new(2);
    let mut counts = [0_u32; 3];
    for _ in 0..30_000 {
        counts[rng.pick(&[1, 0, 2])] += 1;
    }
    assert_eq!(counts[1], 0);
    assert!((9_500..10_500).contains(&counts[0]), "{counts:?}");
}

#[test]
fn quantiles_give_back_their_points() {
    let quantiles = Quantiles::new(&[(0.0, 10.0), (0.5, 20.0), (1.0, 120.0)]);
    let mut rng = Rng::new(3);
    let mut drawn: Vec<f64> = (0..20_001).map(|_| quantiles.sample(&mut rng)).collect();
    drawn.sort_by(f64::total_cmp);
    assert!(drawn[0] >= 10.0 && drawn[20_000] <= 120.0);
    assert!((drawn[10_000] - 20.0).abs() < 1.5, "{}", drawn[10_000]);
    assert!((drawn[15_000] - 70.0).abs() < 3.0, "{}", drawn[15_000]);
}

#[test]
fn an_alias_table_follows_its_weights() {
    let weights = [8.0, 1.0, 0.0, 1.0];
    let alias = Alias::new(&weights);
    let mut rng = Rng::new(4);
    let mut counts = [0_i32; 4];
    for _ in 0..100_000 {
        counts[alias.sample(&mut rng)] += 1;
    }
    assert!((counts[0] - 80_000).abs() < 800, "{counts:?}");
    assert!((counts[1] - 10_000).abs() < 500 && (counts[3] - 10_000).abs() < 500, "{counts:?}");
    assert!(counts[2] < 5, "{counts:?}");
}
