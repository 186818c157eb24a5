//! The check of a batch's CRC-32C, the one look at every byte of records on the produce way.
//!
//! Budget: once for each produced batch, no allocation; a twentieth of a CPU second for each GiB at most, which is 20 GiB/s for batches that
//! lie in the core's own cache.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use model::BatchView;
use model::builder::BatchBuilder;

fn check(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("batch_crc");
    for bytes in [500, 16_000, 1_000_000] {
        let batch = BatchBuilder::new().record(0, None, Some(&vec![7; bytes])).finish();
        group.throughput(Throughput::Bytes(batch.len() as u64));
        group.bench_function(format!("{bytes} B"), |b| {
            b.iter(|| {
                let view = BatchView::parse(black_box(&batch)).expect("a whole batch");
                view.check_crc().expect("its checksum fits");
            });
        });
    }
    group.finish();
}

criterion_group!(benches, check);
criterion_main!(benches);
