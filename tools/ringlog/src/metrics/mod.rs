//! `/metrics` and `/healthz`: one ordinary thread beside the shards, for Prometheus and whoever else watches a node.
//!
//! [`families`] is the table of metrics, [`text`] makes the page of it, [`http`] serves the page; `server::metrics` says how
//! shards are asked. The thread never touches what serves clients: a question to a shard is one message, and a shard that does
//! not answer within [`limits::SCRAPE_WAIT`] is left out and said to be down. It begins before the node does, so that
//! `/healthz` can say "starting", and ends after it; a scrape that hangs is dropped then, nobody waits for it.
//!
//! State: the phase of the node, behind a lock that the threads of the stop and of this server take for a moment.

mod families;
mod http;
mod limits;
mod text;

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use model::config::Listener;
use server::Started;
use server::metrics::FiguresSource;

/// What the node does, as far as a watcher is concerned.
#[derive(Clone, Debug)]
pub enum Phase {
    Starting,
    Ready(Facts),
    Stopping,
}

/// A node that serves, and what does not change about it.
#[derive(Clone, Debug)]
pub struct Facts {
    pub source: FiguresSource,
    pub node_id: i32,
    pub cluster_id: String,
}

#[derive(Clone, Debug)]
pub struct Shared(Arc<Mutex<Phase>>);

impl Shared {
    fn new() -> Shared {
        Shared(Arc::new(Mutex::new(Phase::Starting)))
    }

    fn lock(&self) -> MutexGuard<'_, Phase> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn phase(&self) -> Phase {
        self.lock().clone()
    }
}

/// The running server. Dropping it ends its thread.
pub struct Metrics {
    address: SocketAddr,
    shared: Shared,
    stop: Option<flume::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Metrics({})", self.address)
    }
}

impl Metrics {
    /// Listens and serves from a thread of its own, on `cpu` if one is given. The error is a sentence.
    pub fn start(listen: &Listener, cpu: Option<usize>) -> Result<Metrics, String> {
        let shown = listen.to_string().replace("PLAINTEXT://", "");
        let why = |error: std::io::Error| {
            format!("metrics cannot be served on {shown}: {error}; choose another ringlog.metrics.listen")
        };
        let listener = TcpListener::bind((listen.host.as_str(), listen.port)).map_err(why)?;
        listener.set_nonblocking(true).map_err(why)?;
        let address = listener.local_addr().map_err(why)?;
        let shared = Shared::new();
        let (stop, stopped) = flume::bounded(1);
        let served = shared.clone();
        let thread = std::thread::Builder::new().name("ringlog-metrics".into()).spawn(move || {
            if let Some(id) = cpu {
                core_affinity::set_for_current(core_affinity::CoreId { id });
            }
            http::run(listener, served, &stopped);
        });
        Ok(Metrics { address, shared, stop: Some(stop), thread: Some(thread.map_err(why)?) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn ready(&self, source: FiguresSource, started: &Started) {
        let facts = Facts { source, node_id: started.node_id.0, cluster_id: started.cluster_id.clone() };
        *self.shared.lock() = Phase::Ready(facts);
    }

    pub fn stopping(&self) {
        *self.shared.lock() = Phase::Stopping;
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
