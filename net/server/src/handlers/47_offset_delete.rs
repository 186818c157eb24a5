//! OffsetDelete (key 47): offsets of topics that the group does not read any more go; answered when that is durable.

use std::borrow::Cow;

use coordinator::{DeleteOffsetsRequest, Response};
use model::ErrorCode;
use wire::generated::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestTopic, OffsetDeleteResponse, OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
};

use super::Context;
use crate::groups::Need;
use crate::view::View;

/// A topic and its partitions' results.
type Answered = (String, Vec<(i32, ErrorCode)>);

pub async fn handle(context: &Context<'_>, request: OffsetDeleteRequest<'_>) -> OffsetDeleteResponse<'static> {
    let view = context.shard.view();
    let mut answered: Vec<Answered> = Vec::new();
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let (exist, unknown) = sort(&view, topic);
        if !exist.is_empty() {
            topics.push((topic.name.to_owned(), exist));
        }
        if !unknown.is_empty() {
            let unknown = unknown.into_iter().map(|p| (p, ErrorCode::UnknownTopicOrPartition));
            answered.push((topic.name.to_owned(), unknown.collect()));
        }
    }
    drop(view);
    // Asked even when no topic is left: what is wrong with the group comes first.
    let delete = DeleteOffsetsRequest { group_id: request.group_id.to_owned(), topics };
    let call = context.shard.with_group(request.group_id, Need::Nothing, |driver| async move {
        driver.ask(|coordinator, now, ticket| coordinator.delete_offsets(now, ticket, delete)).await
    });
    let (error, deleted) = match call.await {
        Ok(Response::DeleteOffsets { error, topics }) => (error, topics),
        Ok(_) => (ErrorCode::UnknownServerError, Vec::new()),
        Err(unreached) => (unreached.code_or(unknown_group(request.group_id)), Vec::new()),
    };
    if error != ErrorCode::None {
        return OffsetDeleteResponse { error_code: error.code(), ..OffsetDeleteResponse::default() };
    }
    OffsetDeleteResponse { topics: merge(answered, deleted), ..OffsetDeleteResponse::default() }
}

fn unknown_group(group_id: &str) -> ErrorCode {
    if group_id.is_empty() { ErrorCode::InvalidGroupId } else { ErrorCode::GroupIdNotFound }
}

/// Partitions that exist, and those that do not.
fn sort(view: &View, topic: &OffsetDeleteRequestTopic<'_>) -> (Vec<i32>, Vec<i32>) {
    let count = view.image.topic_by_name(topic.name).map_or(0, |topic| topic.partitions.len());
    let exists = |p: &i32| usize::try_from(*p).is_ok_and(|index| index < count);
    topic.partitions.iter().map(|p| p.partition_index).partition(exists)
}

fn merge(mut answered: Vec<Answered>, deleted: Vec<Answered>) -> Vec<OffsetDeleteResponseTopic<'static>> {
    // Only topics with both kinds of partitions meet here; requests name few topics.
    for (name, partitions) in deleted {
        match answered.iter_mut().find(|(answered, _)| *answered == name) {
            Some((_, already)) => already.extend(partitions),
            None => answered.push((name, partitions)),
        }
    }
    let partition = |(partition_index, error): (i32, ErrorCode)| OffsetDeleteResponsePartition {
        partition_index,
        error_code: error.code(),
    };
    let topic = |(name, partitions): Answered| OffsetDeleteResponseTopic {
        name: Cow::Owned(name),
        partitions: partitions.into_iter().map(partition).collect(),
    };
    answered.into_iter().map(topic).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_one_topic_meet_in_one_entry() {
        let refused = vec![("t".to_owned(), vec![(9, ErrorCode::UnknownTopicOrPartition)])];
        let deleted = vec![("t".to_owned(), vec![(0, ErrorCode::None)]), ("u".to_owned(), vec![(1, ErrorCode::None)])];
        let topics = merge(refused, deleted);
        assert_eq!(topics.len(), 2);
        let codes: Vec<(i32, i16)> = topics[0].partitions.iter().map(|p| (p.partition_index, p.error_code)).collect();
        assert_eq!(codes, [(9, 3), (0, 0)]);
    }
}
