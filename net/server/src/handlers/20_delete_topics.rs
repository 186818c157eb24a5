//! DeleteTopics (key 20): by name, and since version 6 by id. The files are renamed away and the offsets that groups
//! committed for the topic forgotten before the answer leaves.

use std::collections::BTreeMap;

use metadata::{Command, Rejection};
use model::{ErrorCode, TopicId};
use wire::generated::delete_topics::{
    DeletableTopicResult, DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse,
};

use super::Context;
use super::admin::{Refusal, in_chunks, names};
use crate::cluster::ChangeError;
use crate::groups;
use crate::view::View;

/// First version in which topics may be named by id.
const FIRST_WITH_IDS: i16 = 6;
/// First version that knows error 73.
const FIRST_WITH_DELETION_DISABLED: i16 = 3;

/// How the client named a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asked<'a> {
    Name(&'a str),
    Id(TopicId),
    Both(&'a str, TopicId),
}

impl<'a> Asked<'a> {
    fn of(state: &DeleteTopicState<'a>) -> Asked<'a> {
        let id = TopicId(state.topic_id);
        match state.name {
            Some(name) if id.is_zero() => Asked::Name(name),
            Some(name) => Asked::Both(name, id),
            None => Asked::Id(id),
        }
    }
}

pub async fn handle<'a>(context: &Context<'_>, request: DeleteTopicsRequest<'a>) -> DeleteTopicsResponse<'a> {
    let asked: Vec<Asked<'a>> = if context.version >= FIRST_WITH_IDS {
        request.topics.iter().map(Asked::of).collect()
    } else {
        request.topic_names.iter().copied().map(Asked::Name).collect()
    };
    let judged = judge(&context.shard.view(), context.version, &asked);
    let responses = in_chunks(judged, |(asked, found)| async move {
        match found {
            Ok(found) => delete(context, asked, found).await,
            Err(refusal) => refused(asked, refusal),
        }
    })
    .await;
    DeleteTopicsResponse { throttle_time_ms: 0, responses }
}

/// A topic that may be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    id: TopicId,
    name: String,
}

/// Each topic at its first mention.
fn judge<'a>(view: &View, version: i16, asked: &[Asked<'a>]) -> Vec<(Asked<'a>, Result<Found, Refusal>)> {
    let mut mentions: BTreeMap<Asked<'a>, usize> = BTreeMap::new();
    asked.iter().for_each(|asked| *mentions.entry(*asked).or_default() += 1);
    let mut targets: BTreeMap<TopicId, usize> = BTreeMap::new();
    mentions.keys().filter_map(|asked| find(view, *asked).ok()).for_each(|found| {
        *targets.entry(found.id).or_default() += 1;
    });
    let mut judged = Vec::with_capacity(mentions.len());
    for &asked in asked {
        let Some(count) = mentions.remove(&asked) else { continue };
        let found = match (asked, count) {
            _ if !view.config.topics.delete_enabled => Err(disabled(version)),
            (Asked::Id(_), 2..) => Err(Refusal::invalid_request("Duplicate topic id.")),
            (_, 2..) => Err(Refusal::invalid_request("Duplicate topic name.")),
            _ => find(view, asked).and_then(|found| match targets.get(&found.id) {
                Some(2..) => Err(Refusal::invalid_request("The topic is named both by its name and by its id.")),
                _ => Ok(found),
            }),
        };
        judged.push((asked, found));
    }
    judged
}

fn disabled(version: i16) -> Refusal {
    let code = if version < FIRST_WITH_DELETION_DISABLED {
        ErrorCode::InvalidRequest
    } else {
        ErrorCode::TopicDeletionDisabled
    };
    Refusal::new(code, "Topics cannot be deleted: delete.topic.enable is false.")
}

fn find(view: &View, asked: Asked<'_>) -> Result<Found, Refusal> {
    let topic = match asked {
        Asked::Name(name) => view.image.topic_by_name(name).ok_or(ErrorCode::UnknownTopicOrPartition)?,
        Asked::Id(id) if id.is_zero() => {
            return Err(Refusal::invalid_request("Neither topic name nor id were specified."));
        }
        Asked::Id(id) => view.image.topic(id).ok_or(ErrorCode::UnknownTopicId)?,
        Asked::Both(..) => {
            return Err(Refusal::invalid_request("You may not specify both topic name and topic id."));
        }
    };
    names::check_not_reserved(&topic.name, "Deletion of")?;
    Ok(Found { id: topic.id, name: topic.name.to_string() })
}

async fn delete<'a>(context: &Context<'_>, asked: Asked<'a>, found: Found) -> DeletableTopicResult<'a> {
    match context.shard.change(Command::DeleteTopic { id: found.id }).await {
        Ok(_) => {}
        Err(ChangeError::Rejected(Rejection::UnknownTopic)) => {
            let code = match asked {
                Asked::Id(_) => ErrorCode::UnknownTopicId,
                _ => ErrorCode::UnknownTopicOrPartition,
            };
            return refused(asked, code.into());
        }
        Err(error) => return refused(asked, Refusal::new(error.code(), error.message())),
    }
    groups::topic_deleted(context.shard, found.id, &found.name).await;
    DeletableTopicResult { name: Some(found.name.into()), topic_id: found.id.0, ..DeletableTopicResult::default() }
}

fn refused<'a>(asked: Asked<'a>, refusal: Refusal) -> DeletableTopicResult<'a> {
    let (name, id) = match asked {
        Asked::Name(name) => (Some(name), TopicId::ZERO),
        Asked::Id(id) => (None, id),
        Asked::Both(name, id) => (Some(name), id),
    };
    DeletableTopicResult {
        name: name.map(Into::into),
        topic_id: id.0,
        error_code: refusal.code.code(),
        error_message: Some(refusal.message.into()),
    }
}

#[cfg(test)]
#[path = "20_delete_topics_tests.rs"]
mod tests;
