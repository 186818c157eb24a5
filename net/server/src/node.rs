//! A node: from configuration to listening shards, and back.
//!
//! Start: host checks and the listener on the caller's thread, so that their errors are sentences at once; then all
//! shards together. Shard 0 opens the data folders and the metadata quorum, registers this start (broker, raised leader
//! epochs) and hands facts and view to the others; no shard takes a connection before that. Stop: connections, groups,
//! logs on every shard, then the clean mark by shard 0 as the last one.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use log::{DataDirError, WriteClock};
use metadata::MetadataError;
use model::NodeId;
use model::config::BrokerConfig;
use runtime::checks::{self, HostError};
use runtime::net::Bound;
use runtime::shard::RunningShards;
use runtime::{Acceptor, ChunkPool, HelperSpec, IoError, ShardSpec};

use crate::boot::{Boot, Summary, run_shard};
use crate::folders;
use crate::mail::{ShardReply, ShardRequest};
use crate::metrics::FiguresSource;

/// Everything a start needs.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    pub config: BrokerConfig,
    pub shards: Vec<ShardSpec>,
    /// Where the threads that are no shards are pinned, if anywhere.
    pub helper_cpu: Option<usize>,
}

/// What came of a start, for the printed block and for tests.
#[derive(Clone, Debug)]
pub struct Started {
    pub address: SocketAddr,
    pub advertised: (String, u16),
    pub cluster_id: String,
    pub node_id: NodeId,
    pub topics: usize,
    pub partitions: u64,
    pub was_clean: bool,
}

/// Why a node did not start, each a sentence that says what to do.
#[derive(Debug)]
pub enum StartError {
    Host(HostError),
    Listen {
        address: String,
        source: io::Error,
    },
    Address {
        text: String,
        why: String,
    },
    DataDir(DataDirError),
    MetadataMissing {
        path: PathBuf,
    },
    /// Several folders, used before, and none of them has the metadata log.
    MetadataNowhere {
        used: PathBuf,
    },
    Cordoned {
        path: PathBuf,
    },
    MetadataElsewhere {
        found: PathBuf,
        named: PathBuf,
    },
    MetadataTwice {
        path: PathBuf,
        other: PathBuf,
    },
    Metadata(MetadataError),
    Io(IoError),
    /// Folders of deleted topics could not be moved out of the way.
    Orphans(String),
    Shards(runtime::shard::StartError),
    Ended,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Host(e) => e.fmt(f),
            StartError::Listen { address, source } if source.kind() == io::ErrorKind::AddrInUse => {
                write!(
                    f,
                    "{address} is in use: stop what listens there, or choose another port with --listen HOST:PORT"
                )
            }
            StartError::Listen { address, source } => {
                write!(
                    f,
                    "cannot listen on {address}: {source}; choose an address of this host with --listen HOST:PORT"
                )
            }
            StartError::Address { text, why } => write!(f, "cannot listen on {text}: {why}"),
            StartError::DataDir(e) => e.fmt(f),
            StartError::MetadataMissing { path } => write!(
                f,
                "{} is missing although the data folder was used before: restore it, or start with an empty --data-dir",
                path.display()
            ),
            StartError::MetadataNowhere { used } => write!(
                f,
                "none of log.dirs holds the metadata log (__cluster_metadata), although {} was used before: mount or name the \
                 folder that holds it",
                used.display()
            ),
            StartError::Cordoned { path } => {
                write!(f, "cordoned.log.dirs names {}, which is not among log.dirs", path.display())
            }
            StartError::MetadataElsewhere { found, named } => write!(
                f,
                "the metadata log lies in {}, but metadata.log.dir says {}: stop here, move the folder __cluster_metadata and \
                 the file ringlog.folders, or name the first",
                found.display(),
                named.display()
            ),
            StartError::MetadataTwice { path, other } => write!(
                f,
                "{} and {} both hold a metadata log (__cluster_metadata): they are of two nodes, or one is a copy; leave one out",
                path.display(),
                other.display()
            ),
            StartError::Metadata(e) => write!(f, "the cluster's metadata cannot be used: {e}"),
            StartError::Io(e) => write!(f, "the data folder cannot be used: {e}"),
            StartError::Orphans(why) => write!(f, "the folder of a deleted topic is in the way: {why}"),
            StartError::Shards(e) => e.fmt(f),
            StartError::Ended => write!(f, "a shard ended while the node was starting"),
        }
    }
}

impl std::error::Error for StartError {}

/// A running node.
#[derive(Debug)]
pub struct Node {
    acceptor: Option<Acceptor>,
    stops: Vec<flume::Sender<()>>,
    figures: FiguresSource,
    running: RunningShards<Result<bool, String>>,
}

/// What a start has begun, while its shards come up.
struct Launched {
    node: Node,
    ready: flume::Receiver<Result<Option<Summary>, StartError>>,
    summary: Option<Summary>,
    shards: usize,
    address: SocketAddr,
    advertised: (String, u16),
    node_id: NodeId,
}

impl Node {
    #[cfg(not(feature = "sim"))]
    pub fn start(options: NodeOptions) -> Result<(Node, Started), StartError> {
        let mut launched = Node::launch(options)?;
        for _ in 0..launched.shards {
            let said = launched.ready.recv();
            launched.hear(said)?;
        }
        launched.finish()
    }

    /// The same in a simulated process, which has no thread that could wait.
    #[cfg(feature = "sim")]
    pub async fn start(options: NodeOptions) -> Result<(Node, Started), StartError> {
        let mut launched = Node::launch(options)?;
        for _ in 0..launched.shards {
            let said = launched.ready.recv_async().await;
            launched.hear(said)?;
        }
        launched.finish()
    }

