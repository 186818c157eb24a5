//! Commands about topics, groups, configurations and the cluster. Each asks through `client::Admin` and prints a table,
//! or JSON with `--json`.

pub mod cluster;
pub mod config;
pub mod group;
pub mod topic;

use client::ClientError;

use crate::cli::Failure;

/// Says on stderr what failed of several things; the last failure decides the exit code. What went well is given to
/// `done`.
fn settle<K: std::fmt::Display, T>(
    results: Vec<(K, Result<T, ClientError>)>,
    mut done: impl FnMut(K, T),
) -> Result<(), Failure> {
    let mut failed = None;
    for (name, result) in results {
        match result {
            Ok(value) => done(name, value),
            Err(error) => {
                if let Some(earlier) = failed.replace(Failure::from(error)) {
                    eprintln!("ringlog: {earlier}");
                }
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

/// `key=value` of a flag.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("give key=value, for instance retention.ms=3600000".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use model::ErrorCode;

    use super::*;

    #[test]
    fn the_last_failure_decides_and_what_went_well_is_kept() {
        let refused = |name: &str| ClientError::Broker {
            code: ErrorCode::TopicAlreadyExists,
            what: name.to_owned(),
            message: None,
        };
        let mut seen = Vec::new();
        let results = vec![("a", Ok(1)), ("b", Err(refused("b"))), ("c", Ok(3)), ("d", Err(ClientError::Closed))];
        let failure = settle(results, |name, value| seen.push((name, value)));
        assert_eq!(failure, Err(Failure::Failed(ClientError::Closed.to_string())));
        assert_eq!(seen, [("a", 1), ("c", 3)]);
    }

    #[test]
    fn pairs_need_a_key() {
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(pair("a="), Ok(("a".to_owned(), String::new())));
        assert!(pair("=b").is_err());
        assert!(pair("a").is_err());
    }
}
