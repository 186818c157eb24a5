//! # Benches and side-by-side runs
//!
//! `cargo bench -p ringlog-bench` measures single steps of the produce way (criterion). `cargo run --release -p
//! ringlog-bench -- compare` starts Ringlog and Apache Kafka one after the other, several times, drives both with the same
//! client and the same records, and writes results, tables and pictures.
//!
//! The comparison, from the outside in:
//! * [`workload`]: what is measured, a TOML file each; [`metrics`]: the figures and what they mean.
//! * [`compare`]: contestants in turns; [`contestant`]: one run of one of them; [`traffic`]: the load of a run;
//!   [`outcome`]: what its samples become.
//! * [`requests`], [`answers`]: what goes over the wire, encoded before and walked in place; [`writer`], [`reader`]: a
//!   connection each; [`drive`], [`link`], [`epoll`]: many of them on a thread; [`end_to_end`]: offsets joined with arrivals.
//! * [`gauge`], [`host`]: what a run costs, and on which machine. [`limits`]: what the machine itself can do.
//! * [`bare`]: a contestant that does the least, for where the machine itself ends.
//! * [`results`], [`table`], [`bars`]: lines of JSON, and what is made of them. [`check`]: our client against others.
//!
//! Besides:
//! * [`broker`]: starting, watching and stopping either broker; [`client`]: a blocking client of raw frames.
//! * [`many`]: thousands of partitions. [`idle`], [`churn`], [`producers`]: what must not grow: idle consumers, topics that
//!   come and go, producers that write once. [`lone`]: one request at a time beside a bare synced write. [`cleaning`]: what
//!   compaction costs its neighbours. [`soak`]: a steady load for long, with [`plot`]s.
//! * [`callgrind`]: instruction counts, which do not depend on the machine's mood.

pub mod answers;
pub mod bare;
pub mod bars;
pub mod broker;
pub mod callgrind;
pub mod check;
pub mod churn;
pub mod cleaning;
pub mod client;
pub mod compare;
pub mod contestant;
pub mod cpus;
pub mod disk;
pub mod drive;
pub mod end_to_end;
pub mod epoll;
#[cfg(test)]
mod fake_broker;
pub mod gauge;
pub mod host;
pub mod idle;
pub mod limits;
pub mod limits_disk;
mod limits_loopback;
pub mod link;
pub mod lone;
pub mod many;
pub mod metrics;
pub mod outcome;
pub mod plot;
pub mod producers;
pub mod reader;
pub mod requests;
pub mod results;
pub mod soak;
mod soak_load;
pub mod table;
pub mod traffic;
pub mod workload;
pub mod writer;
