//! # The cluster's own state, agreed
//!
//! Topics, partitions, leaders, configurations, producer-id blocks, feature levels and broker registrations. A change is a
//! [`Command`], agreed through one raft group over the voters (one voter on a single node: the same code, another list) and
//! applied by [`apply`] to an immutable [`Image`]. Each shard reads an image that is replaced whole.
//!
//! On the produce and fetch ways nothing of this crate runs but lookups in the image: no lock, no copy, no allocation.
//! A change costs one frame in the journal and one sync, shared by all proposals that wait for the same round.
//!
//! Who owns what: one shard owns the [`MetadataNode`] and the journal. Everybody else holds `Arc<Image>`.
//!
//! * [`image`]: the state; versions share structure.
//! * [`command`], [`apply`](mod@apply): what may change it, and how. Deterministic, the only judge of names and epochs.
//! * [`node`]: raft around it, without I/O: bytes to write go out as [`DiskStep`]s, messages as [`PeerMessage`]s.
//! * [`journal_format`], [`disk_steps`]: the file format and the order of writes that a crash may cut anywhere.
//! * [`driver`]: a node on a shard of `runtime`: performs the steps, publishes images, answers proposals.
//! * [`stored`], [`stored_image`], [`envelope`]: how commands and snapshots look in bytes; [`versions`]: whether a newer
//!   Ringlog wrote them.
//! * [`peer`]: messages between voters and their bounds-checked codec.

pub mod apply;
mod apply_configs;
mod apply_partitions;
mod apply_topics;
mod byte_io;
pub mod command;
pub mod disk_steps;
pub mod driver;
pub mod envelope;
pub mod error;
pub mod fuzz_targets;
pub mod image;
pub mod journal_format;
pub mod limits;
pub mod node;
mod node_ready;
pub mod peer;
mod peer_guard;
pub mod snapshot;
pub mod status;
mod storage;
pub mod stored;
pub mod stored_image;
pub mod topic_name;
pub mod versions;

pub use apply::apply;
pub use command::{Command, ConfigChange, ConfigOp, Outcome, Rejection};
pub use disk_steps::{DiskStep, RecoveryPlan};
pub use driver::{DriverConfig, MetadataHandle};
pub use error::MetadataError;
pub use image::{BrokerRegistration, ConfigResource, Configs, Image, Incarnation, PartitionState, Topic, TopicChange};
pub use journal_format::{Identity, Recovered};
pub use node::{Committed, MetadataNode, NodeConfig, ProposalToken};
pub use node_ready::Ready;
pub use peer::{PeerMessage, PeerTransport};
pub use snapshot::{EncodedSnapshot, SnapshotJob};
pub use status::{QuorumStatus, VoterStatus};
