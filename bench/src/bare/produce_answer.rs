//! A Produce answer of the one version that is spoken, written straight into the bytes that are sent. Tests hold it against the
//! general decoder.

/// No such topic or partition.
pub const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;

/// An answer under way; counts come before what they count, as the request has them.
#[derive(Clone, Debug, Default)]
pub struct ProduceAnswer {
    bytes: Vec<u8>,
}

impl ProduceAnswer {
    pub fn begin(correlation_id: i32, topics: usize) -> ProduceAnswer {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&correlation_id.to_be_bytes());
        bytes.extend_from_slice(&(topics as i32).to_be_bytes());
        ProduceAnswer { bytes }
    }

    pub fn topic(&mut self, name: &str, partitions: usize) {
        self.bytes.extend_from_slice(&(name.len() as i16).to_be_bytes());
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(&(partitions as i32).to_be_bytes());
    }

    /// Index, error, base offset, no append time, log start offset 0, no record errors, no message.
    pub fn partition(&mut self, index: i32, error_code: i16, base_offset: i64) {
        self.bytes.extend_from_slice(&index.to_be_bytes());
        self.bytes.extend_from_slice(&error_code.to_be_bytes());
        self.bytes.extend_from_slice(&base_offset.to_be_bytes());
        self.bytes.extend_from_slice(&(-1i64).to_be_bytes());
        self.bytes.extend_from_slice(&0i64.to_be_bytes());
        self.bytes.extend_from_slice(&0i32.to_be_bytes());
        self.bytes.extend_from_slice(&(-1i16).to_be_bytes());
    }

    /// The whole answer, its size in front.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.extend_from_slice(&0i32.to_be_bytes());
        let size = (self.bytes.len() - 4) as i32;
        self.bytes[..4].copy_from_slice(&size.to_be_bytes());
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use bytes::Bytes;
    use wire::generated::ProduceResponse;
    use wire::{Decode, Reader};

    use crate::answers::PRODUCE_VERSION;

    #[test]
    fn the_general_decoder_reads_what_is_written() {
        let mut answer = ProduceAnswer::begin(77, 2);
        answer.topic("first", 2);
        answer.partition(4, 0, 1_000);
        answer.partition(5, UNKNOWN_TOPIC_OR_PARTITION, -1);
        answer.topic("none of it", 0);
        let bytes = Bytes::from(answer.finish());
        assert_eq!(bytes[..4], (bytes.len() as i32 - 4).to_be_bytes());
        assert_eq!(bytes[4..8], 77i32.to_be_bytes());
        let body = bytes.slice(8..);
        let mut reader = Reader::new(&body);
        let response = ProduceResponse::decode(&mut reader, PRODUCE_VERSION).unwrap();
        assert_eq!(reader.remaining(), 0);
        let first = &response.responses[0];
        assert_eq!((first.name.as_ref(), response.responses[1].partition_responses.len()), ("first", 0));
        let said = |at: usize| {
            let one = &first.partition_responses[at];
            (one.index, one.error_code, one.base_offset, one.log_append_time_ms, one.record_errors.len())
        };
        assert_eq!(said(0), (4, 0, 1_000, -1, 0));
        assert_eq!(said(1), (5, UNKNOWN_TOPIC_OR_PARTITION, -1, -1, 0));
    }
}
