//! Decoding a Fetch request: header and walk.
//!
//! Budget: no allocation, whatever the partitions; the allocation test of `net/wire` holds it to that.

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use wire::fetch::FetchWalk;
use wire::generated::FetchRequest;
use wire::generated::fetch::{FetchPartition, FetchTopic};
use wire::{Reader, RequestHeader};

#[path = "shared/request.rs"]
mod request;
use request::frame;

/// The newest version that names topics by name.
const VERSION: i16 = 12;

fn fetch(partitions: i32) -> Bytes {
    let partition = |partition| FetchPartition { partition, partition_max_bytes: 1 << 20, ..FetchPartition::default() };
    let topic = FetchTopic { topic: "topic", topic_id: [0; 16], partitions: (0..partitions).map(partition).collect() };
    let request = FetchRequest { max_wait_ms: 500, min_bytes: 1, topics: vec![topic], ..FetchRequest::default() };
    frame(VERSION, &request)
}

fn walk(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fetch_walk");
    for partitions in [1, 64, 1000] {
        let frame = fetch(partitions);
        group.throughput(Throughput::Elements(partitions as u64));
        group.bench_function(format!("{partitions} partitions"), |b| {
            b.iter(|| {
                let mut reader = Reader::new(&frame);
                let header = RequestHeader::decode(&mut reader).expect("a valid header");
                let walk = FetchWalk::open(reader, header.api_version).expect("a valid request");
                for partition in walk.partitions() {
                    black_box(partition.expect("a valid partition"));
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, walk);
criterion_main!(benches);
