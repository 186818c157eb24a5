//! Decoding a Produce request: header and walk. The allocation test of `net/wire` holds it to zero allocations.

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use model::builder::BatchBuilder;
use wire::generated::ProduceRequest;
use wire::generated::produce::{PartitionProduceData, TopicProduceData};
use wire::produce::ProduceWalk;
use wire::{Reader, Records, RequestHeader};

#[path = "shared/request.rs"]
mod request;
use request::frame;

fn produce(partitions: i32) -> Bytes {
    let batch = Bytes::from(BatchBuilder::new().record(0, None, Some(&[7; 500])).finish());
    let data = |index| PartitionProduceData { index, records: Records::from(batch.clone()) };
    let topic =
        TopicProduceData { name: "topic", topic_id: [0; 16], partition_data: (0..partitions).map(data).collect() };
    let request = ProduceRequest { transactional_id: None, acks: -1, timeout_ms: 1000, topic_data: vec![topic] };
    frame(9, &request)
}

fn walk(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("produce_walk");
    for partitions in [1, 64, 1000] {
        let frame = produce(partitions);
        group.throughput(Throughput::Elements(partitions as u64));
        group.bench_function(format!("{partitions} partitions"), |b| {
            b.iter(|| {
                let mut reader = Reader::new(&frame);
                let header = RequestHeader::decode(&mut reader).expect("a valid header");
                let walk = ProduceWalk::open(reader, header.api_version).expect("a valid request");
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
