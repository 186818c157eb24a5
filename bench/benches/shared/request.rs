//! A request as a connection hands it on: one frame without its size.

use bytes::Bytes;
use wire::{Records, Request};

pub fn frame(version: i16, request: &impl Request) -> Bytes {
    let chunks = wire::encode_request(1, Some("bench"), version, request).expect("the request is valid");
    Records::Chunks(chunks).to_bytes().expect("its chunks are all of bytes").slice(4..)
}
