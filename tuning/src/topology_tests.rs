use super::*;

fn text(id: usize, siblings: &str, package: &str) -> CpuText {
    CpuText { id, siblings: siblings.to_owned(), package: package.to_owned() }
}

/// Two packages of two cores with two threads each, numbered as Linux does: second threads last.
fn two_sockets() -> Topology {
    let cpus: Vec<CpuText> = (0..8)
        .map(|id| {
            let first = id % 4;
            text(id, &format!("{first},{}\n", first + 4), if first < 2 { "0\n" } else { "1\n" })
        })
        .collect();
    Topology::parse(&cpus, &[(0, "0-1,4-5\n".to_owned()), (1, "2-3,6-7\n".to_owned())])
}

#[test]
fn cores_packages_and_nodes_are_read() {
    let topology = two_sockets();
    assert_eq!(topology.core_count(), 4);
    assert_eq!(topology.nodes(), [0, 1]);
    let six = Cpu { id: 6, core: 2, package: Some(1), numa_node: Some(1), siblings: vec![2, 6] };
    assert_eq!(topology.cpu(6), Some(&six));
    assert_eq!(topology.cpu(8), None);
}

#[test]
fn what_sysfs_does_not_say_is_a_core_of_its_own() {
    let topology = Topology::parse(&[text(3, "", ""), text(1, "nonsense", "x")], &[]);
    assert_eq!(topology.ids(), [1, 3]);
    assert_eq!((topology.core_count(), topology.nodes()), (2, Vec::new()));
    // A list that does not hold the CPU itself is not believed.
    assert_eq!(Topology::parse(&[text(1, "4,5", "0")], &[]).cpu(1).map(|cpu| cpu.core), Some(1));
}

#[test]
fn a_process_with_fewer_cpus_sees_fewer() {
    let part = two_sockets().restricted_to(&[2, 6, 7, 30]);
    assert_eq!(part.ids(), [2, 6, 7, 30]);
    assert_eq!(part.core_count(), 3);
    assert_eq!(part.nodes(), [1]);
}

#[test]
fn siblings_among_the_chosen_are_found() {
    assert_eq!(two_sockets().sharing_a_core(&[0, 1, 2, 4, 6]), [vec![0, 4], vec![2, 6]]);
    assert_eq!(two_sockets().sharing_a_core(&[0, 1, 2, 3]), Vec::<Vec<usize>>::new());
}
