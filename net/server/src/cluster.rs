//! Shard 0's part: the metadata quorum's driver, and publishing what it decides to every shard.
//!
//! A change is answered once it is durable on the quorum and every shard holds the image with it: the driver publishes
//! before it answers, and publishing waits for all shards.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use metadata::driver::NoPeers;
use metadata::{Command, DriverConfig, Image, MetadataError, MetadataHandle, Outcome, QuorumStatus, Rejection};
use model::config::BrokerConfig;
use model::{ErrorCode, NodeId};
use runtime::TaskHandle;

use crate::folders;
use crate::placement::Placement;
use crate::shard::Shard;
use crate::view::View;

/// Why a change of the cluster did not happen.
#[derive(Clone, Debug)]
pub enum ChangeError {
    /// The quorum agreed on the command and refused it.
    Rejected(Rejection),
    Failed {
        code: ErrorCode,
        message: String,
    },
}

impl ChangeError {
    pub fn code(&self) -> ErrorCode {
        match self {
            ChangeError::Rejected(rejection) => rejection.error_code(),
            ChangeError::Failed { code, .. } => *code,
        }
    }

    pub fn message(&self) -> String {
        match self {
            ChangeError::Rejected(rejection) => rejection.to_string(),
            ChangeError::Failed { message, .. } => message.clone(),
        }
    }

    fn stopping() -> ChangeError {
        let message = "The broker is stopping.".to_string();
        ChangeError::Failed { code: ErrorCode::BrokerNotAvailable, message }
    }
}

impl From<MetadataError> for ChangeError {
    fn from(error: MetadataError) -> ChangeError {
        match error {
            MetadataError::Rejected(rejection) => ChangeError::Rejected(rejection),
            MetadataError::NotLeader { .. } | MetadataError::LeadershipLost => {
                ChangeError::Failed { code: ErrorCode::NotController, message: error.to_string() }
            }
            MetadataError::Busy => {
                ChangeError::Failed { code: ErrorCode::ThrottlingQuotaExceeded, message: error.to_string() }
            }
            MetadataError::Stopped => ChangeError::stopping(),
            other => ChangeError::Failed { code: ErrorCode::UnknownServerError, message: other.to_string() },
        }
    }
}

/// Turns images into views and hands them to every shard. Lives on shard 0; called by the driver only, in order.
struct Publisher {
    node_id: NodeId,
    base_config: BrokerConfig,
    state: RefCell<View>,
    /// Set once shard 0 stands; before that there is nobody to tell.
    shard: RefCell<Option<Rc<Shard>>>,
}

impl Publisher {
    async fn publish(&self, image: Arc<Image>) {
        let old = self.state.borrow().image.clone();
        let view = self.next_view(image.clone());
        let shard = self.shard.borrow().clone();
        if let Some(shard) = shard {
            folders::follow(&shard, &old, &view).await;
            shard
                .on_all(move |shard| {
                    let view = view.clone();
                    async move { shard.apply(view).await }
                })
                .await;
            folders::forget(&shard, &old, &image);
        }
    }

    fn next_view(&self, image: Arc<Image>) -> View {
        let mut state = self.state.borrow_mut();
        let old = std::mem::replace(&mut state.image, image.clone());
        state.placement.follow(&old, &image);
        match View::effective_config(&self.base_config, &image, self.node_id) {
            Ok(config) => state.config = Arc::new(config),
            // Only what the table accepts is ever proposed, so this is an entry of another version of this software.
            Err(error) => eprintln!("ringlog: a stored configuration entry is not used: {error}"),
        }
        state.clone()
    }
}

/// The metadata quorum as shard 0 sees it.
pub struct Cluster {
    handle: MetadataHandle,
    publisher: Rc<Publisher>,
    task: RefCell<Option<TaskHandle<Result<(), MetadataError>>>>,
}

impl Cluster {
    /// Recovers the quorum's state and leads it, if this is the lone voter.
    pub async fn open(driver: DriverConfig, base: &BrokerConfig, shards: usize) -> Result<Rc<Cluster>, MetadataError> {
        let view = View {
            image: Arc::new(Image::default()),
            placement: Placement::new(shards),
            config: Arc::new(base.clone()),
        };
        let publisher = Rc::new(Publisher {
            node_id: driver.node,
            base_config: base.clone(),
            state: RefCell::new(view),
            shard: RefCell::new(None),
        });
        let publish = {
            let publisher = publisher.clone();
            async move |image| publisher.publish(image).await
        };
        let (handle, task) = metadata::driver::open(driver, publish, Rc::new(NoPeers)).await?;
        handle.leading().await?;
        // What was recovered is not published by itself.
        let recovered = handle.image();
        if publisher.state.borrow().image.version() != recovered.version() {
            publisher.next_view(recovered);
        }
        Ok(Rc::new(Cluster { handle, publisher, task: RefCell::new(Some(task)) }))
    }

    /// From here on images go to the shards.
    pub fn attach(&self, shard: &Rc<Shard>) {
        *self.publisher.shard.borrow_mut() = Some(shard.clone());
    }

    pub fn view(&self) -> View {
        self.publisher.state.borrow().clone()
    }

    pub fn cluster_id(&self) -> Arc<str> {
        self.handle.cluster_id()
    }

    pub async fn change(&self, command: &Command) -> Result<Outcome, MetadataError> {
        self.handle.propose(command).await.map(|committed| committed.outcome)
    }

    pub fn status(&self) -> QuorumStatus {
        self.handle.status()
    }

    /// The driver's task, for whoever watches over it: if it ends with an error, so must the process.
    pub fn take_task(&self) -> Option<TaskHandle<Result<(), MetadataError>>> {
        self.task.borrow_mut().take()
    }

    pub fn stop(&self) {
        self.handle.stop();
        self.publisher.shard.borrow_mut().take();
    }
}

impl Shard {
    /// Agrees on a change of the cluster's state; resolves once every shard holds its image.
    pub async fn change(self: &Rc<Self>, command: Command) -> Result<Outcome, ChangeError> {
        let makes_partitions = matches!(command, Command::CreateTopic { .. } | Command::AddPartitions { .. });
        if makes_partitions && !self.facts.dirs.takes_new_partitions() {
            // As Kafka does of a broker whose folders are all cordoned (KIP-1066).
            let message = "Every data folder of this broker is cordoned or offline: none takes new partitions.".into();
            return Err(ChangeError::Failed { code: ErrorCode::InvalidReplicationFactor, message });
        }
        let agreed = self.on(0, move |shard| async move {
            match &shard.cluster {
                Some(cluster) => cluster.change(&command).await.map_err(ChangeError::from),
                None => Err(ChangeError::stopping()),
            }
        });
        agreed.await.unwrap_or_else(|| Err(ChangeError::stopping()))
    }

    /// The quorum's state, for DescribeQuorum.
    pub async fn quorum_status(self: &Rc<Self>) -> Option<QuorumStatus> {
        self.on(0, |shard| async move { shard.cluster.as_ref().map(|cluster| cluster.status()) }).await.flatten()
    }
}
