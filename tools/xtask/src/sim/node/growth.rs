//! Partitions that topics get while everybody works (`CreatePartitions`). One actor asks for them, one at a time and again
//! until it is told that they are there; from then on they are written to and read, and they never go.

use client::TopicPartition;
use client::admin::Admin;
use model::ErrorCode;
use runtime::sim;

use super::clients::{Staged, only};
use super::plan::TopicPlan;

/// Partitions of a topic at most.
const MOST: i32 = 6;

/// Asks for one more partition of a topic.
pub async fn grow(stage: &Staged, admin: &Admin, topic: &TopicPlan) {
    let Some(count) = stage.history.borrow_mut().growing(&topic.name, MOST, topic.retains) else { return };
    let answer = only(admin.create_partitions(&[(&topic.name, count)], false).await);
    let grown = match answer {
        Ok(Ok(())) => true,
        // An attempt before this one did it: nobody else asks.
        Ok(Err(error)) => error.code() == Some(ErrorCode::InvalidPartitions),
        Err(_) => false,
    };
    if grown {
        sim::note("grown", [count as u64, 0], || topic.name.clone());
        stage.history.borrow_mut().grown(&topic.name, count);
    }
}

/// Every topic has the partitions that were acknowledged, and none that nobody asked for. Once nobody asks any more
/// (`is_over`), those that are there without an acknowledgement count as well.
pub async fn look(stage: &Staged, admin: &Admin, is_over: bool) -> bool {
    let topics = &stage.plan.topics;
    let least: Vec<i32> = topics.iter().map(|topic| stage.history.borrow().counted(&topic.name).0).collect();
    let Ok(told) = admin.list_topics().await else { return false };
    for (plan, least) in topics.iter().zip(least) {
        let name = &plan.name;
        // A broker that has just begun may know of none yet.
        let Some(topic) = told.iter().find(|topic| *topic.name == **name) else {
            panic!("topic {name} is not told of")
        };
        let count = topic.partitions.len() as i32;
        let most = stage.history.borrow().counted(name).1;
        assert!(count >= least, "{name} has {count} partitions, and {least} were acknowledged");
        assert!(count <= most, "{name} has {count} partitions, and nobody asked for more than {most}");
        if is_over {
            stage.history.borrow_mut().grown(name, count);
        }
    }
    true
}

/// The partitions that a topic begins with.
pub fn first(topic: &TopicPlan) -> impl Iterator<Item = TopicPartition> {
    (0..topic.partitions).map(|partition| TopicPartition::new(&topic.name, partition))
}
