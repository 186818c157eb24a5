#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn member(id: &str, topics: &[&str]) -> Member {
    Member {
        id: id.to_string(),
        topics: topics.iter().map(|topic| Rc::from(*topic)).collect(),
        generation: -1,
        ..Member::default()
    }
}

fn counts(of: &[(&str, i32)]) -> PartitionCounts {
    of.iter().map(|(topic, count)| (Rc::from(*topic), *count)).collect()
}

fn text(assignments: &Assignments) -> String {
    let one = |(id, partitions): (&String, &Vec<TopicPartition>)| {
        let list: Vec<String> = partitions.iter().map(|one| format!("{}{}", one.topic, one.partition)).collect();
        format!("{id}={}", list.join(","))
    };
    assignments.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn range_cuts_each_topic_into_runs() {
    let members = [member("c2", &["a", "b"]), member("c1", &["a", "b"])];
    let given = AssignorKind::Range.assign(&counts(&[("a", 3), ("b", 3)]), &members);
    assert_eq!(text(&given), "c1=a0,a1,b0,b1 c2=a2,b2");
}

#[test]
fn range_looks_at_subscriptions_topic_by_topic() {
    let members = [member("c1", &["a"]), member("c2", &["a", "b"]), member("c3", &["a"]), member("c4", &["gone"])];
    let given = AssignorKind::Range.assign(&counts(&[("a", 3), ("b", 2)]), &members);
    assert_eq!(text(&given), "c1=a0 c2=a1,b0,b1 c3=a2 c4=");
}

#[test]
fn static_members_come_first_by_their_instance() {
    let mut late = member("z", &["a"]);
    late.instance_id = Some("i1".into());
    let given = AssignorKind::Range.assign(&counts(&[("a", 3)]), &[member("c", &["a"]), late]);
    assert_eq!(text(&given), "c=a2 z=a0,a1");
}

#[test]
fn round_robin_deals_all_topics_as_one() {
    let members = [member("c1", &["a", "b"]), member("c2", &["a", "b"])];
    let given = AssignorKind::RoundRobin.assign(&counts(&[("a", 3), ("b", 3)]), &members);
    assert_eq!(text(&given), "c1=a0,a2,b1 c2=a1,b0,b2");
}

#[test]
fn round_robin_passes_over_who_does_not_subscribe() {
    let members = [member("c1", &["a"]), member("c2", &["a", "b"]), member("c3", &["a", "b", "c"])];
    let given = AssignorKind::RoundRobin.assign(&counts(&[("a", 1), ("b", 2), ("c", 3)]), &members);
    assert_eq!(text(&given), "c1=a0 c2=b0 c3=b1,c0,c1,c2");
}

#[test]
fn sticky_keeps_what_is_held_when_a_member_comes() {
    let mut members = vec![member("c1", &["a"]), member("c2", &["a"])];
    let first = AssignorKind::Sticky.assign(&counts(&[("a", 6)]), &members);
    for one in &mut members {
        one.owned = first[&one.id].clone();
        one.generation = 1;
    }
    members.push(member("c3", &["a"]));
    let second = AssignorKind::Sticky.assign(&counts(&[("a", 6)]), &members);
    let moved: usize = second["c1"]
        .iter()
        .chain(&second["c2"])
        .filter(|one| !first["c1"].contains(one) && !first["c2"].contains(one))
        .count();
    assert_eq!((second["c1"].len(), second["c2"].len(), second["c3"].len(), moved), (2, 2, 2, 0));
}

#[test]
fn sticky_balances_through_chains_of_subscriptions() {
    let mut wide = member("a", &["x"]);
    wide.owned = (0..4).map(|at| TopicPartition::new("x", at)).collect();
    let mut mid = member("b", &["x", "y"]);
    mid.owned = (0..3).map(|at| TopicPartition::new("y", at)).collect();
    let given = AssignorKind::Sticky.assign(&counts(&[("x", 4), ("y", 3)]), &[wide, mid, member("c", &["y"])]);
    let loads: Vec<usize> = given.values().map(Vec::len).collect();
    assert_eq!(loads.iter().max().unwrap() - loads.iter().min().unwrap(), 1, "{given:?}");
}

#[test]
fn an_old_generation_claims_nothing() {
    let mut old = member("c1", &["a"]);
    (old.owned, old.generation) = (vec![TopicPartition::new("a", 0)], 3);
    let mut new = member("c2", &["a"]);
    (new.owned, new.generation) = (vec![TopicPartition::new("a", 0)], 4);
    let given = AssignorKind::Sticky.assign(&counts(&[("a", 2)]), &[old, new]);
    assert_eq!(text(&given), "c1=a1 c2=a0");
}

#[test]
fn cooperative_gives_to_nobody_what_changes_hands() {
    let mut first = member("c1", &["a"]);
    (first.owned, first.generation) = ((0..4).map(|at| TopicPartition::new("a", at)).collect(), 1);
    let mut members = [first, member("c2", &["a"])];
    let one = AssignorKind::CooperativeSticky.assign(&counts(&[("a", 4)]), &members);
    assert_eq!((one["c1"].len(), one["c2"].len()), (2, 0));
    members[0].owned = one["c1"].clone();
    let two = AssignorKind::CooperativeSticky.assign(&counts(&[("a", 4)]), &members);
    assert_eq!((two["c1"].len(), two["c2"].len()), (2, 2));
    assert_eq!(two["c1"], one["c1"]);
}

#[test]
fn user_data_is_javas() {
    let owned = [TopicPartition::new("t", 3)];
    let bytes = AssignorKind::Sticky.user_data(&owned, 7).unwrap();
    assert_eq!(&bytes[..], [0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 7]);
    assert_eq!(sticky::held(Some(&bytes)), (owned.to_vec(), 7));
    assert_eq!(sticky::held(Some(&bytes.slice(..15))), (owned.to_vec(), -1));
    assert_eq!(sticky::held(Some(&bytes.slice(..9))), (vec![], -1));
    assert_eq!(&AssignorKind::CooperativeSticky.user_data(&owned, 7).unwrap()[..], [0, 0, 0, 7]);
}

#[test]
fn names_come_back() {
    for kind in [AssignorKind::Range, AssignorKind::RoundRobin, AssignorKind::Sticky, AssignorKind::CooperativeSticky] {
        assert_eq!(AssignorKind::from_name(kind.name()), Some(kind));
    }
    assert_eq!(AssignorKind::from_name("own"), None);
}

fn groups() -> impl Strategy<Value = (Vec<i32>, Vec<Vec<bool>>)> {
    (1usize..5, 1usize..7).prop_flat_map(|(topics, members)| {
        (
            proptest::collection::vec(0i32..9, topics),
            proptest::collection::vec(proptest::collection::vec(proptest::bool::weighted(0.7), topics), members),
        )
    })
}

fn made(sizes: &[i32], reads: &[Vec<bool>]) -> (PartitionCounts, Vec<Member>) {
    let name = |at: usize| Rc::<str>::from(format!("t{at}"));
    let counts = sizes.iter().enumerate().map(|(at, count)| (name(at), *count)).collect();
    let one = |(at, reads): (usize, &Vec<bool>)| Member {
        id: format!("m{at}"),
        topics: (0..reads.len()).filter(|topic| reads[*topic]).map(name).collect(),
        generation: -1,
        ..Member::default()
    };
    (counts, reads.iter().enumerate().map(one).collect())
}

fn check_complete(counts: &PartitionCounts, members: &[Member], given: &Assignments) {
    let mut all: Vec<TopicPartition> = given.values().flatten().cloned().collect();
    let total = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), total, "nothing is given twice");
    assert_eq!(all, wanted_partitions(counts, members), "nothing is left out");
    for member in members {
        assert!(
            given[&member.id].iter().all(|one| member.topics.contains(&one.topic)),
            "everybody reads what it wants"
        );
    }
}