    fn launch(options: NodeOptions) -> Result<Launched, StartError> {
        checks::check_host().map_err(StartError::Host)?;
        let folders = folders::plan(&options.config)?;
        checks::prepare_data_dir(&folders.metadata).map_err(StartError::Host)?;
        let bound = bind(&options.config)?;
        let address = bound.local_addr().map_err(|e| StartError::Io(IoError::bare("the listener", e)))?;
        let advertised = advertised(&options.config, address);

        let shards = options.shards.len();
        let max_connections = Arc::new(AtomicUsize::new(options.config.connections.max_connections));
        let (acceptor, queues) = bound
            .accept(shards, max_connections.clone(), options.helper_cpu)
            .map_err(|e| StartError::Io(IoError::bare("the acceptor thread", e)))?;
        let (stops, stop_receivers): (Vec<_>, Vec<_>) = (0..shards).map(|_| flume::bounded(1)).unzip();
        let (fact_senders, fact_receivers): (Vec<_>, Vec<_>) = (0..shards).map(|_| flume::bounded(1)).unzip();
        let (figures, asks) = FiguresSource::new(shards, acceptor.turned_away());
        let (ready, started) = flume::unbounded();
        let (stopped, stopped_others) = flume::unbounded();
        let cache_bytes = options.config.shards.batch_cache_bytes;
        let boot = Arc::new(Boot {
            mailboxes: runtime::mailbox::Mailboxes::<ShardRequest, ShardReply>::new(shards),
            queues: queues.into_iter().map(|q| Mutex::new(Some(q))).collect(),
            stop_receivers,
            asks,
            fact_senders,
            fact_receivers,
            ready,
            stopped,
            stopped_others,
            // What the cache lets go is mostly taken again at once; what is not goes bit by bit.
            pool: ChunkPool::new(cache_bytes * crate::limits::POOL_KEEPS_CACHES),
            writes: WriteClock::default(),
            config: options.config.clone(),
            folders,
            advertised: advertised.clone(),
            max_connections,
        });
        let pulse_interval_ms = options.config.shards.pulse_interval_ms;
        let helpers = HelperSpec { cpu: options.helper_cpu, pulse_interval_ms };
        let main_boot = boot.clone();
        let running =
            runtime::shard::start(&options.shards, helpers, move |context| run_shard(main_boot.clone(), context))
                .map_err(StartError::Shards)?;
        drop(boot);
        Ok(Launched {
            node: Node { acceptor: Some(acceptor), stops, figures, running },
            ready: started,
            summary: None,
            shards,
            address,
            advertised,
            node_id: options.config.node.node_id,
        })
    }

    /// Where to ask for the figures of all shards; they answer if `ringlog.metrics.listen` is set.
    pub fn figures(&self) -> FiguresSource {
        self.figures.clone()
    }

    fn begin_stop(&mut self) {
        self.acceptor.take();
        for stop in &self.stops {
            let _ = stop.send(());
        }
    }

    /// Stops cleanly: connections end, logs are closed, the data folder is marked clean. The error is a sentence.
    #[cfg(not(feature = "sim"))]
    pub fn stop(mut self) -> Result<bool, String> {
        self.begin_stop();
        all_clean(self.running.join())
    }

    #[cfg(feature = "sim")]
    pub async fn stop(mut self) -> Result<bool, String> {
        self.begin_stop();
        all_clean(self.running.joined().await)
    }
}

fn all_clean(results: Result<Vec<Result<bool, String>>, runtime::shard::StartError>) -> Result<bool, String> {
    let results = results.map_err(|e| e.to_string())?;
    results.into_iter().try_fold(true, |clean, one| Ok(clean & one?))
}

impl Launched {
    /// A shard stands, or does not; then the others may never say anything.
    fn hear(&mut self, said: Result<Result<Option<Summary>, StartError>, flume::RecvError>) -> Result<(), StartError> {
        let summary = said.map_err(|_| StartError::Ended)??;
        self.summary = self.summary.take().or(summary);
        Ok(())
    }

    fn finish(self) -> Result<(Node, Started), StartError> {
        let summary = self.summary.ok_or(StartError::Ended)?;
        let started = Started {
            address: self.address,
            advertised: self.advertised,
            cluster_id: summary.cluster_id,
            node_id: self.node_id,
            topics: summary.topics,
            partitions: summary.partitions,
            was_clean: summary.was_clean,
        };
        Ok((self.node, started))
    }
}

fn bind(config: &BrokerConfig) -> Result<Bound, StartError> {
    use std::net::ToSocketAddrs;
    let Some(listener) = config.node.listeners.first() else { return Err(StartError::Ended) };
    let text = format!("{}:{}", listener.host, listener.port);
    let address = (listener.host.as_str(), listener.port)
        .to_socket_addrs()
        .map_err(|e| StartError::Address { text: text.clone(), why: e.to_string() })?
        .next()
        .ok_or_else(|| StartError::Address { text: text.clone(), why: "the name has no address".to_string() })?;
    Bound::bind(address, config.connections.listen_backlog)
        .map_err(|source| StartError::Listen { address: text, source })
}

/// What clients are told; port 0 stands for the port that was picked.
fn advertised(config: &BrokerConfig, address: SocketAddr) -> (String, u16) {
    let listener = config.node.advertised_listeners.first();
    let host = listener.map_or_else(|| address.ip().to_string(), |l| l.host.clone());
    let port = listener.map_or(0, |l| l.port);
    (host, if port == 0 { address.port() } else { port })
}
