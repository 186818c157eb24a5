//! Bytes of the files, as pure functions: nothing here does I/O, and every reader survives any input.
//!
//! `.log`, `.index`, `.timeindex`, `leader-epoch-checkpoint` and `partition.metadata` are Apache Kafka's formats, byte
//! for byte; [`checkpoint`] and [`identity`] are our own, with version and CRC.

pub mod checkpoint;
pub mod epochs;
pub mod identity;
pub mod index;
pub mod names;
pub mod partition_metadata;
pub mod time_index;
