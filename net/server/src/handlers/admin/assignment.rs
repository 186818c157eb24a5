//! Replica assignments that a client gives by hand, judged as Kafka does.

use metadata::Image;
use model::{ErrorCode, NodeId};

use super::Refusal;

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(ErrorCode::InvalidReplicaAssignment, message)
}

/// One partition's replicas. `replication_factor` is what the partitions before it have.
fn check_replicas(image: &Image, replicas: &[NodeId], replication_factor: Option<usize>) -> Result<(), Refusal> {
    if replicas.is_empty() {
        return Err(invalid("The replica list of a partition is empty."));
    }
    for (i, node) in replicas.iter().enumerate() {
        if image.broker(*node).is_none() {
            return Err(invalid(format!("The assignment names broker {node}, and no such broker is registered.")));
        }
        if replicas[..i].contains(node) {
            return Err(invalid(format!("The assignment of a partition names broker {node} more than once.")));
        }
    }
    match replication_factor {
        Some(factor) if factor != replicas.len() => Err(invalid(format!(
            "A partition is assigned to {} replica(s) while those before it have {factor}.",
            replicas.len()
        ))),
        _ => Ok(()),
    }
}

/// For a new topic: `(partition, brokers)` in any order; gives the replicas by partition.
pub fn of_new_topic(image: &Image, given: &[(i32, &[i32])]) -> Result<Vec<Vec<NodeId>>, Refusal> {
    let mut sorted: Vec<_> = given.to_vec();
    sorted.sort_by_key(|(partition, _)| *partition);
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(invalid(format!("Partition {} is assigned more than once.", twice[0].0)));
    }
    let mut assignments: Vec<Vec<NodeId>> = Vec::with_capacity(sorted.len());
    for (partition, brokers) in sorted {
        let replicas = nodes(brokers);
        check_replicas(image, &replicas, assignments.first().map(Vec::len))?;
        if usize::try_from(partition) != Ok(assignments.len()) {
            return Err(invalid("The assigned partitions are not numbered from 0 without gaps."));
        }
        assignments.push(replicas);
    }
    Ok(assignments)
}

/// For partitions added to a topic whose partitions have `replication_factor` replicas.
pub fn of_added(
    image: &Image,
    additional: usize,
    replication_factor: usize,
    given: &[&[i32]],
) -> Result<Vec<Vec<NodeId>>, Refusal> {
    if given.len() != additional {
        return Err(invalid(format!(
            "Attempted to add {additional} additional partition(s), but only {} assignment(s) were specified.",
            given.len()
        )));
    }
    let check = |brokers: &&[i32]| {
        let replicas = nodes(brokers);
        check_replicas(image, &replicas, Some(replication_factor)).map(|()| replicas)
    };
    given.iter().map(check).collect()
}

fn nodes(brokers: &[i32]) -> Vec<NodeId> {
    brokers.iter().copied().map(NodeId).collect()
}

#[cfg(test)]
#[path = "assignment_tests.rs"]
mod tests;
