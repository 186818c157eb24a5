use super::super::test_support::cluster;
use super::*;

fn new(given: &[(i32, &[i32])]) -> Result<Vec<Vec<NodeId>>, ErrorCode> {
    of_new_topic(&cluster(2), given).map_err(|refusal| refusal.code)
}

const REFUSED: Result<Vec<Vec<NodeId>>, ErrorCode> = Err(ErrorCode::InvalidReplicaAssignment);

#[test]
fn partitions_come_in_any_order() {
    let assignments = vec![vec![NodeId(1), NodeId(2)], vec![NodeId(2), NodeId(1)]];
    assert_eq!(new(&[(1, &[2, 1]), (0, &[1, 2])]), Ok(assignments));
}

#[test]
fn gaps_repeats_and_strangers_are_refused() {
    for bad in [
        &[(0, &[1][..]), (2, &[1])][..],
        &[(-1, &[1])],
        &[(1, &[1])],
        &[(0, &[1]), (0, &[1])],
        &[(0, &[1, 1])],
        &[(0, &[9])],
        &[(0, &[-1])],
        &[(0, &[])],
        &[(0, &[1]), (1, &[1, 2])],
    ] {
        assert_eq!(new(bad), REFUSED, "{bad:?}");
    }
}

#[test]
fn added_partitions_are_as_the_old_ones() {
    let image = cluster(2);
    let added = |additional, given: &[&[i32]]| of_added(&image, additional, 1, given).map_err(|refusal| refusal.code);
    assert_eq!(added(2, &[&[1], &[2]]), Ok(vec![vec![NodeId(1)], vec![NodeId(2)]]));
    for (additional, bad) in [
        (2, &[&[1][..]][..]),
        (1, &[&[1], &[1]]),
        (1, &[]),
        (1, &[&[1, 2]]),
        (1, &[&[]]),
        (1, &[&[9]]),
        (1, &[&[1, 1]]),
    ] {
        assert_eq!(added(additional, bad), REFUSED, "{bad:?}");
    }
}
