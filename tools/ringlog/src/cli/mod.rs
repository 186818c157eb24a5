//! What all commands share: the cluster they talk to, how they print, how they end.

pub mod connect;
pub mod failure;
pub mod interrupt;
pub mod output;
pub mod progress;
pub mod stdout;

pub use connect::Connect;
pub use failure::Failure;
