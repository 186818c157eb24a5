//! Produce by hand: the hot half of the produce way. [`ProduceWalk`] visits a request's partitions
//! without allocating; [`ProduceResponseWriter`] writes the answer without building structs.
//! Budget: 0 allocations for the walk, records stay slices of the frame.

mod response;
mod walk;

pub use response::{PartitionOutcome, ProduceResponseWriter, RecordError};
pub use walk::{ProducePartition, ProducePartitions, ProduceWalk};