proptest! {
    #[test]
    fn everything_is_given_once_to_who_reads_it((sizes, reads) in groups()) {
        let (counts, members) = made(&sizes, &reads);
        for kind in [AssignorKind::Range, AssignorKind::RoundRobin, AssignorKind::Sticky, AssignorKind::CooperativeSticky] {
            check_complete(&counts, &members, &kind.assign(&counts, &members));
        }
    }

    #[test]
    fn equal_subscriptions_are_balanced_within_one(sizes in proptest::collection::vec(0i32..9, 1..5), count in 1usize..7) {
        let (counts, members) = made(&sizes, &vec![vec![true; sizes.len()]; count]);
        for kind in [AssignorKind::RoundRobin, AssignorKind::Sticky, AssignorKind::CooperativeSticky] {
            let given = kind.assign(&counts, &members);
            let loads: Vec<usize> = given.values().map(Vec::len).collect();
            prop_assert!(loads.iter().max().unwrap() - loads.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn sticky_moves_nothing_without_need((sizes, reads) in groups()) {
        let (counts, mut members) = made(&sizes, &reads);
        let first = AssignorKind::Sticky.assign(&counts, &members);
        for one in &mut members {
            (one.owned, one.generation) = (first[&one.id].clone(), 1);
        }
        prop_assert_eq!(AssignorKind::Sticky.assign(&counts, &members), first.clone());
        prop_assert_eq!(AssignorKind::CooperativeSticky.assign(&counts, &members), first);
    }

    #[test]
    fn a_member_that_comes_takes_only_its_share(sizes in proptest::collection::vec(1i32..9, 1..5), count in 1usize..6) {
        let (counts, mut members) = made(&sizes, &vec![vec![true; sizes.len()]; count]);
        let first = AssignorKind::Sticky.assign(&counts, &members);
        for one in &mut members {
            (one.owned, one.generation) = (first[&one.id].clone(), 1);
        }
        members.push(Member { id: "new".into(), topics: members[0].topics.clone(), generation: -1, ..Member::default() });
        let second = AssignorKind::Sticky.assign(&counts, &members);
        check_complete(&counts, &members, &second);
        let kept: usize = first.iter().map(|(id, had)| had.iter().filter(|one| second[id].contains(one)).count()).sum();
        let total: i32 = sizes.iter().sum();
        prop_assert_eq!(kept, total as usize - second["new"].len());
        prop_assert!(second["new"].len() <= (total as usize).div_ceil(members.len()));
    }

    #[test]
    fn a_member_that_goes_leaves_the_others_what_they_had(sizes in proptest::collection::vec(1i32..9, 1..5), count in 2usize..6) {
        let (counts, mut members) = made(&sizes, &vec![vec![true; sizes.len()]; count]);
        let first = AssignorKind::Sticky.assign(&counts, &members);
        members.pop();
        for one in &mut members {
            (one.owned, one.generation) = (first[&one.id].clone(), 1);
        }
        let second = AssignorKind::Sticky.assign(&counts, &members);
        for one in &members {
            prop_assert!(first[&one.id].iter().all(|had| second[&one.id].contains(had)));
        }
    }

    #[test]
    fn hostile_user_data_holds_nothing_or_something(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let (held, _) = sticky::held(Some(&Bytes::from(bytes.clone())));
        prop_assert!(held.len() <= bytes.len());
    }
}
