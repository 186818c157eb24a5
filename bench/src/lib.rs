//! # Benches and side-by-side runs
//!
//! `cargo bench -p ringlog-bench` measures single steps of the produce way (criterion). `cargo run --release -p
//! ringlog-bench -- compare` starts Ringlog and Apache Kafka one after the other, several times, drives both with the same
//! client and the same records, and prints medians with their range.
//!
//! * [`broker`]: starting, watching and stopping either broker.
//! * [`client`]: a blocking client of raw frames with pre-encoded batches, so that the broker is what is measured.
//! * [`compare`]: the rounds and the table; [`many`]: thousands of partitions.
//! * [`idle`], [`churn`], [`producers`]: what must not grow: idle consumers, topics that come and go, producers that
//!   write once. [`lone`]: one request at a time beside a bare synced write. [`cleaning`]: what compaction costs its
//!   neighbours. [`soak`]: a steady load for long, with [`plot`]s.

pub mod broker;
pub mod churn;
pub mod cleaning;
pub mod client;
pub mod compare;
pub mod disk;
pub mod idle;
pub mod lone;
pub mod many;
pub mod plot;
pub mod producers;
pub mod soak;
mod soak_load;
