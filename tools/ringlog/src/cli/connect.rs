//! From a command line to a connected client on a shard of its own.

use std::sync::{Arc, Mutex};

use clap::Args;
use client::{Client, ClientConfig};
use runtime::{HelperSpec, ShardSpec, shard};

use crate::cli::failure::Failure;

/// Longest wait for one answer, and how long a call takes where nothing is said, in milliseconds.
const REQUEST_TIMEOUT_MS: i64 = 30_000;

/// How long one answer is waited for within a call that may take `timeout_ms`.
pub fn request_timeout_ms(timeout_ms: i64) -> i64 {
    timeout_ms.min(REQUEST_TIMEOUT_MS)
}

/// Which cluster, and how long to wait for it.
#[derive(Clone, Debug, Args)]
pub struct Connect {
    /// Brokers to begin with, separated by commas. One that answers is enough.
    #[arg(
        short = 'b',
        long = "bootstrap",
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:9092",
        env = "RINGLOG_BOOTSTRAP",
        value_delimiter = ','
    )]
    pub bootstrap: Vec<String>,
    /// How long a call may take in all, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = REQUEST_TIMEOUT_MS, value_parser = clap::value_parser!(i64).range(1..=86_400_000))]
    pub timeout_ms: i64,
}

impl Connect {
    pub fn client_config(&self) -> ClientConfig {
        ClientConfig {
            bootstrap: self.bootstrap.clone(),
            client_id: "ringlog-cli".to_owned(),
            request_timeout_ms: request_timeout_ms(self.timeout_ms),
            default_api_timeout_ms: self.timeout_ms,
            // A command that asks for what is not there says so; it makes nothing by accident.
            allow_auto_create_topics: false,
            ..ClientConfig::default()
        }
    }

    /// Runs `work` with a client of this cluster and closes the client behind it.
    pub fn run<W, F, T>(&self, work: W) -> Result<T, Failure>
    where
        W: FnOnce(Client) -> F + Send + 'static,
        F: Future<Output = Result<T, Failure>> + 'static,
        T: Send + 'static,
    {
        run_with(self.client_config(), work)
    }
}

/// As [`Connect::run`] with a configuration of the caller's.
pub fn run_with<W, F, T>(config: ClientConfig, work: W) -> Result<T, Failure>
where
    W: FnOnce(Client) -> F + Send + 'static,
    F: Future<Output = Result<T, Failure>> + 'static,
    T: Send + 'static,
{
    on_shard(move || async move {
        let client = Client::new(config)?;
        let result = work(client.clone()).await;
        client.close().await;
        result
    })
}

/// Runs `work` on one shard, which ends with it.
pub fn on_shard<W, F, T>(work: W) -> Result<T, Failure>
where
    W: FnOnce() -> F + Send + 'static,
    F: Future<Output = Result<T, Failure>> + 'static,
    T: Send + 'static,
{
    runtime::checks::check_host().map_err(|e| Failure::Failed(e.to_string()))?;
    // Only one shard asks for it; a shard's main function may be called once for each.
    let work = Arc::new(Mutex::new(Some(work)));
    let spec = ShardSpec::default();
    let running = shard::start(&[spec], HelperSpec::default(), move |_| {
        let work = work.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        async move {
            match work {
                Some(work) => work().await,
                None => unreachable!("one shard runs the work once"),
            }
        }
    })
    .map_err(|e| Failure::Failed(e.to_string()))?;
    let mut results = running.join().map_err(|e| Failure::Failed(e.to_string()))?;
    results.remove(0)
}
