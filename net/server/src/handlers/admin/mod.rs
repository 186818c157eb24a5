//! What the administrative handlers share: questions to the shards that own partitions, names, replica assignments,
//! configuration resources and changes, producer ids.
//!
//! Nothing here is on the produce or fetch way. State lives elsewhere: the cluster's on the metadata quorum, a
//! partition's with its shard; only [`producer_ids`] keeps something, a block of ids for each shard.

pub mod ask;
pub mod assignment;
pub mod config_change;
pub mod config_target;
pub mod names;
pub mod producer_ids;

#[cfg(test)]
pub mod test_support;

use std::future::Future;

use model::ErrorCode;

/// "Not asked for", where a response has authorised operations.
pub const OPERATIONS_NOT_ASKED: i32 = i32::MIN;
/// What may be done with a topic without an authorizer, bits by Kafka's operation codes: read, write, create, delete,
/// alter, describe, describe configs, alter configs.
pub const TOPIC_OPERATIONS: i32 = 0b1101_1111_1000;
/// As above for the cluster: create, alter, describe, cluster action, describe configs, alter configs, idempotent write.
pub const CLUSTER_OPERATIONS: i32 = 0b1_1111_1010_0000;

/// Changes of one request that are proposed together: they share the quorum's syncs.
const CONCURRENT_CHANGES: usize = 64;
/// Partitions that one request may add, as in Kafka.
pub const MAX_NEW_PARTITIONS: usize = 10_000;

/// A code and a sentence: why something asked for was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: ErrorCode,
    pub message: String,
}

impl Refusal {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }

    pub fn invalid_request(message: impl Into<String>) -> Refusal {
        Refusal::new(ErrorCode::InvalidRequest, message)
    }
}

impl From<ErrorCode> for Refusal {
    fn from(code: ErrorCode) -> Refusal {
        Refusal::new(code, code.sentence())
    }
}

/// Works off `items`, some at once, results in order.
pub async fn in_chunks<Q, A, F>(items: Vec<Q>, work: impl Fn(Q) -> F) -> Vec<A>
where
    F: Future<Output = A>,
{
    let mut results = Vec::with_capacity(items.len());
    let mut items = items.into_iter().peekable();
    while items.peek().is_some() {
        let chunk = items.by_ref().take(CONCURRENT_CHANGES).map(&work).collect();
        results.extend(runtime::sync::all(chunk).await);
    }
    results
}
