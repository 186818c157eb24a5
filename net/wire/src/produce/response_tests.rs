#![allow(clippy::unwrap_used)]
use super::*;
use crate::generated::ProduceResponse;
use crate::sample::{Sample, SampleSource};
use crate::{Encode, Records};

fn bytes(writer: Writer) -> bytes::Bytes {
    Records::Chunks(writer.finish()).to_bytes().unwrap()
}

/// Writes a generated response by hand.
fn by_hand(response: &ProduceResponse<'_>, version: i16) -> Writer {
    let mut writer = Writer::new();
    let mut answer = ProduceResponseWriter::begin(&mut writer, version, response.responses.len()).unwrap();
    for topic in &response.responses {
        let name = if version >= 13 { TopicRef::Id(topic.topic_id) } else { TopicRef::Name(&topic.name) };
        answer.topic(name, topic.partition_responses.len()).unwrap();
        for partition in &topic.partition_responses {
            let errors: Vec<RecordError<'_>> = partition
                .record_errors
                .iter()
                .map(|one| RecordError {
                    batch_index: one.batch_index,
                    message: one.batch_index_error_message.as_deref(),
                })
                .collect();
            let leader = &partition.current_leader;
            let outcome = PartitionOutcome {
                index: partition.index,
                error_code: partition.error_code,
                base_offset: partition.base_offset,
                log_append_time_ms: partition.log_append_time_ms,
                log_start_offset: partition.log_start_offset,
                record_errors: &errors,
                error_message: partition.error_message.as_deref(),
                current_leader: Some((leader.leader_id, leader.leader_epoch)),
            };
            answer.partition(&outcome).unwrap();
        }
    }
    answer.finish(response.throttle_time_ms, &response.node_endpoints).unwrap();
    writer
}

#[test]
fn the_direct_writer_writes_what_the_generated_codec_writes() {
    for version in ApiKey::Produce.versions() {
        for seed in 0..50 {
            let response = ProduceResponse::sample(&mut SampleSource::new(seed), version);
            let mut generated = Writer::new();
            response.encode(&mut generated, version).unwrap();
            assert_eq!(bytes(by_hand(&response, version)), bytes(generated), "v{version}, seed {seed}");
        }
    }
}

#[test]
fn an_empty_answer_is_what_the_generated_codec_writes() {
    for version in ApiKey::Produce.versions() {
        let mut generated = Writer::new();
        ProduceResponse::default().encode(&mut generated, version).unwrap();
        assert_eq!(bytes(by_hand(&ProduceResponse::default(), version)), bytes(generated));
    }
}

#[test]
#[should_panic(expected = "fewer partitions than promised")]
fn a_broken_promise_of_partitions_is_a_bug() {
    let mut writer = Writer::new();
    let mut answer = ProduceResponseWriter::begin(&mut writer, 9, 1).unwrap();
    answer.topic(TopicRef::Name("t"), 2).unwrap();
    answer.partition(&PartitionOutcome::error(0, 3)).unwrap();
    let _ = answer.finish(0, &[]);
}

#[test]
#[should_panic(expected = "names topics by id")]
fn a_topic_is_named_as_the_version_names_it() {
    let mut writer = Writer::new();
    let mut answer = ProduceResponseWriter::begin(&mut writer, 13, 1).unwrap();
    let _ = answer.topic(TopicRef::Name("t"), 0);
}
