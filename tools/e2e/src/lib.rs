//! # End-to-end tests
//!
//! The real `ringlog` program in a temporary folder, driven by clients that others wrote.
//!
//! The tests are in `tests/`, one file a subject; this library is what they share.
//! - [`broker`] starts, stops, kills and restarts a broker. By default that is Ringlog; with `RINGLOG_E2E_BROKER=kafka`
//!   it is Apache Kafka ([`kafka`]), and every test passes against it too, except those that say why they do not.
//!   So a test is known to ask for Kafka's behaviour and not for ours.
//! - [`kcat`], [`librdkafka`], [`python`] and [`java`] are the clients; [`sample`] the records they exchange.
//! - [`cli`] is our own command and through it our own client; [`proxy`] stands between a client and the broker and counts.
//! - [`raw`], [`requests`], [`groups`] and [`batch`] speak the protocol by hand, for what no well-behaved client sends.
//! - [`checker`] judges a history of sends against what was read back.
//! - [`process`] runs programs with a time limit on everything and leaves none behind; [`place`] says where things are.
//!
//! What the tests need from outside (kcat, the Java packages, a Python environment) `tools/test` puts in place.

#![allow(clippy::unwrap_used, reason = "this crate is a test harness: a failed expectation ends the test")]

pub mod batch;
pub mod broker;
pub mod checker;
pub mod cli;
pub mod fixture;
pub mod groups;
pub mod java;
pub mod kafka;
pub mod kcat;
pub mod librdkafka;
pub mod place;
pub mod process;
pub mod proxy;
pub mod python;
pub mod raw;
pub mod requests;
pub mod sample;

pub use broker::Broker;
