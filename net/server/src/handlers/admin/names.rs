//! Topic names as administrative requests judge them: Kafka's rules, with what is wrong in words that name the topic.

use metadata::topic_name::check_topic_name;
use model::ErrorCode;

use super::Refusal;
use crate::view::{View, is_internal};

/// Kafka's own metadata log; clients may neither make nor change a topic of this name.
pub const CLUSTER_METADATA_TOPIC: &str = "__cluster_metadata";

/// Whether the broker alone decides about the topic.
pub fn is_reserved(name: &str) -> bool {
    is_internal(name) || name == CLUSTER_METADATA_TOPIC
}

pub fn check(name: &str) -> Result<(), Refusal> {
    check_topic_name(name).map_err(|why| {
        Refusal::new(ErrorCode::InvalidTopicException, format!("Topic name '{name}' is invalid: {why}."))
    })
}

pub fn check_not_reserved(name: &str, what: &str) -> Result<(), Refusal> {
    if is_reserved(name) {
        return Err(Refusal::invalid_request(format!("{what} internal topic {name} is prohibited.")));
    }
    Ok(())
}

pub fn already_exists(name: &str) -> Refusal {
    Refusal::new(ErrorCode::TopicAlreadyExists, format!("Topic '{name}' already exists."))
}

pub fn collides(name: &str, existing: &str) -> Refusal {
    let message = format!("Topic '{name}' collides with existing topic: {existing}");
    Refusal::new(ErrorCode::InvalidTopicException, message)
}

/// Whether metric names would mix the two up: they turn '.' into '_'.
pub fn same_metric_name(a: &str, b: &str) -> bool {
    let dot_free = |c: u8| if c == b'.' { b'_' } else { c };
    a.len() == b.len() && a.bytes().map(dot_free).eq(b.bytes().map(dot_free))
}

/// Whether a topic of this name could be made, as the quorum would judge it.
pub fn check_new(view: &View, name: &str) -> Result<(), Refusal> {
    check(name)?;
    if view.image.topic_by_name(name).is_some() {
        return Err(already_exists(name));
    }
    Ok(())
}

/// The topic that `name` would be mixed up with. Looks at every topic: for `validate_only`, where no quorum judges.
pub fn collision<'a>(view: &'a View, name: &str) -> Option<&'a str> {
    if !name.contains(['.', '_']) {
        return None;
    }
    view.image.topics().map(|topic| topic.name.as_ref()).find(|existing| same_metric_name(existing, name))
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
