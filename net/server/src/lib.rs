//! # The door
//!
//! Listeners, connections and handlers: turns frames into calls on the shards that own partitions, and their answers
//! into frames.
//!
//! * [`node`]: starts a node from its configuration and stops it.
//! * `shard`: what one shard owns; `mail`: what shards say to each other.
//! * `view`, `placement`: what every shard knows of the cluster, and which shard owns which partition.
//! * `connection`: reading, pipelining, writing; `dispatch`: one match from API key to handler.
//! * [`metrics`]: what each shard counts, and how another thread asks for it.
//! * `handlers`: one file for each API, named by its key: the listing is the API table.
//!
//! The produce way: `connection` -> `handlers/00_produce.rs` groups partitions by owner -> one message for each shard ->
//! `shard/produce.rs` appends -> the answer leaves in request order. The fetch way: `handlers/01_fetch.rs` plans from the
//! session -> `shard/fetch.rs` reads references, or waits for some -> the connection sends them in one vectored write; what
//! owners without news were asked stands until the next request (`handlers/01_fetch_standing.rs`).

mod boot;
mod cluster;
mod connection;
mod dispatch;
mod folders;
mod groups;
mod handlers;
// Offline work of a tool, which waits on a thread.
#[cfg(not(feature = "sim"))]
pub mod import;
pub mod limits;
mod mail;
pub mod metrics;
pub mod mutants;
pub mod node;
mod placement;
mod sessions;
mod shard;
mod topics;
mod view;

pub use node::{Node, NodeOptions, StartError, Started};
