//! Fetch by hand: the hot half of the fetch way. [`FetchWalk`] visits a request's partitions
//! without allocating; [`FetchResponseWriter`] writes the answer around records that stay slices
//! of the log's chunks, or stay in a file. Budget: 0 allocations for the walk, 0 record bytes copied.

mod response;
mod walk;

pub use response::{FetchPartitionHead, FetchResponseWriter};
pub use walk::{FetchPartition, FetchPartitions, FetchWalk, ForgottenPartition, ForgottenPartitions};
