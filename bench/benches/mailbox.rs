//! A hop between two shards and back: alone, and with many calls under way.

use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use runtime::mailbox::Mailboxes;
use runtime::shard::{HelperSpec, ShardSpec, start};
use runtime::{Post, TaskGroup, clock};

/// Time of `calls` round trips from shard 0 to shard 1 with `lanes` under way at once.
fn round_trips(calls: u64, lanes: u64) -> Duration {
    let boxes = Mailboxes::<u64, u64>::new(2);
    let specs = vec![ShardSpec::default(); 2];
    let (done, finished) = std::sync::mpsc::channel::<()>();
    let finished = std::sync::Arc::new(std::sync::Mutex::new(finished));
    let running = start(&specs, HelperSpec::default(), move |shard| {
        let (boxes, done, finished) = (boxes.clone(), done.clone(), finished.clone());
        async move {
            let post = Post::new(boxes, shard.index);
            post.serve(|question, answer| answer.send(question + 1));
            if shard.index == 1 {
                while finished.lock().expect("one user").try_recv().is_err() {
                    clock::sleep(Duration::from_millis(1)).await;
                }
                return Duration::ZERO;
            }
            let begun = Instant::now();
            let group = TaskGroup::new();
            for _ in 0..lanes {
                let post = post.clone();
                group.spawn("lane", async move {
                    for i in 0..calls.div_ceil(lanes) {
                        post.call(1, i).await;
                    }
                });
            }
            group.wait().await;
            let taken = begun.elapsed();
            let _ = done.send(());
            taken
        }
    });
    running.expect("two shards start").join().expect("both end")[0]
}

fn mailbox(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("mailbox");
    group.sample_size(10);
    for lanes in [1, 64] {
        group.bench_function(format!("round trip, {lanes} under way"), |b| {
            b.iter_custom(|iterations| round_trips(iterations.max(lanes), lanes));
        });
    }
    group.finish();
}

criterion_group!(benches, mailbox);
criterion_main!(benches);
