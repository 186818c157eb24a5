use super::*;

#[test]
fn murmur2_is_javas() {
    let known: [(&[u8], i32); 6] = [
        (b"21", -973_932_308),
        (b"foobar", -790_332_482),
        (b"a-little-bit-long-string", -985_981_536),
        (b"a-little-bit-longer-string", -1_486_304_829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
        (b"abc", 479_470_107),
    ];
    for (key, hash) in known {
        assert_eq!(murmur2(key) as i32, hash, "{}", String::from_utf8_lossy(key));
    }
}

#[test]
fn a_negative_hash_is_masked() {
    assert_eq!(partition_of_key(b"21", 10), ((-973_932_308i32 & i32::MAX) % 10));
    assert_eq!(partition_of_key(b"", 1), 0);
}

#[test]
fn an_empty_key_is_a_key() {
    let mut chooser = Chooser::default();
    let mut random = Random::new(7);
    let chosen = chooser.choose(PartitionerKind::Default, Some(b""), 9, &[0], &mut random);
    assert_eq!(chosen, partition_of_key(b"", 9));
}

fn choose(chooser: &mut Chooser, random: &mut Random, available: &[i32]) -> i32 {
    chooser.choose(PartitionerKind::Default, None, 8, available, random)
}

#[test]
fn sticky_stays_for_a_batch_and_then_moves_among_partitions_with_a_leader() {
    let (mut chooser, mut random) = (Chooser::default(), Random::new(1));
    let available = [1, 4, 6];
    let mut seen = [0usize; 8];
    for _ in 0..300 {
        let first = choose(&mut chooser, &mut random, &available);
        chooser.sent(first, 60, 100, false);
        assert_eq!(choose(&mut chooser, &mut random, &available), first);
        chooser.sent(first, 60, 100, true);
        seen[first as usize] += 1;
    }
    assert!(available.iter().all(|p| seen[*p as usize] > 60), "{seen:?}");
    assert_eq!(seen.iter().sum::<usize>(), 300);
    assert_eq!(seen[1] + seen[4] + seen[6], 300);
}

#[test]
fn sticky_moves_at_twice_the_batch_size_even_in_the_middle_of_a_batch() {
    let (mut chooser, mut random) = (Chooser::default(), Random::new(3));
    let first = choose(&mut chooser, &mut random, &[2, 3]);
    chooser.sent(first, 150, 100, false);
    assert_eq!(choose(&mut chooser, &mut random, &[2, 3]), first);
    chooser.sent(first, 50, 100, false);
    let moved = (0..50).any(|_| {
        let next = choose(&mut chooser, &mut random, &[2, 3]);
        chooser.sent(next, 200, 100, false);
        next != first
    });
    assert!(moved);
}

#[test]
fn sticky_leaves_a_partition_that_lost_its_leader() {
    let (mut chooser, mut random) = (Chooser::default(), Random::new(3));
    let first = choose(&mut chooser, &mut random, &[5]);
    assert_eq!(first, 5);
    chooser.cluster_changed(8, &[0]);
    assert_eq!(choose(&mut chooser, &mut random, &[0]), 0);
}

#[test]
fn records_to_a_partition_that_the_caller_chose_do_not_move_the_sticky_one() {
    let (mut chooser, mut random) = (Chooser::default(), Random::new(3));
    let first = choose(&mut chooser, &mut random, &[0, 1, 2, 3]);
    chooser.sent((first + 1) % 4, 1_000, 100, true);
    assert_eq!(choose(&mut chooser, &mut random, &[0, 1, 2, 3]), first);
}

#[test]
fn round_robin_takes_turns_even_with_keys() {
    let (mut chooser, mut random) = (Chooser::default(), Random::new(3));
    let mut seen = [0; 4];
    for _ in 0..30 {
        seen[chooser.choose(PartitionerKind::RoundRobin, Some(b"k"), 4, &[0, 2, 3], &mut random) as usize] += 1;
    }
    assert_eq!(seen, [10, 0, 10, 10]);
    for _ in 0..40 {
        seen[chooser.choose(PartitionerKind::RoundRobin, None, 4, &[], &mut random) as usize] += 1;
    }
    assert_eq!(seen, [20, 10, 20, 20]);
}
