//! What is tried again, and until when.

use std::collections::{BTreeMap, BTreeSet};

use model::ErrorCode;
use runtime::clock;

use super::Each;
use crate::client::metadata::retry_backoff;
use crate::{Client, ClientError};

/// One call's attempts.
#[derive(Debug)]
pub(super) struct Retry<'a> {
    client: &'a Client,
    deadline_ms: i64,
    failures: u32,
}

impl<'a> Retry<'a> {
    pub fn new(client: &'a Client) -> Retry<'a> {
        let deadline_ms = clock::now_ms().saturating_add(client.config().default_api_timeout_ms);
        Retry { client, deadline_ms, failures: 0 }
    }

    /// Whether `error` is of the kind that passes.
    pub fn is_passing(&self, error: &ClientError) -> bool {
        match error {
            ClientError::Broker { code, .. } => is_passing(*code),
            ClientError::NotConnected { .. } | ClientError::Disconnected { .. } | ClientError::TimedOut { .. } => true,
            ClientError::NoLeader { .. } | ClientError::UnknownNode { .. } => true,
            // A cluster that never answered is more likely not there than restarting.
            ClientError::NoBroker { .. } => self.client.cluster().version > 0,
            _ => false,
        }
    }

    /// Waits before the next attempt; gives the error back if there is to be none.
    pub async fn after(&mut self, error: ClientError) -> Result<(), ClientError> {
        self.failures += 1;
        let next_ms = clock::now_ms() + retry_backoff(self.client.config()).draw_ms(self.failures);
        if !self.is_passing(&error) || next_ms >= self.deadline_ms {
            return Err(error);
        }
        // Whatever it was, who leads and who is where may have changed.
        self.client.want_refresh();
        clock::sleep_until_ms(next_ms).await;
        Ok(())
    }
}

fn is_passing(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::LeaderNotAvailable
            | ErrorCode::NotLeaderOrFollower
            | ErrorCode::RequestTimedOut
            | ErrorCode::BrokerNotAvailable
            | ErrorCode::ReplicaNotAvailable
            | ErrorCode::NetworkException
            | ErrorCode::CoordinatorLoadInProgress
            | ErrorCode::CoordinatorNotAvailable
            | ErrorCode::NotCoordinator
            | ErrorCode::NotController
            | ErrorCode::ListenerNotFound
            | ErrorCode::FencedLeaderEpoch
            | ErrorCode::UnknownLeaderEpoch
            | ErrorCode::OffsetNotAvailable
            | ErrorCode::UnstableOffsetCommit
            | ErrorCode::ThrottlingQuotaExceeded
    )
}

/// Repeats a call that concerns everything at once.
pub(super) async fn whole<T>(
    client: &Client,
    attempt: impl AsyncFn() -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    let mut retry = Retry::new(client);
    loop {
        match attempt().await {
            Ok(value) => return Ok(value),
            Err(error) => retry.after(error).await?,
        }
    }
}

/// Repeats a call for those of `keys` that failed in a passing way. Results come in the order of `keys`, each once.
pub(super) async fn each<K: Clone + Ord, T>(
    client: &Client,
    keys: &[K],
    round: impl AsyncFn(&[K]) -> Result<Each<K, T>, ClientError>,
) -> Result<Each<K, T>, ClientError> {
    let mut retry = Retry::new(client);
    let mut results: BTreeMap<K, Result<T, ClientError>> = BTreeMap::new();
    let mut left: BTreeSet<K> = keys.iter().cloned().collect();
    while !left.is_empty() {
        let asked: Vec<K> = left.iter().cloned().collect();
        let answers = match round(&asked).await {
            Ok(answers) => answers,
            Err(error) => {
                let Err(error) = retry.after(error).await else { continue };
                if results.is_empty() {
                    return Err(error);
                }
                // What was done in earlier rounds stays told.
                results.extend(asked.into_iter().map(|key| (key, Err(error.clone()))));
                break;
            }
        };
        // Answers about what was not asked are dropped, and what was asked but not answered is an error.
        let mut answered: BTreeMap<K, Result<T, ClientError>> =
            answers.into_iter().filter(|(key, _)| left.contains(key)).collect();
        left.clear();
        let mut passing = None;
        for key in asked {
            let result = answered.remove(&key).unwrap_or_else(|| {
                Err(ClientError::BadAnswer { reason: "it leaves out what was asked for".to_string() })
            });
            if let Err(error) = &result
                && retry.is_passing(error)
            {
                passing = Some(error.clone());
                left.insert(key.clone());
            }
            results.insert(key, result);
        }
        if let Some(error) = passing
            && retry.after(error).await.is_err()
        {
            break;
        }
    }
    Ok(keys.iter().filter_map(|key| results.remove(key).map(|result| (key.clone(), result))).collect())
}

/// Whether `code` says that this is not the coordinator, or not yet.
pub(super) fn is_about_coordinators(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::CoordinatorLoadInProgress | ErrorCode::CoordinatorNotAvailable | ErrorCode::NotCoordinator
    )
}
