//! # The Kafka protocol without I/O
//!
//! Bytes in, values out, and back.
//!
//! Place on the two ways through the house: on the produce way the connection hands a frame to
//! [`RequestHeader::decode`] and [`produce::ProduceWalk`]; on the fetch way to
//! [`fetch::FetchWalk`], and the answer leaves through a [`Writer`] as a list of [`Chunk`]s for
//! one vectored write. Every other request is decoded into a generated struct of [`generated`].
//!
//! The crate keeps no state: a [`Reader`] borrows one frame, a [`Writer`] owns one answer.
//!
//! ## Guards
//!
//! Budgets, each held by a test that fails when it is broken:
//! - walking a Produce or a Fetch request: 0 allocations (`tests/allocations.rs`), as long as the
//!   frame's `Bytes` is already shared (one cut by [`split_frame`] is);
//! - no record byte is copied: `records` are slices of the frame on the way in and ref-counted
//!   slices, or bytes that the transport sends itself, on the way out;
//! - memory for a decoded request is bounded by its frame: a count is refused when the bytes left
//!   cannot hold that many elements, and nothing is reserved beyond a small multiple of the bytes
//!   left (`tests/hostile.rs`);
//! - no panic on any bytes (`tests/hostile.rs`, and `cargo xtask fuzz wire_request`).
//!
//! ## Map
//!
//! | file | noun |
//! |---|---|
//! | `frame.rs` | size prefix: how many bytes until a request is whole |
//! | `header.rs` | request and response headers |
//! | `reader.rs`, `writer.rs`, `records.rs`, `chunk.rs` | primitive types |
//! | `topic.rs` | topics by name or id, and the walk over their partitions |
//! | `error.rs` | everything that can be wrong with bytes |
//! | `api.rs` | what the table of APIs means; the table itself is generated |
//! | `produce/`, `fetch/` | walkers and encoders for the two ways |
//! | `generated/` | every message, from `schema/`, by `cargo xtask generate` |
//! | `fuzz_targets.rs` | entry points for the fuzzer |
//! | `sample.rs` | seeded example messages (feature `samples`) |

mod api;
mod chunk;
mod error;
pub mod fetch;
mod frame;
pub mod fuzz_targets;
pub mod generated;
mod header;
pub mod produce;
mod reader;
mod records;
#[cfg(feature = "samples")]
pub mod sample;
mod topic;
mod writer;

pub use api::Request;
pub use chunk::{Chunk, chunks_len};
pub use error::WireError;
pub use frame::{FrameLimits, PREFIX_LEN, Split, frame_len, split_frame};
pub use generated::ApiKey;
pub use header::{RequestHeader, decode_response_header, encode_request, encode_response, encode_response_with};
pub use reader::Reader;
pub use records::Records;
pub use topic::TopicRef;
pub use writer::Writer;

/// A value that can be read from a frame at a version of its API. What it borrows, it borrows from
/// the frame.
pub trait Decode<'a>: Sized {
    fn decode(reader: &mut Reader<'a>, version: i16) -> Result<Self, WireError>;
}

/// A value that can be written at a version of its API.
pub trait Encode {
    fn encode(&self, writer: &mut Writer, version: i16) -> Result<(), WireError>;
}
