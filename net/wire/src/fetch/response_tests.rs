#![allow(clippy::unwrap_used)]
use super::*;
use crate::generated::FetchResponse;
use crate::generated::fetch::PartitionData;
use crate::sample::{Sample, SampleSource};
use crate::{Chunk, chunks_len};

fn bytes(writer: Writer) -> bytes::Bytes {
    Records::Chunks(writer.finish()).to_bytes().unwrap()
}

fn head(partition: &PartitionData) -> FetchPartitionHead<'_> {
    FetchPartitionHead {
        index: partition.partition_index,
        error_code: partition.error_code,
        high_watermark: partition.high_watermark,
        last_stable_offset: partition.last_stable_offset,
        log_start_offset: partition.log_start_offset,
        diverging_epoch: Some((partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset)),
        current_leader: Some((partition.current_leader.leader_id, partition.current_leader.leader_epoch)),
        snapshot_id: Some((partition.snapshot_id.end_offset, partition.snapshot_id.epoch)),
        aborted_transactions: partition.aborted_transactions.as_deref(),
        preferred_read_replica: partition.preferred_read_replica,
    }
}

/// Writes a generated response by hand.
fn by_hand(response: &FetchResponse<'_>, version: i16) -> Writer {
    let mut writer = Writer::new();
    let mut answer = FetchResponseWriter::begin(
        &mut writer,
        version,
        response.throttle_time_ms,
        response.error_code,
        response.session_id,
        response.responses.len(),
    )
    .unwrap();
    for topic in &response.responses {
        let name = if version >= 13 { TopicRef::Id(topic.topic_id) } else { TopicRef::Name(&topic.topic) };
        answer.topic(name, topic.partitions.len()).unwrap();
        for partition in &topic.partitions {
            answer.partition(&head(partition), &partition.records).unwrap();
        }
    }
    answer.finish(&response.node_endpoints).unwrap();
    writer
}

#[test]
fn the_direct_writer_writes_what_the_generated_codec_writes() {
    for version in ApiKey::Fetch.versions() {
        for seed in 0..50 {
            let response = FetchResponse::sample(&mut SampleSource::new(seed), version);
            let mut generated = Writer::new();
            response.encode(&mut generated, version).unwrap();
            assert_eq!(bytes(by_hand(&response, version)), bytes(generated), "v{version}, seed {seed}");
        }
    }
}

#[test]
fn an_empty_answer_is_what_the_generated_codec_writes() {
    for version in ApiKey::Fetch.versions() {
        let mut generated = Writer::new();
        FetchResponse::default().encode(&mut generated, version).unwrap();
        assert_eq!(bytes(by_hand(&FetchResponse::default(), version)), bytes(generated));
    }
}

#[test]
fn bytes_that_the_transport_sends_are_part_of_the_answer() {
    let mut writer = Writer::new_frame();
    let mut answer = FetchResponseWriter::begin(&mut writer, 12, 0, 0, 0, 1).unwrap();
    answer.topic(TopicRef::Name("t"), 1).unwrap();
    let records = Records::External { len: 5000, token: 1 };
    answer.partition(&FetchPartitionHead::error(0, 0), &records).unwrap();
    answer.finish(&[]).unwrap();
    let chunks = writer.finish_frame().unwrap();
    let Chunk::Bytes(first) = &chunks[0] else { panic!("the head is in memory") };
    assert_eq!(first[..4], (chunks_len(&chunks) as u32 - 4).to_be_bytes());
    assert_eq!(chunks[1], Chunk::External { len: 5000, token: 1 });
}

#[test]
#[should_panic(expected = "more topics than promised")]
fn a_broken_promise_of_topics_is_a_bug() {
    let mut writer = Writer::new();
    let mut answer = FetchResponseWriter::begin(&mut writer, 12, 0, 0, 0, 0).unwrap();
    let _ = answer.topic(TopicRef::Name("t"), 0);
}
