//! The whole node in the simulator: broker processes that are killed, lose their power or stop, on one disk and one network
//! with clients that live on, and a checker over everything that the clients were told.
//!
//! | file | noun |
//! |---|---|
//! | `plan.rs` | what a seed stands for: topics, actors, lives, and a list of troubles |
//! | `world.rs`, `last_look.rs` | a seed from its first broker to the last look |
//! | `clients.rs` | what every actor needs: a client, its settings, patience |
//! | `producer.rs`, `reader.rs`, `group.rs`, `churn.rs`, `watcher.rs` | actors |
//! | `growth.rs` | partitions that topics get while everybody works |
//! | `damage.rs` | bits that flip in old blocks |
//! | `payload.rs` | records that say who sent them, and that nothing in them was changed |
//! | `history.rs`, `partition.rs` | what was sent, told and seen; each new piece is held against the rest |
//!
//! A violation is a panic of whoever notices it; the simulation ends with its text.

mod churn;
mod clients;
mod damage;
mod group;
mod growth;
mod history;
mod last_look;
mod partition;
mod payload;
mod plan;
mod producer;
mod reader;
mod watcher;
mod world;

pub use world::run_seed;
