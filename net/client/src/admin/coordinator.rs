//! Who coordinates a group. Nothing is remembered here: whoever asks keeps the answer until it is told otherwise.

use std::collections::BTreeMap;

use wire::generated::find_coordinator::FindCoordinatorRequest;

use super::retry::{each, whole};
use super::{Each, owned};
use crate::{Client, ClientError, Destination};

const GROUP: i8 = 0;

/// The node that coordinates `group`, tried until `default_api_timeout_ms`.
pub async fn find(client: &Client, group: &str) -> Result<i32, ClientError> {
    let groups = [group.to_string()];
    whole(client, async || match find_once(client, &groups).await?.pop() {
        Some((_, result)) => result,
        None => Err(ClientError::BadAnswer { reason: "FindCoordinator without a coordinator".to_string() }),
    })
    .await
}

/// One attempt for all groups, in one request where the broker can.
async fn find_once(client: &Client, groups: &[String]) -> Result<Each<String, i32>, ClientError> {
    let request = FindCoordinatorRequest {
        key_type: GROUP,
        coordinator_keys: groups.iter().map(String::as_str).collect(),
        ..FindCoordinatorRequest::default()
    };
    let answer = match client.ask(Destination::Any, Some(4..=6), &request).await {
        Err(ClientError::UnsupportedApi { .. }) => return find_singly(client, groups).await,
        other => other?,
    };
    let answer = answer.decode()?;
    let one = |group: &String| {
        let found = answer.coordinators.iter().find(|one| one.key == **group)?;
        let message = owned(&found.error_message);
        Some((group.clone(), found_node(group, found.error_code, message.as_deref(), found.node_id)))
    };
    Ok(groups.iter().filter_map(one).collect())
}

async fn find_singly(client: &Client, groups: &[String]) -> Result<Each<String, i32>, ClientError> {
    let mut found = Vec::new();
    for group in groups {
        let request = FindCoordinatorRequest { key: group, ..FindCoordinatorRequest::default() };
        let answer = client.ask(Destination::Any, Some(0..=3), &request).await?;
        let answer = answer.decode()?;
        let message = owned(&answer.error_message);
        found.push((group.clone(), found_node(group, answer.error_code, message.as_deref(), answer.node_id)));
    }
    Ok(found)
}

fn found_node(group: &str, code: i16, message: Option<&str>, node: i32) -> Result<i32, ClientError> {
    ClientError::check_with(code, format!("looking for the coordinator of group {group}"), message)?;
    Ok(node)
}

/// Puts a question about groups to their coordinators: one call of `ask` for each node. Coordinators are looked for anew
/// in every round, for the usual reason of another round is that one moved.
pub(super) async fn at_coordinators<T>(
    client: &Client,
    groups: &[String],
    ask: impl AsyncFn(i32, &[String]) -> Result<Each<String, T>, ClientError>,
) -> Result<Each<String, T>, ClientError> {
    each(client, groups, async |groups: &[String]| {
        let mut results = Vec::new();
        let mut by_node: BTreeMap<i32, Vec<String>> = BTreeMap::new();
        for (group, node) in find_once(client, groups).await? {
            match node {
                Ok(node) => by_node.entry(node).or_default().push(group),
                Err(error) => results.push((group, Err(error))),
            }
        }
        for (node, groups) in by_node {
            match ask(node, &groups).await {
                Ok(answers) => results.extend(answers),
                Err(error) => results.extend(groups.into_iter().map(|group| (group, Err(error.clone())))),
            }
        }
        Ok(results)
    })
    .await
}

/// The same for one group.
pub(super) async fn at_coordinator<T>(
    client: &Client,
    group: &str,
    ask: impl AsyncFn(i32) -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    let groups = [group.to_string()];
    let mut results = at_coordinators(client, &groups, async |node, groups: &[String]| {
        let value = ask(node).await?;
        Ok(groups.iter().take(1).cloned().zip([Ok(value)]).collect())
    })
    .await?;
    match results.pop() {
        Some((_, result)) => result,
        None => Err(ClientError::BadAnswer { reason: "no result for the group".to_string() }),
    }
}
