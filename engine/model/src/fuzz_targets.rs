//! Entry points for fuzzing this crate's decoders. Each takes arbitrary bytes and must return, within its memory.

use crate::batch::{BatchHeader, BatchView, Codec, RecordIter};
use crate::compression;
use crate::config::BrokerConfig;

/// Cap of inflation while fuzzing: small, so that a bomb shows as time and memory soon.
const FUZZ_INFLATE_MAX_BYTES: usize = 1 << 20;

/// Header, CRC and records of a batch, its record section inflated where it is compressed.
pub fn fuzz_batch(data: &[u8]) {
    if let Ok(header) = BatchHeader::parse(data) {
        assert!(header.size() >= crate::batch::HEADER_LEN);
        let _ = (header.last_offset(), header.next_offset(), header.last_sequence());
    }
    let Ok(view) = BatchView::parse(data) else { return };
    let _ = view.check_crc();
    let mut inflated = Vec::new();
    match view.header.codec() {
        Ok(Codec::None) => walk(view.records()),
        Ok(codec) => {
            if compression::inflate(codec, view.payload(), FUZZ_INFLATE_MAX_BYTES, &mut inflated).is_ok() {
                assert!(inflated.len() <= FUZZ_INFLATE_MAX_BYTES);
                walk(RecordIter::new(&inflated, view.header.record_count));
            }
        }
        Err(_) => {}
    }
}

fn walk(records: RecordIter<'_>) {
    for record in records.map_while(Result::ok) {
        let headers = record.headers().count();
        assert_eq!(headers, record.header_count as usize, "a record's headers were checked when it was read");
    }
}

/// Every codec on the same bytes: first byte picks it.
pub fn fuzz_inflate(data: &[u8]) {
    let Some((first, payload)) = data.split_first() else { return };
    let codecs = [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];
    let mut out = Vec::new();
    let _ = compression::inflate(codecs[usize::from(first % 4)], payload, FUZZ_INFLATE_MAX_BYTES, &mut out);
}

/// A properties file.
pub fn fuzz_properties(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data)
        && let Err(error) = BrokerConfig::from_properties(text)
    {
        assert!(!error.to_string().is_empty());
    }
}
