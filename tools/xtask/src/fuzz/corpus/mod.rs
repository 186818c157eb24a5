//! Valid inputs to start from, made by the code that writes them where it is public and by hand where it is not.

pub mod client;
pub mod coordinator;
pub mod log;
pub mod metadata;
pub mod metadata_peers;
pub mod model;
pub mod replica;
pub mod wire;

#[cfg(test)]
#[path = "corpus_tests.rs"]
mod tests;
