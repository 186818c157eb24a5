//! The `ringlog` command against a running broker: what it prints, its JSON, its exit codes. Through it, our own client.

#![allow(clippy::unwrap_used)]

mod configs;
mod failures;
mod files;
mod groups;
mod interrupts;
mod loads;
mod positions;
mod records;
mod topics;
