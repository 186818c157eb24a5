//! Our client with those of others: what one writes the other reads, keys land in the same partitions, groups are shared.

#![allow(clippy::unwrap_used)]

mod groups;
mod keys;
mod members;
mod ours_reads;
mod ours_writes;
mod requests_on_the_wire;
