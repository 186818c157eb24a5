//! What every actor needs: a client of its own, and to know when the work is over.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use client::{Client, ClientConfig};
use runtime::sim::Dice;
use runtime::{TaskGroup, clock};

use super::history::Shared;
use super::plan::Plan;

pub const BROKER: &str = "127.0.0.1:9092";

/// What all actors share.
pub struct Stage {
    pub history: Shared,
    pub plan: Plan,
    /// The last broker stands and the troubles are over: look once more, then go.
    pub closing: Cell<bool>,
    pub actors: TaskGroup,
}

pub type Staged = Rc<Stage>;

impl Stage {
    pub fn client(&self, name: &str) -> Client {
        let config = ClientConfig {
            bootstrap: vec![BROKER.to_string()],
            client_id: name.to_string(),
            request_timeout_ms: self.plan.request_timeout_ms,
            default_api_timeout_ms: 5_000,
            reconnect_backoff_ms: 20,
            reconnect_backoff_max_ms: 500,
            retry_backoff_ms: 20,
            retry_backoff_max_ms: 500,
            metadata_max_age_ms: 10_000,
            connection_setup_timeout_ms: 1_000,
            allow_auto_create_topics: false,
        };
        match Client::new(config) {
            Ok(client) => client,
            Err(error) => panic!("an actor's client cannot be made: {error}"),
        }
    }

    pub fn is_over(&self) -> bool {
        self.closing.get()
    }
}

pub async fn pause_ms(ms: u64) {
    clock::sleep(Duration::from_millis(ms)).await;
}

/// A pause of `mean_ms` on average.
pub async fn linger(dice: &mut Dice, mean_ms: u64) {
    pause_ms(dice.below(2 * mean_ms + 1)).await;
}

/// Ends in a finding when `work` takes longer than anything may take with a broker that is well.
pub async fn patiently<T>(what: &str, seconds: i64, work: impl Future<Output = T>) -> T {
    match runtime::sync::before(clock::now_ms() + seconds * 1_000, work).await {
        Some(value) => value,
        None => panic!("{what} is not over after {seconds} s, and nothing is in its way"),
    }
}

/// What a broker's answer said of the only thing that was asked about.
pub fn only<K, T>(answer: Result<Vec<(K, T)>, client::ClientError>) -> Result<T, client::ClientError> {
    match answer?.pop() {
        Some((_, one)) => Ok(one),
        None => panic!("the answer is about nothing"),
    }
}
