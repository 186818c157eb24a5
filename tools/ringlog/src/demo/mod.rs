//! # The clickstream demo
//!
//! A seeded generator of shop visits ([`sessions`]), the events it writes ([`event`], read back by [`decode`]), what a
//! consumer works out of them live ([`insights`]), how one refresh of it looks ([`screen`]), and the command that puts them
//! on a topic ([`run`]). All but the last know no network.
//!
//! Ownership: every state here belongs to the one thread that calls it; nothing is shared, nothing waits, nothing reads
//! a clock. A [`sessions::Generator`] belongs to a producing thread, an [`insights::Insights`] to a consuming one; the
//! thread that draws merges clones of the latter and makes a [`screen::Snapshot`].
//!
//! Budget: under 300 ns an event to generate, no allocation per event; aggregates stay under 10 MiB a consumer whatever
//! is fed to them ([`limits`]).

pub mod decode;
pub mod event;
pub mod insights;
pub mod limits;
mod open_sessions;
pub mod profile;
mod random;
pub mod run;
pub mod screen;
pub mod sessions;
mod top_items;
