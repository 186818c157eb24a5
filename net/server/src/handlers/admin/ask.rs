//! One question to each of many partitions: one message for each shard that owns some, answers in the order asked.

use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

use model::{ErrorCode, PartitionKey};
use replica::Replica;

use super::in_chunks;
use crate::shard::Shard;

/// Partitions that one shard is asked about, with their places in the request.
type Batch<Q> = Vec<(usize, PartitionKey, Q)>;

/// Asks `answer` of each partition's opened replica on the shard that owns it.
pub async fn ask_owners<Q, A, F>(
    shard: &Rc<Shard>,
    questions: Vec<(PartitionKey, Q)>,
    answer: impl Fn(Rc<Replica>, Q) -> F + Clone + Send + 'static,
) -> Vec<Result<A, ErrorCode>>
where
    Q: Send + 'static,
    A: Send + 'static,
    F: Future<Output = Result<A, ErrorCode>> + 'static,
{
    let Sorted { mut results, batches } = sort(shard, questions);
    let calls = batches.into_iter().map(|(to, batch)| {
        let answer = answer.clone();
        shard.on(to, move |owner| async move { answer_all(owner, batch, answer).await })
    });
    for answered in runtime::sync::all(calls.collect()).await.into_iter().flatten() {
        for (slot, result) in answered {
            results[slot] = result;
        }
    }
    results
}

/// What is known before anybody is asked, and who has to be.
struct Sorted<Q, A> {
    /// "Not the leader" where an answer is to come: that is what a shard that stops leaves behind.
    results: Vec<Result<A, ErrorCode>>,
    batches: BTreeMap<usize, Batch<Q>>,
}

fn sort<Q, A>(shard: &Shard, questions: Vec<(PartitionKey, Q)>) -> Sorted<Q, A> {
    let view = shard.view();
    let mut results = Vec::with_capacity(questions.len());
    let mut batches: BTreeMap<usize, Batch<Q>> = BTreeMap::new();
    for (slot, (key, question)) in questions.into_iter().enumerate() {
        match view.placement.shard_of(key) {
            Some(owner) => {
                batches.entry(owner).or_default().push((slot, key, question));
                results.push(Err(ErrorCode::NotLeaderOrFollower));
            }
            None => results.push(Err(ErrorCode::UnknownTopicOrPartition)),
        }
    }
    Sorted { results, batches }
}

async fn answer_all<Q, A, F>(
    owner: Rc<Shard>,
    batch: Batch<Q>,
    answer: impl Fn(Rc<Replica>, Q) -> F,
) -> Vec<(usize, Result<A, ErrorCode>)>
where
    F: Future<Output = Result<A, ErrorCode>>,
{
    let (owner, answer) = (&owner, &answer);
    let one = |(slot, key, question)| async move {
        let result = match owner.partition(key).await {
            Ok(replica) => answer(replica, question).await,
            Err(code) => Err(code),
        };
        (slot, result)
    };
    in_chunks(batch, one).await
}
