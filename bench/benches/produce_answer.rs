//! Encoding a Produce answer: size, header and every partition's outcome, into a buffer that is kept between answers.
//!
//! Budget: no structs for partitions, one list of pieces for each answer, and a few nanoseconds for each partition: an answer is never
//! what a request costs.

use std::hint::black_box;

use bytes::BytesMut;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use wire::produce::{PartitionOutcome, ProduceResponseWriter};
use wire::{ApiKey, TopicRef, encode_response_with};

/// The newest version that names topics by name.
const VERSION: i16 = 12;

fn encode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("produce_answer");
    let header_version = ApiKey::Produce.response_header_version(VERSION);
    for partitions in [1, 64, 1000] {
        group.throughput(Throughput::Elements(partitions as u64));
        group.bench_function(format!("{partitions} partitions"), |b| {
            let mut buffer = BytesMut::new();
            b.iter(|| {
                let body = |writer: &mut wire::Writer| {
                    let mut answer = ProduceResponseWriter::begin(writer, VERSION, 1)?;
                    answer.topic(TopicRef::Name("topic"), partitions)?;
                    for index in 0..partitions as i32 {
                        let outcome = PartitionOutcome {
                            base_offset: 1_000_000 + i64::from(index),
                            log_start_offset: 0,
                            ..PartitionOutcome::error(index, 0)
                        };
                        answer.partition(&outcome)?;
                    }
                    answer.finish(0, &[])
                };
                black_box(encode_response_with(&mut buffer, 7, header_version, body).expect("a valid answer"));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, encode);
criterion_main!(benches);
