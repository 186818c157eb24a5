//! One connection to one broker.
//!
//! [`core`] is its state without I/O; [`driver`] moves its bytes; [`address`] finds where to connect to.

pub(crate) mod address;
pub(crate) mod core;
pub(crate) mod driver;

pub(crate) use address::Address;
pub(crate) use driver::Link;
