//! The table of fuzz targets. A crate registers a decoder here with a line: a name, a sentence, the
//! function that must not panic on any bytes, and valid inputs to start from.

use wire::fuzz_targets;

use super::corpus;

pub struct Target {
    pub name: &'static str,
    pub sentence: &'static str,
    pub run: fn(&[u8]),
    pub corpus: fn() -> Vec<Vec<u8>>,
}

pub const TARGETS: &[Target] = &[
    Target {
        name: "wire_request",
        sentence: "any request of any version; what decodes must encode and decode again to the same",
        run: fuzz_targets::fuzz_request,
        corpus: corpus::wire_requests,
    },
    Target {
        name: "wire_response",
        sentence: "any response of any version, likewise",
        run: fuzz_targets::fuzz_response,
        corpus: corpus::wire_responses,
    },
    Target {
        name: "wire_frames",
        sentence: "a connection's bytes: size prefixes, headers, requests",
        run: fuzz_targets::fuzz_frames,
        corpus: corpus::wire_frames,
    },
];

pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
