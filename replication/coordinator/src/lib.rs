//! # Groups and offsets: the state machine behind `__consumer_offsets`
//!
//! [`GroupCoordinator`] is the classic consumer-group protocol and the committed offsets of ONE partition of the internal
//! topic. It does no I/O and reads no clock: the shard that leads the partition owns it and drives it.
//!
//! * **In**: requests ([`JoinRequest`], [`SyncRequest`], ...) with a [`Ticket`] and the time ([`Now`]), results of appends
//!   ([`GroupCoordinator::append_done`]), due timers ([`GroupCoordinator::on_timer`]).
//! * **Out**: [`GroupCoordinator::poll_effect`] hands out [`Effect`]s in order: answers to tickets and records to append.
//!   Heartbeats, offset fetches, descriptions and lists are answered by return value: they neither wait nor write.
//!
//! What a client has been told is in the log: an answer that rests on a record leaves after the record is durable. Every
//! ticket is answered exactly once. State is what the log says: [`GroupCoordinator::replay`] of all records in order, then
//! [`GroupCoordinator::finish_loading`].
//!
//! ```
//! use ringlog_coordinator::*;
//!
//! let mut coordinator = GroupCoordinator::new(CoordinatorConfig::default());
//! // ... coordinator.replay(key, value) for every record of the partition ...
//! let now = Now { monotonic_ms: 0, wall_ms: 1_800_000_000_000 };
//! coordinator.finish_loading(now);
//! coordinator.delete_groups(now, Ticket(1), vec!["unknown".to_owned()]);
//! while let Some(effect) = coordinator.poll_effect() {
//!     match effect {
//!         Effect::Reply { ticket, response } => println!("to the connection of {ticket:?}: {response:?}"),
//!         // Write and sync the records; later: coordinator.append_done(now, append_id, result)
//!         Effect::Append { append_id, records } => println!("{append_id:?}: {} records", records.len()),
//!     }
//! }
//! assert!(coordinator.next_deadline_ms().is_some(), "call on_timer then");
//! ```
//!
//! Budget: a heartbeat is two map look-ups and no allocation; a commit allocates its records and nothing that grows with
//! the group; every map has a bound in [`limits`].
//!
//! Files follow the inputs: `join`, `sync`, `heartbeat`, `leave`, `commit`, `fetch_offsets`, `delete`, `expire`, `describe`,
//! `load`; `rebalance` holds the phases they share, `group` and `member` the nouns, `records` Kafka's formats.

mod append;
mod commit;
mod config;
mod context;
mod coordinator;
mod delete;
mod describe;
mod expire;
mod fetch_offsets;
pub mod fuzz_targets;
mod group;
mod heartbeat;
mod join;
mod leave;
pub mod limits;
mod load;
mod member;
mod offsets;
mod partition;
mod rebalance;
pub mod records;
mod request;
mod response;
mod static_member;
mod subscription;
mod sync;
mod timers;

pub use config::{CoordinatorConfig, Now};
pub use coordinator::GroupCoordinator;
pub use describe::{GroupDescription, ListedGroup, MemberDescription};
pub use fetch_offsets::{FetchTopic, FetchedOffset, FetchedTopic};
pub use group::GroupState;
pub use load::Replayed;
pub use member::Protocol;
pub use offsets::CommittedOffset;
pub use partition::partition_for;
pub use records::RecordError;
pub use request::{
    CommitPartition, CommitRequest, CommitTopic, DeleteOffsetsRequest, HeartbeatRequest, JoinRequest, LeaveRequest,
    LeavingMember, SyncRequest,
};
pub use response::{
    AppendId, CommitTopicResult, Effect, JoinMember, JoinResponse, LeaveResponse, LeftMember, RecordBytes, Response,
    SyncResponse, Ticket,
};

#[cfg(test)]
mod test_support;

#[cfg(test)]
#[path = "model_tests.rs"]
mod model_tests;
